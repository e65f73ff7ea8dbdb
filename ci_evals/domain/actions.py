"""The actions of an agent for a reply, as its trace reports them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from pydantic import JsonValue

from ci_evals.domain.transcript import Integration, Reply, is_empty
from ci_evals.support.json_text import canonical


class LogicKind(StrEnum):
    """The parts of an agent's logic that its traces name."""

    WORKFLOW = "workflow"
    PARAMETER = "parameter"
    RULE = "rule"
    INTEGRATION = "integration"


class AgentAction(NamedTuple):
    """A workflow that ran, a parameter extracted, a rule that fired, or an integration called."""

    kind: LogicKind
    name: str
    value: JsonValue = None
    """A parameter's value, or the HTTP status of a call."""
    value_reported: bool = True
    """False for a parameter of which the trace has the name alone."""
    call: Integration | None = None

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
        call = self.call
        return call is not None and (bool(call.error) or (call.status is not None and call.status >= 400))


ActionsByKind: TypeAlias = Mapping[LogicKind, tuple[AgentAction, ...] | None]
"""None for a kind that the reply does not report: no evidence that nothing was done."""


def actions_of(reply: Reply) -> ActionsByKind:
    """All actions for a reply, in the order in which it reports them."""
    return {
        LogicKind.WORKFLOW: _named(LogicKind.WORKFLOW, reply.workflows),
        LogicKind.PARAMETER: _parameters(reply),
        LogicKind.RULE: _named(LogicKind.RULE, reply.rules),
        LogicKind.INTEGRATION: None if reply.integrations is None else tuple(map(_call, reply.integrations)),
    }


def is_traced(reply: Reply) -> bool:
    """Return whether the reply reports any kind of action."""
    reported = (reply.workflows, reply.params, reply.rules, reply.integrations)
    return any(part is not None for part in reported) or bool(reply.named_params)


def _named(kind: LogicKind, names: tuple[str, ...] | None) -> tuple[AgentAction, ...] | None:
    return None if names is None else tuple(AgentAction(kind, name) for name in names)


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
