import builders as build
import pytest
from each_row import each_row
from plans import TEST_A, TEST_B, gate_decision, make_plan, scorecard, trial


def test_trial_score_is_the_passed_share_of_decided_weight():
    """Nothing decided, no score."""
    for outcomes, points in (
        *[(["passed", "failed"], 50), (["passed*3", "failed"], 75)],
        *[(["passed*0.1", "passed*0.2", "failed*0.7"], 30), (["passed", "no_evidence"], 100)],
        *[(["failed", "judge_error"], 0), (["no_evidence", "judge_error"], None)],
        *[(["passed*0", "failed*0", "no_evidence"], None), ([], None)],
    ):
        assert trial(*outcomes).score == points


def test_scores_are_means_of_tests_and_decided_share_is_of_their_weight():
    """A test with more trials does not weigh more; neither does a suite with more tests than its tests."""
    passed = [trial("passed", index=index) for index in (1, 2, 3)]
    result = scorecard(make_plan(TEST_A | {"loops": 3}, TEST_B), *passed, trial("failed"))
    assert (result.score, result.suites[0].score) == (50, 50)
    assert [test.score for test in result.suites[0].tests] == [100, 0]
    # Trials that broke off decide nothing, and those left out do not count.
    half = scorecard(make_plan(TEST_A), trial("passed*3", "judge_error*3"))
    assert (half.score, half.decided_share) == (100, 0.5)
    broken = scorecard(make_plan(TEST_A, TEST_B), trial("passed"), trial("passed", status="failed"))
    assert (broken.score, broken.decided_share) == (100, 0.5)
    left_out = scorecard(make_plan(TEST_A, TEST_B), trial("passed"), trial("passed", status="invalid_user"))
    assert left_out.decided_share == 1
    assert (
        scorecard(make_plan(TEST_A), trial("no_judge", "passed"), offline=True).suites[0].decided_share == 0.5
    )


def test_errored_trials_are_counted_and_not_scored():
    for status in ("agent_error", "failed", "interrupted"):
        result = scorecard(make_plan(TEST_A, TEST_B), trial("passed", status=status), trial("passed"))
        (first, _) = result.suites[0].tests
        assert (result.counts.errors, result.counts.scored_trials, first.score) == (1, 1, None), status
        assert (result.score, first.outcome) == (100, "error")


def test_agent_errors_unjudged_criteria_and_unrun_trials_are_counted_separately():
    broken_off = trial("failed", "passed", status="failed")
    result = scorecard(make_plan(TEST_A, TEST_B), trial("failed", status="agent_error"), broken_off)
    assert [test.outcome for test in result.suites[0].tests] == ["failed", "error"]
    assert (result.counts.failed, result.counts.errors) == (1, 2)
    # If the test has an `escalated_due_to_error` evaluation.
    result = scorecard(
        make_plan(TEST_A), trial("passed", status="agent_error", strict="escalated_due_to_error")
    )
    (test,) = result.suites[0].tests
    assert (result.counts.errors, test.passed, test.outcome, test.score) == (0, True, "passed", 100)
    assert (result.counts.scored_trials, test.pass_rate, test.statistics.mean) == (1, 1, 100)
    offline = scorecard(make_plan(TEST_A), trial("passed", "no_judge"), offline=True)
    online = scorecard(make_plan(TEST_A), trial("passed", "no_judge"))
    for counts, expected in ((offline.counts, (1, 0, 0)), (online.counts, (0, 1, 1))):
        assert (counts.passed, counts.errors, counts.undecided) == expected
    result = scorecard(make_plan(TEST_A, TEST_B, loops=2), trial("passed"), None, None, None)
    assert [(t.outcome, t.not_run) for t in result.suites[0].tests] == [("error", 1), ("not_run", 2)]
    assert (result.counts.not_run, result.counts.trials) == (3, 1)


WANTS_ERROR = {"strict": "escalated_due_to_error"}
RIGHT = trial("passed", "passed", "passed", status="agent_error", **WANTS_ERROR)
WRONG = trial("failed", "failed", "passed", **WANTS_ERROR)


@each_row("wrong", range(6))
def test_test_that_expects_an_error_is_scored_by_all_its_trials(wrong):
    """A worse run has a lower score, and passes no floor that a better one misses."""
    trials, plan = [*[WRONG] * wrong, *[RIGHT] * (5 - wrong)], make_plan(TEST_A, loops=5)
    result = scorecard(plan, *trials)
    assert result.score == pytest.approx(100 - wrong * 200 / 3 / 5)
    assert result.suites[0].tests[0].pass_rate == (5 - wrong) / 5
    assert gate_decision(plan, *trials, min_score=80).exit_code == (0 if result.score >= 80 else 1)


def test_test_outcome_and_flakiness_follow_from_its_trials():
    """It passes if all trials pass everything; it is flaky if one passes and another fails."""
    for trials, rate, passed, outcome, flaky in (
        ([["passed"], ["passed"]], 1, True, "passed", False),
        ([["passed"], ["failed"]], 0.5, False, "failed", True),
        ([["failed"], ["failed"]], 0, False, "failed", False),
        ([["passed"], ["passed", "judge_error"]], 0.5, False, "undecided", False),
        ([["no_evidence"], ["no_evidence"]], None, False, "undecided", False),
    ):
        plan = make_plan(TEST_A, loops=2)
        (test,) = scorecard(plan, *(trial(*t, index=i) for i, t in enumerate(trials, 1))).suites[0].tests
        assert (test.pass_rate, test.passed, test.outcome, test.flaky) == (rate, passed, outcome, flaky)


def test_group_score_is_mean_score_of_its_tests():
    """Categories and logic select findings, tags and difficulties tests."""
    plan = make_plan(TEST_A | {"tags": ["x", "y"], "difficulty": "easy"}, TEST_B | {"tags": ["y"]})
    first = build.trial_result(
        findings=(
            build.finding(category="tone", aui_logic=("R1", "R2")),
            build.finding("failed", category="tone", weight=3, aui_logic=("R1",)),
            build.finding(category="safety"),
        )
    )
    (suite,) = scorecard(plan, first, trial("failed", category="safety")).suites
    shown = {
        kind: [(g.name, g.score, g.tests, g.passed, g.failed) for g in getattr(suite, kind)]
        for kind in ("categories", "aui_logic", "tags", "difficulties")
    }
    assert shown == {
        "categories": [("tone", 25, 1, 1, 1), ("safety", 50, 2, 1, 1)],
        "aui_logic": [("R1", 25, 1, 1, 1), ("R2", 100, 1, 1, 0)],
        "tags": [("x", 40, 1, 2, 1), ("y", 20, 2, 2, 2)],
        "difficulties": [("easy", 40, 1, 2, 1)],
    }
