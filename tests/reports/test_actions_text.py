"""The words for what an agent did in a turn."""

import builders as build
import pytest

from ci_evals.domain.actions import LogicKind, actions_of, views_of
from ci_evals.domain.transcript import Integration, ToolCall
from ci_evals.reports.story import turns
from ci_evals.reports.story.turns import NO_TRACE

SILENT = dict.fromkeys(("workflows", "params", "rules", "integrations"))


def test_each_action_is_named_with_its_value():
    """A call by its status, or by its type where it has none."""
    calls = (Integration(code="x", status=200), Integration(code="y", type="RAG"), Integration(code="z"))
    turn = build.turn(
        workflows=("A",), workflows_derived=True, params={"é": ["ü"]}, named_params=("n",), integrations=calls
    )
    shown = {
        found.label: [turns.action_text(one) for one in found.actions] for found in turns.action_lists(turn)
    }
    assert shown == {
        "workflows (from the trace)": ["A"],
        "parameters": ['é = ["ü"]', "n (value not reported)"],
        "integrations": ["x (200)", "y (RAG)", "z (no HTTP status)"],
    }


def test_a_trace_that_never_came_is_not_the_same_as_nothing_done():
    """A parameter without a value is a trace."""
    assert turns.no_actions(build.turn(**SILENT)) == NO_TRACE
    assert turns.no_actions(build.turn(**SILENT | {"rules": ()})) == "nothing: no rule"
    assert [found.label for found in turns.action_lists(build.turn(**SILENT, named_params=("n",)))] == [
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
    assert turns.parameter_change(action, build.turn(params=before)) == value
    assert turns.parameter_change(action, None) is None


def test_tool_calls_are_shown_with_their_arguments():
    """Once: not as parameters too."""
    calls = (ToolCall(name="refund", arguments={"amount": 42, "note": "é"}), ToolCall(name="close"))
    (one,) = turns.action_lists(build.turn(**views_of(calls[:1])))
    assert (one.label, *map(turns.action_text, one.actions)) == (
        "tool calls",
        'refund(amount: 42, note: "é")',
    )
    (both,) = turns.action_lists(build.turn(**views_of(calls)))
    assert list(map(turns.action_text, both.actions))[1] == "close"


def test_unreported_kinds_are_not_mentioned():
    reported = dict.fromkeys(SILENT, ()) | {"params": {}}
    assert turns.no_actions(build.turn(**reported)) == (
        "nothing: no workflow, parameter, rule or integration"
    )
    assert turns.no_actions(build.turn(**SILENT | {"tool_calls": ()})) == "nothing: no tool call"
