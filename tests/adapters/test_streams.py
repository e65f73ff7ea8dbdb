"""Streamed answers: how bytes become events, and what becomes of broken, cut off and endless ones."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from ci_evals.adapters.transport import streams
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.adapters.transport.streams import Stream, StreamError, StreamReader
from ci_evals.agents.agent_server import AgentRequest, AgentServer
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

KEY = "stream-key-77a1b0c2"
Serve = Callable[[web.StreamResponse], Awaitable[None]]


def events_of(body: bytes, stream_format: Any = "sse", cuts: tuple[int, ...] = (), is_last: Any = None):
    """Names and values of the events in a body that comes in pieces."""
    reader = StreamReader(stream_format, is_last)
    for start, end in zip((0, *cuts), (*cuts, len(body)), strict=True):
        reader.feed(body[start:end], 0.5)
    reader.end(1.0)
    return [(event.type, event.value) for event in reader.stream.events]


@each_row("end", ["\n", "\r\n", "\r"])
def test_server_sent_events_are_read_as_the_standard_says(end):
    lines = [
        "\ufeff: welcome", "", "event: text", 'data: {"a":', 'data:"ü"}', "id: 7", "retry: 10", "more: x", "",
        "event: nothing", "", 'data: "second"', "", "data", "", "data: 3",
    ]  # fmt: skip
    assert events_of(end.join(lines).encode()) == [("text", {"a": "ü"}), ("", "second"), ("", 3)]
    # The last event needs no blank line, nor the end of its own: left out, it could be the call of a tool.
    for last in ("", end, "\n\n"):
        assert events_of(f"data: 1\n\nevent: call\ndata: 2{last}".encode()) == [("", 1), ("call", 2)]


def test_event_without_data_ends_a_stream_only_if_it_is_named():
    """LangServe ends its streams so; it is no event, and elsewhere it is skipped."""
    lines = b"event: ping\n\ndata: 1\n\nevent: end\n\ndata: broken\n\n"
    assert events_of(lines, is_last=lambda event: event.type == "end") == [("", 1)]
    with pytest.raises(StreamError, match="before the answer was complete, after 1 event"):
        events_of(b"data: 1\n\nevent: ping\n\n", is_last=lambda event: event.type == "end")
    # Also if all that is known of the last event is which names it does not have.
    reader = StreamReader("sse", lambda event: event.type not in {"delta", ""})
    reader.feed(b'event: delta\ndata: "Refund "\n\nevent: ping\n\nevent: delta\ndata: "denied"\n\n', 1.0)
    assert not reader.is_complete
    reader.feed(b"event: stop\ndata: {}\n\n", 2.0)
    reader.end(2.0)
    assert reader.stream.values == ["Refund ", "denied", {}]


JSON = json_values(st.text(max_size=5) | st.integers())


@pytest.mark.slow
@given(st.data(), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["sse", "ndjson"]))
def test_events_are_read_alike_wherever_the_stream_is_cut(data, end, stream_format):
    """Be it between the two characters of a line end, or inside one of several bytes."""
    values = data.draw(st.lists(JSON, min_size=1, max_size=5))
    prefix, blank = ("data: ", end) if stream_format == "sse" else ("", "")
    raw = "".join(prefix + json.dumps(value, ensure_ascii=False) + end + blank for value in values).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    assert [value for _, value in events_of(raw, stream_format, tuple(cuts))] == values


@each_row("stream_format", ["sse", "ndjson"])
@each_row("events", [
    ['{"a": 1}', '{"a": [{"b": 1}', '{"c": 2}]}'],
    ['{"a": 1}', '{"a": 1}, {"a": 2}'],
    ['{"a": 1}', '{"a": 1', '{"a": 2}'],
    ['{"a": 1}, {"a": 2}', '{"a": [{"b": 1}', '{"c": 2}]}'],
])  # fmt: skip
def test_malformed_events_are_not_joined_into_valid_json(stream_format, events):
    form = "data: {}\n\n" if stream_format == "sse" else "{}\n"
    with pytest.raises(StreamError, match="cannot be read"):
        events_of("".join(map(form.format, events)).encode(), stream_format)


def test_json_lines_are_events():
    assert events_of(b'{"a": 1}\n\n[2]\r\n"three"', "ndjson") == [("", {"a": 1}), ("", [2]), ("", "three")]


def test_stream_is_read_up_to_its_last_event_and_is_an_error_without_it():
    """The stream's time is the time of its last event."""
    assert events_of(b"data: 1\n\ndata: [DONE]\n\ndata: nonsense\n\n") == [("", 1)]
    reader = StreamReader("sse", lambda event: event.type == "done")
    reader.feed(b"data: 1\n\n", 0.25)
    reader.feed(b"event: done\ndata: 2\n\ndata: nonsense\n\n", 0.5)
    assert reader.is_complete
    reader.end(9.0)
    assert reader.stream == Stream((streams.Event(1, "", 0.25), streams.Event(2, "done", 0.5)), 0.5)
    assert reader.stream.values == [1, 2]
    # However well it ended.
    with pytest.raises(StreamError, match="ended its stream before the answer was complete, after 2 events"):
        events_of(b"data: 1\n\ndata: 2\n\ndata: [DONE]\n\n", is_last=lambda event: event.value == 3)


@each_row(("body", "stream_format", "reason"), [
    (b"", "sse", "sent a stream without an event"),
    (b": ping\n\n", "sse", "sent a stream without an event"),
    (b'{"text": "Hi"}\n', "sse", "sent a stream without an event"),
    (b"data: Hi there\n\n", "sse", "sent an event that cannot be read (not JSON)"),
    (b'data: {"a": 1}\n\ndata: {"a"', "sse", "ended its stream in the middle of an event"),
    (b'{"a": 1}\n{"a":', "ndjson", "ended its stream in the middle of an event"),
    (b'{"a":\n1}\n', "ndjson", "sent an event that cannot be read (not JSON)"),
    (b"\xff\xfe\n", "ndjson", "sent an event that cannot be read (not JSON)"),
    (b"[" * 9000 + b"\n", "ndjson", "sent an event that cannot be read (nested too deep to be read)"),
    (b"1\n" * (streams.MAX_EVENTS + 1), "ndjson", "sent more than 20,000 events"),
    ((b"[" + b"1," * 999 + b"1]\n") * 101, "ndjson", "sent events of more than 100,000 values"),
    ((b'"' + b"[" * 40 + b'"\n') * 9000, "ndjson", "sent events of more than 100,000 values"),
])  # fmt: skip
def test_unreadable_stream_is_an_error_with_its_reason(body, stream_format, reason):
    with pytest.raises(StreamError) as caught:
        events_of(body, stream_format)
    assert str(caught.value) == reason


def test_brackets_within_strings_do_not_count_as_values():
    """Frameworks repeat the whole text with each event."""
    text = json.dumps('well, [that] is {it}, \\"so\\" ' * 60)
    assert len(events_of(f"{text}\n".encode() * 900, "ndjson")) == 900
    assert payload.count_values(text.encode()) == 1


@given(st.binary(max_size=200), st.sampled_from(["sse", "ndjson"]))
def test_arbitrary_bytes_are_read_as_events_or_raise_stream_error(body, stream_format):
    with suppress(StreamError):
        assert events_of(body, stream_format)


@asynccontextmanager
async def serving(
    serve: Serve, status: int = 200, content_type: str = "text/event-stream"
) -> AsyncIterator[tuple[Any, list[web.Request]]]:
    """A server that streams: a function that asks it, and what it was asked."""
    heard: list[web.Request] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        heard.append(request)
        response = web.StreamResponse(status=status, headers={"content-type": content_type})
        await response.prepare(request)
        await serve(response)
        return response

    app = web.Application()
    app.router.add_post("/chat", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    server = AgentServer(
        AgentSettings(api_key=KEY), f"http://127.0.0.1:{port}", {"authorization": f"Bearer {KEY}"},
        Redactor(), RateLimiter(max_concurrent=1),
    )  # fmt: skip
    client = server.new_client()

    async def ask(stream_format: Any = "sse", is_last: Any = None, timeout: float = 5) -> Stream:  # noqa: ASYNC109
        request = AgentRequest("POST", server.at("/chat"), timeout, idempotent=False, body={"say": "Hi"})
        return await server.stream(client, request, stream_format, is_last)

    try:
        yield ask, heard
    finally:
        await client.aclose()
        await runner.cleanup()


async def send_three_events(response: web.StreamResponse) -> None:
    for number in range(3):
        await response.write(b"event: n\ndata: %d\n\n" % number)


async def test_streamed_answer_is_read_over_http_with_the_time_of_each_event():
    go_on = asyncio.Event()

    async def serve(response: web.StreamResponse) -> None:
        await response.write(b"data: 1\n\n")
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        await go_on.wait()
        await response.write(b"data: 2\n\n")

    async with serving(serve) as (ask, heard):
        stream = await ask()
    first, second = stream.events
    assert (first.value, second.value) == (1, 2)
    assert 0 < first.seconds < second.seconds - 0.02
    assert stream.seconds >= second.seconds
    assert heard[0].headers["accept"] == "text/event-stream"


async def test_stream_after_its_last_event_may_stay_open_or_end_itself():
    """An open one blocks no further message; one that ends is not left before."""
    ended = []

    async def serve(response: web.StreamResponse) -> None:
        await send_three_events(response)
        if len(asked) == 1:
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)
        await response.write(b": bye\n\n")
        ended.append(True)

    async with serving(serve) as (ask, asked):
        for _ in range(2):
            assert (await ask(is_last=lambda event: event.value == 1)).values == [0, 1]
        assert (len(asked), ended) == (2, [True])


async def test_plain_json_body_is_read_as_one_stream_event():

    async def serve(response: web.StreamResponse) -> None:
        await response.write(b'{"error":')
        await response.write(b'"no"}\n')

    async with serving(serve, content_type="application/problem+json; charset=utf-8") as (ask, _):
        for wanted in ("sse", "ndjson"):
            assert (await ask(wanted)).values == [{"error": "no"}]


async def endless(response: web.StreamResponse) -> None:
    while True:
        await response.write(b"data: 1\n\n")
        await asyncio.sleep(0.01)


async def silent(response: web.StreamResponse) -> None:
    await response.write(b": ping\n\n")
    await asyncio.Event().wait()


async def flood(response: web.StreamResponse) -> None:
    while True:
        await response.write(b"data: " + b"1" * 1_000_000)


async def broken(response: web.StreamResponse) -> None:
    await response.write(b"data: 1\n\n")
    response._req.transport.close()


async def leaking(response: web.StreamResponse) -> None:
    await response.write(f"data: wrong key {KEY}\n\n".encode())


@pytest.mark.parametrize(("serve", "message"), [
    (endless, r"did not answer within 3 s: its stream did not end, after \d+ events"),
    (silent, r"did not answer within 0.3 s$"),
    (flood, r"answered with more than 16 MB"),
    (broken, r"the connection to the agent at 127.0.0.1:\d+ broke"),
    (leaking, r"the agent at \S+ sent an event that cannot be read \(not JSON\): wrong key \*\*\*"),
])  # fmt: skip
async def test_endless_or_broken_stream_raises_one_error_without_key(serve, message):
    # A slow machine must have time for the first event of the endless stream, and for all of the flood.
    timeout = {endless: 3, flood: 300}.get(serve, 0.3)
    async with serving(serve) as (ask, heard):
        with pytest.raises(AgentError, match=message) as caught:
            await ask(timeout=timeout)
    assert KEY not in str(caught.value)
    assert len(heard) == 1


async def test_error_status_of_a_stream_is_an_access_error_with_the_detail_of_its_body():

    async def serve(response: web.StreamResponse) -> None:
        await response.write(b'{"detail": "who are you?"}')

    async with serving(serve, 401) as (ask, _):
        with pytest.raises(AgentAccessError, match=r"refused the key \(401\): who are you\?"):
            await ask()
