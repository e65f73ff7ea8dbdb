"""Checks of which workflows ran; of agents without workflows, which tools were called."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from ci_evals.domain.actions import LogicKind, LogicPart
from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.evidence import EvidenceKind, not_seen
from ci_evals.domain.checks.naming import listed, other_names
from ci_evals.domain.checks.strict_check import (
    ConversationLength,
    PositiveCheck,
    StrictCheck,
    WeakSpot,
    family,
)
from ci_evals.domain.criterion import TurnNumber
from ci_evals.domain.transcript import Transcript, Turn
from ci_evals.domain.verdict import Outcome, Verdict
from ci_evals.support.typography import names

WORKFLOWS = EvidenceKind(
    "workflows",
    lambda turn: None if turn.tool_calls_partial else turn.workflows,
    ("workflows", "toolCalls"),
)


class ToolUsed(PositiveCheck):
    """Passes if the workflow was executed."""

    strict: Literal["tool_used"]
    tool_name: NonBlank = Field(description="A workflow's name, as in `executed_workflows`.")

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return WORKFLOWS

    def _decide(self, transcript: Transcript) -> Verdict:
        return _ran(self.tool_name, transcript)

    def covers(self) -> LogicPart:
        return LogicKind.WORKFLOW, self.tool_name

    def tool_names(self) -> Sequence[str]:
        return (self.tool_name,)

    def codes(self) -> Sequence[str]:
        return (self.tool_name,)

    def arguments_hint(self) -> str:
        return "use tool_called with 'args'"


class ToolNotUsed(StrictCheck):
    """Passes if the workflow was not executed (before turn `beforeTurn`, if given)."""

    is_unhappy: ClassVar[bool] = True

    strict: Literal["tool_not_used"]
    tool_name: NonBlank = Field(description="A workflow's name, as in `executed_workflows`.")
    before_turn: TurnNumber | None = Field(
        None, description="Counted from 1. Used at this turn or later, the workflow does no harm."
    )

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return WORKFLOWS

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        before = self.before_turn
        return [turn for turn in later if before is None or turn < before]

    def _decide(self, transcript: Transcript) -> Verdict:
        name, limit = self.tool_name, self.before_turn
        if limit is None:
            return _ran(name, transcript).opposite()
        verdict = _ran(name, _before(limit, transcript)).opposite()
        later = _ran(name, transcript)
        if verdict.outcome is Outcome.PASSED and later.outcome is Outcome.PASSED:
            return Verdict.passed(f"{later.reason}, not before turn {limit}", *later.evidence)
        if verdict.outcome is Outcome.UNDECIDED:
            reason = f"before turn {limit} {verdict.reason}"
            return replace(verdict, reason=reason)
        return verdict

    def tool_names(self) -> Sequence[str]:
        return (self.tool_name,)

    def codes(self) -> Sequence[str]:
        return (self.tool_name,)

    def forbidden_tool(self) -> str | None:
        return self.tool_name if self.before_turn is None else None

    def weak_spots(self, length: ConversationLength) -> Iterator[WeakSpot]:
        del length
        if self.before_turn == 1:
            message = "is 1, and no turn comes before it: no conversation can fail"
            yield WeakSpot("beforeTurn", message)


FAMILY = family(ToolUsed, ToolNotUsed)


def ran_in(name: str, turn: Turn) -> str:
    """Return that a workflow ran, as a sentence."""
    derived = " (read from the trace)" if turn.workflows_derived else ""
    return f"{name} was executed in turn {turn.index}{derived}"


def _ran(name: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if names.among(name, turn.workflows or ()):
            return Verdict.passed(ran_in(name, turn), turn.index)
    executed = [code for turn in transcript.turns for code in turn.workflows or ()]
    note = other_names((name,), executed)
    reason = f"{name} was not executed; seen: {listed(executed)}{note}"
    return not_seen(reason, WORKFLOWS, transcript)


def _before(limit: int, transcript: Transcript) -> Transcript:
    """Return what is known of the turns before this one."""
    unanswered = transcript.unanswered
    if unanswered is not None and unanswered >= limit:
        unanswered = None
    turns = tuple(turn for turn in transcript.turns if turn.index < limit)
    return transcript.copy_with(turns=turns, unanswered=unanswered)
