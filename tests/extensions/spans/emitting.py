"""Spans as exporters send them, in both encodings of OTLP."""

import base64
import json
from itertools import count
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

JSON, PROTOBUF = "application/json", "application/x-protobuf"
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "refund",
    "gen_ai.tool.call.arguments": '{"amount": 42}',
}
AGENT = {"gen_ai.operation.name": "invoke_agent"}
_numbers = count(1)


def value(plain: Any) -> dict:
    """A value as OTLP/JSON has it."""
    match plain:
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case float():
            return {"doubleValue": plain}
        case list():
            return {"arrayValue": {"values": [value(item) for item in plain]}}
        case dict():
            return {"kvlistValue": {"values": [{"key": k, "value": value(v)} for k, v in plain.items()]}}
    return {"stringValue": plain}


def span(traceparent: str = "", attributes: dict | None = None, **fields: Any) -> dict:
    """A span of OTLP/JSON, the child of a header's span unless its parent is given."""
    _, trace_id, parent_id, _ = (traceparent or f"00-{'e' * 32}-{''}-01").split("-")
    return {
        "traceId": trace_id,
        "spanId": f"{next(_numbers):016x}",
        "parentSpanId": parent_id,
        "name": "span",
        "startTimeUnixNano": "1795300000000000000",
        "endTimeUnixNano": "1795300001000000000",
        "attributes": [{"key": key, "value": value(each)} for key, each in (attributes or {}).items()],
        **fields,
    }


def server(traceparent: str, **fields: Any) -> dict:
    """A server's span of a request."""
    return span(traceparent, kind=2, **fields)


def request(*spans: dict, scope: str = "agent") -> dict:
    """An export of spans."""
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": [*spans]}]}]}


def as_json(*spans: dict, **more: Any) -> bytes:
    """The export as JSON."""
    return json.dumps(request(*spans, **more)).encode()


def as_protobuf(*spans: dict, **more: Any) -> bytes:
    """The export as protobuf."""
    message = ExportTraceServiceRequest()
    scoped = message.resource_spans.add().scope_spans.add()
    scoped.scope.name = more.get("scope", "agent")
    for each in spans:
        made = scoped.spans.add(
            trace_id=bytes.fromhex(each["traceId"]),
            span_id=bytes.fromhex(each["spanId"]),
            parent_span_id=bytes.fromhex(each["parentSpanId"]),
            name=each["name"],
            kind=each.get("kind", 0),
            start_time_unix_nano=int(each["startTimeUnixNano"]),
            end_time_unix_nano=int(each["endTimeUnixNano"]),
        )
        made.dropped_attributes_count = int(each.get("droppedAttributesCount", 0))
        made.dropped_events_count = int(each.get("droppedEventsCount", 0))
        made.status.code = each.get("status", {}).get("code", 0)
        for attribute in each["attributes"]:
            _fill(made.attributes.add(key=attribute["key"]).value, attribute["value"])
        for event in each.get("events", ()):
            added = made.events.add(name=event["name"])
            for attribute in event["attributes"]:
                _fill(added.attributes.add(key=attribute["key"]).value, attribute["value"])
    return message.SerializeToString()


def _fill(target: Any, plain: dict) -> None:
    match plain:
        case {"stringValue": text}:
            target.string_value = text
        case {"boolValue": flag}:
            target.bool_value = flag
        case {"intValue": number}:
            target.int_value = int(number)
        case {"doubleValue": number}:
            target.double_value = number
        case {"arrayValue": {"values": items}}:
            target.array_value.SetInParent()
            for item in items:
                _fill(target.array_value.values.add(), item)
        case {"kvlistValue": {"values": items}}:
            target.kvlist_value.SetInParent()
            for item in items:
                _fill(target.kvlist_value.values.add(key=item["key"]).value, item["value"])


def base_64(hexadecimal: str) -> str:
    """An id as protobuf's own JSON has it."""
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()
