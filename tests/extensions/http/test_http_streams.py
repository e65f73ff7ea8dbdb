"""The adapter `http` against an agent that streams: server-sent events, JSON lines, a WebSocket."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from aiohttp import WSMsgType, web
from doc_pages import ROOT, code, table
from each_row import each_row
from pydantic import ValidationError

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.extensions.http.options import HttpOptions

TEST = Test(name="Refund", guidelines="g", turns=({"user": "Hi"},), evaluations=({"criterion": "Helpful"},))
STREAMS = ["sse", "ndjson", "websocket"]
REPLY = {
    "text": "$[?@.type == 'text'].delta", "toolCalls": "$[?@.type == 'call']",
    "error": "$[?@.type == 'error'].message", "outputTokens": "$[*].usage.output",
}  # fmt: skip
UNTIL = "$[?@.type == 'end']"
Write = Callable[[Any], Awaitable[None]]
Answer = Callable[[Any, Write], Awaitable[None]]


def text(delta: Any) -> dict[str, Any]:
    return {"type": "text", "delta": delta}


END = {"type": "end", "usage": {"output": 7}}
CALL = {"type": "call", "name": "refund", "args": {"amount": 42}}
ANSWER = [text("Done"), CALL, text(": "), text(""), text("42 €"), END]


@dataclass
class Streaming:
    """An agent that streams in three ways, each at a path of its own."""

    answer: Answer
    url: str = ""
    heard: list[Any] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)
    refusal: web.Response | None = None
    after: Callable[[web.WebSocketResponse], Awaitable[None]] | None = None

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.refusal:
            return self.refusal
        self.heard.append(await request.json())
        is_sse = request.path == "/sse"
        kind = "text/event-stream" if is_sse else "application/x-ndjson"
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)

        async def write(event: Any) -> None:
            line = event if isinstance(event, str) else json.dumps(event)
            await response.write((f"data: {line}\n\n" if is_sse else f"{line}\n").encode())

        await self.answer(self.heard[-1], write)
        return response

    async def _converse(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.refusal:
            return self.refusal
        socket = web.WebSocketResponse()
        await socket.prepare(request)

        async def write(event: Any) -> None:
            await socket.send_str(event if isinstance(event, str) else json.dumps(event))

        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.heard.append(json.loads(message.data))
                await self.answer(self.heard[-1], write)
                if self.after:
                    await self.after(socket)
        return socket


@asynccontextmanager
async def streaming(answer: Answer) -> AsyncIterator[Streaming]:
    agent = Streaming(answer)
    app = web.Application()
    app.router.add_post("/sse", agent._stream)
    app.router.add_post("/ndjson", agent._stream)
    app.router.add_get("/websocket", agent._converse)
    app.router.add_post("/whole", whole)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    agent.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield agent
    finally:
        await runner.cleanup()


async def whole(_: web.Request) -> web.Response:
    return web.json_response(ANSWER)


def agent_at(url: str, stream: str, **options: Any) -> HttpAgent:
    send = {"path": f"/{stream}", "body": {"say": "{{message}}", "chat": "{{session}}"}}
    given = {"send": send, "reply": REPLY, "stream": stream, "until": UNTIL, **options}
    if given["until"] is None:
        del given["until"]
    agent_settings = AgentSettings(base_url=url, api_key=endpoints.KEY, options=given, debug=True)
    return HttpAgent(agent_settings, limiter=world.limiter([]))


async def say(agent: HttpAgent, *texts: str, timeout: float = 5) -> list[Reply]:  # noqa: ASYNC109
    session = await agent.open_session(TEST)
    try:
        return [await agent.send_message(session, result, timeout=timeout) for result in texts]
    finally:
        await agent.close(session)


def answer_with(*events: Any) -> Answer:
    """An answer that sends these events."""

    async def answer(_: Any, write: Write) -> None:
        for event in events:
            await write(event)

    return answer


scripted = answer_with(*ANSWER)


@pytest.mark.parametrize("stream", STREAMS)
async def test_streamed_events_become_one_reply_with_calls_tokens_and_first_token_time(stream):
    began = time.monotonic()
    async with streaming(scripted) as agent:
        replies = await say(agent_at(agent.url, stream), "A refund, please", "Thanks")
        assert [heard["say"] for heard in agent.heard] == ["A refund, please", "Thanks"]
        assert len({heard["chat"] for heard in agent.heard}) == 1
        assert agent.requests[0].headers["authorization"] == f"Bearer {endpoints.KEY}"
        assert len(agent.requests) == (1 if stream == "websocket" else 2)
    for reply in replies:
        assert (reply.agent, reply.output_tokens, reply.raw) == ("Done: 42 €", 7, ANSWER)
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [("refund", {"amount": 42})]
        assert 0 < reply.first_token_seconds <= reply.latency_seconds <= time.monotonic() - began


@pytest.mark.parametrize("stream", STREAMS)
async def test_error_event_in_a_stream_gives_an_error_response_with_the_text_before(stream):
    error = {"type": "error", "message": "the model is down"}
    async with streaming(answer_with(text("Let me see"), error, END)) as agent:
        (reply,) = await say(agent_at(agent.url, stream), "Hi")
    assert (reply.agent, reply.error_response, reply.error_detail) == ("Let me see", True, error["message"])


@pytest.mark.parametrize("stream", STREAMS)
async def test_refused_key_of_a_stream_is_access_error(stream):
    async with streaming(scripted) as agent:
        agent.refusal = web.json_response({"detail": "who are you?"}, status=401)
        with pytest.raises(AgentAccessError, match=r"refused the key \(401\): who are you\?"):
            await say(agent_at(agent.url, stream), "Hi")


@pytest.mark.parametrize("stream", ["sse", "ndjson"])
async def test_stream_without_until_ends_when_connection_closes(stream):
    """`[DONE]` is no event."""
    async with streaming(answer_with(*ANSWER, "[DONE]")) as agent:
        (reply,) = await say(agent_at(agent.url, stream, until=None), "Hi")
    assert reply.raw == ANSWER


@pytest.mark.parametrize("stream", STREAMS)
async def test_time_to_first_token_ignores_other_events_and_blank_texts(stream):
    go_on = asyncio.Event()

    async def answer(_: Any, write: Write) -> None:
        await write({"type": "thinking"})
        await write(text(" "))
        asyncio.get_running_loop().call_later(0.03, go_on.set)
        await go_on.wait()
        await write(text("Hello"))
        await write(END)

    async with streaming(answer) as agent:
        (reply,) = await say(agent_at(agent.url, stream), "Hi")
    assert reply.agent == " Hello"
    assert 0.025 < reply.first_token_seconds <= reply.latency_seconds


async def test_sse_events_are_read_with_their_names():
    stream = '"Hel"\n\nevent: word\ndata: {"w": "lo"}\n\nevent: bye\ndata: 1'
    async with streaming(answer_with(stream)) as agent:
        reply = {"text": "$[?@.event == 'word'].data.w"}
        (got,) = await say(agent_at(agent.url, "sse", reply=reply, until="$[?@.event == 'bye']"), "Hi")
    assert got.agent == "lo"
    assert got.raw == ["Hel", {"event": "word", "data": {"w": "lo"}}, {"event": "bye", "data": 1}]


async def test_stream_without_text_is_an_error_that_quotes_its_events():
    wordless = answer_with({"type": "message", "content": "Hi"}, {"type": "end", "delta": None})
    async with streaming(wordless) as agent:
        reply = {"text": "$[*].delta"}
        with pytest.raises(AgentError, match=r"has no text at \$\[\*\]\.delta: \[.*\"content\": \"Hi\""):
            await say(agent_at(agent.url, "sse", reply=reply), "Hi")


@each_row("stream", STREAMS)
async def test_stream_without_calls_proves_no_call_only_for_filter_path(stream):
    """A path that leads nowhere is no evidence."""
    async with streaming(answer_with(text("No."), END)) as agent:
        (by_filter,) = await say(agent_at(agent.url, stream), "Hi")
        (by_name,) = await say(agent_at(agent.url, stream, reply=(REPLY | {"toolCalls": "$[*].call"})), "Hi")
    assert (by_filter.tool_calls, by_name.tool_calls) == ((), None)


async def endless(_: Any, write: Write) -> None:
    while True:
        await write(text("…"))
        await asyncio.sleep(0.01)


cut = answer_with(text("Do"))
broken = answer_with(text("Hi"), "{'type': 'end'}")
CUT_OFF = "ended its stream before the answer was complete, after 1 event|did not answer within 0.3 s: its"


@each_row("stream", STREAMS)
@each_row(("answer", "message"), [
    (cut, CUT_OFF),
    (endless, r"did not answer within 0.3 s: its stream did not end, after \d+ events"),
    (broken, r"sent an event that cannot be read \(not JSON\): {'type': 'end'}"),
])  # fmt: skip
async def test_unusable_stream_fails_in_bounded_time_and_is_not_resent(stream, answer, message):
    async with streaming(answer) as agent:
        with pytest.raises(AgentError, match=message):
            await say(agent_at(agent.url, stream), "Hi", timeout=0.3)
        assert len(agent.heard) == 1


async def test_closed_flooding_redirecting_or_plain_http_websocket_is_an_error():
    async with streaming(cut) as agent:
        agent.after = lambda socket: socket.close(code=1011)
        with pytest.raises(AgentError, match=r"broke: the server closed the WebSocket \(code 1011\)"):
            await say(agent_at(agent.url, "websocket"), "Hi")
    async with streaming(answer_with(text("x" * 17_000_000))) as agent:
        with pytest.raises(AgentError, match="answered with more than 16 MB"):
            await say(agent_at(agent.url, "websocket"), "Hi", timeout=20)
    # A key would go with a redirect that is followed.
    async with streaming(scripted) as agent:
        agent.refusal = web.Response(status=302, headers={"location": f"{agent.url}/elsewhere"})
        with pytest.raises(AgentError, match=r"redirects to .* \(302\), which is not followed"):
            await say(agent_at(agent.url, "websocket"), "Hi")
        assert [request.path for request in agent.requests] == ["/websocket"]
    async with streaming(scripted) as agent:
        agent.refusal = web.Response(text="Hello")
        with pytest.raises(AgentError, match="expected a WebSocket, found an answer with status 200"):
            await say(agent_at(agent.url, "websocket"), "Hi")


async def test_events_after_the_end_are_ignored_and_closed_websocket_is_reopened():
    async with streaming(answer_with(*ANSWER, {"type": "ping"}, "no JSON")) as agent:
        replies = await say(agent_at(agent.url, "websocket"), "One", "Two")
    assert [reply.raw for reply in replies] == [ANSWER, ANSWER]
    async with streaming(scripted) as agent:
        agent.after = lambda socket: socket.close()
        replies = await say(agent_at(agent.url, "websocket"), "One", "Two")
    assert ([reply.agent for reply in replies], len(agent.requests)) == (["Done: 42 €"] * 2, 2)


@pytest.mark.parametrize("texts", [("One",), ("One", "Two")])
async def test_second_answer_over_a_websocket_fails_the_conversation(texts):
    """It could be taken for the answer to the next message."""
    async with streaming(answer_with(*ANSWER, END)) as agent:
        with pytest.raises(AgentError, match="sent more than one answer to a request"):
            await say(agent_at(agent.url, "websocket"), *texts)


async def test_recorded_stream_of_an_ai_sdk_server_is_read():
    """Recorded by `RECORD=1 make frameworks` with ai 7.0.173; the options are those on the page."""

    async def recorded(name: str) -> list[Any]:
        with recorded_http.serve_recorded(
            recorded_http.load(Path(__file__).parents[2] / f"agents/recorded_http/ai-sdk-{name}.json")
        ) as stub:
            replies, _ = await framework_chats.CONVERSATIONS["ai-sdk"][name](stub.url)
        return replies

    hello, refund = await recorded("refund")
    assert (hello.agent, hello.tool_calls) == ("1: Hello", ())
    assert [(call.name, call.arguments) for call in refund.tool_calls] == [
        ("lookup", {"order": "A-1"}),
        ("refund", {"order": "A-1", "amount": 42}),
    ]
    assert (refund.agent, refund.error_response) == ("I refunded 42.", False)
    (failed,) = await recorded("failed")
    assert (failed.error_response, failed.error_detail) == (True, "An error occurred.")


@pytest.mark.parametrize(("options", "message"), [
    ({"until": "$.done"}, "until is given, but no stream"),
    ({"stream": "websocket"}, "stream: websocket needs until"),
    ({"stream": "sse", "until": "done"}, "must begin with"),
    ({"stream": "grpc"}, "'sse', 'ndjson' or 'websocket'"),
    ({"stream": "websocket", "until": "$.x", "send": {"body": "{{message}}", "method": "PUT"}}, "method"),
    ({"stream": "websocket", "until": "$.x", "send": {"path": "/{{message}}", "body": "{{message}}"}},
     "they belong to the connection"),
])  # fmt: skip
def test_incompatible_stream_options_are_refused_with_the_reason(options, message):
    given = {"send": {"body": "{{message}}"}, "reply": {"text": "$.x"}, **options}
    with pytest.raises(ValidationError, match=message):
        HttpOptions.model_validate(given)


def test_every_error_message_on_the_page_is_tested():
    tried = Path(__file__).read_text() + (Path(__file__).parents[2] / "adapters/test_streams.py").read_text()
    tried = re.sub(r"\\(.)", r"\1", tried)
    for message, _ in table("message", (ROOT / "docs/http-streams.md").read_text()):
        for part in re.split(r" ?(?:\(code )?\b(?:DETAIL|PATH|N)\b:? ?", code(message)):
            assert part.strip("): ") in tried, message
