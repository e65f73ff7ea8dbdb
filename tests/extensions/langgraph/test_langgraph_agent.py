"""Agents on a LangGraph Server: what a real one sent, as evidence, and what none should send.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: langgraph-api 0.16.7, langgraph 1.2.22.
"""

import json
from dataclasses import replace
from pathlib import Path

import framework_chats
import pytest
import recorded_http
import world
from agent_cases import UNREACHABLE_URL
from each_row import each_row

from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.transcript import ToolCall

RECORDED = Path(__file__).parents[2] / "agents/recorded_http"
LOOKUP = {"id": "call_lookup", "name": "lookup", "arguments": {"order": "A-1"}, "status": "ok"}
REFUND = {"id": "call_refund", "name": "refund", "arguments": {"order": "A-1", "amount": 42}, "status": "ok"}
CALLS = (ToolCall(**LOOKUP, result={"order": "A-1", "amount": 42}), ToolCall(**REFUND, result="ok"))


async def converse(name, change=lambda exchange: exchange):
    """The replies of a recorded talk, the state, and what was asked."""
    exchanges = [change(exchange) for exchange in recorded_http.load(RECORDED / f"langgraph-{name}.json")]
    with recorded_http.serve_recorded(exchanges) as stub:
        replies, state = await framework_chats.CONVERSATIONS["langgraph"][name](stub.url)
    return replies, state, stub.asked


def in_streams(old, new):
    """A change of what runs answer."""
    return lambda each: (
        replace(each, answer=each.answer.replace(old, new)) if each.path.endswith("/runs/stream") else each
    )


def in_states(**values):
    """A change of the thread's state."""
    return lambda each: (
        replace(each, answer=json.dumps(json.loads(each.answer) | values))
        if each.path.endswith("/state")
        else each
    )


async def test_only_new_messages_of_thread_are_read_with_subgraph_calls_and_questions():
    # The thread repeats all messages.
    (hello, refund, much), state, asked = await converse("refund")
    assert (hello.agent, hello.tool_calls, hello.input_tokens, hello.output_tokens) == ("1: Hello", (), 10, 5)
    assert (refund.agent, refund.tool_calls) == ("I refunded 42 for order A-1.", CALLS)
    assert (refund.workflows, refund.handed_over) == (("lookup", "refund"), False)
    assert (refund.input_tokens, refund.output_tokens) == (30, 15)
    assert much.agent == "Let me see.\n\nI refunded 42 for order A-1."
    (call,) = much.tool_calls
    assert (call.arguments, call.status) == ({"order": "A-1", "amount": 2000}, "error")
    assert ("more than was paid" in call.result, state) == (True, {"refunded": 42})
    runs = [body for _, path, body in asked if path.endswith("/runs/stream")]
    sent = [run["input"]["messages"][0]["content"] for run in runs]
    assert sent == ["Hello", "Refund order A-1", "Refund much more"]
    assert {run["assistant_id"] for run in runs} == {"agent"}
    (refund, question, answer), _, asked = await converse("inside")
    assert [(call.name, call.agent, call.result) for call in refund.tool_calls] == [
        ("lookup", "desk", {"order": "A-1", "amount": 42}),
        ("refund", "desk", "ok"),
    ]
    assert (question.agent, question.tool_calls) == ("Shall I refund it?", None)
    assert (answer.agent, answer.tool_calls) == ("You said yes.", ())
    runs = [body for _, path, body in asked if path.endswith("/runs/stream")]
    assert (runs[2]["command"], "input" in runs[2]) == ({"resume": "yes"}, False)


async def test_failed_langgraph_run_is_an_error_response():
    # The server answers a failed run with 200 and an event.
    with recorded_http.serve_recorded(recorded_http.load(RECORDED / "langgraph-failed.json")) as stub:
        agent = framework_chats.agent("langgraph", stub.url)
        session = await agent.open_session(AgentContract.played_test)
        reply = await agent.send_message(session, "fail", timeout=5)
        await agent.close(session)
    assert (reply.error_response, reply.error_detail) == (True, "RuntimeError: the model is down")


async def test_unknown_langgraph_assistant_is_agent_error_with_the_reason():
    with recorded_http.serve_recorded(recorded_http.load(RECORDED / "langgraph-nobody.json")) as stub:
        agent = framework_chats.agent("langgraph", stub.url, "nobody")
        session = await agent.open_session(AgentContract.played_test)
        with pytest.raises(AgentError, match=r"answered with status 422: Invalid assistant: 'nobody'\. Must"):
            await agent.send_message(session, "fail", timeout=5)
        await agent.close(session)


HINT = "name the key by adapterOptions.messages"


@each_row(("change", "why"), [
    (in_states(next=["tools"]), "the agent's run stopped before the node 'tools' without a question"),
    (in_states(values={"messages": []}), "the agent's run added no words to 'messages' of the graph's state"),
    (in_states(values={"a": [], "x": 1}), f"the graph's state has no 'messages' (it has: a, x): {HINT}"),
    (in_states(values=[1]), "the agent's thread has no state that can be read"),
    (in_streams("\r\n\r\n", "\r\n"), "sent an event that cannot be read (not JSON)"),
    (in_streams('"messages":', '"messages'), "sent an event that cannot be read (not JSON)"),
])  # fmt: skip
async def test_unreadable_run_is_an_error_with_the_reason(change, why):
    (hello, *_), _, _ = await converse("refund", change)
    assert isinstance(hello, str)
    assert why in hello


async def test_unknown_stream_events_add_no_calls():
    news = 'event: news\ndata: {"tool_calls": [{"name": "steal"}]}\n\nevent: updates\n'
    (_, refund, _), _, _ = await converse("refund", in_streams("event: updates\n", news))
    assert refund.tool_calls == CALLS


async def test_call_with_invalid_arguments_is_kept_without_arguments():
    broken = '"invalid_tool_calls":[{"name":"refund","args":"{\\"order\\": ","id":"c9","error":null}]'
    (hello, *_), _, _ = await converse("refund", in_streams('"invalid_tool_calls":[]', broken))
    (call,) = hello.tool_calls
    assert (call.name, call.arguments) == ("refund", None)
    assert "not JSON" in call.not_captured


async def test_tokens_with_an_unreadable_count_are_unknown():
    usage = '"usage_metadata":{"input_tokens":10,'
    unknown = usage.replace("10", '"ten"')
    (hello, *_), _, _ = await converse("refund", in_streams(usage, unknown))
    assert (hello.input_tokens, hello.output_tokens) == (None, 5)
    after = '"tool_calls":[],"invalid_tool_calls":[],'
    (_, refund, _), _, _ = await converse("refund", in_streams(after + usage, after + unknown))
    assert (refund.tool_calls, refund.input_tokens, refund.output_tokens) == (CALLS, None, 15)


@each_row("new", ['"tool_calls":[{"nom":', '"calls":[{"name":', '"tool_calls":7,"calls":[{"name":'])
async def test_unreadable_calls_leave_all_calls_unknown(new):
    old = '"tool_calls":[{"name":"lookup"'
    (_, refund, _), _, _ = await converse("refund", in_streams(old, f'{new}"lookup"'))
    assert (refund.tool_calls, refund.workflows, refund.handed_over) == (None, None, None)


async def test_input_context_config_resume_and_key_are_sent_with_a_run():
    options = {
        "input": {"plan": "{{userInfo.name}}"}, "context": {"user": "{{userInfo}}"},
        "config": {"configurable": {"thread": "{{session}}"}}, "resume": {"answer": "{{message}}"},
    }  # fmt: skip
    exchanges = recorded_http.load(RECORDED / "langgraph-inside.json")
    with recorded_http.serve_recorded(exchanges) as stub:
        agent = framework_chats.agent("langgraph", stub.url, "outer", "secret-key-1", **options)
        await framework_chats.converse(agent, "Refund order A-1", "Are you sure?", "yes")
    first, _, third = [body for _, path, body in stub.asked if path.endswith("/runs/stream")]
    assert (first["input"]["plan"], first["context"]) == ("Ida Berg", {"user": {"name": "Ida Berg"}})
    assert first["config"]["configurable"]["thread"] == json.loads(exchanges[0].answer)["thread_id"]
    assert third["command"] == {"resume": {"answer": "yes"}}
    assert {headers["x-api-key"] for headers in stub.headers} == {"secret-key-1"}
    assert not any("authorization" in headers for headers in stub.headers)


@pytest.mark.parametrize(("answer", "why"), [
    (world.fault(404), "is it a LangGraph Server, and the base URL right?"),
    (world.Fault(200, "{}"), "the server is not a LangGraph Server: it created a thread without an id: {}"),
    (world.Fault(200, "Hello"), "gave an answer that cannot be read (not JSON): Hello"),
])  # fmt: skip
async def test_non_langgraph_server_is_reported_when_session_opens(answer, why):
    with world.serving() as server:
        server.expect_request("/threads").respond_with_response(answer.response())
        agent = framework_chats.agent("langgraph", f"http://127.0.0.1:{server.port}")
        with pytest.raises(AgentError) as error:
            await agent.open_session(AgentContract.played_test)
    assert why in str(error.value)


async def test_unreachable_langgraph_server_and_refused_key_are_different_errors():
    with pytest.raises(AgentError) as gone:
        await framework_chats.agent("langgraph", UNREACHABLE_URL).open_session(AgentContract.played_test)
    assert not isinstance(gone.value, AgentAccessError)
    with world.serving() as server:
        server.expect_request("/threads").respond_with_response(world.UNAUTHORIZED.response())
        agent = framework_chats.agent("langgraph", f"http://127.0.0.1:{server.port}")
        with pytest.raises(AgentAccessError):
            await agent.open_session(AgentContract.played_test)
