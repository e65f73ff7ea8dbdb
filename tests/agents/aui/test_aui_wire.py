"""How replies and traces of the AUI API are read, in every form that servers send."""

import json
import re
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters import tool_calls
from ci_evals.agents.aui import wire as aui_wire
from ci_evals.agents.aui.options import AuiOptions
from ci_evals.domain.choices import AgentIdLocation
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.transcript import Integration, Reply
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

NOTHING = Redactor()
UNDERSTANDING = {"guardrails": {"passed": True}, "extracted_params": {}}


def read(body: Any, **options: Any) -> Reply:
    return aui_wire.read_reply(payload.parse(json.dumps(body).encode()), 0.5, NOTHING, **options)


def with_trace(**trace: Any) -> Reply:
    return read({"text": "Hi", "trace_info": trace})


@each_row(("base_url", "expected"), [
    ("https://api.aui.io/ia-controller", "https://api.aui.io/ia-controller/api/v1/external"),
    ("https://api.aui.io/ia-controller/", "https://api.aui.io/ia-controller/api/v1/external"),
    ("https://azure.aui.io/api/ia-controller", "https://azure.aui.io/api/ia-controller/api/v1/external"),
    ("https://x.com/ia-controller/api/v1/external", "https://x.com/ia-controller/api/v1/external"),
    ("https://x.example/api/v1/external/", "https://x.example/api/v1/external"),
    ("https://api.aui.io", "https://api.aui.io/ia-controller/api/v1/external"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080/api/v1/external"),
    (" http://[::1]:8080/ \n", "http://[::1]:8080/api/v1/external"),
])  # fmt: skip
def test_base_url_is_completed_to_api_root(base_url: str, expected: str) -> None:
    assert aui_wire.external_url(base_url) == expected


@each_row(
    "base_url",
    ["", "api.aui.io", "ftp://api.aui.io", "https://", "http://host:99999", "http://[::1", "http://a b/",
     "https://api.aui.io/?key=1", "file:///etc/passwd"],
)  # fmt: skip
def test_invalid_base_url_is_rejected(base_url: str) -> None:
    with pytest.raises(UsageError, match="`base_url=`"):
        aui_wire.external_url(base_url)
    with pytest.raises(UsageError, match="may not contain a user name or password") as caught:
        aui_wire.external_url("https://ida:s3cret@api.aui.io")
    assert "s3cret" not in str(caught.value)


@each_row(("location", "expected"), [
    (AgentIdLocation.TOP, {"agent_id": "a1"}),
    (AgentIdLocation.NESTED, {"agent": {"agent_id": "a1"}}),
    (AgentIdLocation.BOTH, {"agent_id": "a1", "agent": {"agent_id": "a1"}}),
    (AgentIdLocation.NONE, {}),
])  # fmt: skip
def test_agent_id_is_sent_where_configured(location: AgentIdLocation, expected: dict[str, Any]) -> None:
    body = aui_wire.task_body("u1", "a1", AuiOptions(agent_id_in=location))
    assert body == {"user_id": "u1", "task_origin_type": "web-widget", **expected}


@each_row(("body", "expected"), [
    ({"id": "66f0aa10"}, "66f0aa10"),
    ({"task_id": "t"}, "t"),
    ({"taskId": 17}, "17"),
    ({"data": {"id": "t"}}, "t"),
    ({"id": None, "task_id": "t"}, "t"),
])  # fmt: skip
def test_task_id_is_read_under_each_name(body: Any, expected: str) -> None:
    assert aui_wire.task_id_of(body, NOTHING) == expected


def test_task_and_message_ids_are_encoded_in_trace_path() -> None:
    assert aui_wire.trace_path("a/b?", "c d") == "/tasks/a%2Fb%3F/messages/c%20d/trace-info"


@each_row("body", [{}, {"id": ""}, {"id": True}, [], None, "t", {"detail": "no such agent"}])
def test_task_without_id_is_agent_error(body: Any) -> None:
    with pytest.raises(AgentError, match="without an id"):
        aui_wire.task_id_of(body, NOTHING)


@each_row(("body", "expected"), [
    ({"text": "Hello"}, "Hello"),
    ({"message": "Hello"}, "Hello"),
    ({"message": {"text": "Hello"}}, "Hello"),
    ({"response": "Hello"}, "Hello"),
    ({"content": "Hello"}, "Hello"),
    ({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}, "Hello"),
    ({"text": ""}, ""),
    ({"text": None, "trace_info": {"decisions": []}}, ""),
    ({"text": None, "executed_workflows": ["CONVERSATION_FORWARDING"]}, ""),
    ({"executed_workflows": ["CONVERSATION_FORWARDING"]}, ""),
    ({"text": None, "message": "Hello"}, "Hello"),
    ({"text": 42}, "42"),
    ({"data": {"text": "Hello"}}, "Hello"),
    ({"text": "Hello", "options": [], "created_at": "2025-10-09 12:26:07.576000"}, "Hello"),
    ({"text": "Hello", "welcomeMessage": None, "followupSuggestions": None, "cards": None}, "Hello"),
])  # fmt: skip
def test_reply_text_is_read_under_each_name(body: Any, expected: str) -> None:
    assert read(body).agent == expected


@each_row("body", [[], "Hello", 3, None, True, {}, {"text": None}, {"data": {"text": None}}])
def test_answer_without_text_or_evidence_is_agent_error(body: Any) -> None:
    with pytest.raises(AgentError, match="the agent's answer"):
        read(body)


@each_row(("body", "message"), [
    ({"status_code": 500, "description": "Server error", "message": "Oh."}, "Server error: Oh."),
    ({"status_code": "503", "message": "Try later"}, "Try later"),
    ({"error": "boom", "message": "x"}, "boom"),
    ({"errors": [{"msg": "x"}], "text": ""}, "x"),
    ({"detail": "quota"}, "quota"),
    ({"error": True, "text": "Hi"}, "an object with the keys"),
    ({"data": {"error": {"message": "down"}}}, "an object with the keys"),
    ({"error": "boom", "data": {"text": "Hi"}, "executed_workflows": []}, "boom"),
])  # fmt: skip
def test_error_body_with_status_200_is_agent_error_with_its_description(body: Any, message: str) -> None:
    with pytest.raises(AgentError, match=re.escape(f"the agent answered with an error: {message}")):
        read(body)


@pytest.mark.parametrize("body", [
    {"text": "Hi", "status_code": 200, "error": None, "errors": [], "detail": ""},
    {"text": "Hi", "error": "lookup failed", "trace_info": {"response": {"type": "answer"}}},
    {"text": "Hi", "error": "lookup failed", "executed_workflows": ["LOOKUP"]},
])  # fmt: skip
def test_reply_with_evidence_is_accepted_despite_its_error_field(body: Any) -> None:
    assert read(body).agent == "Hi"


@each_row("key", ["executed_workflows", "executedWorkflows"])
@each_row(("value", "expected"), [
    ([], ()),
    (["REFUND", "CONVERSATION_FORWARDING_VIP"], ("REFUND", "CONVERSATION_FORWARDING_VIP")),
    ([{"name": "A"}, {"code": "B"}, {"workflow": "C"}, None], ("A", "B", "C")),
    ("REFUND", ("REFUND",)),
    (None, None),
    (7, None),
    ([None, 3], None),
    (["REFUND", 3], None),
])  # fmt: skip
def test_workflows_are_read_in_every_shape_and_unknown_if_any_is_unreadable(
    key: str, value: Any, expected: tuple[str, ...] | None
) -> None:
    reply = read({"text": "Hi", key: value})
    assert (reply.workflows, reply.workflows_derived) == (expected, False)


def test_workflows_come_from_trace_and_unreadable_list_keeps_hand_over():
    decisions = [
        {"type": "activate_tool", "tool": "REFUND"},
        {"type": "params_check", "tool": "OTHER"},
        {"type": "activate_sub_tool", "tool": "LOOKUP", "parent_tool": "REFUND"},
    ]
    reply = with_trace(decisions=decisions)
    assert (reply.workflows, reply.workflows_derived) == (("REFUND", "LOOKUP"), True)
    named = read({"text": "Hi", "executed_workflows": ["X"], "trace_info": {"decisions": decisions}})
    assert (named.workflows, named.workflows_derived) == (("X",), False)
    reply = read({"text": "Hi", "executed_workflows": ["CONVERSATION_FORWARDING", 3]})
    assert (reply.workflows, reply.hand_over, reply.escalated) == (None, True, True)


@pytest.mark.parametrize(
    "trace", [{"response": {"type": "answer"}}, {"decisions": ["activate_tool REFUND"]}, {"decisions": {}}]
)
def test_trace_without_decisions_leaves_workflows_and_rules_unknown(trace: Any) -> None:
    """A check that none ran must not pass on it."""
    reply = read({"text": "Hi", "trace_info": trace})
    assert (reply.workflows, reply.rules, reply.integrations) == (None, None, None)
    assert (reply.hand_over, reply.workflows_derived) == (None, False)


def test_trace_is_read_under_each_name() -> None:
    trace = {"understanding": UNDERSTANDING, "response": {"type": "answer", "message": "Hi"}}
    for name in ("trace_info", "traceInfo", "trace"):
        assert read({"text": "Hi", name: trace}).trace == trace
    for key in ("extracted_params", "extractedParams", "parameters_extracted"):
        assert with_trace(**{key: {"plan": "Weekend"}}).params == {
            "plan": "Weekend"
        }  # at the root of the trace
    assert with_trace(decisions=[]).params is None
    assert with_trace(understanding={"guardrails": {"passed": True}}).params == {}


def test_missing_trace_leaves_evidence_unknown() -> None:
    for body in ({"text": "Hi"}, {"text": "Hi", "trace_info": None}, {"text": "Hi", "trace": {}}):
        reply = read(body)
        assert reply.params is reply.rules is reply.integrations is None
        assert reply.error_response is reply.trace is None


@each_row(
    ("extracted", "params", "named"),
    [
        ({"plan": "Weekend", "days": 0, "vip": False, "old": None, "l": [1]},
         {"plan": "Weekend", "days": 0, "vip": False, "old": None, "l": [1]}, ()),
        ({"plan": {"value": "W"}, "days": {"code": "days", "value": 2}}, {"plan": "W", "days": 2}, ()),
        ({"price": {"value": 5, "currency": "EUR"}}, {"price": {"value": 5, "currency": "EUR"}}, ()),
        ([{"code": "a", "value": 1}, {"param": "b", "value": "x"}, {"name": "c", "value": None},
          {"key": "d", "value": []}], {"a": 1, "b": "x", "c": None, "d": []}, ()),
        (["a", "b", "a"], {}, ("a", "b")),
        ([{"code": "a"}, {"name": "b", "value": 1}, None], {"b": 1}, ("a",)),
        ([{"code": "a"}, {"name": "b", "value": 1}, None, 3], None, ()),
        ({}, {}, ()),
        (None, {}, ()),
        ("nonsense", None, ()),
    ],
)  # fmt: skip
def test_parameters_are_read_in_every_shape(extracted: Any, params: Any, named: tuple[str, ...]) -> None:
    reply = with_trace(understanding={"extracted_params": extracted})
    assert (reply.params, reply.named_params) == (params, named)


@each_row(
    ("trace", "expected"),
    [
        ({"decisions": [{"type": "rule_triggered", "rule": {"code": "r1"}}]}, ("r1",)),
        ({"decisions": [{"rule": {"code": "r1"}}, None, {"type": "no_tool"}]}, ("r1",)),
        ({"decisions": [{"type": "new_kind", "rules": [{"code": "r1"}, "r2"]}]}, ("r1", "r2")),
        ({"decisions": [{"rules": [{"code": "r1", "triggered": False}]}]}, ()),
        ({"decisions": [{"rule": {"code": None}}, {"rule": None}, {"rule": {}}]}, ()),
        ({"decisions": []}, ()),
        ({"understanding": UNDERSTANDING}, ()),
        ({"understanding": UNDERSTANDING, "decisions": None}, ()),
        ({"understanding": UNDERSTANDING, "decisions": "?"}, None),
        ({"response": {"type": "answer"}}, None),
        ({"rules_evaluations": [{"code": "r1", "triggered": True}]}, None),
        ({"decisions": [], "rules_evaluations": [{"code": "r1", "triggered": True}]}, ()),
        ({"rules_evaluated": [{"rule_id": "r1", "result": True}, {"rule_id": "r2", "result": "triggered"},
                              {"rule_id": "r3", "result": False}, {"rule_id": "r4"}]}, ("r1", "r2")),
    ],
)  # fmt: skip
def test_only_triggered_rules_are_read(trace: Any, expected: tuple[str, ...] | None) -> None:
    """To be evaluated is not to fire, and a trace without decisions tells nothing of rules."""
    assert with_trace(**trace).rules == expected


@each_row(
    ("integration", "expected"),
    [
        ({"code": "a", "type": "REST", "status_code": 200}, Integration(code="a", type="REST", status=200)),
        ({"code": "crm", "status_code": "200"}, Integration(code="crm", status=200)),
        ({"code": "crm", "statusCode": 200.0}, Integration(code="crm", status=200)),
        ({"code": "crm", "status_code": 503, "error_message": "down"},
         Integration(code="crm", status=503, error="down")),
        ({"code": "kb", "type": "RAG", "request": {}}, Integration(code="kb", type="RAG")),
        ({"code": "crm", "status_code": True}, Integration(code="crm")),
        ({"code": "crm", "status_code": "OK"}, Integration(code="crm")),
        ({"code": "m", "tool_calls": [{"is_error": True}, {"tool_name": "b"}]}, Integration(code="m")),
        ({"code": "m", "tool_calls": [{"tool_name": "a", "is_error": True}]},
         Integration(code="m", error="every tool that it called answered with an error",
                     tools=[tool_calls.read_all([{"tool_name": "a", "is_error": True}])[0]])),
    ],
)  # fmt: skip
def test_integration_status_is_read_if_numeric(integration: Any, expected: Integration) -> None:
    decisions = [{"type": "call_integration", "tool": "T", "integration": integration}, {"integration": None}]
    assert with_trace(decisions=decisions).integrations == (expected,)


@each_row(("fields", "arguments"), [
    ({"requests": [{"name": "a", "params": {"order": 7}}, {"params": {"n": 42}}]}, {"order": 7, "n": 42}),
    ({"requests": [{"params": {"order": 7}}, {"name": "b"}]}, None),
    ({"requests": [{"params": [7]}]}, None),
    ({"requests": []}, None),
    ({"request": {"question": "How long?"}}, {"question": "How long?"}),
    ({"request": {"question": None}}, None),
    ({"requests": "x"}, None),
    ({}, None),
])  # fmt: skip
def test_integration_arguments_are_merged_from_requests_or_search_question(fields, arguments):
    decisions = [{"type": "call_integration", "tool": "T", "integration": {"code": "C", **fields}}]
    (call,) = with_trace(decisions=decisions).integrations or ()
    assert call.arguments == arguments


CONDITION = {"method": "param_value", "params": ["plan"], "operation": "eq", "value": "Weekend"}
RAG = {"code": "kb", "type": "RAG", "request": {"question": "How?"}}
PASSAGE = {"title": "Terms", "content": "…", "score": 0.9}


@each_row(("condition", "preview", "resource", "rule"), [
    ("plan is Weekend", "Sure?", {"title": "Terms"}, {"params_added": ["plan"]}),
    (CONDITION, [{"text": "Sure?"}], PASSAGE, {"status": "all_filled"}),
])  # fmt: skip
def test_details_of_rules_and_integrations_are_read_in_every_shape(condition, preview, resource, rule):
    """One row has the shapes of the client's types, the other those of older servers."""
    integration = {**RAG, "response": {"resources": [resource]}}
    reason = [{"condition": condition, "passed": False}]
    decisions = [
        {"type": "rule_triggered", "tool": "T", "rule": {"type": "required_param", "code": "r1", **rule}},
        {"type": "ask_confirmation", "tool": "T", "confirmation_preview": preview},
        {"type": "call_integration", "tool": "T", "integration": integration},
    ]
    rules = [{"code": "r2", "triggered": False, "reason": reason}]
    reply = with_trace(understanding=UNDERSTANDING, decisions=decisions, rules_evaluations=rules)
    assert reply.rules == ("r1",)
    assert reply.integrations == (Integration(code="kb", type="RAG", arguments={"question": "How?"}),)
    assert reply.params == {}


def test_mcp_tool_calls_are_read_with_arguments_results_and_status() -> None:
    tools = [
        {"tool_name": "find", "request_parameters": {"id": 7}, "response": "none", "is_error": True},
        {"tool_name": "book"},
    ]
    integration: Any = {"code": "C", "name": "N", "completion": "", "tool_calls": tools}
    decisions = [{"type": "call_integration", "tool": "T", "integration": integration}]
    (call,) = with_trace(decisions=decisions).integrations or ()
    texts = [(tool.name, tool.arguments, tool.result, tool.status.value) for tool in call.tools or ()]
    assert texts == [("find", {"id": 7}, "none", "error"), ("book", None, None, "unknown")]
    integration["tool_calls"] = [*tools, {}]
    (call,) = with_trace(decisions=decisions).integrations or ()
    assert call.tools is None


@each_row(("response", "expected", "detail"), [
    ({"type": "error", "error": "integration_failed"}, True, "integration_failed"),
    ({"type": "error", "error": {"message": "upstream"}}, True, "upstream"),
    ({"type": "answer", "error": None}, False, None),
    ({"type": "brand_new"}, False, None),
    ({"type": None}, None, None),
    (None, None, None),
])  # fmt: skip
def test_error_response_is_read_from_response_type(response: Any, expected: Any, detail: str | None) -> None:
    reply = with_trace(decisions=[], response=response)
    assert (reply.error_response, reply.error_detail) == (expected, detail)


@each_row("body", [
    {"understanding": {"intents": []}},
    {"trace_info": {"understanding": {"intents": []}}},
    {"data": {"understanding": {"intents": []}}},
    [{"understanding": {"intents": []}}],
    [{"id": "other", "x": 1}, {"message_id": "m1", "understanding": {"intents": []}}],
    {"items": [{"understanding": {"intents": []}}], "pages": 1},
])  # fmt: skip
def test_fetched_trace_is_read_from_every_response_shape(body: Any) -> None:
    trace = aui_wire.fetched_trace_of(body, "m1")
    assert trace is not None
    assert read({"text": "Hi"}, fetched_trace=trace).params == {}


def test_ambiguous_fetched_trace_is_not_used_and_raw_body_is_kept_on_request():
    for body in (None, [], {}, "x", [{"id": "a"}, {"id": "b"}], {"items": []}):
        assert not (aui_wire.fetched_trace_of(body, "m1") or {}).get("understanding")
    body = {"text": "Hi", "cards": []}
    assert (read(body).raw, read(body, keep_raw=True).raw) == (None, body)


def test_reply_with_nulls_and_older_names_is_read() -> None:
    """An example of the API's documents."""
    reply = read({
        "id": "m", "text": "Hello", "sender": {"email": None}, "options": [], "followup_suggestions": None,
        "executed_workflows": None,
        "trace_info": {
            "input": {"message": "Hi"}, "context": None,
            "understanding": {"guardrails": None, "extracted_params": [{"code": "plan", "value": "Weekend"}]},
            "decisions": [{"type": "no_tool"}, {"type": "rule_triggered", "rule": {"code": None}}, None],
            "response": {"type": "answer", "message": "Hello", "error": None},
        },
    })  # fmt: skip
    assert reply.params == {"plan": "Weekend"}
    assert (reply.workflows, reply.rules, reply.integrations) == ((), (), ())
    assert reply.error_response is False


KEYS = st.sampled_from([
    "text", "message", "data", "trace_info", "trace", "understanding", "extracted_params", "decisions",
    "rule", "rules", "code", "integration", "status_code", "response", "type", "error", "value",
    "executed_workflows", "rules_evaluated", "rule_id", "result", "id", "tool", "computed_parameters", "name",
]) | st.text(max_size=3)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["error", "activate_tool"])
    | st.text(st.characters(codec=None), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=40,
)  # fmt: skip


@given(JSON)
def test_any_json_is_read_as_reply_and_trace_or_agent_error(body: Any) -> None:
    """Each reply can be written as JSON and read again."""
    result = aui_wire.fetched_trace_of(payload.parse(json.dumps(body).encode()), "m")
    read({"text": "Hi"}, fetched_trace=result)
    try:
        reply = read(body)
        aui_wire.message_id_of(payload.parse(json.dumps(body).encode()))
    except AgentError:
        return
    assert Reply.model_validate_json(reply.model_dump_json()) == reply


@each_row(
    ("value", "kept"),
    [(12, 12), (0, 0), (None, None), ("12", None), (True, None), (-1, None), (1.5, None), (10**30, None)],
)
def test_token_counts_of_agent_are_kept_if_valid(value, kept):
    reply = read({"text": "Hi", "input_tokens": value, "output_tokens": 3})
    assert (reply.input_tokens, reply.output_tokens) == (kept, 3)
