"""A run of an agent that speaks AG-UI, as `wire` reads it."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.domain.transcript import ToolCall
from ci_evals.support.json_text import JsonObject

NO_STATE = "the agent sent no state: neither STATE_SNAPSHOT nor STATE_DELTA"

Message = JsonObject


@dataclass
class AgentState:
    """The state that client and agent share in a conversation."""

    value: JsonValue
    problem: str | None = NO_STATE
    """Why it is not known, if it is not."""


@dataclass
class OpenCall:
    """A tool call, as far as its events have come."""

    id: str
    name: str
    function: dict[str, JsonValue]
    """Its part of the conversation, which gets the arguments when they are whole."""
    arguments: list[str] = field(default_factory=list)
    complete: bool = False
    result: JsonValue = None
    returned: bool = False
    failed: bool = False
    agent: str | None = None

    def end(self) -> None:
        """Take note that all of its arguments have come."""
        self.complete = True
        self.function["arguments"] = "".join(self.arguments)

    def plain(self) -> dict[str, JsonValue]:
        """Return it as `tool_calls` reads it."""
        call: dict[str, JsonValue] = {
            "id": self.id,
            "name": self.name,
            "arguments": "".join(self.arguments),
            "result": self.result,
            "agent": self.agent,
        }
        if self.failed or tool_calls.is_error(self.result):
            call["status"] = "error"
        return call


@dataclass
class Run:
    """The events of one run, read."""

    texts: list[str] = field(default_factory=list)
    """The agent's messages that have words, in order."""
    calls: tuple[ToolCall, ...] | None = ()
    partial: bool = False
    """True if there may be calls that cannot be read."""
    waiting: tuple[ToolCall, ...] = ()
    """Calls that have no result."""
    results: dict[str, JsonValue] = field(default_factory=dict)
    """Results of calls that earlier runs made, by their ids."""
    interrupts: list[Message] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    """The conversation so far, to be sent with the next message."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    first_token_seconds: float | None = None
    error: str | None = None
    """The agent's own error, with which the run ended."""
