"""What the engine says and remembers: replies with all that led to them, and the state of a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from ci_evals.demo_agent.playbook import Integration


class ResponseType(StrEnum):
    """What kind of reply the agent gave."""

    ANSWER = "answer"
    QUESTION = "question"
    BLOCKED = "blocked"
    CONFIRMATION = "confirmation_request"
    ERROR = "error"


@dataclass(frozen=True)
class Activated:
    """A workflow began."""

    tool: str
    trigger: Literal["intent_classification", "rule"]
    reason: str


@dataclass(frozen=True)
class ParamsChecked:
    """The parameters that a workflow needs were looked at."""

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
class Called:
    """An integration was called. Its status is null where there is none (RAG, MCP)."""

    tool: str
    code: str
    integration: Integration
    url: str | None = None
    status: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class ConfirmationAsked:
    """The user was asked for a yes."""

    tool: str
    preview: str


@dataclass(frozen=True)
class Answered:
    """A workflow ended with a text."""

    tool: str
    text: str
    failed: bool = False


Decision = Activated | ParamsChecked | RuleFired | Called | ConfirmationAsked | Answered


@dataclass(frozen=True)
class RuleEvaluation:
    """A rule that was looked at, whether it fired or not, and how each part of its condition came out."""

    code: str
    triggered: bool
    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Reply:
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
    """Where a conversation stands after a reply."""

    workflow: str | None = None
    step: int = 0
    """The step of the workflow to go on from."""
    asked: str | None = None
    """The parameter that the last reply asked for."""
    confirming: bool = False
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    """What rules, computations and integrations found out for the workflow under way."""
    lost: int = 0
    """Messages in a row that led nowhere."""
    angry: int = 0
    forwarded: bool = False
    last: str = ""
    """The workflow's answer that was given last."""


@dataclass(frozen=True)
class Move:
    """A reply and the state that it leaves."""

    state: State
    reply: Reply
