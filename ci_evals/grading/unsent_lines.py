"""Lines of a test that were never sent, as the agent ended the conversation before them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.verdict import Cause, Outcome, Verdict


@dataclass(frozen=True)
class UnsentLines:
    """Lines of a test that were never sent, as the agent ended the conversation before them."""

    lines: Sequence[int]
    """The numbers of their turns."""
    because: str
    """The agent's act: `the agent handed over to a person`."""
    allowed: bool = False
    """True if the test allows that."""

    def limit(self, check: Judged | StrictCheck, verdict: Verdict) -> Verdict:
        """Return the verdict; `not_reached` if the replies to these lines could have decided it otherwise.

        If the agent's act is allowed, the verdict stays, and its reason names these lines.
        """
        turn: object = getattr(check, "turn", None)
        if verdict.cause is Cause.NO_EVIDENCE and isinstance(turn, int) and turn in self.lines:
            return self._not_reached([turn], "")
        graded = verdict.grade is not None and verdict.grade.score > 0
        if verdict.outcome is not Outcome.PASSED and not graded:
            return verdict
        missing = check.undone_by(self.lines)
        if not missing:
            return verdict
        if self.allowed:
            reason = f"{self._reason(missing)}, as the test allows; until then {verdict.reason}"
            return replace(verdict, reason=reason)
        return self._not_reached(missing, f"; until then {verdict.reason}")

    def _not_reached(self, missing: Sequence[int], until_then: str) -> Verdict:
        reason = self._reason(missing) + until_then
        return Verdict.undecided(Cause.NOT_REACHED, reason, self.lines[0] - 1)

    def _reason(self, missing: Sequence[int]) -> str:
        return f"{_never_sent(missing)}: {self.because} in turn {self.lines[0] - 1}"


def _never_sent(lines: Sequence[int]) -> str:
    """Return `line 3 was never sent`, `lines 2, 3 and 4 were never sent`."""
    if len(lines) == 1:
        return f"line {lines[0]} was never sent"
    *others, last = map(str, lines)
    return f"lines {', '.join(others)} and {last} were never sent"
