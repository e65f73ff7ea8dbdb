"""How agents are spoken to: the adapters by name, and what a suite may say of each under `adapterOptions`."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from ci_evals.domain.base import Model, NonBlank

BUILT_IN = ("aui", "demo", "openai", "http")
"""The adapters that have a name of their own."""

PYTHON, COMMAND = "python:", "command:"
"""What the other two begin with: `python:module:attribute`, `command: node agent.js`."""


def is_program(adapter: str) -> bool:
    """Whether the adapter's name says which code to run here."""
    return adapter.startswith((PYTHON, COMMAND))


class ChatOptions(Model):
    """What `openai` needs to know of an endpoint that is compatible with OpenAI's chat completions."""

    request: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="More of the request's body: `temperature`, `tools`, …; not `messages`, `model`.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="More headers. `{{key}}` stands for the agent's key."
    )
    tool_results: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="What tools return that the endpoint leaves to its caller to run, by the tool's name.",
    )
    escalation_tools: tuple[NonBlank, ...] = Field(
        (), description="Tools whose call means that the agent hands over to a person."
    )
    user_info: Literal["system", "metadata", "none"] = Field(
        "system",
        description="Where the endpoint is told of `userInfo`: in a system message, as `metadata`, or not.",
    )


class HttpRequest(Model):
    """One request to an HTTP agent. Its texts may hold `{{names}}`: see `docs/adapters.md`."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    path: str = Field(
        "", pattern=r"^(/.*)?$", description="Goes after `baseUrl`; empty for `baseUrl` itself."
    )
    query: dict[str, str] = Field(default_factory=dict, description="Parameters of the address.")
    body: JsonValue = Field(None, description="JSON, in which every `{{name}}` is replaced; null for none.")


class HttpOpening(HttpRequest):
    """The request that begins a conversation, where the agent wants one."""

    session: NonBlank = Field(description="JSONPath of the conversation's id, afterwards `{{session}}`.")


class HttpReply(Model):
    """Where in the agent's answer is what: one JSONPath each. What has no path is unknown, not empty."""

    text: NonBlank = Field(description="The agent's words.")
    workflows: NonBlank | None = Field(None, description="Names of workflows or tools that ran.")
    params: NonBlank | None = Field(None, description="An object of parameters, or objects with a name.")
    rules: NonBlank | None = Field(None, description="Codes of the rules that fired.")
    integrations: NonBlank | None = Field(
        None, description="Outside systems called: names, or objects with a name and a status."
    )
    escalated: NonBlank | None = Field(None, description="Whether the agent hands over to a person.")
    error: NonBlank | None = Field(None, description="What went wrong, where the agent failed.")
    input_tokens: NonBlank | None = Field(None, description="Tokens that the agent read.")
    output_tokens: NonBlank | None = Field(None, description="Tokens that the agent wrote.")
    trace: NonBlank | None = Field(None, description="What is worth keeping for a person to read.")


class HttpOptions(Model):
    """How `http` speaks to an agent behind any JSON endpoint."""

    headers: dict[str, str] = Field(
        default_factory=dict,
        description="Headers of every request. `{{key}}` stands for the agent's key; without any mention of "
        "it the key goes as `Authorization: Bearer`.",
    )
    open: HttpOpening | None = Field(None, description="Begins a conversation; without it we make an id.")
    send: HttpRequest = Field(description="Says a message.")
    reply: HttpReply = Field(description="Where the answer to `send` holds what.")
    close: HttpRequest | None = Field(None, description="Ends a conversation.")


OPTIONS: Mapping[str, type[Model]] = {"openai": ChatOptions, "http": HttpOptions}
"""The form of `adapterOptions` for the adapters that have one. `aui` and `demo` take none; code gets all."""
