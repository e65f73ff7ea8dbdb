"""Checks of whether the agent answered with an error."""

from typing import ClassVar, Literal

from ci_evals.domain.checks.evidence import EvidenceKind, not_seen
from ci_evals.domain.checks.strict_check import LastingCheck, PositiveCheck, family
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Verdict

ERROR = EvidenceKind("whether it is an error", lambda turn: turn.error_response, ("error",))


class EscalatedDueToError(PositiveCheck):
    """Passes if the agent answered with an error response."""

    expects_end: ClassVar[EndState | None] = EndState.AGENT_ERROR
    is_unhappy: ClassVar[bool] = True

    strict: Literal["escalated_due_to_error"]

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return ERROR

    def _decide(self, transcript: Transcript) -> Verdict:
        return _error(transcript)


class NotEscalatedDueToError(LastingCheck):
    """Passes if no reply of the agent was an error response."""

    strict: Literal["not_escalated_due_to_error"]

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return ERROR

    def _decide(self, transcript: Transcript) -> Verdict:
        return _error(transcript).opposite()


FAMILY = family(EscalatedDueToError, NotEscalatedDueToError)


def _error(transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if turn.error_response:
            reason = f"the agent answered with an error in turn {turn.index}"
            if turn.error_detail:
                reason += f": {turn.error_detail}"
            return Verdict.passed(reason, turn.index)
    return not_seen("no reply was an error", ERROR, transcript)
