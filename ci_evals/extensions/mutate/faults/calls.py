"""Faults of tool calls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from ci_evals.domain.actions import (
    calls_of,
    other_workflows,
    own_calls,
    params_are_arguments,
    views_of,
    with_calls,
)
from ci_evals.domain.transcript import (
    ESCALATION,
    Integration,
    ToolCall,
    ToolStatus,
    Transcript,
    Turn,
    UserSource,
)
from ci_evals.extensions.mutate.faults import end_state
from ci_evals.extensions.mutate.faults.changed_values import changed
from ci_evals.extensions.mutate.faults.conversation import Conversation

_SERVER_ERROR = 500


@dataclass(frozen=True)
class _Site:
    """A call in a conversation: a tool call, or an integration of an agent that reports these instead."""

    position: int
    """Of its turn, counted from 0."""
    index: int
    """Among the calls of its turn."""
    call: ToolCall | Integration

    @property
    def as_call(self) -> ToolCall:
        """The call as checks of tool calls see it."""
        return _as_call(self.call)


def call_dropped(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that skips a call, and speaks and acts as if it had made it."""
    site = next(_sites(conversation), None)
    if site is None:
        return None
    transcript = _with_calls_at(conversation, site, ())
    return end_state.without_effect(conversation, site.as_call, transcript)


def call_changed(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that calls the right tool with a wrong argument.

    What the call returns is unknown then. If the argument names the object, the call has no effect on that
    one; otherwise its effect is unknown.
    """
    for site in _sites(conversation):
        other = _with_wrong_argument(site.call)
        if other is not None:
            transcript = _with_calls_at(conversation, site, (other,))
            return end_state.with_effect_of_other(conversation, site.as_call, _as_call(other), transcript)
    return None


def call_repeated(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that makes a call twice, such as one that pays out two refunds."""
    site = next(_sites(conversation), None)
    if site is None:
        return None
    transcript = _with_calls_at(conversation, site, (site.call, site.call))
    return end_state.with_unknown_effect(conversation, site.as_call, transcript)


def call_forbidden(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that also calls a tool that this task has no use for.

    The tool is one that another test of the suite has seen, with the arguments that it had there.
    """
    own = {_as_call(site.call).name for site in _sites(conversation)}
    others = Conversation(conversation.transcript.copy_with(turns=conversation.others.turns), ())
    added = next((site.call for site in _sites(others) if _as_call(site.call).name not in own), None)
    if added is None:
        return None
    for position, turn in enumerate(conversation.turns):
        calls = _calls_like(turn, added)
        if calls is not None:
            transcript = conversation.with_turn(position, with_calls_of(turn, (*calls, added)))
            return end_state.with_unknown_effect(conversation, _as_call(added), transcript)
    return None


def call_failed(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that takes no notice of a call that ended in an error."""
    for site in _sites(conversation):
        if site.as_call.status is not ToolStatus.ERROR:
            transcript = _with_calls_at(conversation, site, (_as_failed(site.call),))
            return end_state.without_effect(conversation, site.as_call, transcript)
    return None


def without_calls(turn: Turn) -> Turn:
    """Return a turn in which the agent did nothing, as far as it reports what it does."""
    nothing = without_trace(turn).copy_with(
        named_params=(),
        tool_calls_derived=False,
        workflows=_emptied(turn.workflows),
        rules=_emptied(turn.rules),
        integrations=_emptied(turn.integrations),
        tool_calls=None if turn.tool_calls_derived else _emptied(turn.tool_calls),
        params=None if turn.params is None else {},
    )
    return _with_derived_calls(nothing)


def without_trace(turn: Turn) -> Turn:
    """Return a turn without its raw trace: in a changed turn it would contradict what is read from it."""
    return turn.copy_with(trace=None, raw=None)


_Item = TypeVar("_Item")


def _emptied(items: tuple[_Item, ...] | None) -> tuple[_Item, ...] | None:
    """Return no items where some were reported; None, which is unknown, stays."""
    return None if items is None else ()


def _sites(conversation: Conversation) -> Iterator[_Site]:
    """Yield the calls in their order, except hand-overs."""
    for position, turn in enumerate(conversation.turns):
        calls: Sequence[ToolCall | Integration] = turn.integrations or ()
        own = own_calls(turn)
        if own is not None:
            calls = own
        for index, call in enumerate(calls):
            if not _as_call(call).name.startswith(ESCALATION):
                yield _Site(position, index, call)


def _as_call(call: ToolCall | Integration) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    (seen, *_) = calls_of(_reply_with(call)).seen
    return seen


def _reply_with(call: Integration) -> Turn:
    return Turn(
        agent="",
        latency_seconds=0,
        index=1,
        user="",
        user_source=UserSource.FIXED,
        workflows=(),
        integrations=(call,),
    )


def _calls_like(turn: Turn, call: ToolCall | Integration) -> Sequence[ToolCall | Integration] | None:
    """Return the calls of a turn that reports calls of this type; None if it does not."""
    return own_calls(turn) if isinstance(call, ToolCall) else turn.integrations


def _with_calls_at(
    conversation: Conversation, site: _Site, calls: Sequence[ToolCall | Integration]
) -> Transcript:
    """Return the transcript with other calls in place of one."""
    turn = conversation.turns[site.position]
    old = tuple(_calls_like(turn, site.call) or ())
    new = (*old[: site.index], *calls, *old[site.index + 1 :])
    return conversation.with_turn(site.position, with_calls_of(turn, new))


def with_calls_of(turn: Turn, calls: Sequence[ToolCall | Integration]) -> Turn:
    """Return a turn with these calls, and with everything that follows from them."""
    own = tuple(call for call in calls if isinstance(call, ToolCall))
    if own_calls(turn) is None:
        integrations = tuple(call for call in calls if isinstance(call, Integration))
        return with_calls_derived_again(turn.copy_with(integrations=integrations))
    turn = without_trace(turn)
    if turn.tool_calls_partial:
        return turn.copy_with(tool_calls=own)
    params = None if params_are_arguments(turn) else turn.params
    return turn.copy_with(**views_of(own, other_workflows(turn), params))


def with_calls_derived_again(turn: Turn) -> Turn:
    """Return a changed turn of an agent that reports integrations, with its tool calls derived again."""
    if turn.tool_calls_derived:
        turn = turn.copy_with(tool_calls=None, tool_calls_derived=False)
    return _with_derived_calls(without_trace(turn))


def _with_derived_calls(turn: Turn) -> Turn:
    """Return the turn with what follows from its calls."""
    reply = with_calls(turn)
    return turn.copy_with(
        tool_calls=reply.tool_calls,
        tool_calls_derived=reply.tool_calls_derived,
        workflows=reply.workflows,
        params=reply.params,
    )


def _with_wrong_argument(call: ToolCall | Integration) -> ToolCall | Integration | None:
    """Return the call with another value of one argument; None if no argument can be changed."""
    if isinstance(call, Integration) and call.tools:
        first, *others = call.tools
        arguments = _with_wrong_value(first.arguments)
        if arguments is None:
            return None
        return call.copy_with(tools=(first.copy_with(arguments=arguments, result=None), *others))
    arguments = _with_wrong_value(call.arguments)
    if arguments is None:
        return None
    if isinstance(call, ToolCall):
        return call.copy_with(arguments=arguments, result=None)
    return call.copy_with(arguments=arguments)


def _with_wrong_value(arguments: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """Return the arguments with another value of one; None if none can be changed."""
    for name, value in (arguments or {}).items():
        other = changed(value)
        if other is not None:
            return {**(arguments or {}), name: other}
    return None


def _as_failed(call: ToolCall | Integration) -> ToolCall | Integration:
    if isinstance(call, ToolCall):
        return call.copy_with(status=ToolStatus.ERROR, result=None)
    tools = call.tools and tuple(tool.copy_with(status=ToolStatus.ERROR, result=None) for tool in call.tools)
    status = None if call.status is None else _SERVER_ERROR
    return call.copy_with(status=status, error="internal error", tools=tools)
