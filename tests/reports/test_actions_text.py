"""The words for what an agent did in a turn."""

import builders as build
from each_row import each_row

from ci_evals.domain.actions import LogicKind, actions_of, views_of
from ci_evals.domain.transcript import Integration, ToolCall
from ci_evals.reports.story import turns
from ci_evals.reports.story.turns import NO_TRACE

SILENT = dict.fromkeys(("workflows", "params", "rules", "integrations"))


def test_actions_are_named_with_their_values():
    calls = (Integration(code="x", status=200), Integration(code="y", type="RAG"), Integration(code="z"))
    actions = {"workflows": ("A",), "workflows_derived": True, "params": {"é": ["ü"]}, "named_params": ("n",)}
    lists = turns.action_lists(build.turn(integrations=calls, **actions))
    assert {one.label: [turns.action_text(action) for action in one.actions] for one in lists} == {
        "workflows (from the trace)": ["A"],
        "parameters": ['é = ["ü"]', "n (value not reported)"],
        "integrations": ["x (200)", "y (RAG)", "z (no HTTP status)"],
    }


def test_missing_trace_is_distinguished_from_an_empty_one():
    assert turns.no_actions(build.turn(**SILENT)) == NO_TRACE
    assert turns.no_actions(build.turn(**SILENT | {"rules": ()})) == "nothing: no rule"
    assert turns.no_actions(build.turn(**SILENT | {"tool_calls": ()})) == "nothing: no tool call"
    reported = dict.fromkeys(SILENT, ()) | {"params": {}}
    all_kinds = "nothing: no workflow, parameter, rule or integration"
    assert turns.no_actions(build.turn(**reported)) == all_kinds
    named = turns.action_lists(build.turn(**SILENT, named_params=("n",)))
    assert [one.label for one in named] == ["parameters"]


@each_row(("before", "now", "value"), [
    ({}, 5, "new"),
    ({"a": None}, 5, "new"),
    ({"a": 5.0}, 5, None),
    ({"a": "undefined"}, "", None),
    ({"a": "x"}, 5, 'was "x"'),
    (None, 5, None),
])  # fmt: skip
def test_changed_parameter_shows_its_previous_value(before, now, value):
    (action,) = actions_of(build.turn(params={"a": now}))[LogicKind.PARAMETER]
    assert turns.parameter_change(action, build.turn(params=before)) == value
    assert turns.parameter_change(action, None) is None


def test_tool_calls_are_shown_with_their_arguments():
    calls = (ToolCall(name="refund", arguments={"amount": 42, "note": "é"}), ToolCall(name="close"))
    (actions,) = turns.action_lists(build.turn(**views_of(calls)))
    assert actions.label == "tool calls"
    assert list(map(turns.action_text, actions.actions)) == ['refund(amount: 42, note: "é")', "close"]
