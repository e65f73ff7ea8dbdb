"""The adapter `adk` against what a real server sent, and against what none should send.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: google-adk 2.13.0. A folder's path was replaced.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from endpoints import adk_event, any_json, sse
from hypothesis import given, settings
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


async def test_calls_come_with_arguments_and_responses_in_order() -> None:
    """Also tokens, with those of thoughts, and the state of the session."""
    (hello, refund), state, asked = await recorded("refund")
    assert (hello.agent, hello.tool_calls, hello.handed_over) == ("1: Hello", (), False)
    assert (hello.input_tokens, hello.output_tokens) == (10, 7)
    assert refund.agent == "Let me see.\n\nI refunded 42."
    assert calls_of(refund) == CALLS
    assert (refund.workflows, refund.input_tokens, refund.output_tokens) == (("lookup", "refund"), 30, 21)
    assert 0 < refund.first_token_seconds <= refund.latency_seconds
    assert state == {"name": "Ida Berg", "refunded": 42}

    opening, first, *_ = asked
    assert opening[2] == AgentContract.played_test.user_info == {"name": "Ida Berg"}
    assert first[1:] == (
        "/run_sse",
        {
            "appName": "refunds",
            "userId": opening[1].split("/")[4],
            "sessionId": opening[1].split("/")[6],
            "newMessage": {"role": "user", "parts": [{"text": "Hello"}]},
            "streaming": False,
        },
    )


@pytest.mark.parametrize(("name", "path"), [("tokens", "/run_sse"), ("whole", "/run")])
async def test_runs_that_are_asked_for_otherwise(name: str, path: str) -> None:
    """Parts of words are not said twice; a run that is answered whole has no first words."""
    (refund,), _, asked = await recorded(name)
    assert (refund.agent, calls_of(refund)) == ("Let me see.\n\nI refunded 42.", CALLS)
    assert asked[1][1] == path
    assert (refund.first_token_seconds is None) == (name == "whole")


async def test_calls_that_must_be_confirmed() -> None:
    """The call is one, with its last response; ADK's own call is none of the agent's."""
    (closed,), _, asked = await recorded("confirmed")
    assert calls_of(closed) == [
        ("close_account", {"reason": "asked for"}, {"result": "closed"}, "ok", "refunds")
    ]
    (part,) = asked[2][2]["newMessage"]["parts"]
    assert part["functionResponse"]["name"] == "adk_request_confirmation"
    assert part["functionResponse"]["response"] == {"confirmed": True}

    (waiting,), _, _ = await recorded("waits")
    assert waiting.startswith("the agent waits for a decision (Please approve or reject the tool call")
    assert waiting.endswith("set the answer in adapterOptions.confirmation")


async def test_runs_that_fail() -> None:
    """Unknown apps get a session, and only then are unknown."""
    (failed,), state, _ = await recorded("failed")
    assert (failed.error_response, failed.error_detail) == (True, "RuntimeError: the model is down")
    assert state == {"name": "Ida Berg"}
    (nobody,), _, _ = await recorded("nobody")
    assert "answered with status 404 to POST /run_sse: No root_agent found for 'nobody'" in nobody


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


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([{"text": "Hi"}], 'sent an event that ADK does not have: {"text": "Hi"} (is the base URL right?)'),
        ([[1]], "sent an event that ADK does not have: [1]"),
        ([adk_event(CALL)], "the agent's run stopped after the call of 'refund', before its response"),
        ([adk_event({"text": " "})], "the agent gave an empty reply"),
        ([adk_event(CALL, longRunningToolIds=["c1"])], "waits for the long-running tool refund, which"),
        (["data: {]\n\n"], "sent an event that cannot be read (not JSON): {]"),
        (['data: {"content": '], "an event that cannot be read"),
        ([": nothing\n\n"], "sent a stream without an event"),
        (
            [adk_event({"functionCall": {"id": "a", "name": "adk_request_credential"}})],
            "asks its client for something that ci-evals cannot provide (adk_request_credential)",
        ),
    ],
)
async def test_a_run_that_cannot_be_used(stub: Any, events: list[Any], why: str) -> None:
    """One message, and nothing of it is evidence."""
    reply = await reply_to(stub, *events)
    assert isinstance(reply, str)
    assert why in reply


async def test_a_server_that_is_another(stub: Any) -> None:
    """Said with the first request, which opens the session."""
    stub.answer = lambda _: world.fault(404, "Not Found")
    agent = framework_chats.agent("adk", stub.url, key=stub.key)
    with pytest.raises(AgentError, match=r"is it an ADK server, and the base URL right\?"):
        await agent.open_session(AgentContract.played_test)


async def test_endless_requests_for_confirmation_end_the_turn(stub: Any) -> None:
    """It ends."""
    asking = adk_event({"functionCall": {"id": "a", "name": "adk_request_confirmation"}})
    reply = await reply_to(stub, asking, confirmation={"confirmed": True})
    assert reply == "the agent asked for a confirmation more than 10 times in a row"


async def test_words_that_a_filter_withheld_are_an_error_of_the_agent(stub: Any) -> None:
    """It has answered, if not with words."""
    reply = await reply_to(stub, adk_event(errorCode="SAFETY", errorMessage="blocked"))
    assert (reply.agent, reply.error_response, reply.error_detail) == ("", True, "SAFETY: blocked")
    cut = await reply_to(stub, adk_event({"text": "Half"}, errorCode="MAX_TOKENS"))
    assert (cut.agent, cut.error_response) == ("Half", None)


async def test_what_is_no_word_of_the_agent(stub: Any) -> None:
    """Its thoughts, and the user's own words."""
    thought, words = {"text": "Hm", "thought": True}, {"text": "Hi"}
    reply = await reply_to(stub, adk_event({"text": "Hello"}, author="user"), adk_event(thought, words))
    assert reply.agent == "Hi"


@pytest.mark.parametrize(
    ("call", "response", "expected"),
    [
        ({"name": "f"}, {"name": "f", "response": {"error": "no"}}, ({}, {"error": "no"}, "error")),
        ({"name": "f", "args": {"a": 1}}, {"name": "g", "response": {}}, ({"a": 1}, None, "unknown")),
        ({"id": "1", "name": "f"}, {"id": "1", "name": "f"}, ({}, None, "ok")),
    ],
)
async def test_calls_and_their_responses(stub: Any, call: Any, response: Any, expected: Any) -> None:
    """By id or, without one, by name. A response without an error is one of a call that succeeded."""
    events = [adk_event({"functionCall": call}), adk_event({"functionResponse": response})]
    (made,) = (await reply_to(stub, *events, adk_event({"text": "Done"}))).tool_calls
    assert (made.arguments, made.result, made.status) == expected


async def test_a_call_without_a_name_leaves_the_calls_unknown(stub: Any) -> None:
    """It may be the one that matters."""
    reply = await reply_to(stub, adk_event({"functionCall": {"id": "1"}}), adk_event({"text": "Done"}))
    assert (reply.tool_calls, reply.workflows) == (None, None)


@pytest.mark.parametrize("kind", ["functionCall", "toolCall"])
async def test_an_empty_call_is_no_sign_that_there_was_none(stub: Any, kind: str) -> None:
    reply = await reply_to(stub, adk_event({kind: {}}), adk_event({"text": "Done"}))
    assert (reply.tool_calls, reply.workflows) == (None, None)


async def test_tools_of_the_model_are_calls_too(stub: Any) -> None:
    """By their types."""
    call = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"query": "refunds"}}}
    found = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"pages": 3}}}
    reply = await reply_to(stub, adk_event(call, found, {"text": "I looked it up."}))
    assert calls_of(reply) == [
        ("google_search_web", {"query": "refunds"}, {"pages": 3}, "ok", reply.tool_calls[0].agent)
    ]


async def test_tools_that_take_long_are_not_waited_for(stub: Any) -> None:
    """Their results come in another conversation's time."""
    reply = await reply_to(stub, adk_event({"text": "Soon"}, CALL, longRunningToolIds=["c1"]))
    assert [(made.name, made.status) for made in reply.tool_calls] == [("refund", "unknown")]


async def test_a_hand_over_ends_the_turn(stub: Any) -> None:
    """Whether or not the agent says anything."""
    call = {"functionCall": {"id": "1", "name": "to_person"}}
    response = {"functionResponse": {"id": "1", "name": "to_person", "response": {}}}
    assert (await reply_to(stub, adk_event(call), adk_event(response))).escalated


async def test_the_user_and_the_first_state_can_be_given(stub: Any) -> None:
    """The test's own data goes over that of the options."""
    options = {"state": {"plan": "Pro", "name": "Nobody"}, "userId": "u/1"}
    await reply_to(stub, adk_event({"text": "Hi"}), **options)
    opening = stub.asked[0]
    assert opening.path.startswith("/apps/refunds/users/u/1/sessions/")
    assert opening.body == {"plan": "Pro", "name": "Ida Berg"}


@pytest.mark.parametrize("answer", [[], {"id": "s"}, {"state": [1]}])
async def test_a_session_without_a_state(stub: Any, answer: Any) -> None:
    """Its checks are undecided, with a reason."""
    agent = framework_chats.agent("adk", stub.url, key=stub.key)
    stub.answer = lambda asked: adk_run() if asked.path == "/run_sse" else answer
    _, state = await framework_chats.converse(agent, "Hello")
    assert state == f"the agent's session has no state: {json.dumps(answer)}"


def adk_run() -> Any:
    return sse(adk_event({"text": "Hi"}))


def test_many_events_are_read_in_time() -> None:
    """In proportion to their number."""
    events = []
    for number in range(5_000):
        events.append(adk_event({"functionCall": {"name": "f", "args": {"n": number}}}))
        events.append(adk_event({"functionResponse": {"name": "f", "response": {"n": number}}}))
    begun = time.process_time()
    run = adk_wire.read([*map(Event, events), Event(adk_event({"text": "Done"}))], Redactor())
    calls = adk_wire.calls_of([run])
    assert calls is not None
    assert [(call.arguments, call.result) for call in calls[:2]] == [({"n": n}, {"n": n}) for n in (0, 1)]
    assert time.process_time() - begun < 3


@settings(max_examples=examples(300))
@given(any_json(), any_json(), any_json())
def test_any_events_are_read_or_refused(first: Any, second: Any, third: Any) -> None:
    """Whatever an agent puts into them."""
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
