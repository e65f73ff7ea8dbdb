"""What an agent that does nothing would score is known before anybody is asked."""

import pytest
from plans import planned

from ci_evals import load_suite, run_suite
from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.null_agents import CLAIM, REFUSAL
from ci_evals.scoring.null_score import NullScores, null_score

SILENT = {"criterion": "no hand-over", "strict": "not_escalated"}
CALLS = {"criterion": "refunds", "strict": "tool_called", "toolName": "refund"}
SAYS_DONE = {"criterion": "says so", "strict": "contains", "text": "done"}
JUDGED = {"criterion": "friendly"}
STATE = {"criterion": "paid", "strict": "state", "probe": "agent_state", "equals": 1}


def those_with(*evaluations):
    (suite,) = planned(*({"name": f"t{n}", "evaluations": own} for n, own in enumerate(evaluations))).suites
    return suite.tests


@pytest.mark.parametrize(
    ("evaluations", "score"),
    [
        ([SILENT, CALLS], 50),
        ([SILENT, CALLS | {"weight": 3}], 25),
        ([CALLS, JUDGED, STATE], 0),
        ([JUDGED], None),
    ],
)
def test_strict_criteria_alone_count(evaluations, score):
    """Criteria that need a judge or a probe are left out."""
    assert null_score(those_with(evaluations)) == score


def test_words_count_too():
    tests = those_with([SAYS_DONE], [SILENT])
    assert (null_score(tests, REFUSAL), null_score(tests, CLAIM)) == (50, 100)


def test_a_floor_that_it_reaches_is_warned_of():
    plan = planned({"name": "t", "evaluations": [SILENT, CALLS]}, minScore=40)
    scores = NullScores.of(plan)
    assert (scores.run, scores.suites) == (50, (50,))
    run, suite = scores.reached_floors(plan, 50)
    assert run.startswith("a minimum score of 50 guards nothing: an agent that refuses")
    assert suite.startswith("minScore 40 of 'S' guards nothing")
    assert len(list(scores.reached_floors(plan, 51))) == 1


async def test_a_run_knows_it():
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "x"}], "evaluations": [SILENT, SAYS_DONE]}
    suite = load_suite({"name": "s", "tests": [test], "maxTurns": 1})
    results = await run_suite(lambda _: "done", suite)
    assert results.run.null_score == 50


def test_validate_prints_it(capsys):
    invoke(["validate", "demo:hr"], RunContext({}))
    assert "an agent that refuses everything would score" in capsys.readouterr().out
