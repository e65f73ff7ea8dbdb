"""What an agent did for a reply."""

import builders as build

from ci_evals.domain.actions import AgentAction, LogicKind, actions_of, is_traced
from ci_evals.domain.transcript import Integration

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
