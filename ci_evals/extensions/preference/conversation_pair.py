"""Preference between two conversations: one call for each order in which a judge can be shown them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import Transcript
from ci_evals.extensions.preference.result import Better
from ci_evals.grading.grounds import NO_WORDS
from ci_evals.grading.judge import UNREADABLE
from ci_evals.grading.transcript_view import background, conversation
from ci_evals.ports import LLM, Completion, Prompt, ask_twice
from ci_evals.support.json_text import strict_object
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import Data, as_data, render
from ci_evals.support.text import has_words

SYSTEM_TEMPLATE = "extensions/preference/prompts/prefer_system.md.j2"
TEMPLATE = "extensions/preference/prompts/prefer.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

SCHEMA = strict_object(
    {
        "reasoning": {"type": "string"},
        "better": {"type": "string", "enum": ["first", "second", "tie"]},
    }
)


class PreferenceAnswer(BaseModel):
    """The form of a judge's answer, reasoning first."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasoning: str
    better: Better


class JudgedPreference(NamedTuple):
    """A judge's preference, and its reason."""

    better: Better | None
    """None if the judge could not be asked or read."""
    reason: str


@dataclass(frozen=True)
class ComparedConversation:
    """One of the two conversations."""

    turns: Sequence[PlannedTurn]
    transcript: Transcript


@dataclass(frozen=True)
class ConversationPair:
    """Two conversations of the same test before a judge."""

    redactor: Redactor
    test: TestResult
    criteria: Sequence[str]
    """The criteria of the test's author."""
    one: ComparedConversation
    other: ComparedConversation

    @cached_property
    def _shared(self) -> Mapping[str, Data]:
        """The parts of the prompt that do not depend on the order."""
        parts = {"background": background(self.test), "criteria": list(self.criteria)}
        return {name: as_data(self.redactor.json(value)) for name, value in parts.items()}

    @cached_property
    def _conversations(self) -> Sequence[Data]:
        shown = (conversation(each.turns, each.transcript).listed() for each in (self.one, self.other))
        return [as_data(self.redactor.json(turns)) for turns in shown]

    @property
    def identical(self) -> bool:
        """True if a judge would be shown the same words twice."""
        one, other = self._conversations
        return one == other

    async def ask(self, llm: LLM, *, swapped: bool, sample_id: str = "prefer") -> JudgedPreference:
        """Ask which is better, with the other one shown first if `swapped`."""
        first, second = reversed(self._conversations) if swapped else self._conversations
        prompt = Prompt(
            system=render(SYSTEM_TEMPLATE),
            text=render(TEMPLATE, first=first, second=second, **self._shared),
            schema=SCHEMA,
            schema_name="preference",
            sample_id=sample_id,
        )
        try:
            return await ask_twice(llm, prompt, partial(_read, shown=prompt.text))
        except LLMError as error:
            return JudgedPreference(None, str(error))


def _read(completion: Completion, shown: str) -> JudgedPreference:
    answer = parse_answer(PreferenceAnswer, completion.text, shown)
    if answer is None:
        raise LLMAnswerError(UNREADABLE)
    if not has_words(answer.reasoning):
        raise LLMAnswerError(NO_WORDS)
    return JudgedPreference(answer.better, answer.reasoning.strip())
