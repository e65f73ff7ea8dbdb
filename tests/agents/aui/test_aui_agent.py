"""The AUI adapter against a stub agent on loopback."""

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import world
from agent_sessions import replies_of, session_of
from each_row import each_row
from hypothesis import given, settings
from property_examples import examples
from world import AgentMessage, Fault, StubAgent

from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit", user_info={"name": "Ida Berg", "days": 3}, guidelines="You want your deposit back.",
    turns=({"user": "Hello"},), evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
FLAGS = dict.fromkeys(
    ("is_external_api", "include_trace_info", "include_business_trace", "include_context_trace"), "true"
)
TRACE = {"understanding": {"extracted_params": {"plan": "Weekend"}}, "decisions": []}


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with world.agent() as stub:
        yield stub


@pytest.fixture
def waits() -> list[float]:
    """The waits before resends, in seconds; no test really waits."""
    return []


def agent_at(
    url: str, waits: list[float] | None = None, redactor: Redactor | None = None, **settings: Any
) -> AuiAgent:
    settings_ = AgentSettings("a1", world.AGENT_KEY, url, **settings)
    return AuiAgent(settings_, redactor=redactor, limiter=world.limiter(waits))


async def say(agent: AuiAgent, *texts: str) -> list[Any]:
    return await replies_of(agent, *texts, test=TEST)


async def test_conversation_sends_task_then_messages_with_flags_and_user_data(stub: StubAgent) -> None:
    stub.answer = lambda heard: world.message("Yes?", workflows=["REFUND"], trace=TRACE)
    began = time.monotonic()
    replies = await say(agent_at(stub.url), "Hello", "My deposit?")
    assert 0 < replies[0].latency_seconds <= time.monotonic() - began
    (task,) = stub.tasks
    assert task.pop("user_id").startswith("ci-evals-")
    assert task == {"agent_id": "a1", "task_origin_type": "web-widget"}
    assert stub.heard == [
        AgentMessage("task-1", "Hello", {"name": "Ida Berg", "days": 3}, 1),
        AgentMessage("task-1", "My deposit?", {"name": "Ida Berg", "days": 3}, 2),
    ]
    assert all(dict(request.args) == FLAGS for request in stub.requests[1:])
    assert [reply.agent for reply in replies] == ["Yes?", "Yes?"]
    assert (replies[0].workflows, replies[0].params) == (("REFUND",), {"plan": "Weekend"})


async def test_headers_url_prefix_and_options_are_sent(stub: StubAgent) -> None:
    stub.key = "other"
    headers = {"x-network-api-key": "other", "X-Team": " qa "}
    options = {"keyHeader": "x-aui-api-key", "agentIdIn": "nested", "taskOriginType": "third-party"}
    agent = agent_at(f"{stub.url}/ia-controller/", headers=headers, options=options, debug=True)
    (reply,) = await say(agent, "Hello")
    request, task = stub.requests[0], stub.tasks[0]
    assert request.path == "/ia-controller/api/v1/external/tasks"
    assert (request.headers["x-aui-api-key"], request.headers["X-Team"]) == (world.AGENT_KEY, "qa")
    assert (task["agent"], task["task_origin_type"]) == ({"agent_id": "a1"}, "third-party")
    assert reply.raw["text"] == "You said: Hello"


async def test_missing_trace_is_fetched(stub: StubAgent) -> None:
    stub.traces = {"message-1": TRACE}
    (reply,) = await say(agent_at(stub.url), "Hello")
    assert (reply.params, reply.trace) == ({"plan": "Weekend"}, TRACE)
    path = "/api/v1/external/tasks/task-1/messages/message-1/trace-info"
    assert stub.requests[-1].path == path
    assert dict(stub.requests[-1].args) == {"include_business_logic": "true", "include_context_logic": "true"}


async def test_unavailable_trace_leaves_reply_without_trace(stub: StubAgent) -> None:
    """After a 404 no trace is fetched again in that session; a message without an id has none."""
    replies = await say(agent_at(stub.url), "Hello", "Still there?")
    assert [reply.trace for reply in replies] == [None, None]
    assert sum(request.method == "GET" for request in stub.requests) == 1
    stub.traces = {"message-3": "nonsense", "message-4": TRACE}
    replies = await say(agent_at(stub.url), "Hello", "Again")
    assert [reply.trace for reply in replies] == [None, TRACE]
    stub.answer = lambda heard: {"id": None, "text": "Hi"}
    (reply,) = await say(agent_at(stub.url), "Hello")
    assert (reply.agent, reply.trace) == ("Hi", None)


@pytest.mark.parametrize(("status", "times"), [(408, 3), (500, 3), (503, 3), (429, 17), (529, 17)])
async def test_task_creation_is_retried_more_often_after_rate_limits_than_after_errors(
    stub, waits, status, times
):
    """A second task does no harm."""
    stub.faults = [Fault(status), Fault(status)]
    await say(agent_at(stub.url, waits), "Hello")
    assert [wait for wait in waits if wait] == [0.25, 0.5 if times > 3 else 2]
    stub.faults = [Fault(status)] * times
    with pytest.raises(AgentError, match=rf"answered with status {status}"):
        await say(agent_at(stub.url, waits), "Hello")
    assert stub.faults == []


@pytest.mark.parametrize(
    "fault", [Fault(429), world.fault(503, retry_after="7"), world.fault(429, retry_after="7")]
)
async def test_rejected_message_is_resent_after_requested_wait(stub, waits, fault):
    agent = agent_at(stub.url, waits)
    async with session_of(agent, TEST) as session:
        stub.faults = [fault]
        reply = await agent.send_message(session, "Hello", timeout=5)
    assert (reply.agent, len(stub.heard)) == ("You said: Hello", 1)
    (wait,) = waits
    assert wait == pytest.approx(7.35) if fault.headers else wait == 0.25


@pytest.mark.parametrize("status", [400, 408, 500, 502, 503])
async def test_message_that_server_may_have_accepted_is_not_resent(stub, waits, status):
    """The agent may have acted on it: sending it twice would be another conversation."""
    agent = agent_at(stub.url, waits)
    async with session_of(agent, TEST) as session:
        stub.faults = [Fault(status, json.dumps({"detail": "broken"}))]
        with pytest.raises(AgentError, match=rf"127.0.0.1:\d+ answered with status {status}: broken"):
            await agent.send_message(session, "Hello", timeout=5)
    assert waits == []


async def test_message_is_resent_only_if_connection_was_refused(waits: list[float]) -> None:
    """If it broke, the server had read the message."""
    async with world.raw_server(world.http_response('{"id": "t"}')) as (url, heard):
        agent = agent_at(url, waits)
        async with session_of(agent, TEST) as session:
            with pytest.raises(AgentError, match=r"the connection to the agent at 127.0.0.1:\d+ broke"):
                await agent.send_message(session, "Hello", timeout=5)
    assert (len(heard), waits) == (2, [])
    async with world.raw_server(world.http_response('{"id": "t"}'), world.HANG_UP) as (url, heard):
        agent = agent_at(url, waits)
        session = await agent.open_session(TEST)
    with pytest.raises(AgentError, match=r"the agent at 127.0.0.1:\d+ could not be reached"):
        await agent.send_message(session, "Hello", timeout=5)
    await agent.close(session)
    assert (len(heard), len(waits)) == (1, 2)


async def test_connection_closed_while_idle_is_not_reused(waits: list[float]) -> None:
    answers = (world.http_response('{"id": "t"}'), world.HANG_UP, world.http_response('{"text": "Hi"}'))
    async with world.raw_server(*answers) as (url, _):
        agent = agent_at(url, waits)
        async with session_of(agent, TEST) as session:
            await asyncio.sleep(0.02)  # the server's end of the connection arrives
            reply = await agent.send_message(session, "Hello", timeout=5)
    assert reply.agent == "Hi"


async def test_timeout_of_turn_covers_whole_answer_and_message_is_not_resent(waits: list[float]) -> None:
    late = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/tasks" in head:
            writer.write(world.http_response('{"id": "t"}'))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")  # begins, and never ends
        await late.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        agent = agent_at(f"http://{host}:{port}", waits)
        async with session_of(agent, TEST) as session:
            with pytest.raises(AgentError, match=r"^the agent did not answer within 0.05 s$"):
                await agent.send_message(session, "Hello", timeout=0.05)
        late.set()
    assert waits == []


async def test_exhausted_quota_is_access_error_without_retry(stub: StubAgent, waits: list[float]) -> None:
    """A quota error of the agent's own model is none: it failed in that conversation."""
    quota = json.dumps({"error": {"code": "insufficient_quota", "message": "x"}})
    for fault in (Fault(402), Fault(429, quota)):
        stub.faults = [fault]
        message = rf"has no quota left for this key \({fault.status}\)"
        with pytest.raises(AgentAccessError, match=message):
            await agent_at(stub.url, waits).open_session(TEST)
        assert waits == []
    stub.faults = [Fault(500, quota)] * 3
    with pytest.raises(AgentError) as caught:
        await agent_at(stub.url).open_session(TEST)
    assert not isinstance(caught.value, AgentAccessError)


@pytest.mark.parametrize("status", [401, 403])
async def test_rejected_key_error_names_host_and_option_without_key(stub, waits, status):
    body = json.dumps({"detail": f"Key {world.AGENT_KEY} is unknown " + "x" * 400})
    stub.faults = [Fault(status, body)]
    with pytest.raises(AgentAccessError) as caught:
        await agent_at(stub.url, waits).open_session(TEST)
    message = str(caught.value)
    assert f"127.0.0.1:{stub.url.rpartition(':')[2]} refused the key ({status})" in message
    assert "Key *** is unknown" in message
    assert "CI_EVALS_AGENT_KEY" in message
    assert world.AGENT_KEY not in message
    assert waits == []


async def test_redirects_are_not_followed(stub: StubAgent) -> None:
    with world.agent() as other:
        stub.faults = [Fault(307, headers={"Location": f"{other.url}/api/v1/external/tasks"})]
        with pytest.raises(AgentError, match=rf"redirects to {other.url.removeprefix('http://')} \(307\)"):
            await agent_at(stub.url).open_session(TEST)
        assert other.requests == []
    stub.faults = [Fault(308, headers={"Location": "/elsewhere?key=s3cret"})]
    message = r"to another path on the same host \(308\), which is not foll"
    with pytest.raises(AgentError, match=message) as caught:
        await agent_at(stub.url).open_session(TEST)
    assert "s3cret" not in str(caught.value)


async def test_error_messages_do_not_contain_partial_secrets(stub: StubAgent) -> None:
    secret = "long-secret-value-abcdef"
    agent = agent_at(stub.url, redactor=Redactor(values=[secret]))
    message = "x" * 280 + secret
    for body in (json.dumps({"detail": message}), f"<html><title>{message}</title>", message):
        for status in (200, 400, 403):
            stub.faults = [Fault(status, body)]
            with pytest.raises(AgentError, match="xxx") as caught:
                await agent.open_session(TEST)
            assert "long" not in str(caught.value)


async def test_compressed_answer_is_read_up_to_size_limit(stub: StubAgent) -> None:
    stub.answer = lambda heard: Fault(200, gzip.compress(b'{"text": "Hi"}'), {"Content-Encoding": "gzip"})
    (reply,) = await say(agent_at(stub.url), "Hello")
    assert reply.agent == "Hi"
    bomb = gzip.compress(b'{"text": "' + b" " * 17_000_000 + b'"}', 1)
    stub.answer = lambda heard: Fault(200, bomb, {"Content-Encoding": "gzip"})
    with pytest.raises(AgentError, match=r"^the agent at 127.0.0.1:\d+ answered with more than 16 MB$"):
        await say(agent_at(stub.url), "Hello")


@settings(max_examples=examples(100))
@given(world.odd_responses())
def test_any_http_answer_is_read_or_agent_error(answer: bytes) -> None:
    async def open_once() -> None:
        async with world.raw_server(*[answer, world.HANG_UP] * 3) as (url, _):
            agent = agent_at(url)
            with suppress(AgentError):
                await agent.close(await agent.open_session(TEST))

    asyncio.run(open_once())


@each_row(("fault", "message"), [
    (world.GARBAGE, "cannot be read .not JSON.: an HTML page titled 'Wrong door'"),
    (world.EMPTY, "cannot be read .not JSON.: an empty body"),
    (Fault(200, "[1]"), "the agent's answer has no text: a list, not an object"),
    (Fault(200, "[" * 90_000), "nested too deep"),
    (Fault(200, b"\x1f\x8b garbage", {"Content-Encoding": "gzip"}), "broke"),
])  # fmt: skip
async def test_unreadable_aui_answer_is_agent_error_with_the_reason(
    stub: StubAgent, fault: Fault, message: str
) -> None:
    stub.answer = lambda heard: fault
    with pytest.raises(AgentError, match=message):
        await say(agent_at(stub.url), "Hello")


async def test_lone_surrogate_in_message_is_replaced(stub: StubAgent) -> None:
    (reply,) = await say(agent_at(stub.url), "Hi \ud83d there \N{GRINNING FACE}")
    assert stub.heard[0].text == "Hi \ufffd there \N{GRINNING FACE}"
    assert reply.agent == "You said: Hi \ufffd there \N{GRINNING FACE}"


async def test_failed_opening_closes_connection(stub: StubAgent) -> None:
    """A leaked connection would be a warning here."""
    stub.task_body = lambda task_id: {"title": "no id"}
    with pytest.raises(AgentError, match="opened a task without an id"):
        await agent_at(stub.url).open_session(TEST)


@each_row(("config", "message"), [
    ({"api_key": "clé"}, "the agent's key holds characters"),
    ({"api_key": "two\nlines"}, "the agent's key holds characters"),
    ({"headers": {"X-Team": "a\r\nb"}}, "the agent's header 'X-Team' holds characters"),
    ({"base_url": "api.aui.io"}, "`base_url=`"),
    ({"options": {"keyHeader": "x key"}}, "keyHeader"),
])  # fmt: skip
def test_unsendable_key_header_or_url_is_rejected_without_showing_the_key(
    config: dict[str, Any], message: str
) -> None:
    values = {"agent_id": "a1", "api_key": "k", "base_url": "http://127.0.0.1", **config}
    with pytest.raises((UsageError, ValueError), match=message) as caught:
        AuiAgent(AgentSettings(**values))
    assert "two" not in str(caught.value)


def test_agent_settings_do_not_show_secrets() -> None:
    assert "s3cret" not in repr(AgentSettings("a1", "s3cret", headers={"Authorization": "s3cret"}))


async def test_conversations_run_concurrently_with_their_own_tasks(stub: StubAgent) -> None:
    agent = agent_at(stub.url)
    replies = await asyncio.gather(*(say(agent, f"I am {n}", "Bye") for n in range(10)))
    assert [first.agent for first, _ in replies] == [f"You said: I am {n}" for n in range(10)]
    assert len({task["user_id"] for task in stub.tasks}) == 10
    assert all(heard.number in (1, 2) for heard in stub.heard)
