"""A turn in words: the actions of the agent, its errors, its time. Not yet sanitized."""

import json
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.actions import AgentAction, LogicKind, is_traced, shown_actions
from ci_evals.domain.transcript import Reply, ToolCall, ToolStatus, Turn, is_empty
from ci_evals.support.json_text import canonical

NO_TRACE = "this reply has no trace"
HANDED_OVER = "handed over to a person"
NO_DETAIL = "no detail"
"""The detail of an error of which the agent says no more."""
_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False)


class ActionList(NamedTuple):
    """The actions of one kind in a turn."""

    label: str
    actions: tuple[AgentAction, ...]


def action_lists(reply: Reply) -> tuple[ActionList, ...]:
    """The actions for a reply, by kind; kinds of which there is none are left out."""
    shown = []
    for kind, actions in shown_actions(reply).items():
        called = tuple([action for action in actions or () if action.tool])
        if others := tuple([action for action in actions or () if not action.tool]):
            derived = kind is LogicKind.WORKFLOW and reply.workflows_derived
            shown.append(ActionList("workflows (from the trace)" if derived else f"{kind}s", others))
        if called:
            shown.append(ActionList("tool calls", called))
    return tuple(shown)


def reply_error(reply: Reply) -> str | None:
    """The detail of a reply that the agent marked as an error; None if it did not."""
    return (reply.error_detail or NO_DETAIL) if reply.error_response else None


def no_actions(reply: Reply) -> str:
    """The sentence for a reply without actions: a trace that never came is not the same as nothing done.

    It names the kinds of actions that the reply reports.
    """
    if not is_traced(reply):
        return NO_TRACE
    known = [kind.value for kind, found in shown_actions(reply).items() if found is not None]
    if reply.tool_calls is not None and reply.rules is None and reply.params is None:
        known = ["tool call"]
    *others, last = known or ["action"]
    return f"nothing: no {', '.join(others)} or {last}" if others else f"nothing: no {last}"


def action_text(action: AgentAction) -> str:
    """An action by its name and value: `amount = 5`, `orders (503)`, `refund(amount: 42)`."""
    match action.kind:
        case LogicKind.PARAMETER if not action.value_reported:
            return f"{action.name} (value not reported)"
        case LogicKind.PARAMETER:
            return f"{action.name} = {_ON_ONE_LINE.encode(action.value)}"
        case LogicKind.INTEGRATION:
            status = action.value
            kind = action.call.type if action.call else None
            return f"{action.name} ({status if status is not None else kind or 'no HTTP status'})"
        case LogicKind.WORKFLOW if isinstance(action.value, dict):
            arguments = (f"{name}: {_ON_ONE_LINE.encode(value)}" for name, value in action.value.items())
            return f"{action.name}({', '.join(arguments)})"
    return action.name


def reply_time(turn: Turn) -> str:
    """The latency of a reply, and the time until its first words if it was streamed."""
    whole = numbers.latency(turn.latency_seconds)
    if turn.first_token_seconds is None:
        return whole
    return f"{whole} (first words after {numbers.latency(turn.first_token_seconds)})"


def call_facts(call: ToolCall) -> tuple[str, ...]:
    """Facts of a tool call beside arguments and result: how it ended, its duration, its agent."""
    known = call.status is not ToolStatus.UNKNOWN
    facts = (
        call.status.value if known else None,
        None if call.duration_ms is None else numbers.latency(call.duration_ms / 1000),
        call.agent and f"by {call.agent}",
        None if call.arguments is not None else f"arguments unknown: {call.not_captured or 'not captured'}",
    )
    return tuple(fact for fact in facts if fact)


def parameter_change(action: AgentAction, before: Reply | None) -> str | None:
    """A parameter's change since the turn before: `new`, `was 5`; None if there is none."""
    if action.kind is not LogicKind.PARAMETER or not action.value_reported:
        return None
    if before is None or before.params is None:
        return None
    previous = before.params.get(action.name)
    if canonical(previous) == canonical(action.value) or (action.is_empty and is_empty(previous)):
        return None
    return "new" if is_empty(previous) else f"was {_ON_ONE_LINE.encode(previous)}"
