"""The turns of one trial."""

import json
import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, overload

from pydantic import Field, GetCoreSchemaHandler, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, core_schema

from ci_evals.domain.base import Amount, Instant, Record, ResultPart, Seconds
from ci_evals.support import redaction
from ci_evals.support.json_text import written

ESCALATION = "CONVERSATION_FORWARDING"
"""The workflow, or the prefix of its name, by which an agent hands over to a person."""


def is_empty(value: JsonValue) -> bool:
    """Return whether a parameter's value is empty: null, blank, `undefined`, `[]`, `{}`; not false or 0."""
    if isinstance(value, str):
        return value.strip().lower() in {"", "undefined"}
    return value is None or value in ([], {})


class UserSource(StrEnum):
    """The author of a user's message."""

    FIXED = "fixed"
    AUTO = "auto"


class ToolStatus(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"


class ToolCall(Record):
    """One call of a tool by the agent."""

    id: str | None = None
    name: str
    arguments: dict[str, JsonValue] | None = Field(
        default=None, description="The arguments by name; null if they were not captured."
    )
    result: JsonValue = None
    status: ToolStatus = ToolStatus.UNKNOWN
    started_at: Instant | None = None
    duration_ms: float | None = Field(default=None, ge=0)
    agent: str | None = Field(default=None, description="The sub-agent that made the call.")
    not_captured: str | None = Field(
        default=None, description="Why the arguments are null, and what to do about it."
    )


class Integration(Record):
    """One call of an outside system by the agent."""

    code: str
    status: int | None = Field(default=None, description="HTTP status; null if the call has none (RAG, MCP).")
    type: str | None = Field(default=None, description="REST, RAG, MCP, as the agent names it.")
    error: str | None = None
    arguments: dict[str, JsonValue] | None = Field(
        default=None, description="What it was called with, by name; null if that is not reported."
    )
    tools: tuple[ToolCall, ...] | None = Field(
        default=None, description="The tools that a call over MCP used, if they are reported."
    )


UNREAD_WORDS = "text"
"""The key in `not_found` for words of a reply that may not have been read."""


class Reply(Record):
    """The agent's answer to one message. A null trace field means *no evidence*, never *nothing happened*."""

    agent: str = Field(description="The agent's text.")
    latency_seconds: Seconds
    first_token_seconds: Seconds | None = Field(
        default=None, description="Time until the first words came, of an agent that streams them."
    )
    workflows: tuple[str, ...] | None = Field(default=None, description="Workflows executed for this reply.")
    handed_over: bool | None = Field(
        default=None,
        description="Whether the agent hands over to a person, if it reports that separately from workflows.",
    )
    handed_over_apart: bool = Field(
        default=False,
        description="Whether a hand-over is reported apart from workflows, or not at all: then these are no "
        "evidence that there was none.",
    )
    workflows_derived: bool = Field(
        default=False, description="Whether the workflows were read from the trace, the reply naming none."
    )
    tool_calls: tuple[ToolCall, ...] | None = Field(
        default=None, description="Calls of tools with their arguments, in order."
    )
    tool_calls_derived: bool = Field(
        default=False,
        description="Whether these are the workflows and integrations, of an agent that reports no calls.",
    )
    tool_calls_partial: bool = Field(
        default=False, description="Whether there may be other calls: a part of the trace is missing."
    )
    trace_missing: str | None = Field(
        default=None, description="Why no trace came although one was waited for, and what to do about it."
    )
    traceparent: str | None = Field(
        default=None,
        description="The header that joins the agent's spans to this turn (W3C Trace Context); null if they "
        "are not received.",
    )
    not_found: dict[str, str] = Field(
        default_factory=dict,
        description="Why evidence is unknown, by the key of what should have found it, such as `toolCalls`, "
        "and what to do about it.",
    )
    unproven: dict[str, str] = Field(
        default_factory=dict,
        description="Paths that chose nothing from what this reply holds, by key, such as `toolCalls`. That "
        "counts as none if the path found something in another turn of the run, and else as unknown.",
    )
    params: dict[str, JsonValue] | None = Field(default=None, description="Parameters extracted, by code.")
    named_params: tuple[str, ...] = Field(
        default=(), description="Extracted parameters whose value was not reported."
    )
    rules: tuple[str, ...] | None = Field(default=None, description="Codes of the rules that fired.")
    integrations: tuple[Integration, ...] | None = Field(default=None, description="Integrations called.")
    error_response: bool | None = Field(
        default=None, description="Whether the agent marked this reply as an error."
    )
    error_detail: str | None = None
    input_tokens: Amount | None = Field(
        default=None, description="Tokens that the agent says it read for it."
    )
    output_tokens: Amount | None = Field(default=None, description="Tokens that it says it wrote.")
    models: tuple[str, ...] = Field(default=(), description="Models that it says answered.")
    trace: JsonValue = Field(default=None, description="The trace as the agent sent it.")
    raw: JsonValue = Field(
        default=None, description="The whole reply as the agent sent it; only with `debug`."
    )

    @property
    def escalated(self) -> bool:
        """True if this reply hands over to a person."""
        named = any(name.startswith(ESCALATION) for name in self.workflows or ())
        return named or bool(self.handed_over)

    @property
    def hand_over(self) -> bool | None:
        """True if this reply hands over to a person; None if it is unknown.

        Workflows are evidence too, unless the agent reports a hand-over apart from them.
        """
        if self.escalated:
            return True
        if self.handed_over is None and self.workflows is not None and not self.handed_over_apart:
            return False
        return self.handed_over


class Turn(Reply):
    """One user message and the agent's reply, as it happened."""

    index: int = Field(description="Counted from 1.")
    user: str
    user_source: UserSource


class Turns(Sequence[Turn], redaction.Redactable):
    """The turns of a trial that has ended.

    Packed they take a small part of the memory, and are unpacked whenever they are read, except
    `latencies`, `first_tokens`, `models` and `tokens`. What is read from JSON is packed at once.
    """

    __slots__ = ("_items", "_json", "_packed", "first_tokens", "latencies", "models", "tokens")

    def __init__(self, items: Iterable[Turn] = ()) -> None:
        self._items: tuple[Turn, ...] = tuple(items)
        self._packed: tuple[bytes, bytes] | None = None
        """Their JSON without traces, and their traces, if there are any, as zlib packs them."""
        self._json: bytes | None = None
        """What `json` gave before."""
        self.latencies: Sequence[float] = array("d", [item.latency_seconds for item in self._items])
        """The latency of each, in seconds."""
        times = [item.first_token_seconds for item in self._items]
        self.first_tokens: Sequence[float] = tuple(seconds for seconds in times if seconds is not None)
        """The seconds until the first words, of those that were streamed."""
        self.tokens: Sequence[tuple[int | None, int | None]] = tuple(
            (item.input_tokens, item.output_tokens)
            for item in self._items
            if item.input_tokens is not None or item.output_tokens is not None
        )
        """Read and written, of those whose agent tells."""
        self.models: Sequence[str] = tuple(
            dict.fromkeys(name for item in self._items for name in item.models)
        )
        """The models that answered, of an agent that tells."""

    def packed(self) -> "Turns":
        """The same in less memory."""
        if self._packed is not None or not self._items:
            return self
        small = Turns()
        head, *parts = (part.partition(_RAW) for part in self.json.split(_TRACE))
        rest = b"".join([head[0], *(_NO_TRACE + raw + tail for _, raw, tail in parts)])
        traced = any(turn.trace is not None for turn in self._items)
        traces = _END.join([trace for trace, _, _ in parts]) if traced else b""
        small._packed = zlib.compress(rest, level=1), traces and zlib.compress(traces, level=1)
        small.latencies, small.tokens = self.latencies, self.tokens
        small.first_tokens, small.models = self.first_tokens, self.models
        return small

    def changed(self, change: Callable[[Turn], Turn]) -> "Turns":
        """Apply `change` to each turn. The result is packed if these are."""
        turns = Turns(map(change, self))
        return turns if self._packed is None else turns.packed()

    @property
    def _traces(self) -> list[bytes]:
        """The JSON of each trace in packed turns."""
        traces = self._packed[1] if self._packed else b""
        return zlib.decompress(traces).split(_END) if traces else [b"null,"] * len(self)

    @property
    def _rest(self) -> bytes:
        """The JSON of packed turns without their traces."""
        return zlib.decompress(self._packed[0]) if self._packed else b""

    @property
    def json(self) -> bytes:
        """All of them as a JSON list, indented by two as results files have it."""
        if self._packed is not None:
            head, *parts = self._rest.split(_NO_TRACE)
            pairs = zip(self._traces, parts, strict=True)
            return b"".join([head, *(_TRACE + trace + part for trace, part in pairs)])
        if self._json is None:
            try:
                self._json = _all().dump_json(self._items, by_alias=True, indent=2)
            except (PydanticSerializationError, UnicodeEncodeError):
                # Half of a surrogate pair, which JSON can carry in: UTF-8 cannot write it, an escape can.
                self._json = json.dumps(_all().dump_python(self._items, by_alias=True), indent=2).encode()
        return self._json

    @property
    def json_at_hand(self) -> bytes | None:
        """Their JSON, if they are not packed: they will be, and are searched for secrets before."""
        return self.json if self._packed is None else None

    def said(self) -> Iterator[tuple[str, int, str]]:
        """Yield of each what the agent said, its index and what the user said, in a part of the time."""
        if self._packed is None:
            return ((item.agent, item.index, item.user) for item in self._items)
        values = map(json.loads, _SAID.findall(self._rest))
        return zip(values, values, values, strict=True)

    def without_traces(self) -> tuple[Turn, ...]:
        """The same for who does not look at traces: these make up most of what there is to unpack."""
        if self._packed is None:
            return tuple(item.copy_with(trace=None) for item in self._items)
        return _read(self._rest)

    def with_trace_texts(self) -> tuple[tuple[Turn, str | None], ...]:
        """The same, each turn with its trace as JSON, indented by two."""
        if self._packed is None:
            traces = [None if item.trace is None else written(item.trace, indent=2) for item in self._items]
            return tuple(zip(self.without_traces(), traces, strict=True))
        texts = [trace[:-1].replace(b"\n    ", b"\n").decode() for trace in self._traces]
        traces = [None if text == "null" else text for text in texts]
        return tuple(zip(self.without_traces(), traces, strict=True))

    def _whole(self) -> tuple[Turn, ...]:
        return self._items if self._packed is None else _read(self.json)

    def __len__(self) -> int:
        return len(self.latencies)

    def __iter__(self) -> Iterator[Turn]:
        return iter(self._whole())

    def __reversed__(self) -> Iterator[Turn]:
        return reversed(self._whole())

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Turn, ...]: ...
    def __getitem__(self, index: int | slice) -> Turn | tuple[Turn, ...]:
        return self._whole()[index]

    def __eq__(self, other: object) -> bool:
        return self._whole() == other._whole() if isinstance(other, Turns) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a turn has none, which holds JSON

    def __repr__(self) -> str:
        return f"Turns({list(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """A list of turns in JSON."""
        listed = handler.generate_schema(tuple[Turn, ...])

        def of(value: Any, read: core_schema.ValidatorFunctionWrapHandler) -> Turns:
            if isinstance(value, Turns):
                return value
            turns = cls(read(value))
            return turns.packed() if isinstance(value, list) else turns

        return core_schema.no_info_wrap_validator_function(
            of,
            listed,
            serialization=core_schema.plain_serializer_function_ser_schema(tuple, return_schema=listed),
        )


_TRACE, _RAW = b'\n    "trace": ', b'\n    "raw": '
"""The beginnings of a trace and of the text after it in JSON: no other lines with as few blanks begin so."""
_NO_TRACE = _TRACE + b"null,"
_END = b"\0"
"""Between traces, whose JSON has none."""
_SAID = re.compile(rb'\n    "(?:agent|index|user)": (".*"|\d+)')
"""The fields that `Turns.said` yields, in the order of JSON."""


def _read(text: bytes) -> tuple[Turn, ...]:
    try:
        return _all().validate_json(text)
    except ValidationError:
        # Half of a surrogate pair, or what is nested more deeply than pydantic reads, though it wrote it.
        return _all().validate_python(json.loads(text))


@cache
def _all() -> TypeAdapter[tuple[Turn, ...]]:
    return TypeAdapter(tuple[Turn, ...])


class EndState(StrEnum):
    """The end of a trial."""

    COMPLETED = "completed"
    """All turns were played."""
    STOPPED = "stopped"
    """The simulated user said that it is done."""
    ESCALATED = "escalated"
    """The agent handed over to a person."""
    AGENT_ERROR = "agent_error"
    """The agent answered with an error."""
    FAILED = "failed"
    """Timeout, HTTP failure, unreadable reply, or no simulated user."""
    INVALID_USER = "invalid_user"
    """The simulated user broke character, so the conversation says nothing about the agent."""
    INTERRUPTED = "interrupted"
    """The run was stopped while the trial was under way."""


END_REASONS: Mapping[EndState, str] = {
    EndState.COMPLETED: "all planned messages of the user were sent",
    EndState.STOPPED: "the user had nothing more to say",
    EndState.ESCALATED: "the agent handed over to a person",
    EndState.AGENT_ERROR: "the agent answered with an error",
    EndState.INVALID_USER: "the simulated user broke character",
    EndState.FAILED: "the agent or the user could not be reached any more",
    EndState.INTERRUPTED: "the conversation was cut off",
}
"""The end of a trial in words, for whoever judges its conversation: models and people."""


ENDED_BY_A_SPEAKER = frozenset({EndState.STOPPED, EndState.ESCALATED, EndState.AGENT_ERROR})
"""Ends that the user or the agent brought about, perhaps before all lines of the test were sent."""


class FailureCause(StrEnum):
    """The cause of a trial that errored."""

    AGENT_FAILED = "agent_failed"
    """The agent could not be reached, did not answer in time, or gave an unreadable answer."""
    MODEL_FAILED = "model_failed"
    """The simulated user's model could not be reached, or gave no usable answer."""
    SETUP_FAILED = "setup_failed"
    """A step of its setup failed, so that no conversation was begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult(ResultPart):
    """The answer of a probe after a conversation, or the reason why there is none."""

    value: JsonValue = None
    error: str | None = None


class Transcript(Record):
    """The turns of one trial and why it stopped."""

    turns: tuple[Turn, ...] = ()
    status: EndState
    error: str | None = None
    cause: FailureCause | None = None
    unanswered: int | None = Field(
        default=None,
        description="The turn whose message got no reply: what the agent did there is unknown.",
    )
    closing_remark: str | None = Field(
        default=None, description="What the simulated user wrote with the stop marker; never sent."
    )
    probes: dict[str, ProbeResult] = Field(
        default_factory=dict, description="The state of the world after the conversation, by probe."
    )
    probes_before: dict[str, ProbeResult] = Field(
        default_factory=dict,
        description="The state before the first message, by probe that a `state` check reads.",
    )
    canaries: dict[str, str] = Field(
        default_factory=dict, description="The values that were made for this trial, by name."
    )
