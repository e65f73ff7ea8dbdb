"""The adapter `adk` against what a real server sent, and against what none should send.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: google-adk 2.13.0. A folder's path was replaced.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from each_row import each_row
from endpoints import adk_event, any_json, sse
from hypothesis import given, settings
from processor_time import at_most
from property_examples import examples

from ci_evals.adapters.transport.streams import Event
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.extensions.adk import wire as adk_wire
from ci_evals.support.redaction import Redactor

RECORDED = Path(__file__).parents[2] / "agents/recorded_http"
CALLS = [
    ("lookup", {"order": "A-1"}, {"order": "A-1", "paid": 42}, "ok", "refunds"),
    ("refund", {"order": "A-1", "amount": 42}, {"result": "ok"}, "ok", "refunds"),
]
CALL = {"functionCall": {"id": "c1", "name": "refund", "args": {"amount": 42}}}


def calls_of(reply: Any) -> list[Any]:
    return [(c.name, c.arguments, c.result, c.status, c.agent) for c in reply.tool_calls]


async def recorded(name: str) -> tuple[list[Any], Any, list[Any]]:
    """The replies, or errors, of a recorded talk, the state, and what was asked."""
    with recorded_http.serve_recorded(recorded_http.load(RECORDED / f"adk-{name}.json")) as stub:
        replies, state = await framework_chats.CONVERSATIONS["adk"][name](stub.url)
    return replies, state, stub.asked


async def test_recorded_adk_runs_are_read_with_state_confirmations_waits_and_failures():
    (hello, refund), state, asked = await recorded("refund")
    assert (hello.agent, hello.tool_calls, hello.handed_over) == ("1: Hello", (), False)
    assert (hello.input_tokens, hello.output_tokens) == (10, 7)
    assert (refund.agent, calls_of(refund)) == ("Let me see.\n\nI refunded 42.", CALLS)
    assert (refund.workflows, refund.input_tokens, refund.output_tokens) == (("lookup", "refund"), 30, 21)
    assert 0 < refund.first_token_seconds <= refund.latency_seconds
    assert state == {"name": "Ida Berg", "refunded": 42}
    opening, first, *_ = asked
    assert opening[2] == AgentContract.played_test.user_info == {"name": "Ida Berg"}
    ids = {"appName": "refunds", "userId": opening[1].split("/")[4], "sessionId": opening[1].split("/")[6]}
    message = {"role": "user", "parts": [{"text": "Hello"}]}
    assert first[1:] == ("/run_sse", ids | {"newMessage": message, "streaming": False})
    (closed,), _, asked = await recorded("confirmed")
    arguments = {"reason": "asked for"}
    assert calls_of(closed) == [("close_account", arguments, {"result": "closed"}, "ok", "refunds")]
    (part,) = asked[2][2]["newMessage"]["parts"]
    assert part["functionResponse"]["name"] == "adk_request_confirmation"
    assert part["functionResponse"]["response"] == {"confirmed": True}
    (waiting,), _, _ = await recorded("waits")
    assert waiting.startswith("the agent waits for a decision (Please approve or reject the tool call")
    assert waiting.endswith("set the answer in adapterOptions.confirmation")
    (failed,), state, _ = await recorded("failed")
    assert (failed.error_response, failed.error_detail) == (True, "RuntimeError: the model is down")
    assert state == {"name": "Ida Berg"}
    (nobody,), _, _ = await recorded("nobody")
    assert "answered with status 404 to POST /run_sse: No root_agent found for 'nobody'" in nobody


@pytest.mark.parametrize(("name", "path"), [("tokens", "/run_sse"), ("whole", "/run")])
async def test_token_streaming_and_whole_runs_give_the_same_reply(name, path):
    """Parts of a text are not repeated; a run that is answered whole has no time to first token."""
    (refund,), _, asked = await recorded(name)
    assert (refund.agent, calls_of(refund)) == ("Let me see.\n\nI refunded 42.", CALLS)
    assert (asked[1][1], refund.first_token_seconds is None) == (path, name == "whole")


@pytest.fixture
def stub() -> Iterator[Any]:
    with endpoints.serving(lambda _: {"state": {}}) as stub:
        yield stub


async def reply_to(stub: Any, *events: Any, answer: Any = None, **options: Any) -> Any:
    """The reply to one message, whose run has these events, or its error."""
    given = answer or sse(*events)
    stub.answer = lambda asked: given if asked.path.startswith("/run") else {"state": {}}
    agent = framework_chats.agent("adk", stub.url, key=stub.key, **options)
    (reply,), _ = await framework_chats.converse(agent, "Hello")
    return reply


@each_row(("events", "why"), [
    ([{"text": "Hi"}], 'sent an event that ADK does not have: {"text": "Hi"} (is the base URL right?)'),
    ([[1]], "sent an event that ADK does not have: [1]"),
    ([adk_event(CALL)], "the agent's run stopped after the call of 'refund', before its response"),
    ([adk_event({"text": " "})], "the agent gave an empty reply"),
    ([adk_event(CALL, longRunningToolIds=["c1"])], "waits for the long-running tool refund, which"),
    (["data: {]\n\n"], "sent an event that cannot be read (not JSON): {]"),
    (['data: {"content": '], "an event that cannot be read"),
    ([": nothing\n\n"], "sent a stream without an event"),
    ([adk_event({"functionCall": {"id": "a", "name": "adk_request_credential"}})],
     "asks its client for something that ci-evals cannot provide (adk_request_credential)"),
])  # fmt: skip
async def test_unusable_adk_run_is_an_error_with_the_reason(stub, events, why):
    reply = await reply_to(stub, *events)
    assert isinstance(reply, str)
    assert why in reply


async def test_server_that_is_not_adk_is_an_error_at_the_opening(stub):
    stub.answer = lambda _: world.fault(404, "Not Found")
    agent = framework_chats.agent("adk", stub.url, key=stub.key)
    with pytest.raises(AgentError, match=r"is it an ADK server, and the base URL right\?"):
        await agent.open_session(AgentContract.played_test)


async def test_endless_confirmation_requests_of_adk_are_an_error(stub):
    asking = adk_event({"functionCall": {"id": "a", "name": "adk_request_confirmation"}})
    reply = await reply_to(stub, asking, confirmation={"confirmed": True})
    assert reply == "the agent asked for a confirmation more than 10 times in a row"


@each_row(("call", "response", "expected"), [
    ({"name": "f"}, {"name": "f", "response": {"error": "no"}}, ({}, {"error": "no"}, "error")),
    ({"name": "f", "args": {"a": 1}}, {"name": "g", "response": {}}, ({"a": 1}, None, "unknown")),
    ({"id": "1", "name": "f"}, {"id": "1", "name": "f"}, ({}, None, "ok")),
])  # fmt: skip
async def test_responses_are_matched_to_calls_by_id_or_name(stub, call, response, expected):
    """A response without an error is one of a call that succeeded."""
    events = [adk_event({"functionCall": call}), adk_event({"functionResponse": response})]
    (made,) = (await reply_to(stub, *events, adk_event({"text": "Done"}))).tool_calls
    assert (made.arguments, made.result, made.status) == expected


async def test_built_in_and_long_running_tools_are_calls_and_nameless_calls_are_unknown(stub):
    call = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"query": "refunds"}}}
    result = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"pages": 3}}}
    reply = await reply_to(stub, adk_event(call, result, {"text": "I looked it up."}))
    (search,) = calls_of(reply)
    assert search[:4] == ("google_search_web", {"query": "refunds"}, {"pages": 3}, "ok")
    reply = await reply_to(stub, adk_event({"text": "Soon"}, CALL, longRunningToolIds=["c1"]))
    assert [(made.name, made.status) for made in reply.tool_calls] == [("refund", "unknown")]
    for call in ({"functionCall": {"id": "1"}}, {"functionCall": {}}, {"toolCall": {}}):
        reply = await reply_to(stub, adk_event(call), adk_event({"text": "Done"}))
        assert (reply.tool_calls, reply.workflows) == (None, None)


async def test_state_and_user_id_options_are_sent_but_user_info_takes_precedence(stub):
    options = {"state": {"plan": "Pro", "name": "Nobody"}, "userId": "u/1"}
    await reply_to(stub, adk_event({"text": "Hi"}), **options)
    opening = stub.asked[0]
    assert opening.path.startswith("/apps/refunds/users/u/1/sessions/")
    assert opening.body == {"plan": "Pro", "name": "Ida Berg"}


async def test_adk_reply_has_hand_over_and_errors_but_no_thoughts_or_user_texts(stub):
    call = {"functionCall": {"id": "1", "name": "to_person"}}
    response = {"functionResponse": {"id": "1", "name": "to_person", "response": {}}}
    assert (await reply_to(stub, adk_event(call), adk_event(response))).escalated
    reply = await reply_to(stub, adk_event(errorCode="SAFETY", errorMessage="blocked"))
    assert (reply.agent, reply.error_response, reply.error_detail) == ("", True, "SAFETY: blocked")
    cut = await reply_to(stub, adk_event({"text": "Half"}, errorCode="MAX_TOKENS"))
    assert (cut.agent, cut.error_response) == ("Half", None)
    thought, words = {"text": "Hm", "thought": True}, {"text": "Hi"}
    reply = await reply_to(stub, adk_event({"text": "Hello"}, author="user"), adk_event(thought, words))
    assert reply.agent == "Hi"


@pytest.mark.parametrize("answer", [[], {"id": "s"}, {"state": [1]}])
async def test_session_without_state_is_reported(stub, answer):
    agent = framework_chats.agent("adk", stub.url, key=stub.key)
    run = sse(adk_event({"text": "Hi"}))
    stub.answer = lambda asked: run if asked.path == "/run_sse" else answer
    _, state = await framework_chats.converse(agent, "Hello")
    assert state == f"the agent's session has no state: {json.dumps(answer)}"


def test_adk_events_are_read_in_linear_time():
    events = []
    for number in range(5_000):
        events.append(adk_event({"functionCall": {"name": "f", "args": {"n": number}}}))
        events.append(adk_event({"functionResponse": {"name": "f", "response": {"n": number}}}))
    with at_most(loops=900):
        run = adk_wire.read([*map(Event, events), Event(adk_event({"text": "Done"}))], Redactor())
        calls = adk_wire.calls_of([run])
    assert calls is not None
    assert [(call.arguments, call.result) for call in calls[:2]] == [({"n": n}, {"n": n}) for n in (0, 1)]


@settings(max_examples=examples(300))
@given(any_json(), any_json(), any_json())
def test_arbitrary_adk_events_are_read_or_raise_agent_error(first, second, third):
    keys = ("id", "name", "args", "response", "text", "thought")
    values = (first, second, third)
    parts = [dict(zip(keys, (values * 3)[start:], strict=False)) for start in range(3)]
    events = [
        first,
        adk_event(*({"functionCall": part} for part in parts), usageMetadata=second, author=third),
        adk_event(
            *({"functionResponse": part} for part in parts), errorCode=first, longRunningToolIds=second
        ),
        {"author": "a", "content": third, "partial": first, "usageMetadata": {"promptTokenCount": second}},
    ]
    for some in (events, events[1:]):
        try:
            run = adk_wire.read([Event(event) for event in some], Redactor())
        except AgentError:
            continue
        json.dumps([run.texts, [call.model_dump() for call in adk_wire.calls_of([run]) or ()]])
