"""Agents behind Rasa's REST channel: what a real server sent, as evidence, and what none should send.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: rasa 3.6.21 with an action server of rasa-sdk.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import framework_chats
import pytest
import recorded_http
import world
from each_row import each_row

from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.transcript import ToolCall
from ci_evals.extensions.rasa import wire as rasa_wire

RECORDED = Path(__file__).parents[2] / "agents/recorded_http"
PLAN = {"plan": "Ida Berg"}
CALLS = (
    ToolCall(name="lookup", arguments={**PLAN, "order": "A-1"}, result={"amount": 42.0}),
    ToolCall(name="refund", arguments={**PLAN, "order": "A-1", "amount": 42.0}, result={"refunded": 42.0}),
)


async def converse(talk, change=lambda exchange: exchange, **options):
    """The replies of a recorded talk, the slots, and what was asked."""
    exchanges = [change(exchange) for exchange in recorded_http.load(RECORDED / f"rasa-{talk}.json")]
    texts = [each.request["message"] for each in exchanges if each.path.startswith("/webhooks/")]
    with recorded_http.serve_recorded(exchanges) as stub:
        agent = framework_chats.agent("rasa", stub.url, None, "sesame-1", **options)
        replies, state = await framework_chats.converse(agent, *texts)
    return replies, state, stub


def in_answers(path, change):
    """A change of the JSON of answers at a path."""

    def changed(each):
        return replace(each, answer=json.dumps(change(json.loads(each.answer))))

    return lambda each: changed(each) if path in each.path else each


async def test_rasa_actions_and_slots_become_calls_workflows_params_and_state():
    (hello, refund), state, stub = await converse("refund")
    assert hello.agent == "Hello!\n- Refund an order"
    assert (hello.tool_calls, hello.workflows, hello.handed_over) == ((), ("utter_greet",), False)
    assert (refund.agent, refund.tool_calls) == ("I refunded 42 for order A-1.", CALLS)
    assert refund.workflows == ("lookup", "refund", "utter_refunded")
    assert refund.params == {"order": "A-1", "amount": 42.0, "refunded": 42.0}
    assert {event["event"] for event in refund.trace} >= {"user", "slot", "action", "bot"}
    slots = {"order": "A-1", "amount": 42.0, "refunded": 42.0, "session_started_metadata": None}
    assert state == slots | PLAN
    assert len({body["sender"] for _, path, body in stub.asked if path.startswith("/webhooks/")}) == 1


async def test_paused_rasa_conversation_is_a_hand_over_and_silence_is_an_error():
    (person, after), _, _ = await converse("person")
    assert (person.agent, person.handed_over) == ("", True)
    assert [call.name for call in person.tool_calls] == ["to_person"]
    assert after.startswith("the agent answered with no message: no rule or story fits, an action failed")
    (failed,), _, _ = await converse("failed")
    assert failed.startswith("the agent answered with no message")


async def test_missing_tracker_leaves_evidence_unknown():
    (hello, refund), _, stub = await converse("refund", tracker=False, slots={})
    assert refund.agent == "I refunded 42 for order A-1."
    assert (refund.tool_calls, refund.workflows, refund.params, refund.handed_over) == (None,) * 4
    assert hello.trace is None
    assert [path for method, path, _ in stub.asked if "tracker" in path and method == "POST"] == []


async def test_tracker_that_lost_earlier_events_is_an_error():
    exchanges = recorded_http.load(RECORDED / "rasa-refund.json")
    last = [i for i, each in enumerate(exchanges[:-1]) if each.path.endswith("/tracker")][-1]
    short = json.loads(exchanges[last].answer)
    exchanges[last] = replace(exchanges[last], answer=json.dumps(short | {"events": short["events"][5:]}))
    with recorded_http.serve_recorded(exchanges) as stub:
        (_, refund), _ = await framework_chats.CONVERSATIONS["rasa"]["refund"](stub.url)
    assert refund == "the agent's tracker lost the events of earlier messages"


def test_repeated_session_start_is_no_new_event():
    shown = rasa_wire.Tracker(({"event": "session_started", "timestamp": 1.0},), {})
    user = {"event": "user", "timestamp": 3.0}
    later = ({"event": "session_started", "timestamp": 2.0}, user)
    assert rasa_wire._gained(shown, rasa_wire.Tracker(later, {})) == (user,)


@each_row(("path", "change", "why"), [
    ("/webhooks/", lambda body: {"text": "Hi"}, "not a list of messages: {"),
    ("/webhooks/", lambda body: ["Hi"], "not a list of messages: ["),
    ("/webhooks/", lambda body: [{"recipient_id": "x", "text": "Hi"}], "the agent answered somebody else"),
    ("/webhooks/", lambda body: [{"custom": None}], "the agent answered with no message"),
    ("/tracker", lambda body: [], "the agent's tracker cannot be read"),
    ("/tracker", lambda body: body | {"slots": None}, "the agent's tracker cannot be read"),
])  # fmt: skip
async def test_unusable_rasa_answer_is_agent_error_with_the_reason(path, change, why):
    try:
        replies, _, _ = await converse("refund", in_answers(path, change))
    except AgentError as error:
        replies = [str(error)]
    assert isinstance(replies[0], str)
    assert why in replies[0]


async def test_images_buttons_and_payloads_become_text_of_the_reply():
    buttons = [{"title": "Yes", "payload": "/yes"}, {"payload": "/no"}]
    messages = [{"text": "Look:", "buttons": buttons}, {"image": "http://a/b.png"}]
    messages.append({"custom": {"type": "map"}})
    (hello, *_), _, _ = await converse("refund", in_answers("/webhooks/", lambda body: messages))
    assert hello.agent == 'Look:\n- Yes\n\nhttp://a/b.png\n\n{"type": "map"}'


async def test_rejected_action_is_a_failed_call():
    rejected = {"event": "action_execution_rejected", "name": "refund"}
    talk = recorded_http.load(RECORDED / "rasa-refund.json")
    count = len(json.loads([each for each in talk if each.path.endswith("/tracker")][2].answer)["events"])

    def change(body):
        events = body["events"]
        with_rejected = [*events[:count], rejected, *events[count:]]
        return body | {"events": with_rejected if len(events) > count else events}

    (_, refund), _, _ = await converse("refund", in_answers("/tracker", change))
    first, *others = refund.tool_calls
    assert (first.name, first.status, len(others)) == ("refund", "error", 2)


async def test_slots_metadata_and_key_are_sent():
    options = {"metadata": {"user": "{{userInfo}}"}, "slots": {"plan": "{{userInfo.name}}"}}
    _, _, stub = await converse("refund", **options)
    posted = [(path, body) for method, path, body in stub.asked if method == "POST"]
    assert posted[0][1] == [{"event": "slot", "name": "plan", "value": "Ida Berg"}]
    assert posted[1][1]["metadata"] == {"user": {"name": "Ida Berg"}}
    assert not any("authorization" in headers for headers in stub.headers)
    assert {query.get("token") for query in stub.queries} == {"sesame-1"}
    _, _, stub = await converse("refund", headers={"Authorization": "Bearer {{key}}"})
    assert {headers["authorization"] for headers in stub.headers} == {"Bearer sesame-1"}
    assert {query.get("token") for query in stub.queries} == {None}


@each_row(("answer", "kind", "why"), [
    (world.fault(404), AgentError, "start Rasa with --enable-api, or set adapterOptions.tracker to false"),
    (world.fault(401, "User is not authenticated."), AgentAccessError, "refused the key (401)"),
    (world.Fault(200, "Hello from Rasa: 3.6.21"), AgentError,
     "gave an answer that cannot be read (not JSON)"),
])  # fmt: skip
async def test_unusable_tracker_is_reported_at_first_request(answer, kind, why):
    with world.serving() as server:
        server.expect_request(re.compile("/conversations/.*")).respond_with_response(answer.response())
        agent = framework_chats.agent("rasa", f"http://127.0.0.1:{server.port}")
        with pytest.raises(kind) as error:
            await agent.open_session(AgentContract.played_test)
    assert why in str(error.value)
