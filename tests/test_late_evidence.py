"""Results of a trial whose evidence turned out to be incomplete after it was graded."""

from dataclasses import replace

import builders as build
import pytest
from each_row import each_row

from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, ToolCall, Transcript, Turns
from ci_evals.domain.verdict import Finding, Outcome, Verdict
from ci_evals.job.late_evidence import with_gaps

GAP = "a span came late"
STRICT = {
    "a tool that was not used": ({"strict": "tool_not_used", "toolName": "refund"}, "undecided"),
    "a tool that was used": ({"strict": "tool_used", "toolName": "lookup"}, "passed"),
    "at most so many calls": ({"strict": "max_tool_calls", "calls": 1}, "undecided"),
    "more calls than allowed": ({"strict": "max_tool_calls", "calls": 0}, "failed"),
    "a call": ({"strict": "tool_called", "toolName": "lookup"}, "passed"),
    "a missing call": ({"strict": "tool_called", "toolName": "refund"}, "undecided"),
    "no call": ({"strict": "tool_called", "toolName": "refund", "times": 0}, "undecided"),
    "a parameter that is missing": ({"strict": "param_not_exists", "paramName": "amount"}, "undecided"),
    "no hand-over": ({"strict": "not_escalated"}, "undecided"),
    "a text": ({"strict": "not_contains", "text": "refund"}, "passed"),
    "the number of turns": ({"strict": "max_agent_turns", "turns": 3}, "passed"),
}


def graded(evaluation: dict, **verdict):
    """A trial of a test with one evaluation, with the finding on whole evidence."""
    test = Test.model_validate(
        {
            "name": "t",
            "guidelines": "x",
            "turns": [{"user": "Hi"}],
            "evaluations": [{"criterion": "c"} | evaluation],
        }
    )
    turn = build.turn(
        1,
        agent="Hello",
        tool_calls=(ToolCall(name="lookup", arguments={}),),
        workflows=("lookup",),
        params={},
    )
    result = build.trial_result(1, turns=(turn,))
    if verdict:
        outcome = Verdict(outcome=Outcome.PASSED, reason="", **verdict)
    else:
        transcript = Transcript(turns=(turn,), status=EndState.COMPLETED)
        outcome = test.evaluations[0].decide(transcript)
    finding = Finding.of(test.evaluations[0], outcome)
    return test, replace(result, turns=Turns((turn,)), findings=(finding,))


@each_row("check", STRICT)
def test_late_span_makes_checks_undecided_that_it_could_change(check):
    evaluation, expected = STRICT[check]
    test, result = graded(evaluation)
    corrected = with_gaps(test, result, {1: GAP})
    (finding,) = corrected.findings
    assert str(finding.outcome) == expected
    if expected == "undecided":
        assert (str(finding.cause), finding.evidence) == ("no_trace", (1,))
        assert GAP in finding.reason
    else:
        assert finding == result.findings[0]
    assert corrected.turns[0].tool_calls_partial
    assert corrected.turns[0].trace_missing == GAP


@pytest.mark.parametrize(
    ("evaluation", "verdict", "expected"),
    [
        ({}, {"rests_on": "absence"}, "undecided"),
        ({}, {"rests_on": "quotes"}, "passed"),
        ({"strict": "python", "function": "mine:check"}, {"evidence": ()}, "undecided"),
    ],
    ids=["absence", "quotes", "python"],
)
def test_late_span_leaves_verdict_on_absence_and_python_check_undecided(evaluation, verdict, expected):
    test, result = graded(evaluation, **verdict)
    (finding,) = with_gaps(test, result, {1: GAP}).findings
    assert str(finding.outcome) == expected
