"""The replies of the agent that a check on their text looks at."""

from collections.abc import Callable, Sequence

from ci_evals.domain.criterion import TurnChoice
from ci_evals.domain.transcript import Transcript, Turn
from ci_evals.domain.verdict import Cause, Outcome, Verdict

Turns = Sequence[Turn]

NO_REPLY = Verdict.undecided(Cause.NO_EVIDENCE, "the agent gave no reply")


def select_replies(choice: TurnChoice, transcript: Transcript) -> Turns | Verdict:
    """Return the replies that `turn` names, at least one; without any, the verdict on the check."""
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


def verdict_on_replies(
    choice: TurnChoice, transcript: Transcript, search: Callable[[Turns], Verdict]
) -> Verdict:
    """Return the verdict of a search in the replies that `turn` names."""
    turns = select_replies(choice, transcript)
    if isinstance(turns, Verdict):
        return turns
    return unless_incomplete(search(turns), choice, transcript)


def unless_incomplete(verdict: Verdict, choice: TurnChoice, transcript: Transcript) -> Verdict:
    """Return the verdict of a search; undecided if it found nothing and a reply is missing."""
    is_incomplete = choice == "any" and transcript.unanswered is not None
    if is_incomplete and verdict.outcome is Outcome.FAILED:
        return _unanswered(transcript)
    return verdict


def unless_unanswered(verdict: Verdict, transcript: Transcript) -> Verdict:
    """Return the verdict on a limit; undecided if it may be exceeded yet, as a reply is missing."""
    if transcript.unanswered is None or verdict.outcome is Outcome.FAILED:
        return verdict
    reason = f"message {transcript.unanswered} got no reply; until then {verdict.reason}"
    return Verdict.undecided(Cause.NO_EVIDENCE, reason)


def _unanswered(transcript: Transcript) -> Verdict:
    return Verdict.undecided(Cause.NO_EVIDENCE, f"message {transcript.unanswered} got no reply")


def times(count: int) -> str:
    """Return `once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"
