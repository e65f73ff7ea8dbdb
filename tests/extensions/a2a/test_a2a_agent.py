"""Agents behind A2A: what a real server sent in each version and binding, and what none should send.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: a2a-sdk 1.3.0, and `enable_v0_3_compat` for 0.3.
"""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import framework_chats
import pytest
import recorded_http
import world
from each_row import each_row

from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import ToolCall
from ci_evals.extensions.a2a.agent import A2aAgent

RECORDED = Path(__file__).parents[2] / "agents/recorded_http"
CALLS = (
    ToolCall(name="lookup", arguments={"order": "A-1"}, result={"order": "A-1", "amount": 42}),
    ToolCall(name="refund", arguments={"order": "A-1", "amount": 42}, result="ok"),
)
REFUNDED = "I refunded 42 for order A-1."
CARD = {"url": "URL", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
each_wire = pytest.mark.parametrize("name", framework_chats.A2A)


async def converse(name, talk, change=lambda exchange: exchange):
    """The replies of a recorded talk, and what was asked."""
    exchanges = [change(exchange) for exchange in recorded_http.load(RECORDED / f"{name}-{talk}.json")]
    with recorded_http.serve_recorded(exchanges) as stub:
        replies, _ = await framework_chats.CONVERSATIONS[name][talk](stub.url)
    return replies, stub


def in_answers(old, new):
    """A change of all but the card."""
    return lambda each: each if each.method == "GET" else replace(each, answer=re.sub(old, new, each.answer))


def messages(stub):
    """The messages that were sent."""
    bodies = [body for method, _, body in stub.asked if method == "POST"]
    return [(body.get("params") or body)["message"] for body in bodies]


@each_wire
async def test_a2a_text_and_calls_are_read_in_one_context_and_unknown_without_calls_key(name):
    # Text of messages, and of artifacts in one piece or several; calls where the options say they are.
    (hello, refund, data), stub = await converse(name, "refund")
    assert (hello.agent, hello.tool_calls, hello.handed_over) == ("1: Hello", (), False)
    assert (refund.agent, refund.tool_calls, refund.error_response) == (REFUNDED, CALLS, False)
    assert (refund.workflows, refund.params) == (("lookup", "refund"), {"order": "A-1", "amount": 42})
    streamed = "blocking" not in name
    assert (refund.first_token_seconds is not None) == streamed
    if streamed:
        assert refund.first_token_seconds <= refund.latency_seconds
    assert data.agent == f'{REFUNDED}\n\n{{"refunded": 42.0}}'
    first, *others = messages(stub)
    assert ("contextId" in first, len({message["contextId"] for message in others})) == (False, 1)
    assert not any("taskId" in message for message in messages(stub)), "a task that is done takes no message"
    versions = {headers.get("a2a-version") for headers in stub.headers[1:]}
    assert versions == ({None} if "0.3" in name else {"1.0"})
    (_, refund, _), _ = await converse(name, "refund", in_answers("toolCalls", "calls"))
    assert (refund.agent, refund.tool_calls) == (REFUNDED, None)
    assert (refund.workflows, refund.handed_over) == (None, None)


@each_wire
async def test_task_that_asks_for_input_is_continued_by_next_message(name):
    (question, refund), stub = await converse(name, "asks")
    assert (question.agent, question.tool_calls) == ("Which order?", ())
    assert (refund.agent, refund.tool_calls) == (REFUNDED, CALLS)
    asked, answered = messages(stub)
    assert "taskId" not in asked
    recorded = recorded_http.load(RECORDED / f"{name}-asks.json")
    assert answered["taskId"] in json.dumps([each.answer for each in recorded])


@each_wire
async def test_failed_task_is_an_agent_error_and_auth_required_ends_the_trial(name):
    (broken, locked, failed), _ = await converse(name, "troubles")
    assert (broken.agent, broken.error_response) == ("The bank is closed.", True)
    assert broken.error_detail == "the agent's task is FAILED"
    assert broken.tool_calls is None, "it said nothing of tools"
    assert "(adapterOptions.toolCalls) finds nothing in the answer {" in broken.not_found["toolCalls"]
    assert locked == (
        "the agent's task waits for an authorization (AUTH_REQUIRED), which no message can give: give the "
        "agent its credentials before the run: Sign in first."
    )
    if "rest" in name:
        assert "status 500" in failed
    else:
        assert (failed.error_response, failed.error_detail) == (True, "-32603: the model is down")


COMPLETED, INCOMPLETE = "TASK_STATE_COMPLETED", "ended its stream before the answer was complete"
WRONG_VERSION = '"error":{"code":-32009,"message":"Version?"},"x":'


@each_row(("name", "old", "new", "why"), [
    ("a2a", COMPLETED, "TASK_STATE_WORKING", INCOMPLETE),
    ("a2a", COMPLETED, "TASK_STATE_DONE", INCOMPLETE),
    ("a2a-0.3", '"completed"', '"unknown"', INCOMPLETE),
    ("a2a-blocking", COMPLETED, "DONE", "task is in the state 'DONE', which A2A does not have"),
    ("a2a-blocking", '"text":"[^"]*"', '"url":"x"', "the agent gave an empty reply: its message has no text"),
    ("a2a-blocking", '"message":', '"news":', "the agent's answer is neither a message nor a task"),
    ("a2a-blocking", '"result"', '"outcome"', "the agent's answer is neither a message nor a task"),
    ("a2a-blocking", '"result":', WRONG_VERSION,
     "the agent answered with an error: -32009: Version? (its card promises A2A 1.0)"),
])  # fmt: skip
async def test_unusable_a2a_answer_is_an_error_with_the_reason(name, old, new, why):
    replies, _ = await converse(name, "refund", in_answers(old, new))
    errors = [reply for reply in replies if isinstance(reply, str)]
    assert errors
    assert why in errors[0]


async def test_a2a_task_without_question_or_of_other_context_is_an_error():
    change = in_answers('"text":"Which order[?]"', '"text":" "')
    (asked, _), _ = await converse("a2a-blocking", "asks", change)
    assert asked == "the agent's task waits for input (INPUT_REQUIRED), but its message holds no question"
    exchanges = recorded_http.load(RECORDED / "a2a-blocking-refund.json")
    answer = exchanges[2].answer.replace('"contextId":"', '"contextId":"other-')
    exchanges[2] = replace(exchanges[2], answer=answer)
    with recorded_http.serve_recorded(exchanges) as stub:
        (_, other, _), _ = await framework_chats.CONVERSATIONS["a2a-blocking"]["refund"](stub.url)
    assert other == "the agent answered in another conversation than the message's"


async def test_unknown_a2a_stream_event_is_skipped():
    update = '{"result": {"artifactUpdate"'
    news = f'{{"result": {{"reasoningUpdate": {{"contextId": 7}}}}, "id": 1}}\r\n\r\ndata: {update}'
    change = in_answers(re.escape(update), news)
    (_, refund, _), _ = await converse("a2a", "refund", change)
    assert (refund.agent, refund.tool_calls) == (REFUNDED, CALLS)


def card(**fields):
    return {"name": "a", "capabilities": {}, **fields}


def offering(*interfaces):
    return card(supportedInterfaces=[CARD | interface for interface in interfaces])


@each_row(("answer", "why"), [
    (card(), "it offers none; ci-evals needs JSONRPC or HTTP+JSON 1.0, or JSONRPC 0.3"),
    ([], "it offers none; ci-evals needs"),
    (offering({"protocolBinding": "GRPC"}, {"protocolVersion": "2.0"}),
     "it offers GRPC 1.0, JSONRPC 2.0; ci-evals needs"),
    (card(url="URL", protocolVersion="0.2.5"), "it offers JSONRPC 0.2; ci-evals needs"),
    (card(url="URL", preferredTransport="GRPC", protocolVersion="0.3.0"),
     "it offers GRPC 0.3; ci-evals needs"),
    (offering({"url": "http://10.0.0.1/"}), "the agent card names http://10.0.0.1/, another server than"),
    (offering({"url": "http://127.0.0.1:99999/"}),
     "the agent card names http://127.0.0.1:99999/, another server than"),
    (world.fault(404), "(no agent card there: see adapterOptions.card)"),
    (world.Fault(200, "<html>", content_type="text/html"), "gave an answer that cannot be read (not JSON)"),
])  # fmt: skip
async def test_unusable_agent_card_is_an_error_before_the_first_message(answer, why):
    with world.serving() as server:
        url = f"http://127.0.0.1:{server.port}"
        if not isinstance(answer, world.Fault):
            answer = world.Fault(200, json.dumps(answer).replace("URL", url))
        server.expect_request("/.well-known/agent-card.json").respond_with_response(answer.response())
        with pytest.raises(AgentError) as error:
            await framework_chats.agent("a2a", url).open_session(AgentContract.played_test)
    assert why in str(error.value)


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0", "127.0.0.1"])
async def test_agent_card_with_any_loopback_host_is_accepted(host):
    """Servers do not know how they are reached."""
    exchanges = recorded_http.load(RECORDED / "a2a-0.3-blocking-refund.json")
    with recorded_http.serve_recorded(exchanges) as stub:
        port = stub.url.rpartition(":")[2]
        named = card(url=f"http://{host}:{port}/", protocolVersion="0.3.0", preferredTransport="JSONRPC")
        named_card = replace(exchanges[0], answer=json.dumps(named))
        stub.queues["GET", "/.well-known/agent-card.json"][0] = named_card
        replies, _ = await framework_chats.CONVERSATIONS["a2a-0.3-blocking"]["refund"](stub.url)
    assert replies[1].agent == REFUNDED


async def test_working_task_is_polled_until_it_is_done_or_the_turn_times_out():
    exchanges = recorded_http.load(RECORDED / "a2a-blocking-refund.json")
    first, done = exchanges[0], exchanges[2]
    working = replace(done, answer=done.answer.replace("TASK_STATE_COMPLETED", "TASK_STATE_WORKING"))
    for answers, timeout in (([working, working, done], 10), ([working] * 200, 0.2)):
        with recorded_http.serve_recorded([first, *answers]) as stub:
            agent = A2aAgent(AgentSettings(base_url=stub.url), limiter=world.limiter(), poll_seconds=0.01)
            session = await agent.open_session(AgentContract.played_test)
            try:
                if len(answers) == 3:
                    reply = await agent.send_message(session, "Refund", timeout=timeout)
                    assert (reply.agent, reply.tool_calls) == (REFUNDED, None)
                    methods = [body["method"] for _, _, body in stub.asked[1:]]
                    assert methods == ["SendMessage", "GetTask", "GetTask"]
                else:
                    with pytest.raises(AgentError, match=r"did not answer within 0.2 s"):
                        await agent.send_message(session, "Refund", timeout=timeout)
            finally:
                await agent.close(session)


async def test_metadata_and_key_are_sent_and_the_agent_card_is_read_once():
    exchanges = recorded_http.load(RECORDED / "a2a-refund.json")
    with recorded_http.serve_recorded(exchanges) as stub:
        metadata = {"user": "{{userInfo}}"}
        agent = framework_chats.agent("a2a", stub.url, None, "secret-key-1", metadata=metadata)
        await framework_chats.converse(agent, "Hello")
    assert messages(stub)[0]["metadata"] == {"user": {"name": "Ida Berg"}}
    assert {headers["authorization"] for headers in stub.headers} == {"Bearer secret-key-1"}
    with recorded_http.serve_recorded(exchanges) as stub:
        agent = framework_chats.agent("a2a", stub.url)
        for _ in range(3):
            await agent.close(await agent.open_session(AgentContract.played_test))
        sessions = await asyncio.gather(*(agent.open_session(AgentContract.played_test) for _ in range(3)))
        for session in sessions:
            await agent.close(session)
    assert [path for _, path, _ in stub.asked] == ["/.well-known/agent-card.json"]
