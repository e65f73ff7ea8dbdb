"""Tool calls as agents and frameworks write them, or stream them in pieces: each is whole, or unknown."""

import json
from typing import Any

import endpoints
import pytest
import world
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from ci_evals.adapters import call_pieces, tool_calls
from ci_evals.agents import chat_messages
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.code import plain_reply
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import ToolCall
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.support import payload

REFUND = ToolCall(id="c1", name="refund", arguments={"amount": 42})


ARGUMENTS, TEXT = {"amount": 42}, '{"amount": 42}'


@each_row("item", [
    {"id": "c1", "name": "refund", "arguments": ARGUMENTS},
    {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": TEXT}},
    {"name": "refund", "args": ARGUMENTS, "id": "c1", "type": "tool_call"},
    {"type": "tool_use", "id": "c1", "name": "refund", "input": ARGUMENTS},
    {"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": ARGUMENTS},
    {"tool_name": "refund", "args": TEXT, "tool_call_id": "c1"},
    {"functionCall": {"id": "c1", "name": "refund", "args": ARGUMENTS}},
    {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "refund", "arguments": TEXT},
    {"id": "c1", "name": "refund", "inputParameters": ARGUMENTS, "type": "FUNCTION"},
    {"id": "c1", "name": "refund", "parameters": ARGUMENTS},
    {"id": "c1", "function": "refund", "arguments": ARGUMENTS},
])  # fmt: skip
def test_tool_call_is_read_in_the_spellings_of_frameworks(item):
    """Ours, OpenAI's old and new, LangChain's, Anthropic's, AI SDK's, pydantic-ai's, Google's, DeepEval's."""
    assert tool_calls.read_all([item]) == (REFUND,)


def test_all_fields_of_a_tool_call_are_kept():
    item = {
        "name": "refund", "arguments": {}, "result": {"refund": "r-1"}, "status": "ok",
        "startedAt": "2026-11-21T09:30:00.125Z", "durationMs": 12.5, "agent": "billing",
    }  # fmt: skip
    (call,) = tool_calls.read_all([item])
    assert json.loads(call.model_dump_json(by_alias=True, exclude_none=True)) == item


@each_row(("fields", "status"), [
    ({}, "unknown"),
    ({"status": "completed"}, "unknown"),
    ({"status": "Success"}, "ok"),
    ({"status": 200}, "ok"),
    ({"status": 503}, "error"),
    ({"status": True}, "unknown"),
    ({"isError": False}, "ok"),
    ({"is_error": True, "status": "ok"}, "error"),
    ({"error": "no such order"}, "error"),
    ({"error": None, "status": "failed"}, "error"),
    ({"isError": "true"}, "error"),
    ({"status": "ok", "success": False}, "error"),
    ({"isError": False, "status": "canceled"}, "unknown"),
])  # fmt: skip
def test_status_of_a_call_is_read_from_status_or_error_fields(fields, status):
    """Words that may only mean that the model has finished writing the call say nothing."""
    (call,) = tool_calls.read_all([{"name": "refund", "args": {}, **fields}])
    assert call.status.value == status


@each_row(("written", "arguments", "reason"), [
    ("", {}, None),
    ("null", {}, None),
    ("last week", {"input": "last week"}, None),
    (["a"], {"input": ["a"]}, None),
    (None, None, "the agent reports none under arguments, args, input"),
    ('{"amount": 4', None, "not JSON; the answer may have been cut off"),
    ('{"a": [' + "1," * 110_000 + "1]}", None, "JSON of more than 100,000 values"),
])  # fmt: skip
def test_non_object_arguments_become_input_or_unknown(written, arguments, reason):
    (call,) = tool_calls.read_all([{"name": "f", "arguments": written}])
    assert call.arguments == arguments
    assert (call.not_captured is None) if reason is None else (reason in call.not_captured)


def test_arguments_are_unknown_if_missing_and_all_calls_if_one_has_no_name():
    (call,) = tool_calls.read_all(["refund"])
    assert (call.name, call.arguments) == ("refund", None)
    assert "name without arguments" in call.not_captured
    # It may be the one that matters.
    for item in (None, 7, "", {}, {"name": " "}, {"function": {}}, {"name": ["refund"]}, []):
        assert tool_calls.read_all([{"name": "refund"}, item]) is None, item


def test_arguments_of_all_calls_share_one_size_limit():
    """Texts of JSON in an answer must not become more values than the answer itself may hold."""
    text = json.dumps({"items": [1] * 40_000})
    calls = tool_calls.read_all([{"name": "f", "arguments": text}] * 4)
    assert [call.arguments is None for call in calls] == [False, False, True, True]


KEYS = st.sampled_from(["name", "function", "arguments", "input", "id", "status", "startedAt", "durationMs"])


@pytest.mark.slow
@given(json_values(keys=KEYS | st.text()))
def test_reading_arbitrary_json_as_tool_call_never_raises(value):
    tool_calls.read_all([payload.clean(value)])


Piece = dict[str, Any]


def first(index: int | None, name: str, arguments: str = "", **more: Any) -> Piece:
    """Return the first piece of a call as OpenAI has it, with the id of the call's index."""
    return {
        **({} if index is None else {"index": index, "id": f"c{index}"}),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


def more(index: int | None, arguments: str, **others: Any) -> Piece:
    """Return a later piece."""
    return {**({} if index is None else {"index": index}), "function": {"arguments": arguments}, **others}


def chunk(index: int | None, name: str | None, args: str, call_id: str | None) -> Piece:
    """Return a piece as LangChain has it."""
    return {"name": name, "args": args, "id": call_id, "index": index, "type": "tool_call_chunk"}


REFUNDED, LOOK_UP = ("refund", {"amount": 42}), ("look_up", {"order": "HL-1"})
AMOUNT, ORDER = '{"amount": 42}', '{"order": "HL-1"}'
BOTH = [REFUNDED, LOOK_UP]


WHOLE = {
    "one after the other": (
        [first(0, "refund"), more(0, '{"amo'), more(0, 'unt": 42}'), first(1, "look_up"), more(1, ORDER)],
        BOTH),
    "interleaved": (
        [first(0, "refund"), first(1, "look_up"), more(1, '{"order"'), more(0, '{"amount"'),
         more(1, ': "HL-1"}'), more(0, ": 42}")], BOTH),
    "the second one first": (
        [first(1, "look_up"), first(0, "refund"), more(0, AMOUNT), more(1, ORDER)], BOTH[::-1]),
    "without an index": ([first(None, "refund"), more(None, '{"amount"'), more(None, ": 42}")], [REFUNDED]),
    "two without an index": (
        [first(None, "refund"), more(None, AMOUNT), first(None, "look_up"), more(None, ORDER)], BOTH),
    "an index of the first pieces alone": (
        [first(0, "refund"), more(None, AMOUNT), first(1, "look_up"), more(None, ORDER)], BOTH),
    "the id in each piece, and no index": (
        [first(None, "refund", id="a"), first(None, "look_up", id="b"),
         more(None, ORDER, id="b"), more(None, AMOUNT, id="a")], BOTH),
    "id and name in each piece": (
        [first(0, "refund"), first(0, "refund", '{"amount"'), first(0, "refund", ": 42}")], [REFUNDED]),
    "empty names and ids": (
        [first(0, "refund"), {"index": 0, "id": "", "function": {"name": "", "arguments": AMOUNT}}],
        [REFUNDED]),
    "a new request of the agent's begins at 0 again": (
        [first(0, "refund"), more(0, AMOUNT), first(0, "look_up", id="d"), more(0, ORDER)], BOTH),
    "one index for all, whole calls": (
        [first(0, "refund", AMOUNT, id="a"), first(0, "look_up", ORDER, id="b")], BOTH),
    "the same without ids": (
        [first(0, "refund", AMOUNT, id=None), first(0, "look_up", ORDER, id=None)], BOTH),
    "a call without arguments": ([first(0, "refund"), more(0, "")], [("refund", {})]),
    "an empty piece at the end": ([first(0, "refund", AMOUNT), {"index": 0, "function": {}}], [REFUNDED]),
    "the older form": (
        [{"function_call": {"name": "refund", "arguments": ""}}, {"function_call": {"arguments": AMOUNT}}],
        [REFUNDED]),
    "of LangChain": (
        [chunk(0, "refund", "", "c1"), chunk(0, None, '{"amount"', None), chunk(1, "look_up", "", "c2"),
         chunk(0, None, ": 42}", None), chunk(1, None, ORDER, None)], BOTH),
    "a custom tool": (
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "print("}},
         {"index": 0, "custom": {"input": "1)"}}], [("run", {"input": "print(1)"})]),
    "whole calls in no pieces": (
        [{"name": "refund", "arguments": {"amount": 42}}, "look_up"], [REFUNDED, ("look_up", None)]),
}  # fmt: skip


@each_row(("pieces", "calls"), WHOLE.values(), ids=WHOLE)
def test_pieces_of_a_call_are_joined_by_index_id_or_order(pieces, calls):
    read = tool_calls.read_all(pieces)
    assert [(call.name, call.arguments) for call in read or ()] == calls


UNKNOWN = {
    "a piece that begins in the middle": [more(0, '{"amount": 42}')],
    "one of a call that never began": [first(0, "refund", "{}"), more(1, '{"amount": 42}')],
    "a name in pieces": [first(0, "ref"), {"index": 0, "function": {"name": "und", "arguments": "{}"}}],
    "something else with an index": [first(0, "look_up"), {"index": 0, "toolTitle": "refund"}],
    "arguments that are whole already": [
        {"index": 0, "function": {"name": "refund", "arguments": {"amount": 1}}}, more(0, '{"amount": 42}')],
    "no call at all": [{"index": 0}],
}  # fmt: skip


@each_row("pieces", UNKNOWN.values(), ids=UNKNOWN)
def test_incomplete_call_pieces_leave_all_calls_unknown_and_fail_a_plain_reply(pieces):
    """It may be the one that matters. Code that returns it is told."""
    assert tool_calls.read_all(pieces) is None
    with pytest.raises(ValueError, match=r"toolCalls.*(has no name|cannot be put together)"):
        plain_reply.read({"text": "Done.", "toolCalls": pieces}, 0.1)


def test_truncated_arguments_are_unknown_but_the_call_is_known():
    (call,) = tool_calls.read_all([first(0, "refund"), more(0, '{"amount": 4')]) or ()
    assert (call.name, call.arguments, "cut off" in (call.not_captured or "")) == ("refund", None, True)


@each_row("reply", [
    {"text": "$[*].choices[0].delta.content", "toolCalls": "$[*].choices[0].delta.tool_calls"},
    {"text": "$[*].choices[0].delta.content", "toolCalls": "$[*].choices[0].delta.tool_calls[*]"},
    {"text": "$[*].choices[*].delta.content", "toolCalls": "$[*].choices[*].delta.tool_calls[*]"},
    {"messages": "$[*].choices[0].delta"},
])  # fmt: skip
@each_row(("pieces", "calls"), [WHOLE["interleaved"], WHOLE["without an index"]])
async def test_calls_of_a_streamed_completion_are_joined(reply, pieces, calls):
    deltas: list[Any] = [{"role": "assistant", "content": None}, *({"tool_calls": [one]} for one in pieces)]
    deltas += [{"content": "All "}, {"content": "right."}, {}]
    events = endpoints.sse(*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas))
    with endpoints.serving(lambda _: events) as stub:
        options = {"stream": "sse", "send": {"body": {"text": "{{message}}"}}, "reply": reply}
        agent = HttpAgent(AgentSettings(None, stub.key, stub.url, None, options), limiter=world.limiter())
        session = await agent.open_session(TEST)
        answer = await agent.send_message(session, "Hi", timeout=30)
        await agent.close(session)
    assert answer.agent == "All right."
    assert [(call.name, call.arguments) for call in answer.tool_calls or ()] == calls


def test_streamed_message_chunks_are_joined_into_one_message():
    """LangChain's have a type each; others only the first."""
    base = {"type": "AIMessageChunk", "id": "m1", "tool_calls": []}
    begun = {"name": "refund", "args": {}}
    chunks = [
        base | {"content": "All ", "tool_call_chunks": []},
        base
        | {"content": "right.", "tool_calls": [begun], "tool_call_chunks": [chunk(0, "refund", "", "c1")]},
        base | {"content": "", "tool_call_chunks": [chunk(0, None, '{"amount": 42}', None)]},
    ]
    text, calls, *_ = chat_messages.read(chunks, Thread())
    assert text == "All right."
    assert [(call.id, call.name, call.arguments) for call in calls or ()] == [("c1", *REFUNDED)]


PART_KEYS = st.sampled_from(["index", "id", "type", "function", "name", "arguments", "args", "custom", "x"])
PARTS = st.none() | st.booleans() | st.integers(0, 2) | st.text(max_size=3)


@given(st.lists(json_values(PARTS, PART_KEYS, most=12), max_size=5))
def test_joining_arbitrary_items_loses_no_call_name_and_adds_no_item(items):
    """Each is a call, a part of one before it, or makes all unknown; arguments are what was written."""
    joined = call_pieces.join(items)
    assert len(joined) <= len(items)
    names = [tool_calls.name_of(item) for item in items]
    if tool_calls.read_all(items) is not None:
        assert {name for name in names if name} <= {tool_calls.name_of(call) for call in joined}
        json.dumps(joined)


TEST = Test(name="t", guidelines="Be brief.", turns=({"user": "Hi"},), evaluations=({"criterion": "c"},))
