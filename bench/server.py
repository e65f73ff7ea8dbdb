"""A server of known latency: AUI's wire and both LLM wires, written so that it is not the bottleneck.

It parses no JSON and does nothing but wait: bodies of answers are made once, requests are told apart by their
path and by one word in the body.
"""

import argparse
import asyncio
import json
import random
from dataclasses import asdict, dataclass, field
from typing import cast

from bench.spans import Exporter

TURNS = 7
"""Turns of a conversation of `bench.workload`."""

_USER = "I still have no answer about my order 1042. Where is it, and when will it reach me at home?"
_VERDICT = {
    "reasoning": "In turn 2 the agent names the parcel's place, and in turn 3 the day it will come.",
    "met": True,
    "evidence": [
        {"turn": 2, "quote": "order 1042 left our warehouse ... at the depot in Ashby now"},
        {"turn": 3, "quote": "on Thursday between nine and noon"},
    ],
    "rests_on": "quotes",
    "looked_at": [],
    "verdict": "pass",
}
_REPLY = {
    "id": "4b0c6c1e-0f4e-4a54-9d0e-2f6a35a10001",
    "created_at": "2026-05-04T09:00:01.120Z",
    "text": "I have looked it up: order 1042 left our warehouse in Fernhill on Monday and is at the depot in "
    "Ashby now. It should be with you on Thursday between nine and noon. May I do anything else for you?",
    "sender": {"id": "intelligent-agent", "type": "agent"},
    "receiver": {"id": "bench", "type": "user"},
    "cards": [],
    "followup_suggestions": ["Thanks, that is all", "Change the address"],
    "executed_workflows": ["ORDER_STATUS"],
    "trace_info": {
        "input": {"message": _USER},
        "understanding": {
            "guardrails": {"passed": True},
            "intents": ["order status"],
            "extracted_params": {"order-id": "1042", "channel": "chat", "postcode": "undefined"},
        },
        "decisions": [
            {
                "type": "activate_tool",
                "tool": "ORDER_STATUS",
                "trigger": {"type": "intent_classification", "reasons": ["asks where the order is"]},
            },
            {"type": "params_check", "tool": "ORDER_STATUS", "status": "complete"},
            {
                "type": "call_integration",
                "tool": "ORDER_STATUS",
                "integration": {
                    "code": "orders-api",
                    "type": "api",
                    "status_code": 200,
                    "request": {"order": "1042", "fields": ["state", "place", "eta"]},
                    "response": {
                        "state": "in transit",
                        "place": "Ashby depot",
                        "eta": "2026-05-07T09:00:00Z",
                        "events": [
                            {"at": f"2026-05-0{day}T0{day}:12:00Z", "place": place, "note": "scanned"}
                            for day, place in enumerate(("Fernhill", "Dunmore", "Ashby", "Ashby"), start=1)
                        ],
                    },
                },
            },
        ],
        "response": {"type": "message", "message": "It should be with you on Thursday."},
        "rules_evaluations": [
            {"code": "order-known", "triggered": True, "reason": ["the order is in the records"]},
            {"code": "refund-window-open", "triggered": False},
        ],
        "latency": {"elapsed": 840, "unit": "millisecond"},
    },
}


def _openai(text: str) -> bytes:
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1767225600,
            "model": "bench",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960},
        }
    ).encode()


def _anthropic(text: str) -> bytes:
    return json.dumps(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "bench",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 900, "output_tokens": 60},
        }
    ).encode()


def _answer(body: bytes, status: str = "200 OK", header: bytes = b"") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n".encode()
    return head + header + b"\r\n" + body


_TASK = _answer(b'{"id": "66f0aa10c3d2b41e5f000001", "user_id": "bench", "title": "New conversation"}')
_MESSAGE = _answer(json.dumps(_REPLY).encode())
_MODELS = _answer(b'{"object": "list", "data": []}')
_LINES = {b"chat/completions": _answer(_openai(_USER)), b"/messages": _answer(_anthropic(_USER))}
_VERDICTS = {
    b"chat/completions": _answer(_openai(json.dumps(_VERDICT))),
    b"/messages": _answer(_anthropic(json.dumps(_VERDICT))),
}
_WANTS_VERDICT = b'"json_schema"'
_SMALLEST = _answer(b"{}")
_LIMITED = _answer(b'{"error": {"message": "too many requests"}}', "429 Too Many Requests")
_BROKEN = _answer(b'{"error": {"message": "out of order"}}', "500 Internal Server Error")


@dataclass
class Books:
    """What the server saw since it was last asked to forget."""

    requests: int = 0
    connections: int = 0
    faults: int = 0
    first_agent_request: float | None = None
    """Seconds of the machine's monotonic clock."""
    last_request: float | None = None
    bodies: list[list[str]] = field(default_factory=list)
    """Path and body of each request, where it was asked to keep them."""


@dataclass
class Manners:
    """How the server behaves."""

    agent_seconds: float
    llm_seconds: float
    faults: bool = False
    keep: bool = False
    exporter: Exporter | None = None
    """For the spans of each message to the agent."""
    books: Books = field(default_factory=Books)
    luck: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311


class _Connection(asyncio.Protocol):
    def __init__(self, manners: Manners, loop: asyncio.AbstractEventLoop) -> None:
        self._manners = manners
        self._loop = loop
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._manners.books.connections += 1

    def data_received(self, data: bytes) -> None:
        held = self._held + data if self._held else data
        end = held.find(b"\r\n\r\n")
        if end < 0:
            self._held = held
            return
        head = held[:end]
        place = head.lower().find(b"content-length:")
        length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
        if len(held) < end + 4 + length:
            self._held = held
            return
        self._held = b""
        path = head.split(b" ", 2)[1]
        self._asked(path, held[end + 4 :], head)

    def _asked(self, path: bytes, body: bytes, head: bytes) -> None:
        manners, books, now = self._manners, self._manners.books, self._loop.time()
        if path.startswith(b"/bench"):
            self._transport.write(_answer(_control(manners, path)))
            return
        seconds, answer = _choice(manners, path, body)
        if path.endswith(b"?smallest"):
            answer = _SMALLEST
        books.requests += 1
        books.last_request = now
        if b"/external/" in path and books.first_agent_request is None:
            books.first_agent_request = now
        if manners.keep:
            books.bodies.append([path.decode(), body.decode()])
        fault = manners.luck.random() if manners.faults and answer is not _MODELS else 1.0
        if fault < 0.08:
            books.faults += 1
            if fault < 0.01:
                self._loop.call_later(seconds, self._transport.abort)
                return
            seconds, answer = (seconds, _BROKEN) if fault < 0.03 else (0.0, _LIMITED)
        if manners.exporter and answer is _MESSAGE:
            traceparent = head.lower().partition(b"\ntraceparent:")[2].split(b"\r\n")[0].strip()
            self._loop.call_later(seconds, manners.exporter.end_spans, traceparent.decode())
        self._loop.call_later(seconds, self._transport.write, answer)


def _choice(manners: Manners, path: bytes, body: bytes) -> tuple[float, bytes]:
    """How long an answer takes, and what it is."""
    if b"/external/tasks" in path:
        return manners.agent_seconds, _TASK
    if b"/external/message" in path:
        return manners.agent_seconds, _MESSAGE
    for end, line in _LINES.items():
        if path.split(b"?")[0].endswith(end):
            return manners.llm_seconds, _VERDICTS[end] if _WANTS_VERDICT in body else line
    return 0.0, _MODELS


def _control(manners: Manners, path: bytes) -> bytes:
    """`/bench/books` gives what was seen; `/bench/forget?faults=1&agent=0.2&otlp=4318` clears it."""
    words = dict(pair.split("=") for pair in path.decode().partition("?")[2].split("&") if pair)
    if path.startswith(b"/bench/forget"):
        manners.books = Books()
        manners.luck.seed(7)
        manners.faults = words.get("faults") == "1"
        manners.keep = words.get("keep") == "1"
        if manners.exporter:
            manners.exporter.stop()
        manners.exporter = Exporter(int(words["otlp"]), float(words["export"])) if "otlp" in words else None
        manners.agent_seconds = float(words.get("agent", manners.agent_seconds))
        manners.llm_seconds = float(words.get("llm", manners.llm_seconds))
    return json.dumps(asdict(manners.books)).encode()


async def serve(manners: Manners) -> None:
    """Serves until it is killed; prints the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(manners, loop), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", type=float, default=0.2, help="seconds that the agent takes")
    parser.add_argument("--llm", type=float, default=0.3, help="seconds that the models take")
    options = parser.parse_args()
    asyncio.run(serve(Manners(options.agent, options.llm)))
