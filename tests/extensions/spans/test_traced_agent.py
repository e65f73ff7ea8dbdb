"""Agents of every adapter whose spans are received: what they are told, and what a reply holds then."""

import asyncio
import json
import re
import sys
import threading
import urllib.request
from contextlib import asynccontextmanager

import endpoints
import pytest
import world
from emitting import JSON, TOOL, as_json, server, span
from world import fault

from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.python.hosting.host import Host
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.extensions.openai_api.chat_agent import ChatAgent
from ci_evals.extensions.spans.receiver import Receiver
from ci_evals.extensions.spans.traced_agent import TracedAgent
from ci_evals.extensions.spans.trial_trace import Exporter
from ci_evals.support.redaction import Redactor

TEST = AgentContract.played_test
HEADER = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01")
BODY = {"text": "{{message}}", "session": "{{session}}"}
OPTIONS = {"send": {"path": "/chat", "body": BODY}, "reply": {"text": "$.text"}}
OWN_CALLS = {**OPTIONS, "reply": {"text": "$.text", "workflows": "$.tools"}}


class Emitting:
    """An agent's server that answers with spans: `emit` sends the spans of one request, now or later."""

    def __init__(self, receiver, spans, answer=None):
        self.receiver, self.spans, self.answer = receiver, spans, answer or {"text": "Done"}

    def __call__(self, asked):
        for delay, spans in self.spans(asked):
            if delay:
                threading.Timer(delay, self._emit, [spans]).start()
            else:
                self._emit(spans)
        return self.answer

    def _emit(self, spans):
        url = f"{self.receiver.endpoint}/v1/traces"
        sent = urllib.request.Request(url, as_json(*spans), {"Content-Type": JSON})
        urllib.request.urlopen(sent).close()


@asynccontextmanager
async def conversing(
    spans, exporter=None, *, options=OPTIONS, answer=None, patience=1.0, quiet=0.2, escalation_tools=()
):
    """Yields a function that sends a message to an agent whose requests make these spans."""
    receiver = Receiver(port=0)
    await receiver.start()
    with endpoints.serving(Emitting(receiver, spans, answer)) as stub:
        settings = AgentSettings(api_key=stub.key, base_url=stub.url, options=options)
        http = HttpAgent(settings, limiter=world.limiter([]))
        waits = {"patience": patience, "quiet": quiet}
        agent = TracedAgent(http, receiver, exporter, escalation_tools=escalation_tools, **waits)
        session = await agent.open_session(TEST)

        async def send(text="Refund me"):
            return await agent.send_message(session, text, timeout=60)

        send.stub, send.receiver, send.agent = stub, receiver, agent
        yield send
        await agent.close(session)
    await receiver.end()


def header_of(asked):
    return asked.headers["traceparent"]


def server_spans(asked, *attributes):
    root = server(header_of(asked))
    return [*(span(header_of(asked), each) | {"parentSpanId": root["spanId"]} for each in attributes), root]


async def test_reply_has_calls_tokens_and_hand_over_of_its_spans():
    chat = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 5}
    chat |= {"gen_ai.operation.name": "chat"}
    spans = [TOOL, chat]
    async with conversing(lambda asked: [(0.1, server_spans(asked, *spans))], patience=30, quiet=30) as send:
        first, second = await send(), await send()
    for reply in (first, second):
        (call,) = reply.tool_calls
        assert (call.name, call.arguments) == ("refund", {"amount": 42})
        assert (reply.workflows, reply.params) == (("refund",), {"amount": 42})
        assert (reply.input_tokens, reply.output_tokens, reply.trace_missing) == (30, 5, None)
        assert reply.hand_over is None  # a tool may hand over
        assert reply.latency_seconds < 30
    one, other = (header_of(asked).split("-") for asked in send.stub.asked)
    assert one[1] == other[1]
    assert one[2] != other[2]
    assert send.stub.asked[0].headers["baggage"] == f"ci_evals.trial={one[1]}"
    for tools, handed_over in ((("refund",), True), (("to_person",), False)):
        waits = {"patience": 30, "quiet": 30, "escalation_tools": tools}
        async with conversing(lambda asked: [(0.1, server_spans(asked, TOOL))], **waits) as send:
            assert (await send()).hand_over is handed_over


async def test_further_spans_of_a_turn_are_awaited():
    def spans(asked):
        delayed = ((0, TOOL), (0.15, TOOL | {"gen_ai.tool.name": "lookup"}))
        return [(delay, [span(header_of(asked), each)]) for delay, each in delayed]

    async with conversing(spans, patience=5, quiet=0.5) as send:
        reply = await send()
    assert sorted(call.name for call in reply.tool_calls) == ["lookup", "refund"]
    assert not reply.tool_calls_partial


async def test_missing_parent_span_is_awaited_and_then_reported():
    lost = {"parentSpanId": "f" * 16}

    def late_parent(asked):
        parent = span(header_of(asked)) | {"spanId": "f" * 16}
        return [(0, [span(header_of(asked), TOOL) | lost]), (0.6, [parent])]

    async with conversing(late_parent, patience=3, quiet=0.1) as send:
        assert not (await send()).tool_calls_partial
    async with conversing(lambda asked: [(0, [span(header_of(asked), TOOL) | lost])], patience=0.3) as send:
        reply = await send()
    assert [call.name for call in reply.tool_calls] == ["refund"]
    assert reply.tool_calls_partial
    assert "OTEL_BSP_SCHEDULE_DELAY=200" in reply.trace_missing


async def test_turn_without_spans_has_unknown_calls_and_names_the_endpoint():
    async with conversing(lambda asked: [], patience=0.2) as send:
        reply = await send()
        assert (reply.tool_calls, reply.workflows) == (None, None)
        assert f"{send.receiver.endpoint}/v1/traces" in reply.trace_missing


async def test_spans_of_silent_agent_are_awaited_only_in_first_turn():
    late = []

    def spans(asked):
        match len(send.stub.asked):
            case 1:
                late.extend(server_spans(asked, TOOL))
                return []
            case 4:
                return [(0, late), (0, server_spans(asked, TOOL))]
            case 5:
                return [(0.2, server_spans(asked, TOOL))]
        return []

    exporter = Exporter()
    async with conversing(spans, exporter, patience=0.1, quiet=0.01) as send:
        assert (await send()).tool_calls is None
        assert exporter.is_silent
        send.agent._patience = 3600.0  # from here on, no turn comes to its end by it
        for _ in range(2):
            reply = await send()
            assert reply.tool_calls is None
            assert "no span arrived" in reply.trace_missing
        fourth = await send()
        assert [call.name for call in fourth.tool_calls] == ["refund"]
        assert fourth.tool_calls_partial  # the first turn was read without its call
        fifth = await send()
        assert ([call.name for call in fifth.tool_calls], fifth.tool_calls_partial) == (["refund"], False)


async def test_exporter_counts_as_silent_until_one_of_its_own_spans_arrives():
    mine = Exporter()
    async with conversing(lambda asked: [], mine, patience=0.01) as send:
        await send()
        other = send.receiver.begin_trial(Exporter())
        header = other.begin_turn().headers["traceparent"]
        await asyncio.to_thread(send.stub.answer._emit, [span(header, TOOL), span(attributes=TOOL)])
        assert (mine.is_silent, other.exporter.has_sent) == (True, True)
        ended = send.receiver.begin_trial(mine)
        header = ended.begin_turn().headers["traceparent"]
        send.receiver.end_trial(ended)
        await asyncio.to_thread(send.stub.answer._emit, [span(header)])
        assert not mine.is_silent


async def test_spans_are_not_awaited_if_agent_reports_its_own_calls():
    answer = {"text": "Done", "tools": ["refund"]}
    options = {"options": OWN_CALLS, "answer": answer, "patience": 30}
    async with conversing(lambda asked: [(0, server_spans(asked, TOOL))], **options) as send:
        first = await send()
        assert (first.workflows, first.tool_calls, first.trace) == (("refund",), None, None)
        answer["tools"] = None
        second = await send()
    assert [call.name for call in second.tool_calls] == ["refund"]
    assert not second.tool_calls_partial


async def test_spans_of_retried_request_are_awaited():
    def spans(asked):
        first = len(send.stub.asked) == 1
        return [(0, server_spans(asked))] if first else [(0.3, server_spans(asked, TOOL))]

    async with conversing(spans, patience=5, quiet=1) as send:
        answer = send.stub.answer
        send.stub.answer = lambda asked: (
            answer(asked)
            and (fault(503, "busy", retry_after="0.01") if len(send.stub.asked) == 1 else {"text": "Done"})
        )
        reply = await send()
        assert len(send.stub.asked) == 2
    assert [call.name for call in reply.tool_calls] == ["refund"]
    assert not reply.tool_calls_partial


async def test_own_trace_of_agent_is_recognized_by_session_id():
    def spans(asked):
        root = span(attributes={"session.id": asked.body["session"]}, traceId="d" * 32)
        tool = span(attributes=TOOL, traceId="d" * 32) | {"parentSpanId": root["spanId"]}
        return [(0, [tool]), (0.1, [root])]

    async with conversing(spans, patience=3) as send:
        reply = await send()
    assert [call.name for call in reply.tool_calls] == ["refund"]
    assert not reply.tool_calls_partial


async def test_retried_trial_has_its_own_trace():
    receiver = Receiver(port=0)
    await receiver.start()
    with endpoints.serving(Emitting(receiver, lambda asked: [(0, server_spans(asked, TOOL))])) as stub:
        settings = AgentSettings(api_key=stub.key, base_url=stub.url, options=OPTIONS)
        agent = TracedAgent(HttpAgent(settings), receiver, patience=3)
        for _ in range(2):
            session = await agent.open_session(TEST)
            stub.faults[:] = [fault(500)] if not stub.asked else []
            try:
                reply = await agent.send_message(session, "Hello", timeout=5)
            except AgentError:
                reply = None
            await agent.close(session)
        assert len(reply.tool_calls) == 1
        assert len({header_of(asked).split("-")[1] for asked in stub.asked}) == 2
    await receiver.end()


async def headers_of(agent, *, receiver=None) -> str:
    """Send a message to an agent that answers with the context it got; return that."""
    own = receiver or Receiver(port=0)
    await own.start()
    traced = TracedAgent(agent, own, patience=0.01)
    try:
        session = await traced.open_session(TEST)
        reply = await traced.send_message(session, "Hello", timeout=20)
        await traced.close(session)
    finally:
        await own.end()
    return reply.agent


async def test_agents_send_trace_header_only_with_receiver():
    requests_tool = endpoints.completion(tool_calls=endpoints.tool_calls(("lookup", {})), finish="tool_calls")
    rounds = [requests_tool, endpoints.completion("Done")]
    with endpoints.serving(lambda asked: rounds[len(stub.asked) - 1]) as stub:
        options = {"toolResults": {"lookup": "found"}}
        settings = AgentSettings(model="m", api_key=stub.key, base_url=stub.url, options=options)
        await headers_of(ChatAgent(settings))
        headers = [header_of(asked) for asked in stub.asked]
    assert (len(headers), headers[0]) == (2, headers[1])
    assert HEADER.fullmatch(headers[0])
    with world.agent() as stub:
        await headers_of(AuiAgent(AgentSettings("a1", world.AGENT_KEY, stub.url)))
        headers = [asked.headers["traceparent"] for asked in stub.requests]
    assert all(HEADER.fullmatch(header) for header in headers)
    assert len({header.split("-")[1] for header in headers}) == 1
    assert headers[0] != headers[1] == headers[2]  # the task; the message, and its trace
    agent = agent_of(lambda message, session: str(session.trace_headers), "mine", AgentSettings())
    session = await agent.open_session(TEST)
    assert (await agent.send_message(session, "Hello", timeout=5)).agent == "{}"
    await agent.close(session)
    with endpoints.serving(lambda asked: {"text": "Done"}) as stub:
        http = HttpAgent(AgentSettings(api_key=stub.key, base_url=stub.url, options=OPTIONS))
        session = await http.open_session(TEST)
        await http.send_message(session, "Hello", timeout=5)
        await http.close(session)
        assert "traceparent" not in stub.asked[0].headers


PROGRAM = """
import json, os, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_BSP_SCHEDULE_DELAY")
        print(json.dumps(json.dumps([heard["traceparent"], *map(os.environ.get, names)])), flush=True)
"""


async def test_command_agent_gets_trace_header_and_endpoint(tmp_path):
    (tmp_path / "agent.py").write_text(PROGRAM)
    receiver = Receiver(port=0)
    environ = receiver.environment({})
    command = f"command: {sys.executable} {tmp_path / 'agent.py'}"
    items = json.loads(await headers_of(CommandAgent(command, AgentSettings(), environ), receiver=receiver))
    assert HEADER.fullmatch(items[0])
    assert items[1:] == [receiver.endpoint, "200"]


CONTEXT_AGENT = """
import os
from opentelemetry import baggage, trace
def current():
    span = trace.get_current_span().get_span_context()
    told = f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
    return f"{told} {baggage.get_baggage('ci_evals.trial')} {os.environ.get('OTEL_EXPORTER_OTLP_ENDPOINT')}"
def plain(message, session):
    return f"{current()} {session.trace_headers['traceparent']}"
async def coroutine(message, session):
    return f"{current()} {session.trace_headers['traceparent']}"
class Agent:
    def open_session(self):
        return None
    def send_message(self, session, text):
        return current()
"""


def assert_context(message: str, endpoint: str) -> None:
    header, trial, where, *again = message.split()
    assert HEADER.fullmatch(header)
    assert (trial, where) == (header.split("-")[1], endpoint)
    assert again in ([], [header])


@pytest.mark.parametrize("attribute", ["plain", "coroutine", "Agent"])
async def test_python_agent_has_turn_span_as_current_span(attribute, tmp_path, monkeypatch):
    """The agent runs in a process of its own, and then in this one."""
    (tmp_path / "mine_traced.py").write_text(CONTEXT_AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    receiver = Receiver(port=0)
    environ = {"PATH": "/usr/bin:/bin"}
    host = Host(receiver.environment(environ), Redactor())
    agent = host.agent(f"python:mine_traced:{attribute}", AgentSettings())
    await host.start()
    try:
        assert_context(await headers_of(agent, receiver=receiver), receiver.endpoint)
    finally:
        await host.end()
    scope: dict = {}
    exec(CONTEXT_AGENT, scope)
    target = scope[attribute]() if attribute == "Agent" else scope[attribute]
    for apart in (True, False):
        agent = agent_of(target, "mine", AgentSettings(), apart=apart)
        assert_context(await headers_of(agent), "None")
