"""Which replies of the agent a check on its text looks at."""

from collections.abc import Sequence
from typing import Literal

from ci_evals.domain.transcript import Transcript, Turn
from ci_evals.domain.verdict import Cause, Outcome, Verdict

Turns = Sequence[Turn]
TurnChoice = int | Literal["last", "any"]

NO_REPLY = Verdict.undecided(Cause.NO_EVIDENCE, "the agent gave no reply")


def replies(choice: TurnChoice, transcript: Transcript) -> Turns | Verdict:
    """The replies that `turn` names, at least one; where there is none, what that makes of the check."""
    turns = transcript.turns
    if not turns:
        return NO_REPLY
    match choice:
        case "any":
            return turns
        case "last":
            return turns[-1:] if transcript.unanswered is None else _unanswered(transcript)
    named = [turn for turn in turns if turn.index == choice]
    if named:
        return named
    reason = f"there is no reply {choice}: the agent replied {times(len(turns))}"
    return Verdict.undecided(Cause.NO_EVIDENCE, reason)


def if_all_came(verdict: Verdict, choice: TurnChoice, transcript: Transcript) -> Verdict:
    """The verdict of a search in replies; undecided if it found nothing and a reply is missing."""
    missing = choice == "any" and transcript.unanswered is not None
    return _unanswered(transcript) if missing and verdict.outcome is Outcome.FAILED else verdict


def _unanswered(transcript: Transcript) -> Verdict:
    return Verdict.undecided(Cause.NO_EVIDENCE, f"message {transcript.unanswered} got no reply")


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"
