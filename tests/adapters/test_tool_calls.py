"""Tool calls as agents and frameworks write them."""

import json

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters import tool_calls
from ci_evals.domain.transcript import ToolCall
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
    """How it ended, when, how long it took, and which sub-agent made it."""
    item = {
        "name": "refund",
        "arguments": {},
        "result": {"refund": "r-1"},
        "status": "ok",
        "startedAt": "2026-11-21T09:30:00.125Z",
        "durationMs": 12.5,
        "agent": "billing",
    }
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
    """Omitted or truncated values are unknown, with the reason."""
    (call,) = tool_calls.read_all([{"name": "f", "arguments": written}])
    assert call.arguments == arguments
    assert (call.not_captured is None) if reason is None else (reason in call.not_captured)


def test_calls_without_arguments_or_a_name_are_unknown():
    """As agents report that know no more."""
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
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS | st.text(), inner),
)


@pytest.mark.slow
@given(ANY_JSON)
def test_reading_arbitrary_json_as_tool_call_never_raises(value):
    tool_calls.read_all([payload.clean(value)])
