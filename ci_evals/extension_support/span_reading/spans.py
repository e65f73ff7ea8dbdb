"""OTLP requests as spans. Pure.

Source: opentelemetry-proto 1.x, `collector/trace/v1/trace_service.proto`. In OTLP/JSON ids are hexadecimal,
64-bit integers are texts, and attributes are lists of keys with `AnyValue` objects.
"""

import base64
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import JsonValue

from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject

MAX_BYTES = 16_000_000
"""Limit of a request, without its compression."""
MAX_SPANS = 20_000
"""Limit of spans in one request."""
MAX_ATTRIBUTES = 2_000
"""Limit of the attributes of a span or event, and of its events; SDKs keep 128 unless told otherwise."""
MAX_TEXT = 1_000_000
"""Limit of a text in an attribute that may hold a tool call."""
MAX_OTHER_TEXT = 4_000
"""Limit of any other text: prompts repeat the whole conversation in every span of a model."""
TOO_LONG = "(too long to be kept)"
"""In place of a longer text."""
_MAX_DEPTH = 64
_MAX_JSON_VALUES = 2_000_000
_MAX_TIME = 2**63
_MAX_INTEGER = 2**63
_IDS = re.compile(r"[0-9a-f]{48}")
"""The ids of a trace and of a span, joined."""
_ERROR, _SERVER = 2, 2
"""`STATUS_CODE_ERROR` and `SPAN_KIND_SERVER`."""
_OF_INFRASTRUCTURE = frozenset({
    "client.", "cloud.", "code.", "container.", "db.", "deployment.", "faas.", "host.", "http.", "k8s.",
    "messaging.", "net.", "network.", "os.", "otel.", "peer.", "process.", "rpc.", "server.", "telemetry.",
    "thread.", "tls.", "url.", "user_agent.",
})  # fmt: skip
"""Beginnings of attributes that tell nothing of tools and models: most of a trace, and not even decoded."""
_LONGEST_OF_INFRASTRUCTURE = max(map(len, _OF_INFRASTRUCTURE))
_CALLS = re.compile(
    r"gen_ai\.(tool|output|completion|conversation|agent)\b.*|tool(_|\.).*|ai\.(toolCall|response)\..*"
    r"|llm\.output_messages\..*|traceloop\..*|events|message"
)
"""Attributes that may hold a tool call."""

Attributes = Mapping[str, JsonValue]


class OtlpError(ValueError):
    """A request that cannot be read; its text is an answer to who sent it."""

    status = 400
    """Of the answer."""


class TooLargeError(OtlpError):
    """A request that is too large."""

    status = 413


class UnknownTypeError(OtlpError):
    """A request of a content type that is not read."""

    status = 415


class Event(NamedTuple):
    """Something that happened during a span."""

    name: str
    attributes: Attributes
    size: int = 0
    """The number of characters in its attributes."""


class Span(NamedTuple):
    """A span that has ended."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty if it has none."""
    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes = MappingProxyType({})
    """Those that may tell of tools and models."""
    events: tuple[Event, ...] = ()
    failed: bool = False
    is_server: bool = False
    """True if it is how a server answered a request."""
    scope: str = ""
    """The instrumentation that made it."""
    size: int = 200
    """About the number of characters that it holds."""
    cut: bool = False
    """True if attributes or events of it are missing: its exporter dropped them, or it has too many."""

    def text(self, *keys: str) -> str | None:
        """Return the first of these attributes that is a text with something in it."""
        for key in keys:
            value = self.attributes.get(key)
            if isinstance(value, str) and value.strip():
                return value
        return None


def read(body: bytes, content_type: str, max_other_text: int = MAX_OTHER_TEXT) -> list[Span]:
    """Return the spans of an `ExportTraceServiceRequest`; those whose ids have a wrong form are of no trace.

    Args:
        body: The request.
        content_type: Its type.
        max_other_text: Limit of a text in an attribute that holds no tool call, such as a prompt.

    Raises:
        OtlpError: it is none.
    """
    match content_type.partition(";")[0].strip().lower():
        case "application/json":
            spans = _read_json(body, max_other_text)
        case "application/x-protobuf":
            spans = _read_protobuf(body, max_other_text)
        case other:
            raise UnknownTypeError(
                f"Content-Type {other or 'missing'} is not supported; "
                "use application/x-protobuf or application/json"
            )
    listed = [*islice(spans, MAX_SPANS + 1)]
    if len(listed) > MAX_SPANS:
        raise OtlpError(f"more than {MAX_SPANS:,} spans in one request")
    return [
        span if len(span.trace_id) == 32 and len(span.span_id) == 16 else span._replace(trace_id="")
        for span in listed
    ]


def _read_protobuf(body: bytes, max_other_text: int) -> Iterator[Span]:
    from google.protobuf.message import DecodeError  # noqa: PLC0415  # 0.1 s, for those who need it
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: PLC0415

    try:
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise OtlpError(f"the body is not an ExportTraceServiceRequest: {error}") from None
    for resource in request.resource_spans:
        for scoped in resource.scope_spans:
            scope = scoped.scope.name[:MAX_OTHER_TEXT]
            for span in scoped.spans:
                attributes, size = _proto_attributes(span.attributes, max_other_text)
                events = (
                    tuple(
                        Event(each.name, *_proto_attributes(each.attributes, max_other_text))
                        for each in islice(found, MAX_ATTRIBUTES)
                    )
                    if (found := span.events)
                    else ()
                )
                # By position: an agent sends thousands of spans.
                yield Span(
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name[:MAX_OTHER_TEXT],
                    min(span.start_time_unix_nano, _MAX_TIME),
                    min(span.end_time_unix_nano, _MAX_TIME),
                    attributes,
                    events,
                    span.status.code == _ERROR,
                    span.kind == _SERVER,
                    scope,
                    _size(size, events),
                    bool(span.dropped_attributes_count or span.dropped_events_count)
                    or len(span.attributes) > MAX_ATTRIBUTES
                    or len(found) > MAX_ATTRIBUTES,
                )


def _size(own: int, events: Sequence[Event]) -> int:
    return 200 + own + (sum(event.size for event in events) if events else 0)


def _proto_attributes(attributes: Iterable[Any], max_other_text: int) -> tuple[Attributes, int]:
    found: dict[str, JsonValue] = {}
    size = 0
    for each in islice(attributes, MAX_ATTRIBUTES):
        key = each.key
        if _may_tell(key[:_LONGEST_OF_INFRASTRUCTURE]):
            if text := (value := each.value).string_value:
                found[key] = text
                size += len(key) + len(text)
            else:
                found[key] = other = _proto_value(value)
                size += len(key) + len(repr(other))
    return _bounded(found, max_other_text) if size > MAX_OTHER_TEXT else (found, size)


def _proto_value(value: Any, depth: int = 0) -> JsonValue:  # noqa: PLR0911  # one case a kind of value
    if depth > _MAX_DEPTH:
        return None
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_proto_value(item, depth + 1) for item in value.array_value.values]
        case "kvlist_value":
            return {item.key: _proto_value(item.value, depth + 1) for item in value.kvlist_value.values}
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
        case "double_value":
            return value.double_value if math.isfinite(value.double_value) else None
        case kind:
            plain: JsonValue = getattr(value, str(kind))
            return plain


def _read_json(body: bytes, max_other_text: int) -> Iterator[Span]:
    try:
        request = payload.parse(body, _MAX_JSON_VALUES)
    except ValueError as error:
        raise OtlpError(f"the body cannot be read: {error}") from None
    if not isinstance(request, dict):
        raise OtlpError("the body is not an ExportTraceServiceRequest: it is not an object")
    for resource in _objects(request, "resourceSpans"):
        for scoped in _objects(resource, "scopeSpans"):
            scope = scoped.get("scope")
            for span in _objects(scoped, "spans"):
                status = span.get("status")
                code = status.get("code") if isinstance(status, dict) else None
                attributes, size = _json_attributes(span, max_other_text)
                events = tuple(
                    Event(_name(each), *_json_attributes(each, max_other_text))
                    for each in islice(_objects(span, "events"), MAX_ATTRIBUTES)
                )
                trace_id, span_id = _id(span, "traceId", 16), _id(span, "spanId", 8)
                yield Span(
                    trace_id=trace_id if _IDS.fullmatch(trace_id + span_id) else "",
                    span_id=span_id,
                    parent_id=_id(span, "parentSpanId", 8),
                    name=_name(span),
                    start_ns=_time(span, "startTimeUnixNano"),
                    end_ns=_time(span, "endTimeUnixNano"),
                    attributes=attributes,
                    events=events,
                    failed=code in (_ERROR, "STATUS_CODE_ERROR"),
                    is_server=span.get("kind") in (_SERVER, "SPAN_KIND_SERVER"),
                    scope=_name(scope) if isinstance(scope, dict) else "",
                    size=_size(size, events),
                    cut=any(
                        _integer(span.get(key)) for key in ("droppedAttributesCount", "droppedEventsCount")
                    )
                    or any(
                        len(held) > MAX_ATTRIBUTES
                        for key in ("attributes", "events")
                        if isinstance(held := span.get(key), list)
                    ),
                )


def _objects(holder: JsonObject, key: str) -> Iterator[JsonObject]:
    items = holder.get(key)
    yield from (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _id(span: JsonObject, key: str, size: int) -> str:
    """Return an id of `size` bytes in hexadecimal; some exporters write it in base 64."""
    value = span.get(key)
    text = value.lower() if isinstance(value, str) else ""
    if isinstance(value, str) and len(text) != 2 * size:
        try:
            return base64.b64decode(value, validate=True).hex()
        except ValueError:
            return ""
    return text


def _name(holder: JsonObject) -> str:
    value = holder.get("name")
    return value[:MAX_OTHER_TEXT] if isinstance(value, str) else ""


def _time(holder: JsonObject, key: str) -> int:
    return min(max(0, _integer(holder.get(key)) or 0), _MAX_TIME)


def _integer(value: object) -> int | None:
    try:
        number = int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= _MAX_INTEGER else None


def _json_attributes(holder: JsonObject, max_other_text: int) -> tuple[Attributes, int]:
    items = islice(_objects(holder, "attributes"), MAX_ATTRIBUTES)
    return _bounded(
        {
            key: _json_value(each.get("value"))
            for each in items
            if _may_tell((key := str(each.get("key")))[:_LONGEST_OF_INFRASTRUCTURE])
        },
        max_other_text,
    )


def _json_value(value: object) -> JsonValue:  # noqa: PLR0911  # one case a kind of value
    if not isinstance(value, dict) or not value:
        return None
    kind, plain = next(iter(value.items()))
    match kind, plain:
        case "arrayValue", dict():
            return [_json_value(item) for item in _objects(plain, "values")]
        case "kvlistValue", dict():
            return {
                str(item.get("key")): _json_value(item.get("value")) for item in _objects(plain, "values")
            }
        case "intValue", _:
            return _integer(plain)
        case "doubleValue", float() | int():
            return float(plain)
        case "boolValue", bool():
            return plain
        case "stringValue" | "bytesValue", str():
            return plain
    return None


@lru_cache(1_000)
def _may_tell(key: str) -> bool:
    """Return whether an attribute whose key begins so may tell of tools and models."""
    return key[: key.find(".") + 1] not in _OF_INFRASTRUCTURE


def _bounded(attributes: dict[str, JsonValue], max_other_text: int) -> tuple[Attributes, int]:
    """Return attributes without texts that are too long, whose content is then unknown; and their size."""
    size = 0
    for key, value in attributes.items():
        length = len(value if isinstance(value, str) else repr(value))
        if length > MAX_OTHER_TEXT and isinstance(value, str):
            of_tool = key in {"input.value", "output.value"} and (
                attributes.get("openinference.span.kind") == "TOOL"
            )
            if length > (MAX_TEXT if of_tool or _CALLS.fullmatch(key) else max_other_text):
                attributes[key] = TOO_LONG
                length = len(TOO_LONG)
        size += len(key) + length
    return attributes, size
