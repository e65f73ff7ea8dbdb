"""The answers of functions, objects and programs, read as a `Reply`."""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import NoneType
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError, to_jsonable_python

from ci_evals.adapters import tool_calls
from ci_evals.agents import chat_messages
from ci_evals.agents.chat_thread import Seen, Thread
from ci_evals.agents.code.foreign_code import text_of
from ci_evals.domain.actions import views_of
from ci_evals.domain.base import Amount, Model
from ci_evals.domain.transcript import UNREAD_WORDS, Integration, Reply, ToolCall
from ci_evals.support import payload


class _PlainIntegration(Integration):
    model_config = ConfigDict(extra="forbid")


def _calls(value: object) -> tuple[ToolCall, ...] | None:
    """Read calls in our own spelling or another; one without a name makes the reply unreadable."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise PydanticCustomError("tuple_type", "must be a list")
    calls = tool_calls.read_all(value)
    if calls is None:
        nameless = (number for number, item in enumerate(value, 1) if tool_calls.name_of(item) is None)
        if (number := next(nameless, None)) is None:
            raise PydanticCustomError("no_call", "its pieces cannot be put together")
        raise PydanticCustomError("no_call", "call {number} has no name", {"number": number})
    return calls


class PlainReply(Model):
    """The keys of one reply. Those that are left out are unknown, and no evidence of anything."""

    text: str
    messages: tuple[JsonValue, ...] | None = Field(
        None, description="Chat messages: those after the one that was sent are the reply."
    )
    tool_calls: Annotated[tuple[ToolCall, ...] | None, PlainValidator(_calls)] = Field(
        None, validation_alias=AliasChoices("toolCalls", "tool_calls")
    )
    workflows: tuple[str, ...] | None = None
    params: dict[str, JsonValue] | None = None
    rules: tuple[str, ...] | None = None
    integrations: tuple[_PlainIntegration, ...] | None = None
    escalated: bool | None = Field(None, description="Whether the agent hands over to a person.")
    error: str | bool | None = Field(None, description="What went wrong, or whether; false or null: nothing.")
    input_tokens: Amount | None = None
    output_tokens: Amount | None = None
    trace: JsonValue = None

    @field_validator("integrations", mode="before")
    @classmethod
    def _names_too(cls, value: object) -> object:
        """A bare name is an integration without a status."""
        if not isinstance(value, list | tuple):
            return value
        return [{"code": item} if isinstance(item, str) else item for item in value]


_CALLS = frozenset({"toolCalls", "tool_calls"})
KEYS = tuple(info.alias or name for name, info in PlainReply.model_fields.items())


def messages_of(value: JsonValue) -> list[Seen]:
    """Return the chat messages in an answer, as a thread keeps them."""
    listed = value.get("messages") if isinstance(value, dict) else None
    return chat_messages.seen(listed) if isinstance(listed, list) else []


def read(value: JsonValue, seconds: float, thread: Thread | None = None, *, keep_raw: bool = False) -> Reply:
    """The reply that an agent gave: a text, or an object with the keys of `PlainReply`.

    Messages are read as those of `thread`, or of a new one. With `keep_raw` the reply keeps `value`, which is
    clean JSON (see `payload.clean`), as it came. Raise `ValueError` if it is not a reply, with a clause to go
    after "the agent's answer". It quotes the answer, at any length: secrets must go before it is cut.
    """
    given = _with_messages_read(value, thread or Thread())
    try:
        reply = PlainReply.model_validate({"text": value} if isinstance(value, str) else given.value)
    except ValidationError as error:
        raise ValueError(_fault(value, error)) from None
    if len(reply.text) > payload.MAX_ANSWER_MB * 1_000_000:
        raise ValueError(f"is longer than {payload.MAX_ANSWER_MB} MB")
    not_found = {}
    if doubt := given.doubt(reply):
        not_found["toolCalls"] = doubt
    if given.unread:
        not_found[UNREAD_WORDS] = given.unread
    return Reply(
        agent=reply.text,
        latency_seconds=seconds,
        **views_of(reply.tool_calls, reply.workflows, reply.params),
        tool_calls_partial=bool(doubt) and reply.tool_calls is not None,
        not_found=not_found,
        handed_over=reply.escalated,
        handed_over_apart=reply.workflows is None,
        rules=reply.rules,
        integrations=None
        if reply.integrations is None
        else tuple(Integration(**call.model_dump()) for call in reply.integrations),
        error_response=bool(reply.error) if "error" in reply.model_fields_set else None,
        error_detail=reply.error if isinstance(reply.error, str) and reply.error else None,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        trace=reply.trace,
        raw=value if keep_raw else None,
    )


class _Given(NamedTuple):
    """The value that an agent returned: a reply, messages that hold it, or both."""

    value: JsonValue
    """With the words and calls of the messages, if it does not give them itself."""
    answer: chat_messages.Answer | None = None
    """The reply in the messages, if there are any."""
    own_text: bool = True
    own_calls: bool = True

    def doubt(self, reply: PlainReply) -> str | None:
        """Return why there may be other calls than those of the reply, if there may."""
        if self.answer is None:
            return None
        if self.own_calls:
            return tool_calls.left_out(reply.tool_calls or (), self.answer.calls or ())
        return self.answer.doubt

    @property
    def unread(self) -> str | None:
        """Why there may be other words, if there may."""
        return None if self.own_text or self.answer is None else self.answer.unread


def _with_messages_read(value: JsonValue, thread: Thread) -> _Given:
    """Read the messages of a value, if it has some; raise `ValueError` if none is the agent's."""
    if not isinstance(value, dict):
        return _Given(value)
    if value.get("role") == "assistant" and "text" not in value:  # a message itself
        value = {"messages": [value], **{key: value[key] for key in KEYS if key in value}}
    messages = value.get("messages")
    if not isinstance(messages, list):
        return _Given(value)
    try:
        answer = chat_messages.read(messages, thread)
    except ValueError as error:
        raise ValueError(f"has no {error} in its 'messages'") from None
    own_text, own_calls = "text" in value, not _CALLS.isdisjoint(value)
    read: dict[str, JsonValue] = {"text": answer.text}
    if answer.calls is not None and not own_calls:
        read["toolCalls"] = [call.model_dump(mode="json", by_alias=True) for call in answer.calls]
    return _Given({**read, **value}, answer, own_text, own_calls)


def _fault(value: JsonValue, error: ValidationError) -> str:
    """The first error, as a clause."""
    if not isinstance(value, dict):
        return f"is neither a string nor an object: {json.dumps(value, ensure_ascii=False)}"
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "missing":
            return f"has no {key!r}"
        case "extra_forbidden":
            return f"has a key {key!r}, which is none of {', '.join(KEYS)}"
        case kind:
            expected = _EXPECTED.get(kind)
            reason = f"it must be {expected}" if expected else first["msg"].lower()
            return f"has a {key!r} that cannot be read: {reason}"


_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "a name, or an object with a 'code'",
    "string_type": "a text",
    "tuple_type": "a list",
}


class NoAnswerError(ValueError):
    """An answer that cannot be read; its text is a clause to go after "the answer of AGENT"."""


class PlainAnswer(NamedTuple):
    """An answer of code, as clean JSON."""

    value: JsonValue
    is_reply: bool = False
    """True if it was a `Reply`, and has the keys of one."""


_MAX_DEPTH = 8
"""Levels of an answer that are looked through for objects."""


def is_data(answer: Any, levels: int = _MAX_DEPTH) -> bool:
    """Return whether an answer has only Python's own types, so that reading it calls no foreign code."""
    kind = type(answer)
    if kind in (str, int, float, bool, NoneType):
        return True
    if not levels or kind not in (dict, list, tuple):
        return False
    items = [*answer, *answer.values()] if kind is dict else answer
    return all(is_data(item, levels - 1) for item in items)


def to_plain(answer: Any) -> PlainAnswer:
    """Read an answer of code as data, or raise `NoAnswerError`. It may be code, and do anything meanwhile."""
    if isinstance(answer, Reply):
        return PlainAnswer(_to_json(answer.model_dump()), is_reply=True)
    return PlainAnswer(_to_json(answer))


def to_state(state: Any) -> JsonValue:
    """Read a state that code reports as clean JSON, or raise `NoAnswerError`. It may be code, as above."""
    try:
        return payload.clean(to_jsonable_python(state, by_alias=True))
    except Exception as error:  # noqa: BLE001  # an object of foreign code may raise anything
        raise NoAnswerError(f"contains a value that is not JSON: {text_of(error)}") from None


def _to_json(answer: Any) -> JsonValue:
    """A text, a mapping, a dataclass or a pydantic model as clean JSON."""
    match answer:
        case str():
            return payload.clean(str.__str__(answer))
        case None:
            raise NoAnswerError("is None: return a string, or an object with 'text'")
        case Mapping() | BaseModel():
            pass
        case _ if not is_dataclass(answer) or isinstance(answer, type):
            raise NoAnswerError(
                f"is of the type {type(answer).__name__}, which is neither a string nor an object"
            )
    try:
        value = to_jsonable_python(dict(answer) if isinstance(answer, Mapping) else answer, by_alias=True)
    except Exception as error:  # noqa: BLE001  # an object of foreign code may raise anything
        raise NoAnswerError(f"contains a value that is not JSON: {text_of(error)}") from None
    return payload.clean(value)
