"""Trials left out for their simulated user, and tests in quarantine: reported, and never what decides."""

from dataclasses import replace
from random import Random

import builders as build
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import TEST_A, TEST_B, gate_decision, make_plan, scorecard, trial
from property_examples import examples

from ci_evals.domain.choices import Regression
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import NO_PRICES
from ci_evals.domain.progress import TrialFinished
from ci_evals.domain.results.simulated_user import UserAudit, UserChecks, Violation
from ci_evals.domain.results.trial import Attempt
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.suite import Quarantine
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.merge.merge import merge
from ci_evals.extensions.merge.shards import ShardRun
from ci_evals.gate.odds import evaluated_checks, odds_of
from ci_evals.gate.selectors import read_thresholds
from ci_evals.job.limits import Budget, Limits, LimitsWatcher
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.simulated_users import user_checks
from ci_evals.stop import Stop

KEPT = UserAudit()


def audit(*rules: str, by_model: bool | None = None) -> UserAudit:
    broken = tuple(Violation(rule=rule, turn=1, text="x", reason="r") for rule in rules)
    return UserAudit(violations=broken, by_model=by_model)


def excluded_trial(index: int = 1, rule: str = "meta"):
    """A trial whose user broke character twice."""
    status, error = EndState.INVALID_USER, "the simulated user broke its role"
    first, second = (Attempt(status=status, error="e", user_audit=a) for a in (audit("repeats"), None))
    fields = {"status": status, "error": error, "attempts": (first, second), "user_audit": audit(rule)}
    return build.trial_result(index, findings=(), **fields)


def valid_trial(*outcomes: str, index: int = 1):
    return replace(trial(*outcomes, index=index), user_audit=KEPT)


def test_excluded_trials_are_counted_separately_and_do_not_stop_run():
    counted = scorecard(make_plan(TEST_A, loops=2), valid_trial("passed"), excluded_trial(2))
    assert (counted.counts.invalid_users, counted.counts.errors) == (1, 0)
    assert (counted.counts.trials, counted.counts.scored_trials, counted.score) == (2, 1, 100)
    assert counted.counts.by_status[EndState.INVALID_USER] == 1
    # What the agent did for such a user is in no rate.
    assert (counted.process.completion_rate, counted.process.success_rate) == (1, 1)
    assert scorecard(make_plan(TEST_A), excluded_trial()).process.completion_rate is None
    # They are no failure of the agent's, and no outage.
    stop = Stop()
    limits, budget = Limits(failures_in_row=1, fail_fast=True), Budget(None, lambda: NO_PRICES)
    watch = LimitsWatcher(limits, budget, stop, ScoreRule(offline=False), parallel=1)
    for index in range(1, 4):
        watch(TrialFinished(Trial(0, 0, index), excluded_trial(index)))
    assert not stop.requested


@each_row(("trials", "outcome"), [
    ([valid_trial("passed"), excluded_trial(2)], "passed"),
    ([excluded_trial(), valid_trial("failed", index=2)], "failed"),
    ([valid_trial("judge_error"), excluded_trial(2)], "undecided"),
    ([excluded_trial(), trial(status="failed", index=2)], "error"),
    ([excluded_trial(), excluded_trial(2)], "error"),
    ([valid_trial("passed"), None], "error"),
    *[([excluded_trial(), None], "error"), ([None, None], "not_run")],
])  # fmt: skip
def test_excluded_trial_changes_the_outcome_only_if_no_other_trial_has_one(trials, outcome):
    """One that was never begun is still missed."""
    (test,) = scorecard(make_plan(TEST_A, loops=2), *trials).suites[0].tests
    assert (test.outcome, test.passed) == (outcome, outcome == "passed")


def check_named(decision, name):
    return next(one for one in decision.checks if one.name == name)


def test_excluded_trials_above_their_limit_or_that_would_decide_leave_no_verdict():
    decision = gate_decision(make_plan(TEST_A, loops=2), valid_trial("passed"), excluded_trial(2))
    assert (decision.exit_code, decision.passed) == (3, False)
    check = check_named(decision, "max-invalid-users")
    assert (check.required, check.seen, check.passed) == (0, 1, False)
    (reason,) = decision.reasons
    assert reason == "the simulated user broke character twice in a row in 1 of 2 trials"
    three = make_plan(TEST_A, loops=3)
    allowed = {"max_invalid_users": 1, "min_score": 60}
    assert gate_decision(three, *[valid_trial("passed")] * 2, excluded_trial(3), **allowed).passed
    two = gate_decision(three, valid_trial("passed"), excluded_trial(2), excluded_trial(3))
    assert "in 2 of 3 trials" in two.reasons[0]
    scripted = gate_decision(make_plan(TEST_A), trial("passed"))
    assert "max-invalid-users" not in {check.name for check in scripted.checks}
    # A critical check counts only valid trials: if the excluded ones would decide, there is no verdict.
    critical = make_plan(TEST_A | {"critical": True}, loops=2)
    one = {"max_invalid_users": 1, "min_score": 0}
    decision = gate_decision(critical, valid_trial("passed"), excluded_trial(2), **one)
    check = check_named(decision, "critical:a")
    assert (check.seen, check.passed, check.note, decision.exit_code) == (100, True, "1 of 1 passed", 3)
    assert "1 trial without a result would decide the verdict" in decision.reasons[0]
    failed = gate_decision(critical, valid_trial("failed"), excluded_trial(2), **one)
    assert (failed.exit_code, failed.reasons) == (1, ())
    none = gate_decision(critical, excluded_trial(), excluded_trial(2), max_invalid_users=2, min_score=0)
    assert (check_named(none, "critical:a").passed, none.exit_code) == (False, 3)
    many = one | {"max_invalid_users": 99}
    nothing = gate_decision(make_plan(TEST_A, TEST_B), excluded_trial(), excluded_trial(), **many)
    assert (nothing.exit_code, nothing.reasons) == (3, ("nothing could be scored",))


outcomes = st.sampled_from(["passed", "failed", "lost"])
runs = st.lists(st.lists(outcomes, min_size=2, max_size=2), min_size=1, max_size=4)


@given(runs, st.sampled_from([0, 50, 75, 100]), st.booleans())
@settings(max_examples=examples(40))
def test_gate_decision_holds_whatever_excluded_trials_would_have_given(run, floor, critical):
    """A gate that holds would hold had all of them failed; one that fails would fail had all passed."""
    tests = [{"name": str(i), "critical": critical and not i} for i in range(len(run))]
    plan = make_plan(*tests, loops=2)

    def decided(instead: str | None):
        trials = [
            excluded_trial()
            if outcome == "lost" and not instead
            else valid_trial(outcome.replace("lost", instead or ""))
            for test in run
            for outcome in test
        ]
        return gate_decision(plan, *trials, min_score=floor, max_invalid_users=99)

    decision, worst, best = decided(None), decided("failed"), decided("passed")
    if decision.exit_code == 0:
        assert worst.exit_code == 0
    if decision.exit_code == 1:
        assert best.exit_code == 1
    if worst.passed != best.passed:
        assert decision.exit_code == 3


def test_user_checks_count_each_rule_once_per_conversation_of_all_shards():
    """Those of retried attempts included."""
    retried = audit("meta", "meta", "length")
    first = Attempt(status=EndState.INVALID_USER, error="e", user_audit=retried)
    attempts = (first, Attempt(status=EndState.FAILED, error="e"), Attempt(status=EndState.COMPLETED))
    again = replace(valid_trial("passed"), attempts=attempts, user_audit=audit(by_model=True))
    deaf = replace(valid_trial("passed"), user_audit=audit(by_model=False))
    scripted = trial("passed")
    checks = scorecard(make_plan(TEST_A, loops=4), again, excluded_trial(2), deaf, scripted).user_checks
    rate = checks.violation_rate
    by_rule = {"meta": 2, "length": 1, "repeats": 1}
    counts = {"conversations": 5, "rerun": 2, "invalid": 1, "audited": 1, "not_audited": 1}
    assert checks == UserChecks(**counts, by_rule=by_rule, violation_rate=rate)
    assert (rate.value, rate.count, list(checks.by_rule)) == (2 / 3, 3, list(by_rule))
    assert scorecard(make_plan(TEST_A), scripted).user_checks is None
    assert scorecard(make_plan(TEST_A), None).user_checks is None
    both = (excluded_trial(), valid_trial("passed"))
    suites = [build.suite_result(name, build.test_result(f"t {name}", trials=both)) for name in "ab"]
    merged = merge([ShardRun(f"{suite.name}.json", build.results(suite)) for suite in suites]).card
    assert (merged.counts.invalid_users, merged.user_checks.invalid) == (2, 2)
    assert merged.user_checks.conversations == 6


def test_interval_of_the_violation_rate_covers_the_truth():
    """In 95 of 100 runs: seeded ones, whose tests differ in how hard they are to play."""
    rng, covered, runs = Random(7), 0, 200
    for _ in range(runs):
        rates = [rng.choice((0.05, 0.1, 0.3)) for _ in range(20)]  # of any tests, so the mean is 0.15
        trials = [tuple(_LOST if rng.random() < rate else _KEPT for _ in range(5)) for rate in rates]
        tests = [replace(_ANY, trials=played) for played in trials]
        result = user_checks(tests).violation_rate
        covered += result.low <= 0.15 <= result.high
    assert covered / runs >= 0.92


_ANY, _LOST, _KEPT = build.test_result(), excluded_trial(), valid_trial("passed")


WHY = {"reason": "The sandbox drops orders.", "until": "2026-12-31"}
GOOD = {"name": "good"}
SICK = {"name": "sick", "quarantine": WHY}


def results_of(plan, *trials):
    return build.results_of_scorecard(scorecard(plan, *trials))


def test_quarantined_test_changes_no_score_or_odds_and_fails_no_gate_check():
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
    # The tests that passed are of those that decide; no group of tests has its verdicts.
    result = results_of(make_plan(GOOD, SICK | {"tags": ["slow"]}), trial("passed"), trial("failed"))
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
    with_sick = results_of(make_plan(GOOD, SICK), trial("passed"), trial("failed"))
    without = results_of(make_plan(GOOD), trial("passed"))
    checks = evaluated_checks(gate_decision(make_plan(GOOD), trial("passed")).checks)
    assert odds_of(with_sick, checks) == odds_of(without, checks)


def test_quarantined_test_is_left_out_of_baseline_comparison():
    """It broke, and neither drop nor regression sees that; once it decides again it is compared."""
    well = {"name": "sick"}
    base = results_of(make_plan(GOOD, well), trial("passed"), trial("passed"))
    plan, played = make_plan(GOOD, SICK), (trial("passed"), trial("failed"))
    comparer = RunComparer(results_of(plan, *played), base)
    kept = gate_decision(plan, *played, comparer=comparer, max_drop=0, regression=Regression.ANY)
    assert (kept.exit_code, comparer.comparison().tests) == (0, 1)
    was_sick = results_of(plan, trial("passed"), trial("passed"))
    comparison = RunComparer(results_of(make_plan(GOOD, well), *played), was_sick).comparison()
    assert [test.name for test in comparison.regressed] == ["sick"]
