"""Replies of the engine with all that led to them, and the state of a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from ci_evals.extensions.demo.playbook import Integration, Table


class ResponseType(StrEnum):
    """Kinds of replies."""

    ANSWER = "answer"
    QUESTION = "question"
    BLOCKED = "blocked"
    CONFIRMATION = "confirmation_request"
    ERROR = "error"


@dataclass(frozen=True)
class WorkflowStarted:
    """A workflow started."""

    tool: str
    trigger: Literal["intent_classification", "rule"]
    reason: str


@dataclass(frozen=True)
class ParametersChecked:
    """The parameters that a workflow needs were checked."""

    tool: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class RuleFired:
    """A rule's condition held."""

    tool: str
    code: str
    type: str
    action: str | None
    reason: str
    trigger: Literal["init", "pre-integration"] | None = None
    added: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """New values of a row in the agent's world."""

    table: Table
    row: str
    values: Mapping[str, JsonValue]


@dataclass(frozen=True)
class IntegrationCall:
    """An integration was called. Its status is None if there is none (RAG, MCP)."""

    tool: str
    code: str
    integration: Integration
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    """What it is called with."""
    url: str | None = None
    status: int | None = None
    error: str | None = None
    change: Change | None = None


@dataclass(frozen=True)
class ConfirmationRequest:
    """The user was asked for a yes."""

    tool: str
    preview: str


@dataclass(frozen=True)
class WorkflowAnswer:
    """A workflow ended with a text."""

    tool: str
    text: str
    failed: bool = False


Decision = (
    WorkflowStarted | ParametersChecked | RuleFired | IntegrationCall | ConfirmationRequest | WorkflowAnswer
)


@dataclass(frozen=True)
class RulePart:
    """One comparison of a rule's condition, and whether it holds."""

    name: str
    operation: str
    value: JsonValue
    holds: bool
    of_call: bool
    """True if `name` is an integration, whose status is compared."""


@dataclass(frozen=True)
class RuleEvaluation:
    """A rule that was evaluated, whether it fired or not, with each part of its condition."""

    code: str
    triggered: bool
    parts: tuple[RulePart, ...]


@dataclass(frozen=True)
class DemoReply:
    """The agent's answer to one message, and all that led to it."""

    text: str
    type: ResponseType
    intents: tuple[str, ...] = ()
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    workflows: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    evaluations: tuple[RuleEvaluation, ...] = ()
    refusal: str | None = None
    asking_for: tuple[str, ...] = ()
    because_of_rule: bool = False
    error: str | None = None
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """The state of a conversation after a reply."""

    workflow: str | None = None
    step: int = 0
    """The step of the workflow to continue from."""
    asked_for: str | None = None
    """The parameter that the last reply asked for."""
    confirming: bool = False
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    """Results of rules, computations and integrations of the current workflow."""
    lost: int = 0
    """Messages in a row that led nowhere."""
    angry: int = 0
    forwarded: bool = False
    last: str = ""
    """The last answer of the workflow."""


@dataclass(frozen=True)
class Move:
    """A reply and the state that it leaves."""

    state: State
    reply: DemoReply
