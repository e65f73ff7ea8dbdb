"""The spans of turns as an SDK exports them: a server's span, and those of models and tools below it.

The spans of one turn are built once. Each turn gets a copy with its own ids, which have a fixed length.
"""

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

SPANS = 20
"""Number of spans in a turn."""
DELAY = 0.2
"""Seconds between two exports, as `docs/traces.md` advises; an SDK's own default is 5."""
_TOOLS = range(0, SPANS - 1, 4)
_MOST = 512
"""The most spans of a request, in every SDK that is not told otherwise."""
_TRACE, _PARENT = b"\xf0" * 16, b"\xf1" * 8
_HEAD = "POST /v1/traces HTTP/1.1\r\nhost: bench\r\ncontent-type: application/x-protobuf\r\n"
_PROMPT = "You help the customers of a shop with their orders. " * 20


def check(results: Path, turns: int) -> None:
    """Raise `RuntimeError` if the tool calls of so many turns are not all in the results of a run."""
    found = results.joinpath("_results.json").read_text(encoding="utf-8").count('"id": "call-')
    if found != turns * len(_TOOLS):
        raise RuntimeError(f"{found} tool calls of {turns} turns, not {len(_TOOLS)} of each")


def _template() -> tuple[bytes, list[bytes]]:
    """The spans of a turn, and their ids."""
    ids = [bytes([200 + number]) * 8 for number in range(SPANS)]
    return ScopeSpans(spans=[_span(number, ids) for number in range(SPANS)]).SerializeToString(), ids


def _span(number: int, ids: list[bytes]) -> Span:
    server, tool = number == SPANS - 1, number in _TOOLS
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


_SPANS, _IDS = _template()


class Exporter:
    """Sends spans as an SDK's batch processor does: some time after they ended, or once a batch is full.

    One agent serves all conversations, so that a request has spans of several. They go over one connection,
    one request after the other.
    """

    def __init__(self, port: int, delay: float) -> None:
        self._port, self._delay = port, delay
        self._ended: list[Span] = []
        self._is_full = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def end_spans(self, traceparent: str) -> None:
        """Let the spans below one parent end."""
        _, trace, parent, _ = traceparent.split("-")
        turn = _SPANS.replace(_TRACE, bytes.fromhex(trace)).replace(_PARENT, bytes.fromhex(parent))
        for each in _IDS:
            turn = turn.replace(each, secrets.token_bytes(8))
        self._ended += ScopeSpans.FromString(turn).spans
        if len(self._ended) >= _MOST:
            self._is_full.set()
        self._sending = self._sending or asyncio.get_running_loop().create_task(self._send())

    def stop(self) -> None:
        """Send nothing more."""
        if self._sending:
            self._sending.cancel()

    async def _send(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_full.wait(), self._delay)
            self._is_full.clear()
            while batch := self._ended[:_MOST]:
                del self._ended[:_MOST]
                scopes = [ScopeSpans(spans=batch)]
                request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=scopes)])
                body = request.SerializeToString()
                writer.write(f"{_HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)
                answer = await reader.readuntil(b"\r\n\r\n")
                length = answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
