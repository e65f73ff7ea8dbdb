"""Spans as exporters send them, in both encodings of OTLP."""

import base64
import json
from itertools import count
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

JSON, PROTOBUF = "application/json", "application/x-protobuf"
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
TOOL |= {"gen_ai.tool.call.arguments": '{"amount": 42}'}
AGENT = {"gen_ai.operation.name": "invoke_agent"}
_numbers = count(1)


def value(plain: Any) -> dict:
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
    ids = {"traceId": trace_id, "spanId": f"{next(_numbers):016x}", "parentSpanId": parent_id, "name": "span"}
    times = {"startTimeUnixNano": "1795300000000000000", "endTimeUnixNano": "1795300001000000000"}
    encoded = [{"key": key, "value": value(each)} for key, each in (attributes or {}).items()]
    return ids | times | {"attributes": encoded} | fields


def server(traceparent: str, **fields: Any) -> dict:
    return span(traceparent, kind=2, **fields)


def request(*spans: dict, scope: str = "agent") -> dict:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": [*spans]}]}]}


def as_json(*spans: dict, **more: Any) -> bytes:
    return json.dumps(request(*spans, **more)).encode()


def as_protobuf(*spans: dict, **more: Any) -> bytes:
    ids = ("traceId", "spanId", "parentSpanId")
    encoded = [each | {name: base_64(each[name]) for name in ids} for each in spans]
    return ParseDict(request(*encoded, **more), ExportTraceServiceRequest()).SerializeToString()


def base_64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()
