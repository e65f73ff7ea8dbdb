"""The evidence in a transcript, turn by turn, and what follows where there is none.

Evidence of each kind is known or unknown, turn by turn. A positive check passes as soon as there is any, and
fails only if every turn in its range has evidence of its kind; a negative check is its opposite. If a turn is
unknown and nothing contradicts the check, the verdict is undecided (`no_evidence`) and names the turns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ci_evals.domain.transcript import Transcript, Turn
from ci_evals.domain.verdict import Cause, Verdict


@dataclass(frozen=True)
class EvidenceKind:
    """A kind of evidence, and where a reply has it."""

    report: str
    """Object of the verb "reports" in messages."""
    of: Callable[[Turn], object]
    """Returns None if it is unknown."""
    keys: tuple[str, ...]
    """The keys in `not_found` of what should find it."""
    cure: str = ""
    """The remedy if no reply ever reports it; empty if it depends on the kind of agent."""


def not_seen(reason: str, kind: EvidenceKind, transcript: Transcript, *evidence: int) -> Verdict:
    """Return the verdict of a positive check that saw nothing: undecided if a turn lacks evidence."""
    gap = find_gap(kind, transcript)
    if gap is None:
        return Verdict.failed(reason, *evidence)
    return gap.verdict(f"in the other turns {reason}")


@dataclass(frozen=True)
class Gap:
    """Turns without evidence."""

    turns: tuple[int, ...]
    """The answered ones."""
    reason: str
    cause: Cause
    everywhere: bool
    """True if no turn has evidence."""

    def verdict(self, elsewhere: str) -> Verdict:
        """Return the verdict of a check that the missing turns could decide."""
        reason = self.reason if self.everywhere else f"{self.reason}; {elsewhere}"
        return Verdict.undecided(self.cause, reason, *self.turns)


def find_gap(kind: EvidenceKind, transcript: Transcript, *, after: int = 0) -> Gap | None:
    """Return the turns later than `after` without evidence of a kind; None if there are none."""
    turns = [turn for turn in transcript.turns if turn.index > after and kind.of(turn) is None]
    silent = tuple(turn.index for turn in turns)
    everywhere = len(silent) == len(transcript.turns)
    reasons = []
    if silent and everywhere:
        reasons = [f"no reply reports {kind.report}"]
    elif silent:
        reasons = [f"{_replies_of(silent)} report {kind.report}"]
    if transcript.unanswered is not None:
        reasons.append(f"message {transcript.unanswered} got no reply")
    reason = " and ".join(reasons)
    for turn in turns:
        if turn.trace_missing:
            return Gap(silent, f"{reason}: {turn.trace_missing}", Cause.NO_TRACE, everywhere)
    if not reasons:
        return None
    why = _why_not_found(kind, turns)
    if everywhere and not why:
        why = kind.cure
    if why:
        reason = f"{reason}: {why}"
    return Gap(silent, reason, Cause.NO_EVIDENCE, everywhere)


def _why_not_found(kind: EvidenceKind, turns: Sequence[Turn]) -> str | None:
    for turn in turns:
        for key in kind.keys:
            if key in turn.not_found:
                return turn.not_found[key]
    return None


def _replies_of(turns: Sequence[int]) -> str:
    """Return the subject of a sentence about replies that do not report something."""
    if len(turns) == 1:
        return f"the reply in turn {turns[0]} does not"
    return f"the replies in turns {', '.join(map(str, turns))} do not"
