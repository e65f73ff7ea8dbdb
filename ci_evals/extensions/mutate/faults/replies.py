"""Faults of what the agent says."""

from collections.abc import Mapping

from pydantic import JsonValue

from ci_evals.domain.null_agents import CLAIM, REFUSAL
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.extensions.mutate.faults.calls import without_calls
from ci_evals.extensions.mutate.faults.changed_values import with_changed_number
from ci_evals.extensions.mutate.faults.conversation import Conversation
from ci_evals.extensions.mutate.faults.end_state import with_state_before

_FEWEST_WORDS = 3
"""Words of a reply of which a third can be kept."""
_SHORTEST_DATUM = 4
"""Characters of personal data that nobody says by chance."""


def reply_refused(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that refuses whatever it is asked, and does nothing."""
    return _saying_only(conversation, REFUSAL)


def reply_claims(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that claims to have done whatever it is asked, and does nothing."""
    return _saying_only(conversation, CLAIM)


def reply_swapped(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that mixes conversations up: once it gives the reply of another test."""
    said = {turn.agent for turn in conversation.turns}
    for other in conversation.others.turns:
        if other.agent.strip() and other.agent not in said:
            return conversation.with_words(0, other.agent)
    return None


def reply_cut(conversation: Conversation) -> Transcript | None:
    """Stand for an agent whose reply breaks off: the first third of its words is left."""
    for position, turn in enumerate(conversation.turns):
        words = turn.agent.split()
        if len(words) >= _FEWEST_WORDS:
            return conversation.with_words(position, " ".join(words[: len(words) // 3]))
    return None


def fact_changed(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that gets a fact wrong: a number, a date or an amount."""
    for position, turn in enumerate(conversation.turns):
        words = with_changed_number(turn.agent)
        if words is not None:
            return conversation.with_words(position, words)
    return None


def data_told(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that gives away another user's data: a value of another test's `userInfo`."""
    datum = foreign_datum(conversation)
    if datum is None:
        return None
    name, value = datum
    return conversation.with_words(0, f"{conversation.turns[0].agent} ({name}: {value})")


def foreign_datum(conversation: Conversation) -> tuple[str, str] | None:
    """Return the name and value of another user's datum that this conversation does not have."""
    known = " ".join(conversation.texts()).casefold()
    for user_info in conversation.others.user_info:
        for name, value in _data_of(user_info).items():
            if value.casefold() not in known:
                return name, value
    return None


def _saying_only(conversation: Conversation, words: str) -> Transcript:
    """Return the conversation with an agent that says the same in every reply.

    The user's fixed messages stay. What a model would write to such an agent is unknown, and changes nothing
    about what the agent does: the conversation ends before.
    """
    turns: list[Turn] = []
    for number, planned in enumerate(conversation.planned, start=1):
        if turns and planned.auto:
            break
        if number <= len(conversation.turns):
            turn = _doing_nothing(conversation.turns[number - 1], words)
        else:  # the agent had ended the conversation before this line
            turn = turns[-1].copy_with(index=number, user=planned.user, user_source=UserSource.FIXED)
        turns.append(turn)
    ended = EndState.COMPLETED if len(turns) == len(conversation.planned) else EndState.STOPPED
    transcript = conversation.transcript.copy_with(turns=tuple(turns), status=ended, error=None, cause=None)
    return with_state_before(conversation, transcript)


def _doing_nothing(turn: Turn, words: str) -> Turn:
    return without_calls(turn).copy_with(
        agent=words,
        error_detail=None,
        handed_over=None if turn.handed_over is None else False,
        error_response=None if turn.error_response is None else False,
    )


def _data_of(user_info: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the values that say who somebody is: texts and numbers that are long enough."""
    found = {}
    for name, value in user_info.items():
        if isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value).strip()
            if len(text) >= _SHORTEST_DATUM:
                found[name] = text
    return found
