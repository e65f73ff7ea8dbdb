"""The AUI adapter against a stub agent on loopback."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import world
from hypothesis import HealthCheck, given, settings
from property_examples import examples
from world import AgentMessage, Fault, StubAgent

from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit",
    user_info={"name": "Ida Berg", "days": 3},
    guidelines="You want your deposit back.",
    turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)
FLAGS = {
    "is_external_api": "true",
    "include_trace_info": "true",
    "include_business_trace": "true",
    "include_context_trace": "true",
}
TRACE = {"understanding": {"extracted_params": {"plan": "Weekend"}}, "decisions": []}


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with world.agent() as stub:
        yield stub


@pytest.fixture
def waits() -> list[float]:
    """How long an agent waited before each resend; no test does."""
    return []


def agent_at(
    url: str,
    waits: list[float] | None = None,
    redactor: Redactor | None = None,
    **settings: Any,
) -> AuiAgent:
    settings_ = AgentSettings("a1", world.AGENT_KEY, url, **settings)
    return AuiAgent(settings_, redactor=redactor, limiter=world.limiter(waits))


@asynccontextmanager
async def session_of(agent: AuiAgent, test: Test = TEST) -> AsyncIterator[Any]:
    session = await agent.open_session(test)
    try:
        yield session
    finally:
        await agent.close(session)


async def say(agent: AuiAgent, *texts: str) -> list[Any]:
    async with session_of(agent) as session:
        return [await agent.send_message(session, text, timeout=60) for text in texts]


async def test_a_conversation_on_the_wire(stub: StubAgent) -> None:
    """A task for a user of its own, then messages with all flags and the whole of the user's data."""
    stub.answer = lambda heard: world.message("Yes?", workflows=["REFUND"], trace=TRACE)
    replies = await say(agent_at(stub.url), "Hello", "My deposit?")
    (task,) = stub.tasks
    assert task.pop("user_id").startswith("ci-evals-")
    assert task == {"agent_id": "a1", "task_origin_type": "web-widget"}
    assert stub.heard == [
        AgentMessage("task-1", "Hello", {"name": "Ida Berg", "days": 3}, 1),
        AgentMessage("task-1", "My deposit?", {"name": "Ida Berg", "days": 3}, 2),
    ]
    assert all(dict(request.args) == FLAGS for request in stub.requests[1:])
    assert [reply.agent for reply in replies] == ["Yes?", "Yes?"]
    assert replies[0].workflows == ("REFUND",)
    assert replies[0].params == {"plan": "Weekend"}
    assert 0 < replies[0].latency_seconds < 5


async def test_options_reach_the_wire(stub: StubAgent) -> None:
    """Key header, further headers, the agent's place, the origin and the prefix can all be set."""
    stub.key = "other"
    agent = agent_at(
        f"{stub.url}/ia-controller/",
        headers={"x-network-api-key": "other", "X-Team": " qa "},
        options={"keyHeader": "x-aui-api-key", "agentIdIn": "nested", "taskOriginType": "third-party"},
        debug=True,
    )
    (reply,) = await say(agent, "Hello")
    assert stub.requests[0].path == "/ia-controller/api/v1/external/tasks"
    assert stub.requests[0].headers["x-aui-api-key"] == world.AGENT_KEY
    assert stub.requests[0].headers["X-Team"] == "qa"
    assert stub.tasks[0]["agent"] == {"agent_id": "a1"}
    assert stub.tasks[0]["task_origin_type"] == "third-party"
    assert reply.raw["text"] == "You said: Hello"


async def test_a_missing_trace_is_fetched(stub: StubAgent) -> None:
    """A reply without a trace is completed by the trace-info call."""
    stub.traces = {"message-1": TRACE}
    (reply,) = await say(agent_at(stub.url), "Hello")
    assert reply.params == {"plan": "Weekend"}
    assert reply.trace == TRACE
    path = "/api/v1/external/tasks/task-1/messages/message-1/trace-info"
    assert stub.requests[-1].path == path
    assert dict(stub.requests[-1].args) == {"include_business_logic": "true", "include_context_logic": "true"}


async def test_a_server_without_traces_is_asked_once(stub: StubAgent) -> None:
    """After a 404 no trace is fetched again in that session, and its absence is no error."""
    replies = await say(agent_at(stub.url), "Hello", "Still there?")
    assert [reply.trace for reply in replies] == [None, None]
    assert sum(request.method == "GET" for request in stub.requests) == 1


async def test_a_trace_that_cannot_be_read_is_no_error(stub: StubAgent) -> None:
    """The reply is there: a broken trace leaves it without evidence."""
    stub.traces = {"message-1": "nonsense", "message-2": TRACE}
    replies = await say(agent_at(stub.url), "Hello", "Again")
    assert [reply.trace for reply in replies] == [None, TRACE]


async def test_a_message_without_an_id_has_no_trace_to_fetch(stub: StubAgent) -> None:
    """Without the message's id there is not an address to ask."""
    stub.answer = lambda heard: {"id": None, "text": "Hi"}
    (reply,) = await say(agent_at(stub.url), "Hello")
    assert (reply.agent, reply.trace) == ("Hi", None)


@pytest.mark.parametrize(("status", "times"), [(408, 3), (500, 3), (503, 3), (429, 17), (529, 17)])
async def test_how_often_creating_a_task_is_tried(
    stub: StubAgent, waits: list[float], status: int, times: int
) -> None:
    """A task more does no harm: two resends where something is broken, eight where the rate is limited."""
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
async def test_a_refused_message_is_sent_again(stub: StubAgent, waits: list[float], fault: Fault) -> None:
    """A server that did not take the message gets it once more, after the time it asked for."""
    agent = agent_at(stub.url, waits)
    async with session_of(agent) as session:
        stub.faults = [fault]
        reply = await agent.send_message(session, "Hello", timeout=5)
    assert reply.agent == "You said: Hello"
    assert len(stub.heard) == 1
    (wait,) = waits
    assert wait == pytest.approx(7.35) if fault.headers else wait == 0.25


@pytest.mark.parametrize("status", [400, 408, 500, 502, 503])
async def test_a_message_that_may_have_been_taken_is_not_sent_again(
    stub: StubAgent, waits: list[float], status: int
) -> None:
    """The agent may have acted on it: saying it twice would be another conversation."""
    agent = agent_at(stub.url, waits)
    async with session_of(agent) as session:
        stub.faults = [Fault(status, json.dumps({"detail": "broken"}))]
        with pytest.raises(AgentError, match=rf"127.0.0.1:\d+ answered with status {status}: broken"):
            await agent.send_message(session, "Hello", timeout=5)
    assert waits == []


async def test_a_connection_that_breaks_under_a_message_ends_it(waits: list[float]) -> None:
    """The server had read the message when it hung up: it is not sent again."""
    async with world.raw_server(world.http_response('{"id": "t"}')) as (url, heard):
        agent = agent_at(url, waits)
        async with session_of(agent) as session:
            with pytest.raises(AgentError, match=r"the connection to the agent at 127.0.0.1:\d+ broke"):
                await agent.send_message(session, "Hello", timeout=5)
    assert len(heard) == 2
    assert waits == []


async def test_a_refused_connection_is_tried_again(waits: list[float]) -> None:
    """Where nothing listens nothing was taken: a message too is sent again, and the error names the host."""
    async with world.raw_server(world.http_response('{"id": "t"}'), world.HANG_UP) as (url, heard):
        agent = agent_at(url, waits)
        session = await agent.open_session(TEST)
    with pytest.raises(AgentError, match=r"the agent at 127.0.0.1:\d+ could not be reached"):
        await agent.send_message(session, "Hello", timeout=5)
    await agent.close(session)
    assert len(waits) == 2
    assert len(heard) == 1


async def test_a_connection_that_was_closed_while_idle_is_not_used(waits: list[float]) -> None:
    """A kept connection that the server has closed since is noticed before a message goes into it."""
    async with world.raw_server(
        world.http_response('{"id": "t"}'), world.HANG_UP, world.http_response('{"text": "Hi"}')
    ) as (
        url,
        _,
    ):
        agent = agent_at(url, waits)
        async with session_of(agent) as session:
            await asyncio.sleep(0.02)  # the server's farewell arrives
            reply = await agent.send_message(session, "Hello", timeout=5)
    assert reply.agent == "Hi"


async def test_an_answer_that_does_not_come_in_time(waits: list[float]) -> None:
    """The turn's timeout is the total time for the answer, and such a message is not sent again."""
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
        async with session_of(agent) as session:
            with pytest.raises(AgentError, match=r"^the agent did not answer within 0.05 s$"):
                await agent.send_message(session, "Hello", timeout=0.05)
        late.set()
    assert waits == []


@pytest.mark.parametrize(
    "fault", [Fault(402), Fault(429, json.dumps({"error": {"code": "insufficient_quota", "message": "x"}}))]
)
async def test_a_quota_that_is_used_up_is_not_waited_for(
    stub: StubAgent, waits: list[float], fault: Fault
) -> None:
    """No other trial could do better: the run is to end."""
    stub.faults = [fault]
    with pytest.raises(AgentAccessError, match=rf"has no quota left for this key \({fault.status}\)"):
        await agent_at(stub.url, waits).open_session(TEST)
    assert waits == []


async def test_an_agent_whose_model_has_no_quota_may_have_some_itself(stub: StubAgent) -> None:
    """An agent that tells its own trouble has failed in that conversation, and the run goes on."""
    stub.faults = [Fault(500, json.dumps({"error": {"code": "insufficient_quota"}}))] * 3
    with pytest.raises(AgentError) as caught:
        await agent_at(stub.url).open_session(TEST)
    assert not isinstance(caught.value, AgentAccessError)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_says_what_to_do(stub: StubAgent, waits: list[float], status: int) -> None:
    """The message names the host, what the server said and the option, and never the key."""
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


async def test_the_key_goes_to_no_other_host(stub: StubAgent) -> None:
    """A redirect is an error that names where it leads, and nothing is sent there."""
    with world.agent() as other:
        stub.faults = [Fault(307, headers={"Location": f"{other.url}/api/v1/external/tasks"})]
        with pytest.raises(AgentError, match=rf"redirects to {other.url.removeprefix('http://')} \(307\)"):
            await agent_at(stub.url).open_session(TEST)
        assert other.requests == []


async def test_a_message_holds_no_half_of_a_secret(stub: StubAgent) -> None:
    """The run's secrets go before a foreign text is cut, be it an error's, a page's or a reply's."""
    secret = "long-secret-value-abcdef"
    agent = agent_at(stub.url, redactor=Redactor(values=[secret]))
    message = "x" * 280 + secret
    for body in (json.dumps({"detail": message}), f"<html><title>{message}</title>", message):
        for status in (200, 400, 403):
            stub.faults = [Fault(status, body)]
            with pytest.raises(AgentError, match="xxx") as caught:
                await agent.open_session(TEST)
            assert "long" not in str(caught.value)


async def test_an_answer_without_end_is_not_read(stub: StubAgent) -> None:
    """What a small body unpacks to is counted while it is unpacked."""
    bomb = gzip.compress(b'{"text": "' + b" " * 17_000_000 + b'"}', 1)
    stub.answer = lambda heard: Fault(200, bomb, {"Content-Encoding": "gzip"})
    with pytest.raises(AgentError, match=r"^the agent at 127.0.0.1:\d+ answered with more than 16 MB$"):
        await say(agent_at(stub.url), "Hello")


async def test_a_packed_answer_is_unpacked(stub: StubAgent) -> None:
    """The usual case of the above."""
    packed = gzip.compress(b'{"text": "Hi"}')
    stub.answer = lambda heard: Fault(200, packed, {"Content-Encoding": "gzip"})
    (reply,) = await say(agent_at(stub.url), "Hello")
    assert reply.agent == "Hi"


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(world.odd_responses())
def test_any_answer_is_read_or_an_error(answer: bytes) -> None:
    """Whatever a server says in its status and headers is an answer or an `AgentError`."""

    async def open_once() -> None:
        async with world.raw_server(*[answer, world.HANG_UP] * 3) as (url, _):
            agent = agent_at(url)
            with suppress(AgentError):
                await agent.close(await agent.open_session(TEST))

    asyncio.run(open_once())


async def test_a_redirect_on_the_same_host_is_named_as_one(stub: StubAgent) -> None:
    """It is not followed either; where it leads is not another host."""
    stub.faults = [Fault(308, headers={"Location": "/elsewhere?key=s3cret"})]
    with pytest.raises(
        AgentError, match=r"to another path on the same host \(308\), which is not foll"
    ) as caught:
        await agent_at(stub.url).open_session(TEST)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (world.GARBAGE, "cannot be read .not JSON.: an HTML page titled 'Wrong door'"),
        (world.EMPTY, "cannot be read .not JSON.: an empty body"),
        (Fault(200, "[1]"), "the agent's answer has no text: a list, not an object"),
        (Fault(200, "[" * 90_000), "nested too deep"),
        (Fault(200, b"\x1f\x8b garbage", {"Content-Encoding": "gzip"}), "broke"),
    ],
)
async def test_an_unreadable_answer_is_an_error(stub: StubAgent, fault: Fault, message: str) -> None:
    """Status 200 alone makes no reply."""
    stub.answer = lambda heard: fault
    with pytest.raises(AgentError, match=message):
        await say(agent_at(stub.url), "Hello")


async def test_unencodable_characters_are_replaced_on_output(stub: StubAgent) -> None:
    """A lone surrogate in a simulated user's words reaches the agent as U+FFFD."""
    (reply,) = await say(agent_at(stub.url), "Hi \ud83d there \N{GRINNING FACE}")
    assert stub.heard[0].text == "Hi \ufffd there \N{GRINNING FACE}"
    assert reply.agent == "You said: Hi \ufffd there \N{GRINNING FACE}"


async def test_a_failed_opening_leaves_nothing_open(stub: StubAgent) -> None:
    """A task without an id is an error, and the connection is closed (a leak would be a warning here)."""
    stub.task_body = lambda task_id: {"title": "no id"}
    with pytest.raises(AgentError, match="opened a task without an id"):
        await agent_at(stub.url).open_session(TEST)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"api_key": "clé"}, "the agent's key holds characters"),
        ({"api_key": "two\nlines"}, "the agent's key holds characters"),
        ({"headers": {"X-Team": "a\r\nb"}}, "the agent's header 'X-Team' holds characters"),
        ({"base_url": "api.aui.io"}, "`base_url=`"),
    ],
)
def test_what_cannot_be_sent_is_found_before_the_run(config: dict[str, Any], message: str) -> None:
    """A key that was pasted wrongly is the user's mistake; its value is not shown."""
    values = {"agent_id": "a1", "api_key": "k", "base_url": "http://127.0.0.1", **config}
    with pytest.raises(UsageError, match=message) as caught:
        AuiAgent(AgentSettings(**values))
    assert "two" not in str(caught.value)


def test_a_key_header_that_cannot_be_sent_is_found_before_the_run() -> None:
    """Its name is an option too."""
    with pytest.raises(ValueError, match="keyHeader"):
        AuiAgent(AgentSettings("a1", "k", "http://127.0.0.1", options={"keyHeader": "x key"}))


def test_a_config_does_not_show_its_secrets() -> None:
    """Neither key nor headers are in what is printed of a config."""
    assert "s3cret" not in repr(AgentSettings("a1", "s3cret", headers={"Authorization": "s3cret"}))


async def test_conversations_do_not_wait_for_each_other(stub: StubAgent) -> None:
    """Many sessions at a time, each with its own task."""
    agent = agent_at(stub.url)
    replies = await asyncio.gather(*(say(agent, f"I am {n}", "Bye") for n in range(10)))
    assert [first.agent for first, _ in replies] == [f"You said: I am {n}" for n in range(10)]
    assert len({task["user_id"] for task in stub.tasks}) == 10
    assert all(heard.number in (1, 2) for heard in stub.heard)
