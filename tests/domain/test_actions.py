"""What an agent did for a reply."""

import builders as build

from ci_evals.domain.actions import (
    AgentAction,
    LogicKind,
    actions_of,
    calls_of,
    is_traced,
    params_are_arguments,
    shown_actions,
    views_of,
    with_calls,
)
from ci_evals.domain.transcript import Integration, ToolCall

SILENT = dict.fromkeys(("workflows", "params", "rules", "integrations"))


def test_actions_are_grouped_by_kind_and_a_reply_without_any_kind_is_untraced():
    call = Integration(code="orders", status=503)
    named = {"params": {"a": 1}, "named_params": ("n",)}
    reply = build.turn(workflows=("B", "A"), rules=None, integrations=(call,), **named)
    workflow, parameter = LogicKind.WORKFLOW, LogicKind.PARAMETER
    assert actions_of(reply) == {
        workflow: (AgentAction(workflow, "B"), AgentAction(workflow, "A")),
        parameter: (AgentAction(parameter, "a", 1), AgentAction(parameter, "n", value_reported=False)),
        LogicKind.RULE: None,
        LogicKind.INTEGRATION: (AgentAction(LogicKind.INTEGRATION, "orders", 503, call=call),),
    }
    # A reply is traced if any kind is reported.
    traced = [build.turn(**SILENT | {"rules": ()}), build.turn(**SILENT, named_params=("n",))]
    assert [is_traced(one) for one in (build.turn(**SILENT), *traced)] == [False, True, True]


def test_integration_fails_by_error_or_status():
    calls = [Integration(code="a", status=400), Integration(code="b", error="broken")]
    calls += [Integration(code="c", status=399), Integration(code="d")]
    result = actions_of(build.turn(integrations=calls, workflows=("W",)))
    assert [action.failed for action in result[LogicKind.INTEGRATION]] == [True, True, False, False]
    assert not result[LogicKind.WORKFLOW][0].failed


def test_tool_calls_are_also_shown_as_workflows_and_parameters():
    calls = (ToolCall(name="a", arguments={"x": 1, "y": 2}), ToolCall(name="b", arguments={"x": 3}))
    views = views_of(calls)
    assert views == {"tool_calls": calls, "workflows": ("a", "b"), "params": {"x": 3, "y": 2}}
    assert params_are_arguments(build.turn(**views))
    assert not params_are_arguments(build.turn(**views | {"params": {"x": 1}}))
    assert views_of((*calls, ToolCall(name="c")))["params"] is None
    assert set(views_of(None).values()) == {None}
    assert views_of(()) == {"tool_calls": (), "workflows": (), "params": {}}
    assert actions_of(build.turn(**views))[LogicKind.WORKFLOW][1].value == {"x": 3}


def test_workflows_and_parameters_reported_beside_calls_are_kept():
    call = ToolCall(name="refund", arguments={"x": 1})
    reply = build.turn(**views_of((call,), ("REFUNDS",)))
    workflows = [(action.name, action.value) for action in shown_actions(reply)[LogicKind.WORKFLOW]]
    assert workflows == [("REFUNDS", None), ("refund", {"x": 1})]
    assert shown_actions(reply)[LogicKind.PARAMETER] is None
    own = build.turn(**views_of((call,), params={"plan": "Pro"}))
    assert [action.name for action in shown_actions(own)[LogicKind.PARAMETER]] == ["plan"]


def test_calls_are_derived_from_workflows_and_integrations():
    pay = Integration(code="pay", status=500)
    plain = build.turn(workflows=("W",), params={"x": 1}, integrations=(pay,))
    reply = with_calls(plain)
    calls = [(call.name, call.status.value) for call in reply.tool_calls]
    assert calls == [("W", "unknown"), ("pay", "error")]
    assert reply.tool_calls_derived
    assert actions_of(reply) == actions_of(plain)
    assert calls_of(reply) == calls_of(plain)
    assert not params_are_arguments(reply)
    partial = build.turn(integrations=None)
    assert with_calls(partial) == partial
    own = with_calls(build.turn(**SILENT, tool_calls=(ToolCall(name="a", arguments={"x": 1}),)))
    assert (own.workflows, own.params, own.tool_calls_derived) == (("a",), {"x": 1}, False)


def test_calls_are_complete_only_if_workflows_and_integrations_are_known():
    call = Integration(code="pay", status=500)
    calls = calls_of(build.turn(workflows=("W",), integrations=(call,)))
    seen = [(each.name, each.status.value, each.arguments) for each in calls.seen]
    assert seen == [("W", "unknown", None), ("pay", "error", None)]
    assert calls.complete
    assert not calls_of(build.turn(integrations=None)).complete
    assert not calls_of(build.turn(workflows=None)).complete
    assert calls_of(build.turn(workflows=None, integrations=None, tool_calls=())).complete


def test_integration_calls_have_own_arguments_or_are_replaced_by_calls_of_mcp_tools():
    used = ToolCall(name="find_order", arguments={"id": 7}, status="ok")
    calls = [Integration(code="pay", status=200, arguments={"amount": 42})]
    calls += [Integration(code="mcp", type="MCP", tools=(used,)), Integration(code="faq")]
    seen = calls_of(build.turn(workflows=(), integrations=calls)).seen
    assert [(call.name, call.arguments, call.status.value) for call in seen] == [
        ("pay", {"amount": 42}, "ok"),
        ("find_order", {"id": 7}, "ok"),
        ("faq", None, "unknown"),
    ]
    assert [call.not_captured is None for call in seen] == [True, True, False]
