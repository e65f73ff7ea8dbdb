"""Tests in quarantine are played and reported, and decide nothing."""

import builders as build
from plans import gate_decision, make_plan, scorecard, trial

from ci_evals.domain.choices import Regression
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.suite import Quarantine
from ci_evals.gate.odds import evaluated_checks, odds_of
from ci_evals.gate.selectors import read_thresholds
from ci_evals.scoring.comparison.compare import RunComparer

WHY = {"reason": "The sandbox drops orders.", "until": "2026-12-31"}
GOOD = {"name": "good"}
SICK = {"name": "sick", "quarantine": WHY}


def results(plan, *trials):
    return build.results_of_scorecard(scorecard(plan, *trials))


def test_quarantined_test_changes_no_score_or_error_and_fails_no_gate_check():
    """Neither as a critical test, nor by its floor, nor by a threshold of its name or tag."""
    good = trial("passed*85", "failed*15")
    alone = gate_decision(make_plan(GOOD), good)
    for played in (trial("failed"), trial("judge_error"), trial(status="failed"), trial("passed")):
        decision = gate_decision(make_plan(GOOD, SICK), good, played)
        assert (decision.exit_code, decision.checks) == (0, alone.checks)
    sick = SICK | {"critical": True, "minScore": 100, "tags": ["slow"]}
    floors = read_thresholds("test:sick=100\ntag:slow=100\nsuite:S=100")
    decision = gate_decision(make_plan(GOOD, sick), trial("passed"), trial("failed"), thresholds=floors)
    assert decision.exit_code == 0
    seen = {check.name: (check.passed, check.note) for check in decision.checks}
    nothing = (None, "all of its tests are in quarantine")
    assert (seen["test:sick"], seen["tag:slow"], seen["suite:S"]) == (nothing, nothing, (True, None))
    assert "critical:sick" not in seen


def test_quarantined_test_changes_no_verdict_score_or_odds():
    """The tests that passed are of those that decide; no group of tests has its verdicts."""
    result = results(make_plan(GOOD, SICK | {"tags": ["slow"]}), trial("passed"), trial("failed"))
    counts = result.counts
    assert (counts.tests, counts.quarantined, counts.deciding) == (2, 1, 1)
    assert (counts.passed, counts.failed, counts.errors, counts.trials) == (1, 0, 0, 2)
    assert (result.score, result.suites[0].score, result.suites[0].tags) == (100, 100, ())
    assert result.suites[0].tests[1].quarantine == Quarantine(reason=WHY["reason"], until="2026-12-31")
    # At its end it would have decided nothing. Without a start the run was not whole.
    plan, ending = make_plan(GOOD, SICK), RunEnding()
    decision = gate_decision(plan, trial("passed"), trial(status="interrupted"), ending=ending)
    assert (decision.exit_code, decision.reasons) == (0, ())
    assert gate_decision(plan, trial("passed"), None).exit_code == 3
    decision = gate_decision(make_plan(SICK), trial("passed"), min_score=0)
    assert (decision.exit_code, decision.passed) == (3, False)
    assert decision.reasons == ("nothing could be scored: all tests are in quarantine",)
    with_sick = results(make_plan(GOOD, SICK), trial("passed"), trial("failed"))
    without = results(make_plan(GOOD), trial("passed"))
    checks = evaluated_checks(gate_decision(make_plan(GOOD), trial("passed")).checks)
    assert odds_of(with_sick, checks) == odds_of(without, checks)


def test_quarantined_test_is_left_out_of_baseline_comparison():
    """It broke, and neither drop nor regression sees that; once it decides again it is compared."""
    well = {"name": "sick"}
    base = results(make_plan(GOOD, well), trial("passed"), trial("passed"))
    plan, played = make_plan(GOOD, SICK), (trial("passed"), trial("failed"))
    comparer = RunComparer(results(plan, *played), base)
    kept = gate_decision(plan, *played, comparer=comparer, max_drop=0, regression=Regression.ANY)
    assert (kept.exit_code, comparer.comparison().tests) == (0, 1)
    was_sick = results(plan, trial("passed"), trial("passed"))
    comparison = RunComparer(results(make_plan(GOOD, well), *played), was_sick).comparison()
    assert [test.name for test in comparison.regressed] == ["sick"]
