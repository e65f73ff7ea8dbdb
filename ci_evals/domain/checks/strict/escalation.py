"""Checks of whether the agent handed over to a person."""

from typing import ClassVar, Literal

from ci_evals.domain.checks.evidence import EvidenceKind, not_seen
from ci_evals.domain.checks.naming import listed
from ci_evals.domain.checks.strict.workflows import ran_in
from ci_evals.domain.checks.strict_check import LastingCheck, PositiveCheck, family
from ci_evals.domain.transcript import ESCALATION, EndState, Transcript
from ci_evals.domain.verdict import Verdict

HAND_OVER = EvidenceKind(
    "whether the agent hands over",
    lambda turn: turn.hand_over,
    ("escalated", "workflows", "toolCalls"),
    "name the tools that do in adapterOptions.escalationTools, or report escalated",
)


class Escalated(PositiveCheck):
    """Passes if the agent forwarded the conversation to a person."""

    expects_end: ClassVar[EndState | None] = EndState.ESCALATED
    is_unhappy: ClassVar[bool] = True

    strict: Literal["escalated"]

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return HAND_OVER

    def _decide(self, transcript: Transcript) -> Verdict:
        return _escalated(transcript)


class NotEscalated(LastingCheck):
    """Passes if the agent did not forward the conversation to a person."""

    strict: Literal["not_escalated"]

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return HAND_OVER

    def _decide(self, transcript: Transcript) -> Verdict:
        return _escalated(transcript).opposite()


FAMILY = family(Escalated, NotEscalated)


def _escalated(transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if not turn.hand_over:
            continue
        if turn.handed_over:
            reason = f"the agent handed over to a person in turn {turn.index}"
        else:
            name = next(name for name in turn.workflows or () if name.startswith(ESCALATION))
            reason = ran_in(name, turn)
        return Verdict.passed(reason, turn.index)
    if any(turn.handed_over is not None for turn in transcript.turns):
        reason = "the agent never handed over"
    else:
        seen = listed(name for turn in transcript.turns for name in turn.workflows or ())
        reason = f"{ESCALATION} was not executed; seen: {seen}"
    return not_seen(reason, HAND_OVER, transcript)
