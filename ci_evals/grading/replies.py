"""Which replies of the agent a check on its text looks at."""

from collections.abc import Sequence
from typing import Literal

from ci_evals.domain.transcript import Exchange, Transcript
from ci_evals.domain.verdict import Cause, Outcome, Verdict

Exchanges = Sequence[Exchange]
TurnChoice = int | Literal["last", "any"]

NO_REPLY = Verdict.undecided(Cause.NO_EVIDENCE, "the agent gave no reply")


def replies(turn: TurnChoice, transcript: Transcript) -> Exchanges | Verdict:
    """The replies that `turn` names, at least one; where there is none, what that makes of the check."""
    exchanges = transcript.exchanges
    if not exchanges:
        return NO_REPLY
    match turn:
        case "any":
            return exchanges
        case "last":
            return exchanges[-1:] if transcript.unanswered is None else _unanswered(transcript)
    named = [exchange for exchange in exchanges if exchange.index == turn]
    if named:
        return named
    reason = f"there is no reply {turn}: the agent replied {times(len(exchanges))}"
    return Verdict.undecided(Cause.NO_EVIDENCE, reason)


def if_all_came(verdict: Verdict, turn: TurnChoice, transcript: Transcript) -> Verdict:
    """The verdict of a search in replies; undecided if it found nothing and a reply is missing."""
    missing = turn == "any" and transcript.unanswered is not None
    return _unanswered(transcript) if missing and verdict.outcome is Outcome.FAILED else verdict


def _unanswered(transcript: Transcript) -> Verdict:
    return Verdict.undecided(Cause.NO_EVIDENCE, f"message {transcript.unanswered} got no reply")


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"
