"""Faults of hand-overs to a person."""

from ci_evals.domain.transcript import ESCALATION, EndState, Transcript, Turn
from ci_evals.extensions.mutate.faults.calls import with_calls_derived_again
from ci_evals.extensions.mutate.faults.conversation import Conversation


def hand_over_dropped(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that says that it hands over to a person, and never does."""
    if not any(turn.escalated for turn in conversation.turns):
        return None
    turns = tuple(_without_hand_over(turn) if turn.escalated else turn for turn in conversation.turns)
    status = conversation.transcript.status
    if status is EndState.ESCALATED:
        is_whole = len(turns) == len(conversation.planned)
        status = EndState.COMPLETED if is_whole else EndState.STOPPED
    return conversation.transcript.copy_with(turns=turns, status=status)


def hand_over_added(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that hands over to a person in its first reply, which ends the conversation.

    None if the test allows that: it is no fault.
    """
    first, *_ = conversation.turns
    if conversation.may_escalate or first.escalated or first.hand_over is None:
        return None
    if first.handed_over is None:
        turn = _with_workflows(first, (*(first.workflows or ()), ESCALATION))
    else:
        turn = first.copy_with(handed_over=True, trace=None, raw=None)
    return conversation.transcript.copy_with(turns=(turn,), status=EndState.ESCALATED)


def _without_hand_over(turn: Turn) -> Turn:
    """Return the turn with no sign of a hand-over."""
    kept = tuple(name for name in turn.workflows or () if not name.startswith(ESCALATION))
    calls = tuple(call for call in turn.tool_calls or () if not call.name.startswith(ESCALATION))
    turn = _with_workflows(turn, None if turn.workflows is None else kept)
    if turn.tool_calls is not None and not turn.tool_calls_derived:
        turn = turn.copy_with(tool_calls=calls)
    if turn.handed_over is not None:
        turn = turn.copy_with(handed_over=False)
    return turn


def _with_workflows(turn: Turn, workflows: tuple[str, ...] | None) -> Turn:
    return with_calls_derived_again(turn.copy_with(workflows=workflows))
