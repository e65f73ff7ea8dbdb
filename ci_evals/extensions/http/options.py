"""The form of `adapterOptions` of `http`."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from ci_evals.agents.options import OF_A_TEST, check_names
from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.checks.matcher import MatcherField
from ci_evals.domain.criterion import JsonPathText
from ci_evals.support import placeholders

CONVERSATION = ("messages", "uiMessages")
"""Placeholders for all messages up to this one, in the form of chat completions and of the AI SDK."""
TEXTS = ("message", *CONVERSATION, "history")
"""Placeholders for words of the conversation: this message, all up to it, all before it."""
OF_A_REQUEST = ("uuid",)
"""Placeholders that have a new value in each request."""
OF_A_TURN = ("messageId", "turn")
NOT_PATHS = ("escalated_when",)
"""Fields of `HttpReply` that are conditions on what a path finds."""


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
        return check_names(value, cls.names)


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
    escalated: JsonPathText | None = Field(
        None,
        description="Whether the agent hands over to a person: true or false, or a value that "
        "`escalatedWhen` speaks of.",
    )
    escalated_when: MatcherField | None = Field(
        None,
        description="The condition that a value at `escalated` meets if the agent hands over: the value, or "
        "an object such as `{oneOf: [handoff, agent]}`.",
    )
    error: JsonPathText | None = Field(None, description="What went wrong, if the agent failed.")
    input_tokens: JsonPathText | None = Field(None, description="Tokens that the agent read.")
    output_tokens: JsonPathText | None = Field(None, description="Tokens that the agent wrote.")
    trace: JsonPathText | None = Field(None, description="What is worth keeping for a person to read.")
    message_id: JsonPathText | None = Field(
        None,
        description="The `{{messageId}}` of `send`; an answer without it, or with another one, is refused.",
    )

    @property
    def paths(self) -> dict[str, str]:
        """The paths that are given, by the names of their fields."""
        return self.model_dump(exclude_none=True, exclude=set(NOT_PATHS))

    @model_validator(mode="after")
    def _compares_something(self) -> Self:
        if self.escalated_when and not self.escalated:
            raise ValueError("escalatedWhen is given, but escalated is not: the path to what it is about")
        return self

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if not (self.text or self.messages):
            raise ValueError("needs a path to the agent's words: text, or messages")
        return self


def _of_headers(headers: dict[str, str]) -> dict[str, str]:
    return check_names(headers, ("key", "session", *OF_A_TEST))


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
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")
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
