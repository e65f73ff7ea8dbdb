"""Checks of what the agent said, and how long it took."""

from typing import Literal

from pydantic import Field

from ci_evals.domain.checks.criterion import Criterion, Pattern, TurnNumber
from ci_evals.domain.checks.matcher import ExpectedAnswer


class _TextCheck(Criterion):
    turn: TurnNumber | Literal["last", "any"] = Field(
        "last", description="Which reply of the agent: its number, `last`, or `any`."
    )


class _Folded(_TextCheck):
    raw: bool = Field(
        default=False,
        description="Search the text as written. By default typography does not count: quotation marks, "
        "dashes, blanks, line breaks, Markdown, and in negative checks look-alikes.",
    )


class Contains(_Folded):
    """Passes if the agent's text contains `text` (case counts)."""

    strict: Literal["contains"]
    text: str = Field(min_length=1, description="The text to look for.")


class NotContains(_Folded):
    """Passes if the agent's text does not contain `text`; with `any`, if no reply does."""

    strict: Literal["not_contains"]
    text: str = Field(min_length=1, description="The text that must not appear.")


class Regex(_Folded):
    """Passes if the regular expression is found in the agent's text."""

    strict: Literal["regex"]
    pattern: Pattern = Field(description="A regular expression in Python's syntax.")


class NotRegex(_Folded):
    """Passes if the regular expression is not found; with `any`, in no reply."""

    strict: Literal["not_regex"]
    pattern: Pattern = Field(description="A regular expression in Python's syntax.")


class AnswerMatches(ExpectedAnswer, _TextCheck):
    """Passes if the agent's text answers what was expected, compared as `match` says."""

    strict: Literal["answer_matches"]


class MaxAgentTurns(Criterion):
    """Passes if the agent replied at most `turns` times."""

    strict: Literal["max_agent_turns"]
    turns: TurnNumber = Field(description="Maximum number of replies in the conversation.")


class MaxLatency(Criterion):
    """Passes if the slowest reply took at most `seconds`."""

    strict: Literal["max_latency"]
    seconds: float = Field(gt=0, description="The longest that a reply may take, in seconds.")
