"""Tool calls that are streamed in pieces: each call is whole, or the calls are unknown."""

import json
from typing import Any

import endpoints
import pytest
import world
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters import call_pieces, tool_calls
from ci_evals.agents import chat_messages
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.code import plain_reply
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.suite import Test
from ci_evals.extensions.http.agent import HttpAgent

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


REFUND, LOOK_UP = ("refund", {"amount": 42}), ("look_up", {"order": "HL-1"})
AMOUNT, ORDER = '{"amount": 42}', '{"order": "HL-1"}'
BOTH = [REFUND, LOOK_UP]


WHOLE = {
    "one after the other": (
        [first(0, "refund"), more(0, '{"amo'), more(0, 'unt": 42}'), first(1, "look_up"), more(1, ORDER)],
        BOTH,
    ),
    "interleaved": (
        [
            *[first(0, "refund"), first(1, "look_up"), more(1, '{"order"'), more(0, '{"amount"')],
            *[more(1, ': "HL-1"}'), more(0, ": 42}")],
        ],
        BOTH,
    ),
    "the second one first": (
        [first(1, "look_up"), first(0, "refund"), more(0, AMOUNT), more(1, ORDER)],
        BOTH[::-1],
    ),
    "without an index": ([first(None, "refund"), more(None, '{"amount"'), more(None, ": 42}")], [REFUND]),
    "two without an index": (
        [first(None, "refund"), more(None, AMOUNT), first(None, "look_up"), more(None, ORDER)],
        BOTH,
    ),
    "an index of the first pieces alone": (
        [first(0, "refund"), more(None, AMOUNT), first(1, "look_up"), more(None, ORDER)],
        BOTH,
    ),
    "the id in each piece, and no index": (
        [
            *[first(None, "refund", id="a"), first(None, "look_up", id="b")],
            *[more(None, ORDER, id="b"), more(None, AMOUNT, id="a")],
        ],
        BOTH,
    ),
    "id and name in each piece": (
        [first(0, "refund"), first(0, "refund", '{"amount"'), first(0, "refund", ": 42}")],
        [REFUND],
    ),
    "empty names and ids": (
        [first(0, "refund"), {"index": 0, "id": "", "function": {"name": "", "arguments": AMOUNT}}],
        [REFUND],
    ),
    "a new request of the agent's begins at 0 again": (
        [first(0, "refund"), more(0, AMOUNT), first(0, "look_up", id="d"), more(0, ORDER)],
        BOTH,
    ),
    "one index for all, whole calls": (
        [first(0, "refund", AMOUNT, id="a"), first(0, "look_up", ORDER, id="b")],
        BOTH,
    ),
    "the same without ids": (
        [first(0, "refund", AMOUNT, id=None), first(0, "look_up", ORDER, id=None)],
        BOTH,
    ),
    "a call without arguments": ([first(0, "refund"), more(0, "")], [("refund", {})]),
    "an empty piece at the end": ([first(0, "refund", AMOUNT), {"index": 0, "function": {}}], [REFUND]),
    "the older form": (
        [{"function_call": {"name": "refund", "arguments": ""}}, {"function_call": {"arguments": AMOUNT}}],
        [REFUND],
    ),
    "of LangChain": (
        [
            *[chunk(0, "refund", "", "c1"), chunk(0, None, '{"amount"', None), chunk(1, "look_up", "", "c2")],
            *[chunk(0, None, ": 42}", None), chunk(1, None, ORDER, None)],
        ],
        BOTH,
    ),
    "a custom tool": (
        [
            *[{"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "print("}}],
            *[{"index": 0, "custom": {"input": "1)"}}],
        ],
        [("run", {"input": "print(1)"})],
    ),
    "whole calls in no pieces": (
        [{"name": "refund", "arguments": {"amount": 42}}, "look_up"],
        [REFUND, ("look_up", None)],
    ),
}


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
        {"index": 0, "function": {"name": "refund", "arguments": {"amount": 1}}},
        more(0, '{"amount": 42}'),
    ],
    "no call at all": [{"index": 0}],
}


@pytest.mark.parametrize("pieces", UNKNOWN.values(), ids=UNKNOWN)
def test_incomplete_call_pieces_leave_all_calls_unknown(pieces):
    """It may be the one that matters. Code that returns it is told."""
    assert tool_calls.read_all(pieces) is None
    with pytest.raises(ValueError, match=r"toolCalls.*(has no name|cannot be put together)"):
        plain_reply.read({"text": "Done.", "toolCalls": pieces}, 0.1)


def test_truncated_arguments_are_unknown_but_the_call_is_known():
    (call,) = tool_calls.read_all([first(0, "refund"), more(0, '{"amount": 4')]) or ()
    assert (call.name, call.arguments) == ("refund", None)
    assert "cut off" in (call.not_captured or "")


@each_row("reply", [
    {"text": "$[*].choices[0].delta.content", "toolCalls": "$[*].choices[0].delta.tool_calls"},
    {"text": "$[*].choices[0].delta.content", "toolCalls": "$[*].choices[0].delta.tool_calls[*]"},
    {"text": "$[*].choices[*].delta.content", "toolCalls": "$[*].choices[*].delta.tool_calls[*]"},
    {"messages": "$[*].choices[0].delta"},
])  # fmt: skip
@each_row(("pieces", "calls"), [WHOLE["interleaved"], WHOLE["without an index"]])
async def test_calls_of_a_streamed_completion_are_joined(reply, pieces, calls):
    """As OpenAI's servers send it."""
    deltas: list[Any] = [
        {"role": "assistant", "content": None},
        *({"tool_calls": [piece]} for piece in pieces),
        {"content": "All "},
        {"content": "right."},
        {},
    ]
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
    begun = {
        "tool_calls": [{"name": "refund", "args": {}}],
        "tool_call_chunks": [chunk(0, "refund", "", "c1")],
    }
    chunks = [
        base | {"content": "All ", "tool_call_chunks": []},
        base | {"content": "right."} | begun,
        base | {"content": "", "tool_call_chunks": [chunk(0, None, '{"amount": 42}', None)]},
    ]
    text, calls, *_ = chat_messages.read(chunks, Thread())
    assert text == "All right."
    assert [(call.id, call.name, call.arguments) for call in calls or ()] == [("c1", *REFUND)]


_KEYS = st.sampled_from(["index", "id", "type", "function", "name", "arguments", "args", "custom", "x"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=5))
def test_joining_arbitrary_items_loses_no_call_name_and_adds_no_item(items):
    """Each is a call, a part of one before it, or makes all unknown; arguments are what was written."""
    joined = call_pieces.join(items)
    assert len(joined) <= len(items)
    names = [tool_calls.name_of(item) for item in items]
    if tool_calls.read_all(items) is not None:
        assert {name for name in names if name} <= {tool_calls.name_of(call) for call in joined}
        json.dumps(joined)


TEST = Test(
    name="Refund",
    guidelines="You want a refund.",
    turns=({"user": "Hi"},),
    evaluations=({"criterion": "Helpful"},),
)
