"""The spans of a turn as an SDK exports them: its server's span, and those of models and tools below it.

One request is built once. Each turn gets a copy with its own ids, which have a fixed length.
"""

import asyncio
import secrets

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

SPANS = 20
"""Number of spans in a turn."""
_TRACE, _PARENT = b"\xf0" * 16, b"\xf1" * 8
_PROMPT = "You help the customers of a shop with their orders. " * 20


def _template() -> tuple[bytes, list[bytes]]:
    """A request, and the ids of its spans."""
    ids = [bytes([200 + number]) * 8 for number in range(SPANS)]
    spans = [_span(number, ids) for number in range(SPANS)]
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
    return request.SerializeToString(), ids


def _span(number: int, ids: list[bytes]) -> Span:
    server, tool = number == SPANS - 1, number % 4 == 0
    name = "chat" if server else "execute_tool order_status" if tool else "chat bench"
    texts = {"gen_ai.operation.name": name.split(maxsplit=1)[0], "gen_ai.request.model": "bench"}
    if server:
        texts = {"http.request.method": "POST", "url.path": "/message"}
    elif tool:
        texts |= {"gen_ai.tool.name": "order_status", "gen_ai.tool.call.id": f"call-{number}"}
        texts |= {"gen_ai.tool.call.arguments": '{"order": "1042", "fields": ["state", "place", "eta"]}'}
    else:
        texts |= {"gen_ai.input.messages": f'[{{"role": "system", "content": "{_PROMPT}"}}]'}
    return Span(
        trace_id=_TRACE,
        span_id=ids[number],
        parent_span_id=_PARENT if server else ids[-1],
        name=name,
        kind=Span.SPAN_KIND_SERVER if server else Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=1_780_000_000_000_000_000 + number * 1_000_000,
        end_time_unix_nano=1_780_000_000_000_500_000 + number * 1_000_000,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in texts.items()],
    )


_REQUEST, _IDS = _template()


class Exporter:
    """Sends the spans of turns to a receiver, over one connection, one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._turn = asyncio.Lock()
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def export(self, traceparent: str) -> None:
        """Send the spans below one parent, and wait until they are taken."""
        _, trace, parent, _ = traceparent.split("-")
        body = _REQUEST.replace(_TRACE, bytes.fromhex(trace)).replace(_PARENT, bytes.fromhex(parent))
        for each in _IDS:
            body = body.replace(each, secrets.token_bytes(8))
        head = "POST /v1/traces HTTP/1.1\r\nhost: bench\r\ncontent-type: application/x-protobuf\r\n"
        async with self._turn:
            if self._connection is None:
                self._connection = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._connection
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            if b" 200 " not in answer.split(b"\r\n")[0]:
                raise RuntimeError(f"the receiver answered {answer!r}")
