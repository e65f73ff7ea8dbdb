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


def test_actions_stand_by_kind_in_the_order_of_the_reply():
    """A kind that the reply does not report is null, and not empty."""
    call = Integration(code="orders", status=503)
    reply = build.turn(
        workflows=("B", "A"), params={"a": 1}, named_params=("n",), rules=None, integrations=(call,)
    )
    assert actions_of(reply) == {
        LogicKind.WORKFLOW: (AgentAction(LogicKind.WORKFLOW, "B"), AgentAction(LogicKind.WORKFLOW, "A")),
        LogicKind.PARAMETER: (
            AgentAction(LogicKind.PARAMETER, "a", 1),
            AgentAction(LogicKind.PARAMETER, "n", value_reported=False),
        ),
        LogicKind.RULE: None,
        LogicKind.INTEGRATION: (AgentAction(LogicKind.INTEGRATION, "orders", 503, call=call),),
    }


def test_a_reply_is_traced_by_any_kind_that_it_reports():
    """Be it that nothing of the kind happened, or that a parameter has no value."""
    assert not is_traced(build.turn(**SILENT))
    assert is_traced(build.turn(**SILENT | {"rules": ()}))
    assert is_traced(build.turn(**SILENT, named_params=("n",)))


def test_a_call_fails_by_its_error_or_status():
    """Other actions never do."""
    calls = (
        Integration(code="a", status=400),
        Integration(code="b", error="broken"),
        Integration(code="c", status=399),
        Integration(code="d"),
    )
    found = actions_of(build.turn(integrations=calls, workflows=("W",)))
    assert [action.failed for action in found[LogicKind.INTEGRATION]] == [True, True, False, False]
    assert not found[LogicKind.WORKFLOW][0].failed


def test_tool_calls_have_views_for_older_checks():
    """Their names as workflows, their arguments as parameters, which are unknown if any call's are."""
    calls = (ToolCall(name="a", arguments={"x": 1, "y": 2}), ToolCall(name="b", arguments={"x": 3}))
    views = views_of(calls)
    assert views == {"tool_calls": calls, "workflows": ("a", "b"), "params": {"x": 3, "y": 2}}
    assert params_are_arguments(build.turn(**views))
    assert not params_are_arguments(build.turn(**views | {"params": {"x": 1}}))
    assert views_of((*calls, ToolCall(name="c")))["params"] is None
    assert set(views_of(None).values()) == {None}
    assert views_of(()) == {"tool_calls": (), "workflows": (), "params": {}}
    assert actions_of(build.turn(**views))[LogicKind.WORKFLOW][1].value == {"x": 3}


def test_what_is_reported_beside_calls_stays():
    """Workflows that are no tools are actions of their own; parameters that are but arguments are not."""
    call = ToolCall(name="refund", arguments={"x": 1})
    reply = build.turn(**views_of((call,), ("REFUNDS",)))
    assert [(action.name, action.value) for action in shown_actions(reply)[LogicKind.WORKFLOW]] == [
        ("REFUNDS", None),
        ("refund", {"x": 1}),
    ]
    assert shown_actions(reply)[LogicKind.PARAMETER] is None
    own = build.turn(**views_of((call,), params={"plan": "Pro"}))
    assert [action.name for action in shown_actions(own)[LogicKind.PARAMETER]] == ["plan"]


def test_results_have_calls_of_every_agent():
    """Of one that reports workflows and integrations these, and they are not taken for reported calls."""
    pay = Integration(code="pay", status=500)
    plain = build.turn(workflows=("W",), params={"x": 1}, integrations=(pay,))
    reply = with_calls(plain)
    assert [(call.name, call.status.value) for call in reply.tool_calls] == [
        ("W", "unknown"),
        ("pay", "error"),
    ]
    assert reply.tool_calls_derived
    assert actions_of(reply) == actions_of(plain)
    assert calls_of(reply) == calls_of(plain)
    assert not params_are_arguments(reply)
    partial = build.turn(integrations=None)
    assert with_calls(partial) == partial
    own = with_calls(build.turn(**SILENT, tool_calls=(ToolCall(name="a", arguments={"x": 1}),)))
    assert (own.workflows, own.params, own.tool_calls_derived) == (("a",), {"x": 1}, False)


def test_workflows_and_integrations_count_as_calls():
    """All are known only where both kinds are."""
    call = Integration(code="pay", status=500)
    calls = calls_of(build.turn(workflows=("W",), integrations=(call,)))
    assert [(each.name, each.status.value, each.arguments) for each in calls.seen] == [
        ("W", "unknown", None),
        ("pay", "error", None),
    ]
    assert calls.complete
    assert not calls_of(build.turn(integrations=None)).complete
    assert not calls_of(build.turn(workflows=None)).complete
    assert calls_of(build.turn(workflows=None, integrations=None, tool_calls=())).complete


def test_integrations_are_calls_with_what_they_were_called_with():
    """A call over MCP is those of the tools that it used."""
    used = ToolCall(name="find_order", arguments={"id": 7}, status="ok")
    calls = (
        Integration(code="pay", status=200, arguments={"amount": 42}),
        Integration(code="mcp", type="MCP", tools=(used,)),
        Integration(code="faq"),
    )
    seen = calls_of(build.turn(workflows=(), integrations=calls)).seen
    assert [(call.name, call.arguments, call.status.value) for call in seen] == [
        ("pay", {"amount": 42}, "ok"),
        ("find_order", {"id": 7}, "ok"),
        ("faq", None, "unknown"),
    ]
    assert [call.not_captured is None for call in seen] == [True, True, False]
