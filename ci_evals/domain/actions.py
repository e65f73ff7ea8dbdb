"""The actions of an agent for a reply, as its trace reports them."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypedDict

from pydantic import JsonValue

from ci_evals.domain.transcript import Integration, Reply, ToolCall, ToolStatus, is_empty
from ci_evals.support.json_text import canonical


class LogicKind(StrEnum):
    """The parts of an agent's logic that its traces name."""

    WORKFLOW = "workflow"
    PARAMETER = "parameter"
    RULE = "rule"
    INTEGRATION = "integration"


LogicPart: TypeAlias = tuple[LogicKind, str]
"""A part of the agent's logic: its kind and its name."""


class AgentAction(NamedTuple):
    """A workflow that ran, a parameter extracted, a rule that fired, or an integration called."""

    kind: LogicKind
    name: str
    value: JsonValue = None
    """A parameter's value, the arguments of a tool call, or the HTTP status of an integration."""
    value_reported: bool = True
    """False for a parameter of which the trace has the name alone."""
    call: Integration | None = None
    tool: ToolCall | None = None

    @property
    def key(self) -> tuple[LogicKind, str, str]:
        """Equal for actions that are the same."""
        return self.kind, self.name, canonical(self.value)

    @property
    def is_empty(self) -> bool:
        """True if it is a parameter whose value counts as nothing."""
        return self.kind is LogicKind.PARAMETER and self.value_reported and is_empty(self.value)

    @property
    def failed(self) -> bool:
        """True if it is a call that came to an error, or to an HTTP status from 400 on."""
        if self.tool is not None:
            return self.tool.status is ToolStatus.ERROR
        call = self.call
        return call is not None and (bool(call.error) or (call.status is not None and call.status >= 400))


ActionsByKind: TypeAlias = Mapping[LogicKind, tuple[AgentAction, ...] | None]
"""None for a kind that the reply does not report: no evidence that nothing was done."""


def actions_of(reply: Reply) -> ActionsByKind:
    """All actions for a reply, in the order in which it reports them."""
    return {
        LogicKind.WORKFLOW: _workflows(reply),
        LogicKind.PARAMETER: _parameters(reply),
        LogicKind.RULE: _named(LogicKind.RULE, reply.rules),
        LogicKind.INTEGRATION: None if reply.integrations is None else tuple(map(_call, reply.integrations)),
    }


def shown_actions(reply: Reply) -> ActionsByKind:
    """The same without parameters that are but the arguments of tool calls, which would stand there twice."""
    actions = actions_of(reply)
    return {**actions, LogicKind.PARAMETER: None} if params_are_arguments(reply) else actions


class Calls(NamedTuple):
    """The tool calls for a reply, as far as they are known."""

    seen: tuple[ToolCall, ...]
    complete: bool
    """False if there may be others."""


def calls_of(reply: Reply) -> Calls:
    """Return the tool calls for a reply; without such a report, its workflows and integrations as such."""
    if reply.tool_calls is not None and not reply.tool_calls_derived:
        return Calls(reply.tool_calls, complete=not reply.tool_calls_partial)
    workflows = (ToolCall(name=name, not_captured=_NAMES_ONLY) for name in reply.workflows or ())
    integrations = (call for made in reply.integrations or () for call in made.tools or (_as_call(made),))
    known = reply.workflows is not None and reply.integrations is not None
    return Calls((*workflows, *integrations), complete=known and not reply.tool_calls_partial)


_NAMES_ONLY = "the agent reports only names"


def _as_call(call: Integration) -> ToolCall:
    return ToolCall(
        name=call.code,
        arguments=call.arguments,
        status=_status(call),
        not_captured=_NAMES_ONLY if call.arguments is None else None,
    )


def _status(call: Integration) -> ToolStatus:
    if AgentAction(LogicKind.INTEGRATION, call.code, call=call).failed:
        return ToolStatus.ERROR
    return ToolStatus.UNKNOWN if call.status is None else ToolStatus.OK


class CallViews(TypedDict):
    """Fields of a reply that follow from its tool calls."""

    tool_calls: tuple[ToolCall, ...] | None
    workflows: tuple[str, ...] | None
    params: dict[str, JsonValue] | None


def views_of(
    calls: Sequence[ToolCall] | None,
    workflows: Sequence[str] | None = None,
    params: dict[str, JsonValue] | None = None,
) -> CallViews:
    """Return the calls, and what older checks read: their names as workflows, all arguments as parameters.

    A later call's argument replaces an earlier one of its name. The parameters are unknown if the arguments
    of any call are. Workflows and parameters that are reported beside the calls stay.
    """
    if calls is None:
        return CallViews(
            tool_calls=None, workflows=None if workflows is None else tuple(workflows), params=params
        )
    arguments: dict[str, JsonValue] | None = {}
    for call in calls:
        arguments = None if arguments is None or call.arguments is None else arguments | call.arguments
    others = set(workflows or ())
    return CallViews(
        tool_calls=tuple(calls),
        workflows=(*(workflows or ()), *(call.name for call in calls if call.name not in others)),
        params=arguments if params is None else params,
    )


def with_calls(reply: Reply) -> Reply:
    """Return a reply with its calls and their views, as results have it; not if there may be more calls."""
    if reply.tool_calls_partial:
        return reply
    if reply.tool_calls is not None:
        return reply.copy_with(**views_of(reply.tool_calls, reply.workflows, reply.params))
    calls = calls_of(reply)
    if not calls.complete:
        return reply
    return reply.copy_with(tool_calls=calls.seen, tool_calls_derived=True)


def own_calls(reply: Reply) -> tuple[ToolCall, ...] | None:
    """Return the calls that a reply reports as such; None if it reports none."""
    return None if reply.tool_calls_derived else reply.tool_calls


def other_workflows(reply: Reply) -> tuple[str, ...] | None:
    """Return the workflows that are not the tools of a reply's calls."""
    tools = {call.name for call in own_calls(reply) or ()}
    others = tuple(name for name in reply.workflows or () if name not in tools)
    return others or (None if own_calls(reply) is not None else reply.workflows)


def params_are_arguments(reply: Reply) -> bool:
    """Return whether a reply's parameters are but the arguments of its tool calls, as `views_of` has them."""
    calls = own_calls(reply)
    return calls is not None and reply.params == views_of(calls)["params"]


def is_traced(reply: Reply) -> bool:
    """Return whether the reply reports any kind of action."""
    reported = (reply.workflows, reply.tool_calls, reply.params, reply.rules, reply.integrations)
    return any(part is not None for part in reported) or bool(reply.named_params)


def _named(kind: LogicKind, names: tuple[str, ...] | None) -> tuple[AgentAction, ...] | None:
    return None if names is None else tuple([AgentAction(kind, name) for name in names])


def _workflows(reply: Reply) -> tuple[AgentAction, ...] | None:
    others = _named(LogicKind.WORKFLOW, other_workflows(reply))
    if (calls := own_calls(reply)) is None:
        return others
    called = (AgentAction(LogicKind.WORKFLOW, call.name, call.arguments, tool=call) for call in calls)
    return (*(others or ()), *called)


def _parameters(reply: Reply) -> tuple[AgentAction, ...] | None:
    if reply.params is None and not reply.named_params:
        return None
    values = (reply.params or {}).items()
    return (
        *(AgentAction(LogicKind.PARAMETER, name, value) for name, value in values),
        *(AgentAction(LogicKind.PARAMETER, name, value_reported=False) for name in reply.named_params),
    )


def _call(call: Integration) -> AgentAction:
    return AgentAction(LogicKind.INTEGRATION, call.code, call.status, call=call)
