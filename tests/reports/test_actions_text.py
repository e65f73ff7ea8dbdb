"""The words for what an agent did in a turn."""

import builders as build
import pytest

from ci_evals.domain.actions import LogicKind, actions_of, views_of
from ci_evals.domain.transcript import Integration, ToolCall
from ci_evals.reports.story import actions

SILENT = dict.fromkeys(("workflows", "params", "rules", "integrations"))


def test_each_action_is_named_with_its_value():
    """A call by its status, or by its type where it has none."""
    calls = (Integration(code="x", status=200), Integration(code="y", type="RAG"), Integration(code="z"))
    turn = build.turn(
        workflows=("A",), workflows_derived=True, params={"é": ["ü"]}, named_params=("n",), integrations=calls
    )
    shown = {found.label: [actions.text(one) for one in found.actions] for found in actions.lists(turn)}
    assert shown == {
        "workflows (from the trace)": ["A"],
        "parameters": ['é = ["ü"]', "n (value not reported)"],
        "integrations": ["x (200)", "y (RAG)", "z (no HTTP status)"],
    }


def test_a_trace_that_never_came_is_not_the_same_as_nothing_done():
    """A parameter without a value is a trace."""
    assert actions.nothing(build.turn(**SILENT)) == actions.NO_TRACE
    assert actions.nothing(build.turn(**SILENT | {"rules": ()})) == "nothing: no rule"
    assert [found.label for found in actions.lists(build.turn(**SILENT, named_params=("n",)))] == [
        "parameters"
    ]


@pytest.mark.parametrize(
    ("before", "now", "value"),
    [
        ({}, 5, "new"),
        ({"a": None}, 5, "new"),
        ({"a": 5.0}, 5, None),
        ({"a": "undefined"}, "", None),
        ({"a": "x"}, 5, 'was "x"'),
        (None, 5, None),
    ],
)
def test_a_parameter_that_changed_says_what_it_was(before, now, value):
    """Equal values are no change, and empty ones are equal."""
    (action,) = actions_of(build.turn(params={"a": now}))[LogicKind.PARAMETER]
    assert actions.change(action, build.turn(params=before)) == value
    assert actions.change(action, None) is None


def test_tool_calls_are_shown_with_their_arguments():
    """Once: not as parameters too."""
    calls = (ToolCall(name="refund", arguments={"amount": 42, "note": "é"}), ToolCall(name="close"))
    (one,) = actions.lists(build.turn(**views_of(calls[:1])))
    assert (one.label, *map(actions.text, one.actions)) == ("tool calls", 'refund(amount: 42, note: "é")')
    (both,) = actions.lists(build.turn(**views_of(calls)))
    assert list(map(actions.text, both.actions))[1] == "close"


def test_nothing_is_said_of_kinds_that_the_agent_does_not_report():
    reported = dict.fromkeys(SILENT, ()) | {"params": {}}
    assert actions.nothing(build.turn(**reported)) == ("nothing: no workflow, parameter, rule or integration")
    assert actions.nothing(build.turn(**SILENT | {"tool_calls": ()})) == "nothing: no tool call"
