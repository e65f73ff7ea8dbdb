"""The adapter `ag-ui` against agents on loopback, and against what a real one sent; JSON Patch by RFC 6902.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: pydantic-ai 2.68.0, ag-ui-protocol 1.0.0.
"""

import json
import re
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from each_row import each_row
from endpoints import ag_ui_call, ag_ui_run, any_json, sse
from hypothesis import given, settings
from processor_time import at_most
from property_examples import examples

from ci_evals.adapters.transport.streams import Event
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.extensions.ag_ui import wire as ag_ui_wire
from ci_evals.extensions.ag_ui.agent import AgUiAgent
from ci_evals.extensions.ag_ui.json_patch import MAX_COPIED, Patcher, PatchError
from ci_evals.extensions.ag_ui.run import AgentState
from ci_evals.support.redaction import Redactor

RECORDED = Path(__file__).parents[2] / "agents/recorded_http"
TEST = Test(
    name="Refund", user_info={"name": "Ida Berg", "orders": ["A-1"]}, guidelines="You want your money back.",
    turns=({"user": "Hello"},), evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
CALLS = [("lookup", {"order": "A-1"}, {"order": "A-1", "paid": 42})]
CALLS += [("refund", {"order": "A-1", "amount": 42}, "ok")]
LOOKUP = ag_ui_call("lookup", {"order": "A-1"}, '{"order": "A-1", "paid": 42}')
REFUND = ag_ui_call("refund", {"order": "A-1", "amount": 42}, "ok", call_id="call-2")
DELTA = {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/refunded", "value": 42}]}
END = {"type": "RUN_FINISHED"}
SNAPSHOT = {"type": "STATE_SNAPSHOT", "snapshot": {"refunded": 0, "name": "Ida"}}


@dataclass
class Talk:
    """What was said and asked in one conversation."""

    replies: list[Any] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    state: Any = None
    problem: str | None = None
    """Why there is no state."""

    @property
    def reply(self) -> Any:
        return self.replies[-1]

    @property
    def calls(self) -> list[Any]:
        return [(call.name, call.arguments, call.result) for call in self.reply.tool_calls]


async def talk(*answers: Any, texts: tuple[str, ...] = ("Hello",), test: Test = TEST, **options: Any) -> Talk:
    """Say texts to an agent that answers so, the last answer again and again."""
    queue, done = [*answers], Talk()
    with endpoints.serving(lambda _: queue.pop(0) if len(queue) > 1 else queue[0]) as stub:
        settings = AgentSettings(api_key=stub.key, base_url=f"{stub.url}/agui", options=options)
        agent = AgUiAgent(settings, limiter=world.limiter())
        session = await agent.open_session(test)
        try:
            for text in texts:
                done.replies.append(await agent.send_message(session, text, timeout=60))
            done.state = await agent.read_state(session) if session.state.problem is None else None
            done.problem = session.state.problem
        finally:
            await agent.close(session)
        done.bodies = [asked.body for asked in stub.asked]
    return done


async def fails(*answers: Any, **options: Any) -> str:
    """The error with which a message to an agent fails that answers so."""
    with pytest.raises(AgentError) as caught:
        await talk(*answers, **options)
    return str(caught.value)


async def test_calls_results_and_state_are_sent_with_the_next_message():
    """The client keeps the conversation."""
    answers = (ag_ui_run(*LOOKUP, SNAPSHOT, DELTA, text="Let me |look."), ag_ui_run(text="Bye"))
    done = await talk(*answers, texts=("Refund A-1", "Thanks"), forwardedProps={"lang": "en"})
    opening, second = done.bodies
    context = {"name": "Ida Berg", "orders": '["A-1"]'}
    assert {key: opening[key] for key in opening if key not in ("threadId", "runId", "messages")} == {
        "state": {},
        "tools": [],
        "context": [{"description": key, "value": value} for key, value in context.items()],
        "forwardedProps": {"lang": "en"},
    }
    assert opening["threadId"] == second["threadId"]
    assert opening["runId"] != second["runId"]
    assert second["state"] == done.state == {"refunded": 42, "name": "Ida"}
    user, called, result, words, thanks = second["messages"]
    assert (user["role"], user["content"], thanks["content"]) == ("user", "Refund A-1", "Thanks")
    function = {"name": "lookup", "arguments": '{"order": "A-1"}'}
    assert called["toolCalls"] == [{"id": "call-1", "type": "function", "function": function}]
    assert (result["role"], result["toolCallId"]) == ("tool", "call-1")
    assert (words["role"], words["content"]) == ("assistant", "Let me look.")
    assert [reply.agent for reply in done.replies] == ["Let me look.", "Bye"]


async def recorded(name: str) -> tuple[list[Any], Any]:
    """The replies, or errors, of a recorded talk, and the state."""
    with recorded_http.serve_recorded(recorded_http.load(RECORDED / f"ag-ui-{name}.json")) as stub:
        talked: tuple[list[Any], Any] = await framework_chats.CONVERSATIONS["ag-ui"][name](stub.url)
    return talked


async def test_recorded_ag_ui_runs_are_read_with_calls_state_tokens_approvals_and_errors():
    (hello, refund), state = await recorded("refund")
    assert (hello.agent, hello.tool_calls, hello.handed_over) == ("1: Hello", (), False)
    assert refund.agent == "Let me see. \n\nI refunded 42."
    assert [(call.name, call.arguments, call.result) for call in refund.tool_calls] == CALLS
    assert state == {"refunded": 42, "plan": ""}
    assert (refund.input_tokens, refund.output_tokens) == (150, 21)
    (closed,), _ = await recorded("approval")
    (call,) = closed.tool_calls
    assert (call.name, call.arguments, call.result) == ("close_account", {"reason": "asked for"}, "closed")
    (waiting,), _ = await recorded("waits")
    assert 'waits for a decision (tool_call: Approve close_account({"reason":"asked for"})?)' in waiting
    (failed,), state = await recorded("failed")
    assert (failed.error_response, failed.error_detail) == (True, "the model is down")
    assert state == "the agent sent no state: neither STATE_SNAPSHOT nor STATE_DELTA"
    cancelled = ag_ui_run(*LOOKUP, text="Let me", outcome={"type": "cancelled"})
    assert await fails(cancelled) == "the agent's run was cancelled before it completed"


async def test_calls_are_in_order_with_results_workflows_and_tokens():
    usage = [{"inputTokens": 100, "outputTokens": 7}, {"inputTokens": 50, "outputTokens": 3}]
    done = await talk(ag_ui_run(*LOOKUP, *REFUND, text="Refunded.", usage=usage))
    assert (done.calls, done.reply.workflows) == (CALLS, ("lookup", "refund"))
    assert (done.reply.input_tokens, done.reply.output_tokens) == (150, 10)
    assert 0 < done.reply.first_token_seconds <= done.reply.latency_seconds
    assert done.reply.handed_over is None


async def test_run_without_calls_has_no_calls_but_unknown_rules_tokens_and_state():
    # The protocol reports all calls, but no rules, and no tokens that were never counted.
    done = await talk(ag_ui_run(text="Hello"))
    assert (done.reply.tool_calls, done.reply.workflows) == ((), ())
    assert (done.reply.rules, done.reply.input_tokens, done.reply.error_response) == (None, None, False)
    assert done.problem == "the agent sent no state: neither STATE_SNAPSHOT nor STATE_DELTA"


async def test_call_of_escalation_tool_is_a_hand_over_of_ag_ui():
    options = {"escalationTools": ["to_person"], "tools": [{"name": "to_person"}]}
    assert (await talk(ag_ui_run(*ag_ui_call("to_person", {})), **options)).reply.escalated
    assert (await talk(ag_ui_run(text="Hello"), **options)).reply.handed_over is False


async def test_chunk_without_id_continues_the_last_call_or_message():
    chunks = (
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "refund", "delta": '{"order":'},
        {"type": "TOOL_CALL_CHUNK", "delta": '"A-1"}'},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Re"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "funded"},
    )
    done = await talk(ag_ui_run(*chunks))
    assert (done.calls, done.reply.agent) == ([("refund", {"order": "A-1"}, None)], "Refunded")


async def test_subagent_is_named_in_calls_and_gives_the_reply_only_if_alone():
    sub = {"subagentRunId": "s1"}
    started = {"type": "SUBAGENT_STARTED", "name": "desk", **sub}
    begun, *others = LOOKUP
    words = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "s", "delta": "Thinking", **sub}
    done = await talk(ag_ui_run(started, {**begun, **sub}, *others, words, text="Refunded."))
    assert (done.reply.agent, done.reply.tool_calls[0].agent) == ("Refunded.", "desk")
    assert (await talk(ag_ui_run(started, words))).reply.agent == "Thinking"


async def test_only_new_messages_of_a_snapshot_belong_to_the_reply():
    """LangGraph's nodes that do not stream send nothing else."""
    call = REFUND_CALL
    old = {"id": "a0", "role": "assistant", "content": "An old word", "toolCalls": [{**call, "id": "c0"}]}
    messages = [
        {"id": "u0", "role": "user", "content": "Before"},
        old,
        {"id": "u1", "role": "user", "content": "Hello"},
        {"id": "m-1", "role": "assistant", "content": "Streamed", "toolCalls": [call]},
        {"id": "t1", "role": "tool", "toolCallId": "c9", "content": "no such order", "error": "ValueError"},
        {"id": "a2", "role": "assistant", "content": "Refunded."},
    ]
    streamed = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "other", "delta": "Streamed"}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": messages}
    done = await talk(ag_ui_run(streamed, snapshot), texts=("Hello", "Bye"))
    assert done.replies[0].agent == "Streamed\n\nRefunded."
    (made,) = done.replies[0].tool_calls
    assert (made.arguments, made.result, made.status) == ({"amount": 42}, "no such order", "error")
    assert done.bodies[1]["messages"][:-1] == messages


REFUND_CALL = {"id": "c9", "type": "function", "function": {"name": "refund", "arguments": '{"amount": 42}'}}


@pytest.mark.parametrize("first", ["Hello", "You said: Hello"])
async def test_unsent_user_message_in_snapshot_does_not_hide_earlier_calls(first):
    """Such as what a tool returned, in the role of the user."""
    messages = [
        {"id": "u1", "role": "user", "content": first},
        {"id": "m1", "role": "assistant", "content": "One moment.", "toolCalls": [REFUND_CALL]},
        {"id": "o1", "role": "user", "content": "Observation: refunded"},
        {"id": "m2", "role": "assistant", "content": "All right."},
    ]
    done = await talk(ag_ui_run({"type": "MESSAGES_SNAPSHOT", "messages": messages}))
    assert (done.reply.agent, done.calls) == ("One moment.\n\nAll right.", [("refund", {"amount": 42}, None)])
    assert not done.reply.tool_calls_partial


async def test_client_tools_get_configured_results_or_are_errors():
    tool = {"name": "confirm", "description": "Asks the user.", "parameters": {"type": "object"}}
    asking = ag_ui_run(*ag_ui_call("confirm", {"order": "A-1"}))
    fields = {"tools": [tool], "toolResults": {"confirm": {"ok": True}}}
    done = await talk(asking, ag_ui_run(text="Refunded."), **fields)
    assert (done.calls, done.bodies[0]["tools"]) == ([("confirm", {"order": "A-1"}, {"ok": True})], [tool])
    result = done.bodies[1]["messages"][-1]
    assert (result["role"], result["toolCallId"], result["content"]) == ("tool", "call-1", '{"ok":true}')
    assert "called the tool 'confirm' and waits for its result" in await fails(asking, tools=[tool])
    assert "results of tools more than 10 times in a row" in await fails(asking, **fields)


async def test_interrupts_get_the_configured_answer_or_are_errors():
    interrupt = {"id": "i1", "reason": "tool_call", "message": "Refund 42?", "toolCallId": "call-1"}
    outcome = {"type": "interrupt", "interrupts": [interrupt]}
    asking = ag_ui_run(*ag_ui_call("refund", {"amount": 42}), outcome=outcome)
    done = await talk(asking, ag_ui_run(text="Refunded."), resume={"approved": True})
    answer = {"interruptId": "i1", "status": "resolved", "payload": {"approved": True}}
    assert (done.bodies[1]["resume"], done.calls) == ([answer], [("refund", {"amount": 42}, None)])
    message = await fails(asking)
    assert message.startswith("the agent waits for a decision (tool_call: Refund 42?); set the answer")


@pytest.mark.parametrize(("where", "key", "expected"), [
    ("state", "state", {"a": 1, "name": "Ida Berg", "orders": ["A-1"]}),
    ("forwardedProps", "forwardedProps", {"name": "Ida Berg", "orders": ["A-1"]}),
    ("none", "context", []),
])  # fmt: skip
async def test_user_info_is_sent_in_the_configured_place(where, key, expected):
    test = TEST.model_copy(update={"system_prompt": "Be brief."})
    done = await talk(ag_ui_run(text="Hi"), test=test, userInfo=where, state={"a": 1})
    assert done.bodies[0][key] == expected
    assert (done.bodies[0]["messages"][0]["role"], done.bodies[0]["state"]["a"]) == ("system", 1)


@each_row(("answer", "why"), [
    (sse({"type": "RUN_STARTED", "protocolVersion": "2.0"}, END), "speaks AG-UI 2.0; ci-evals reads 1.x"),
    (sse({"text": "Hi"}, END), 'event that AG-UI does not have: {"text": "Hi"} (is the base URL right?)'),
    (sse({"type": "RUN_STARTED"}, {"type": "TEXT_MESSAGE_CHUNK", "delta": "H"}), "before the answer was"),
    (sse({"type": "RUN_STARTED"}, 'data: {"type": "TEXT'), "in the middle of an event"),
    (sse("data: {]\n\n"), "sent an event that cannot be read (not JSON): {]"),
    (sse(": nothing\n\n"), "sent a stream without an event"),
    (ag_ui_run(), "the agent gave an empty reply"),
    (world.GARBAGE, "Wrong door"),
    (world.fault(404, "no such agent"), "answered with status 404 to POST /agui: no such agent"),
    (world.Fault(422, '[{"loc": ["runId"], "msg": "Field required"}]'), "runId: Field required"),
    ({"choices": []}, "ended its stream before the answer was complete"),
])  # fmt: skip
async def test_unusable_ag_ui_answer_is_an_error_with_the_reason(answer, why):
    assert why in await fails(answer)


async def test_unknown_events_are_skipped_and_unreadable_calls_leave_calls_incomplete():
    known = await talk(ag_ui_run({"type": "NEWS", "x": [1]}, {"type": "run_error"}, *LOOKUP, text="Hi"))
    assert (known.reply.agent, known.reply.tool_calls_partial) == ("Hi", False)
    assert (await talk(ag_ui_run({"type": "TOOL_CALL_NEWS"}, text="Hi"))).reply.tool_calls_partial
    nameless = {"id": "a", "role": "assistant", "toolCalls": [{}]}
    for event in (
        {"type": "TOOL_CALL_START", "toolCallId": "c"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "nobody", "delta": "{}"},
        {"type": "MESSAGES_SNAPSHOT", "messages": [nameless]},
    ):
        assert (await talk(ag_ui_run(event, text="Hi"))).reply.tool_calls_partial


@pytest.mark.parametrize(("events", "reason"), [
    (REFUND[:2], "they had not finished when the run ended"),
    (ag_ui_call("refund", '{"order": "A'), "they are not JSON; the answer may have been cut off in them"),
])  # fmt: skip
async def test_call_with_truncated_arguments_is_kept_without_arguments(events, reason):
    (call,) = (await talk(ag_ui_run(*events, text="Hi"))).reply.tool_calls
    assert (call.name, call.arguments, call.not_captured) == ("refund", None, reason)


@pytest.mark.parametrize(("delta", "reason"), [
    ([{"op": "add", "path": "/a/b", "value": 1}], "operation 0 (add '/a/b'): no such path"),
    ({"refunded": 1}, "the patch is not a list of operations"),
    ([{"op": "copy", "from": "", "path": f"/{n}"} for n in range(40)], "copies more than 100,000 values"),
])  # fmt: skip
async def test_inapplicable_state_patch_leaves_the_state_unknown_until_the_next_snapshot(delta, reason):
    broken = [SNAPSHOT, {"type": "STATE_DELTA", "delta": delta}, DELTA]
    done = await talk(ag_ui_run(*broken, text="Hi"))
    assert done.reply.agent == "Hi"
    assert (done.problem or "").startswith("a STATE_DELTA does not apply to the state: ")
    assert reason in (done.problem or "")
    assert (await talk(ag_ui_run(*broken, SNAPSHOT, DELTA, text="Hi"))).state["refunded"] == 42


async def test_state_patches_change_neither_test_nor_earlier_states():
    delta = [{"op": "add", "path": "/orders/-", "value": "A-2"}]
    done = await talk(ag_ui_run({"type": "STATE_DELTA", "delta": delta}, text="Hi"), userInfo="state")
    assert (done.state["orders"], TEST.user_info["orders"]) == (["A-1", "A-2"], ["A-1"])
    state = AgentState({})
    events = [Event({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": 1}]})]
    ag_ui_wire.read(events, [], state, Redactor())
    earlier = state.value
    events = [Event({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/a", "value": 2}]})]
    ag_ui_wire.read(events, [], state, Redactor())
    assert (earlier, state.value) == ({"a": 1}, {"a": 2})


async def test_deeply_nested_state_is_truncated():
    deeper = [{"op": "add", "path": "/a" * number, "value": {}} for number in range(1, 400)]
    done = await talk(ag_ui_run({"type": "STATE_DELTA", "delta": deeper}, text="Hi"))
    assert "cut off here: nested deeper" in json.dumps(done.state)


def test_read_ag_ui_events_are_not_modified():
    messages = [{"id": "m", "role": "assistant", "content": "Hi", "toolCalls": []}]
    listed = [
        {"type": "MESSAGES_SNAPSHOT", "messages": messages},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": " there"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "m"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": [1]}},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a/-", "value": 2}]},
    ]
    before = deepcopy(listed)
    run = ag_ui_wire.read([Event(event) for event in listed], [], AgentState({}), Redactor())
    assert (run.texts, listed) == (["Hi there"], before)


def test_ag_ui_events_are_read_in_linear_time():
    events = [{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "word " * 20}] * 9_000
    for number in range(2_000):
        events += ag_ui_call("lookup", {"n": number}, "ok", call_id=f"c{number}")
    with at_most(loops=900):
        run = ag_ui_wire.read([Event(event) for event in events], [], AgentState({}), Redactor())
    assert (len(run.texts[0]), len(run.calls or ())) == (900_000, 2_000)


_TYPES = re.findall(r'"([A-Z_]+)": self', Path(ag_ui_wire.__file__).read_text())


@settings(max_examples=examples(300))
@given(any_json(), any_json(), any_json())
def test_arbitrary_events_are_read_or_raise_agent_error(first, second, third):
    values = [first, second, third]
    keys = ("messageId", "toolCallId", "toolCallName", "delta", "content", "messages", "snapshot")
    keys += ("usage", "role")
    events = [
        Event({"type": kind, **{key: values[(i + j) % 3] for j, key in enumerate(keys)}})
        for i, kind in enumerate(_TYPES * 2)
    ]
    try:
        run = ag_ui_wire.read(events, [], AgentState(first), Redactor())
    except AgentError:
        return
    json.dumps([run.messages, run.texts])


APPLIES = {
    "A.1 add a member": ({"foo": "bar"}, [["add", "/baz", "qux"]], {"baz": "qux", "foo": "bar"}),
    "A.2 add an element": ({"foo": ["bar", "z"]}, [["add", "/foo/1", "qux"]], {"foo": ["bar", "qux", "z"]}),
    "A.3 remove a member": ({"baz": "qux", "foo": "bar"}, [["remove", "/baz"]], {"foo": "bar"}),
    "A.4 remove an element": ({"foo": ["bar", "qux"]}, [["remove", "/foo/1"]], {"foo": ["bar"]}),
    "A.5 replace": ({"baz": "qux"}, [["replace", "/baz", "boo"]], {"baz": "boo"}),
    "A.6 move a value": ({"f": {"a": 1}, "q": {}}, [["move", "/q/t", "/f/a"]], {"f": {}, "q": {"t": 1}}),
    "A.7 move an element": ({"foo": [1, 2, 3, 4]}, [["move", "/foo/3", "/foo/1"]], {"foo": [1, 3, 4, 2]}),
    "A.8 test": ({"baz": "qux", "foo": ["a", 2]}, [["test", "/foo/1", 2]], {"baz": "qux", "foo": ["a", 2]}),
    "A.10 add a nested member": ({"foo": 1}, [["add", "/child", {"a": {}}]], {"foo": 1, "child": {"a": {}}}),
    "A.11 unknown members": ({}, [["add", "/baz", "qux", {"xyz": 123}]], {"baz": "qux"}),
    "A.14 escapes": ({"/": 9, "~1": 10}, [["test", "/~01", 10], ["replace", "/~1", 8]], {"/": 8, "~1": 10}),
    "A.16 append": ({"foo": ["bar"]}, [["add", "/foo/-", ["abc"]]], {"foo": ["bar", ["abc"]]}),
    "the whole document": ("a text", [["replace", "", {"a": 1}], ["add", "/b", None]], {"a": 1, "b": None}),
    "a copy is its own": ({"a": [1]}, [["copy", "/c", "/a"], ["add", "/a/1", 2]], {"a": [1, 2], "c": [1]}),
    "a blank key": ({"": 1}, [["replace", "/", 2]], {"": 2}),
    "no operation": ([1], [], [1]),
}
FAILS = {
    "A.9 a test fails": ({"a": "b"}, [["test", "/a", "c"]], "operation 0 (test '/a'): the values differ"),
    "A.12 no such parent": ({"a": "b"}, [["add", "/b/c", "q"]], "operation 0 (add '/b/c'): no such path"),
    "A.15 a text is no number": ({"/": 9}, [["test", "/~1", "9"]], "(test '/~1'): the values differ"),
    "true is not 1": ({"a": [1]}, [["test", "/a", [True]]], "(test '/a'): the values differ"),
    "nothing to replace": ({}, [["add", "/b", 1], ["replace", "/c", 1]],
                           "operation 1 (replace '/c'): no such path"),
    "nothing to remove": ({"a": [1]}, [["remove", "/a/1"]], "(remove '/a/1'): no such path"),
    "no index": ({"a": [1]}, [["add", "/a/01", 1]], "(add '/a/01'): no such path"),
    "a negative index": ({"a": [1]}, [["replace", "/a/-1", 1]], "(replace '/a/-1'): no such path"),
    "below a text": ({"a": "b"}, [["add", "/a/0", 1]], "(add '/a/0'): no such path"),
    "into itself": ({"a": {}}, [["move", "/a/b", "/a"]],
                    "(move '/a' to '/a/b'): Cannot move values into their own children"),
    "nothing to copy": ({"a": [1]}, [["copy", "/b", "/a/-"]], "(copy '/a/-' to '/b'): "),
    "the whole document removed": ({"a": 1}, [["remove", ""]], "(remove ''): "),
    "a huge index": ({"a": [1]}, [["remove", "/a/" + "9" * 6000]], "…'): no such path"),
    "no pointer": ({}, [["add", "a", 1]], "(add 'a'): no such path"),
    "no operation of the standard": ({}, [["addap", "/a", 1]], "Unknown operation 'addap'"),
}  # fmt: skip


def patched(document, *patches):
    """The document after these patches."""
    patcher = Patcher(document)
    for patch in patches:
        patcher.apply(patch)
    return patcher.document


def operation(name, path, value=None, more=None):
    last = {"from": value} if name in ("move", "copy") else {"value": value}
    return {"op": name, "path": path, **({} if name == "remove" else last), **(more or {})}


@each_row(("document", "patch", "result"), APPLIES.values(), ids=APPLIES)
def test_patch_examples_of_rfc_6902_apply(document, patch, result):
    assert patched(document, [operation(*each) for each in patch]) == result


@each_row(("document", "patch", "message"), FAILS.values(), ids=FAILS)
def test_inapplicable_patch_is_refused_with_its_operation_and_reason(document, patch, message):
    with pytest.raises(PatchError, match=re.escape(message)):
        patched(document, [operation(*each) for each in patch])


@each_row("patch", [
    *(None, {"op": "add"}, [None], ["add"], [{}]),
    [{"op": [], "path": ""}],
    [{"op": "add", "path": "/a"}],
    [{"op": "copy", "path": "/a"}],
    [{"op": "copy", "path": "/a", "from": {}}],
    [{"op": "test", "path": 1}],
    [{"op": "append", "path": "/a", "value": "no operation of the standard"}],
])  # fmt: skip
def test_malformed_patches_are_refused(patch):
    with pytest.raises(PatchError):
        patched({}, patch)


def test_json_patch_that_copies_too_much_or_nests_too_deep_is_refused():
    # 40 operations would make 10^12 values; a copied text takes memory only when it is written.
    doubling = [operation("copy", f"/{number}", "") for number in range(40)]
    with at_most(loops=600), pytest.raises(PatchError, match=f"copies more than {MAX_COPIED:,} values"):
        patched({"a": 1}, *([one] for one in doubling))
    copies = [operation("copy", f"/b{number}", "/a") for number in range(1000)]
    with pytest.raises(PatchError, match="copies more than"):
        patched({"a": "x" * 1_000_000}, copies)
    assert len(patched({"a": "x" * 1_000}, copies)) == 1001
    nested = json.loads('{"a":' * 300 + "{}" + "}" * 300)
    deeper = [operation("add", "/a" * 301 * number, nested) for number in range(12)]
    with pytest.raises(PatchError, match=r"operation 12 \(copy .*\): the value is nested too deep"):
        patched(None, [*deeper, operation("copy", "/b", "")])


def test_error_of_a_json_patch_does_not_show_the_document():
    for failing in (operation("test", "/a", "y"), operation("add", "/b/c", 1), operation("remove", "/c")):
        with pytest.raises(PatchError) as caught:
            patched({"a": "private"}, [failing])
        assert "private" not in str(caught.value)
