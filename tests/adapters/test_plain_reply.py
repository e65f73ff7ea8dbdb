"""What agents that are code may answer, in our own words."""

from contextlib import suppress

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from ci_evals.agents.code import plain_reply
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Integration, Reply
from ci_evals.support.redaction import Redactor

TEST = Test(name="t", guidelines="g", turns=({"user": "Hi"},), evaluations=({"criterion": "c"},))


def test_plain_text_reply_and_reply_with_all_fields_are_read():
    reply = plain_reply.read("Hello", 0.5)
    assert (reply.agent, reply.latency_seconds, reply.handed_over) == ("Hello", 0.5, None)
    unknown = (reply.workflows, reply.params, reply.rules, reply.integrations, reply.error_response)
    assert unknown == (None,) * 5
    # A bare name is an integration without a status.
    value = {
        "text": "Done.", "workflows": ["REFUND"], "params": {"reason": "too_expensive"},
        "rules": ["window-30"], "escalated": False, "error": None, "inputTokens": 12, "outputTokens": 3,
        "integrations": [{"code": "orders", "status": 200, "type": "REST"}, "search"],
        "trace": {"steps": [1]},
    }  # fmt: skip
    reply = plain_reply.read(value, 0.1, keep_raw=True)
    assert (reply.workflows, reply.params) == (("REFUND",), {"reason": "too_expensive"})
    orders, search = reply.integrations
    assert (reply.rules, search) == (("window-30",), Integration(code="search"))
    assert orders == Integration(code="orders", status=200, type="REST")
    assert (reply.handed_over, reply.error_response, reply.escalated) == (False, False, False)
    assert (reply.input_tokens, reply.output_tokens, reply.trace) == (12, 3, {"steps": [1]})
    assert reply.raw["text"] == "Done."
    for error, expected in [("no stock", (True, "no stock")), (True, (True, None)), (False, (False, None))]:
        reply = plain_reply.read({"text": "x", "error": error}, 0)
        assert (reply.error_response, reply.error_detail) == expected
    assert plain_reply.read({"text": "x", "error": ""}, 0).error_response is False


@each_row(("key", "call"), [
    ("toolCalls", {"name": "refund", "arguments": {"amount": 42}}),
    ("tool_calls", {"function": {"name": "refund", "arguments": '{"amount": 42}'}}),
    ("tool_calls", {"name": "refund", "args": {"amount": 42}}),
])  # fmt: skip
def test_tool_calls_count_as_workflows_and_parameters(key, call):
    """Older checks see their names and arguments; what is reported beside them stays."""
    value = {"text": "x", key: [call]}
    reply = plain_reply.read(value, 0)
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("refund", {"amount": 42})]
    assert (reply.workflows, reply.params) == (("refund",), {"amount": 42})
    beside = plain_reply.read(value | {"workflows": ["REFUNDS"], "params": {"plan": "Pro"}}, 0)
    assert (beside.workflows, beside.params) == (("REFUNDS", "refund"), {"plan": "Pro"})
    for unknown in (plain_reply.read({"text": "x", key: None}, 0), plain_reply.read({"text": "x"}, 0)):
        assert (unknown.tool_calls, unknown.workflows) == (None, None)
    assert plain_reply.read({"text": "x", key: []}, 0).workflows == ()


@each_row(("value", "message"), [
    (None, "is neither a string nor an object: null"),
    ([1, 2], r"is neither a string nor an object: \[1, 2\]"),
    ({}, "has no 'text'"),
    ({"text": None}, "has a 'text' that cannot be read: it must be a text"),
    ({"text": "x", "workflow": ["A"]},
     "has a key 'workflow', which is none of text, messages, toolCalls, workflows"),
    ({"text": "x", "toolCalls": {}}, "has a 'toolCalls' that cannot be read: it must be a list"),
    ({"text": "x", "tool_calls": ["a", {}]}, "has a 'tool_calls' that cannot be read: call 2 has no name"),
    ({"text": "x", "toolCalls": [], "tool_calls": []}, "has a key 'tool_calls'"),
    ({"text": "x", "integrations": [{"status": 200}]}, r"has no 'integrations\.0\.code'"),
    ({"text": "x", "rules": "one"}, "has a 'rules' that cannot be read: it must be a list"),
    ({"text": "x", "params": []}, "has a 'params' that cannot be read: it must be an object"),
    ({"text": "x", "escalated": "later"}, "has a 'escalated' that cannot be read: it must be true or"),
    ("x" * 16_000_001, "is longer than 16 MB"),
])  # fmt: skip
def test_malformed_reply_raises_value_error_with_reason(value, message):
    """A misspelt key is told: passed over in silence it would leave checks undecided for ever."""
    with pytest.raises(ValueError, match=message):
        plain_reply.read(value, 0)


async def test_secret_at_truncation_point_of_reply_error_is_fully_masked():
    long, redactor = "x" * 290 + "s3cret-value-1234", Redactor({"s3cret-value-1234"})
    for answer in ({"text": "x", long: 1}, {"text": "x", "integrations": [{"code": "a", long: 1}]}):
        agent = agent_of(lambda _, answer=answer: answer, "mine", AgentSettings(), redactor)
        with pytest.raises(AgentError, match="xx") as caught:
            await agent.send_message(await agent.open_session(TEST), "Hi", timeout=5)
        assert "s3c" not in str(caught.value)
        assert len(str(caught.value)) < 400


@given(json_values(keys=st.sampled_from(plain_reply.KEYS) | st.text()))
def test_arbitrary_json_is_read_as_reply_or_raises_value_error(value):
    with suppress(ValueError):
        assert isinstance(plain_reply.read(value, 0), Reply)


_CALL = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
_MESSAGES = [{"role": "assistant", "content": "Done.", "tool_calls": [_CALL]}]


@each_row(("listed", "partial"), [
    ([], True),
    ([{"name": "lookup"}], True),
    ([{"name": "refund"}], False),
    ([{"name": "lookup"}, {"name": "refund"}], False),
])  # fmt: skip
@each_row("key", ["toolCalls", "tool_calls"])
def test_call_list_missing_a_call_of_messages_is_marked_partial(key, listed, partial):
    """The agent contradicts itself, so nothing passes for want of a call."""
    reply = plain_reply.read({"messages": _MESSAGES, key: listed}, 0.1)
    assert reply.tool_calls_partial is partial
    assert ("toolCalls" in reply.not_found) is partial
    assert not partial or "show a call of refund" in reply.not_found["toolCalls"]
