"""Default addresses of agents, and the form of `adapterOptions` in suites."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.choices import AgentIdLocation
from ci_evals.domain.criterion import JsonPathText
from ci_evals.support import placeholders, secrets

T = TypeVar("T")

AUI_ADDRESS = "https://api.aui.io/ia-controller"
OPENAI_ADDRESS = "https://api.openai.com/v1"
LANGGRAPH_ADDRESS = "http://127.0.0.1:2024"
"""Where `langgraph dev` serves."""
ADK_ADDRESS = "http://127.0.0.1:8000"
"""Where `adk api_server` serves."""

RASA_ADDRESS = "http://127.0.0.1:5005"
"""Where `rasa run` serves."""

PYTHON, COMMAND = "python:", "command:"
"""Prefixes of the other two: `python:module:attribute`, `command: node agent.js`."""


def is_program(adapter: str) -> bool:
    """Return whether the adapter's name says which code to run here."""
    return adapter.startswith((PYTHON, COMMAND))


def _of_the_key_only(headers: dict[str, str]) -> dict[str, str]:
    return _check_names(headers, ("key",))


class AuiOptions(Model):
    """Options of `aui`: the details in which servers of AUI's task API differ."""

    key_header: str = Field(
        "x-network-api-key",
        pattern=r"^[A-Za-z0-9_!#$%&'*+.^`|~-]+$",
        description="The header with the agent's key.",
    )
    agent_id_in: AgentIdLocation = Field(
        AgentIdLocation.TOP,
        description="Field that names the agent when a task is created: `top` is `agent_id`, `nested` is "
        "`agent.agent_id`; or `both`, `none`.",
    )
    task_origin_type: NonBlank = Field("web-widget", description="The `task_origin_type` of tasks.")


class ChatOptions(Model):
    """Options of `openai`, for endpoints that are compatible with OpenAI's chat completions or responses."""

    api: Literal["chat", "responses"] = Field(
        "chat", description="What the endpoint speaks: chat completions, or the Responses API."
    )
    request: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="More of the request's body: `temperature`, `tools`, …; no `messages`, `input`, `model`, "
        "`stream`",
    )
    query: dict[str, str] = Field(
        default_factory=dict, description="Parameters of the address, such as `api-version`."
    )
    headers: Annotated[dict[str, str], AfterValidator(_of_the_key_only)] = Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        "key is sent as `Authorization: Bearer`.",
    )
    tool_results: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="What tools return that the endpoint leaves to its caller to run, by the tool's name.",
    )
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")
    user_info: Literal["system", "metadata", "none"] = Field(
        "system",
        description="How `userInfo` is sent: in the system message or `instructions`, as `metadata`, or not.",
    )

    @field_validator("request")
    @classmethod
    def _leaves_ours(cls, request: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for key, hint in _NOT_IN_REQUEST.items():
            if key in request:
                raise ValueError(f"may not hold {key!r}: {hint}")
        return request


_NOT_IN_REQUEST = {
    "messages": "ci-evals writes the conversation",
    "input": "ci-evals writes the conversation",
    "previous_response_id": "ci-evals writes the conversation",
    "conversation": "each test begins a new one",
    "background": "an answer is waited for",
    "model": "name it by the suite's 'model'",
    "stream": "answers are read whole",
}

CONVERSATION = ("messages", "uiMessages")
"""Placeholders for all messages up to this one, in the form of chat completions and of the AI SDK."""
TEXTS = ("message", *CONVERSATION, "history")
"""Placeholders for words of the conversation: this message, all up to it, all before it."""
OF_A_REQUEST = ("uuid",)
"""Placeholders that have a new value in each request."""
OF_A_TURN = ("messageId", "turn")
OF_A_TEST = ("userInfo", "agentId", "model", "systemPrompt")
"""Placeholders for a suite's settings of the agent and its user; `userInfo.plan.name` is a part of it."""


def _check_names(value: T, allowed: Collection[str]) -> T:
    """`value`, every `{{name}}` in which is one of `allowed`.

    Raises:
        ValueError: one is not; a clause to go after the value.
    """
    for name in placeholders.names(value):
        if name not in allowed and not (name.startswith("userInfo.") and "userInfo" in allowed):
            hint = "the key goes in headers only" if name == "key" else f"available: {', '.join(allowed)}"
            raise ValueError(f"holds {{{{{name}}}}}, which is unknown; {hint}")
    return value


class HttpRequest(Model):
    """One request to an HTTP agent. Its texts may hold `{{names}}`: see `docs/http-agent.md`."""

    names: ClassVar[tuple[str, ...]] = ("session", *OF_A_REQUEST, *OF_A_TEST)

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    path: str = Field("", description="Goes after `baseUrl`; empty for `baseUrl` itself.")
    query: dict[str, str] = Field(default_factory=dict, description="Parameters of the address.")
    body: JsonValue = Field(None, description="JSON, in which every `{{name}}` is replaced; null for none.")

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        if path and not path.startswith("/"):
            raise ValueError("must begin with '/'")
        if "?" in path or "#" in path:
            raise ValueError("must end before '?' and '#'; parameters go in 'query'")
        return path

    @field_validator("path", "query", "body")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return _check_names(value, cls.names)


class HttpOpening(HttpRequest):
    """The request that begins a conversation, where the agent wants one."""

    names = (*OF_A_REQUEST, *OF_A_TEST)

    session: JsonPathText = Field(description="JSONPath of the conversation's id, afterwards `{{session}}`.")


class HttpSending(HttpRequest):
    """The request that says a message."""

    names = (*TEXTS, *OF_A_TURN, "session", *OF_A_REQUEST, *OF_A_TEST)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        used = {*placeholders.names([self.path, self.query, self.body])}
        if used.isdisjoint({"message", *CONVERSATION}):
            raise ValueError(
                "says nothing: path, query and body hold neither {{message}} nor {{messages}}; put one there"
            )
        return self


class HttpReply(Model):
    """JSONPaths into the agent's answer. A part without a path is unknown, not empty."""

    text: JsonPathText | None = Field(None, description="The agent's words.")
    messages: JsonPathText | None = Field(
        None,
        description="Chat messages with roles, instead of `text`: all after the one that was sent are the "
        "reply, with their tool calls.",
    )
    tool_calls: JsonPathText | None = Field(
        None,
        description="Tool calls in order: objects with a name and the arguments, in the usual spellings.",
    )
    workflows: JsonPathText | None = Field(None, description="Names of workflows or tools that ran.")
    params: JsonPathText | None = Field(
        None, description="An object of parameters, or objects with a name and a value."
    )
    rules: JsonPathText | None = Field(None, description="Codes of the rules that fired.")
    integrations: JsonPathText | None = Field(
        None, description="Outside systems called: names, or objects with a name and a status."
    )
    escalated: JsonPathText | None = Field(None, description="Whether the agent hands over to a person.")
    error: JsonPathText | None = Field(None, description="What went wrong, if the agent failed.")
    input_tokens: JsonPathText | None = Field(None, description="Tokens that the agent read.")
    output_tokens: JsonPathText | None = Field(None, description="Tokens that the agent wrote.")
    trace: JsonPathText | None = Field(None, description="What is worth keeping for a person to read.")
    message_id: JsonPathText | None = Field(
        None,
        description="The `{{messageId}}` of `send`; an answer without it, or with another one, is refused.",
    )

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if not (self.text or self.messages):
            raise ValueError("needs a path to the agent's words: text, or messages")
        return self


def _of_headers(headers: dict[str, str]) -> dict[str, str]:
    return _check_names(headers, ("key", "session", *OF_A_TEST))


class HttpOptions(Model):
    """Options of `http`, for agents behind any JSON endpoint."""

    headers: Annotated[dict[str, str], AfterValidator(_of_headers)] = Field(
        default_factory=dict,
        description="Headers of every request. `{{key}}` stands for the agent's key; if no header "
        "names it, the key is sent as `Authorization: Bearer`.",
    )
    open: HttpOpening | None = Field(
        None, description="Begins a conversation; without it ci-evals makes an id."
    )
    send: HttpSending = Field(description="Says a message.")
    reply: HttpReply = Field(description="Where the answer to `send` holds what.")
    stream: Literal["sse", "ndjson", "websocket"] | None = Field(
        None,
        description="How the answer to `send` is streamed: as server-sent events, JSON lines or messages "
        "of a WebSocket. Its events form one list, on which the paths in `reply` work.",
    )
    until: JsonPathText | None = Field(
        None,
        description="JSONPath in the list of events. An answer is complete with the first event in which it "
        "finds anything but false, null, 0 or nothing; without `until`, when the stream ends.",
    )
    close: HttpRequest | None = Field(None, description="Ends a conversation.")

    @model_validator(mode="after")
    def _sends_what_it_expects(self) -> Self:
        sent = {*placeholders.names([self.send.path, self.send.query, self.send.body])}
        if self.reply.message_id and "messageId" not in sent:
            raise ValueError("reply.messageId is given, but send holds no {{messageId}}")
        return self

    @model_validator(mode="after")
    def _streams_what_has_an_end(self) -> Self:
        if self.until and not self.stream:
            raise ValueError("until is given, but no stream: an answer that is not streamed is read whole")
        if self.stream != "websocket":
            return self
        if not self.until:
            raise ValueError("stream: websocket needs until, since a WebSocket stays open after an answer")
        if "method" in self.send.model_fields_set:
            raise ValueError("send.method does not go with stream: websocket")
        in_address = {*placeholders.names([self.send.path, self.send.query])} & {*TEXTS, *OF_A_TURN}
        if in_address:
            raise ValueError(
                f"send.path and send.query hold {{{{{min(in_address)}}}}}: with stream: websocket they "
                "belong to the connection, and messages go in send.body"
            )
        return self


class LangGraphOptions(Model):
    """Options of `langgraph`, for assistants of a LangGraph Server."""

    input: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="More of the graph's input, in addition to the message; `{{userInfo.plan}}`.",
    )
    context: dict[str, JsonValue] = Field(
        default_factory=dict, description="The run's `context`, such as the user's id; `{{userInfo.id}}`."
    )
    config: dict[str, JsonValue] = Field(default_factory=dict, description="The run's `config`.")
    messages: NonBlank = Field("messages", description="The key of the graph's state that holds messages.")
    resume: JsonValue = Field(
        "{{message}}", description="What answers an interrupt of the graph: the user's message."
    )
    headers: Annotated[dict[str, str], AfterValidator(_of_the_key_only)] = Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        "key is sent as `x-api-key`.",
    )
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")

    @field_validator("input", "context", "config")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return _check_names(value, ("message", "session", *OF_A_TEST))

    @field_validator("resume")
    @classmethod
    def _answers(cls, resume: JsonValue) -> JsonValue:
        _check_names(resume, ("message", "session", *OF_A_TEST))
        if "message" not in placeholders.names(resume):
            raise ValueError("says nothing: it does not hold {{message}}")
        return resume

    @model_validator(mode="after")
    def _leaves_the_messages(self) -> Self:
        if self.messages in self.input:
            raise ValueError(f"input may not hold {self.messages!r}: ci-evals writes the conversation")
        return self


class A2aOptions(Model):
    """Options of `a2a`, for agents behind the A2A protocol."""

    card: str = Field(
        "/.well-known/agent-card.json", description="The path of the agent card, after `baseUrl`."
    )
    stream: bool | None = Field(None, description="Whether answers are streamed; default: as the card says.")
    tool_calls: JsonPathText | None = Field(
        None,
        description="JSONPath of the tool calls in an answer, `{message}` or `{task}`: the protocol has no "
        "field for them. Often they are in `metadata`.",
    )
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="The `metadata` of every message; `{{userInfo.plan}}`."
    )
    headers: Annotated[dict[str, str], AfterValidator(_of_the_key_only)] = Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        "key is sent as `Authorization: Bearer`.",
    )
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")

    @field_validator("card")
    @classmethod
    def _is_a_path(cls, card: str) -> str:
        if not card.startswith("/") or "?" in card or "#" in card:
            raise ValueError("must be a path, which begins with '/'")
        return card

    @field_validator("metadata")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return _check_names(value, ("message", *OF_A_TEST))


class RasaOptions(Model):
    """Options of `rasa`, for assistants behind Rasa's REST channel."""

    channel: str = Field("rest", pattern=r"^[\w-]+$", description="The channel's name in its address.")
    tracker: bool = Field(
        default=True, description="Whether to look up what the assistant did; needs `rasa run --enable-api`."
    )
    slots: dict[str, JsonValue] = Field(
        default_factory=dict, description="Slots to set before the first message; `{{userInfo.plan}}`."
    )
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="The `metadata` of every message; `{{userInfo.plan}}`."
    )
    headers: Annotated[dict[str, str], AfterValidator(_of_the_key_only)] = Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        "key is sent as the parameter `token`.",
    )
    escalation_tools: tuple[NonBlank, ...] = Field(
        (),
        description="Actions that hand over to a person, in addition to those that pause the conversation.",
    )

    @field_validator("slots", "metadata")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return _check_names(value, OF_A_TEST)


_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|session|password", re.IGNORECASE)


_OF_HEADERS = frozenset({"headers", "keyHeader"})
"""Options whose names of headers show which values are secret; the name of a header itself is not."""


def secrets_of(options: Mapping[str, JsonValue] | None) -> Iterator[str]:
    """Yield the secrets in an adapter's options, as far as names of options and headers reveal them."""
    headers = (options or {}).get("headers")
    others = {key: item for key, item in (options or {}).items() if key not in _OF_HEADERS}
    yield from secrets.in_options(others)
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if isinstance(value, str) and _SECRET_HEADER.search(str(name)):
            yield from (part for part in value.split() if "{{" not in part and "}}" not in part)


_SCHEMES = frozenset({"", "basic", "bearer", "token"})


def lacks_secret(name: str, value: str) -> bool:
    """Return whether a header that should hold a secret, by its name, holds none."""
    return bool(_SECRET_HEADER.search(name)) and value.strip().lower() in _SCHEMES


class AgUiOptions(Model):
    """Options of `ag-ui`, for agents behind the Agent User Interaction Protocol."""

    headers: Annotated[dict[str, str], AfterValidator(_of_the_key_only)] = Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        "key is sent as `Authorization: Bearer`.",
    )
    user_info: Literal["context", "state", "forwardedProps", "none"] = Field(
        "context", description="The part of a run's input that holds `userInfo`."
    )
    state: dict[str, JsonValue] = Field(default_factory=dict, description="The state to begin with.")
    forwarded_props: dict[str, JsonValue] = Field(
        default_factory=dict, description="The `forwardedProps` of every run."
    )
    tools: tuple[dict[str, JsonValue], ...] = Field(
        (), description="Tools of the client: objects with `name`, `description` and `parameters`."
    )
    tool_results: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="What tools return that the agent leaves to its client to run, by the tool's name.",
    )
    resume: JsonValue = Field(
        None, description="The payload that answers every interrupt, such as `{approved: true}`."
    )
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")


class AdkOptions(Model):
    """Options of `adk`, for agents behind a server of Google's Agent Development Kit."""

    headers: Annotated[dict[str, str], AfterValidator(_of_the_key_only)] = Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        "key is sent as `Authorization: Bearer`.",
    )
    state: dict[str, JsonValue] = Field(
        default_factory=dict, description="More of the session's first state, in addition to `userInfo`."
    )
    user_id: NonBlank | None = Field(
        None, description="The user of all sessions; by default each conversation has a new one."
    )
    stream: Literal["events", "tokens", "none"] = Field(
        "events",
        description="How a run is asked for: by `/run_sse`, there also with `streaming: true`, or by `/run`.",
    )
    confirmation: JsonValue = Field(
        None, description="What answers every request to confirm a tool call, such as `{confirmed: true}`."
    )
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")
