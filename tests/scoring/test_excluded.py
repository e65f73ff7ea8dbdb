"""Trials left out for their simulated user: not scored, not needed, limited, and never what decides."""

from dataclasses import replace
from random import Random

import builders as build
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import TEST_A, TEST_B, gate_decision, make_plan, scorecard, trial
from property_examples import examples

from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import NO_PRICES
from ci_evals.domain.progress import TrialFinished
from ci_evals.domain.results.simulated_user import UserAudit, UserChecks, Violation
from ci_evals.domain.results.trial import Attempt
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.merge.merge import merge
from ci_evals.extensions.merge.shards import ShardRun
from ci_evals.job.limits import Budget, Limits, LimitsWatcher
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.simulated_users import user_checks
from ci_evals.stop import Stop

KEPT = UserAudit()


def audit(*rules: str, by_model: bool | None = None) -> UserAudit:
    broken = tuple(Violation(rule=rule, turn=1, text="x", reason="r") for rule in rules)
    return UserAudit(violations=broken, by_model=by_model)


def lost(index: int = 1, rule: str = "meta"):
    """A trial whose user broke its role twice."""
    return build.trial_result(
        index,
        status=EndState.INVALID_USER,
        error="the simulated user broke its role",
        findings=(),
        attempts=(
            Attempt(status=EndState.INVALID_USER, error="e", user_audit=audit("repeats")),
            Attempt(status=EndState.INVALID_USER, error="e"),
        ),
        user_audit=audit(rule),
    )


def sound(*outcomes: str, index: int = 1):
    return replace(trial(*outcomes, index=index), user_audit=KEPT)


def test_it_is_counted_apart_from_unsound_trials():
    """And is in no score."""
    counted = scorecard(make_plan(TEST_A, loops=2), sound("passed"), lost(2))
    assert (counted.counts.invalid_users, counted.counts.errors) == (1, 0)
    assert (counted.counts.trials, counted.counts.scored_trials, counted.score) == (2, 1, 100)
    assert counted.counts.by_status[EndState.INVALID_USER] == 1


@each_row(
    ("trials", "outcome"),
    [
        ([sound("passed"), lost(2)], "passed"),
        ([lost(), sound("failed", index=2)], "failed"),
        ([sound("judge_error"), lost(2)], "undecided"),
        ([lost(), trial(status="failed", index=2)], "error"),
        ([lost(), lost(2)], "error"),
        ([sound("passed"), None], "error"),
        ([lost(), None], "error"),
        ([None, None], "not_run"),
    ],
)
def test_other_trials_decide_a_test_with_an_excluded_trial(trials, outcome):
    """As long as one other trial is there; one that was never begun is still missed."""
    (test,) = scorecard(make_plan(TEST_A, loops=2), *trials).suites[0].tests
    assert (test.outcome, test.passed) == (outcome, outcome == "passed")


def test_no_more_than_allowed():
    """None by default: else exit 3, whatever the score, with the reason."""
    decision = gate_decision(make_plan(TEST_A, loops=2), sound("passed"), lost(2))
    assert (decision.exit_code, decision.passed) == (3, False)
    check = next(one for one in decision.checks if one.name == "max-invalid-users")
    assert (check.required, check.seen, check.passed) == (0, 1, False)
    (reason,) = decision.reasons
    assert reason == "the simulated user broke character twice in a row in 1 of 2 trials"
    assert gate_decision(
        make_plan(TEST_A, loops=3), *[sound("passed")] * 2, lost(3), max_invalid_users=1, min_score=60
    ).passed
    assert (
        "in 2 of 3 trials"
        in gate_decision(make_plan(TEST_A, loops=3), sound("passed"), lost(2), lost(3)).reasons[0]
    )


def test_what_the_agent_did_for_such_a_user_is_no_measure_of_it():
    """Rates are of the other trials."""
    counted = scorecard(make_plan(TEST_A, loops=2), sound("passed"), lost(2))
    assert (counted.process.completion_rate, counted.process.success_rate) == (1, 1)
    assert scorecard(make_plan(TEST_A), lost()).process.completion_rate is None


def test_it_ends_no_run_early():
    """It is no failure of the agent's, and no outage."""
    stop = Stop()
    limits, budget = Limits(failures_in_row=1, fail_fast=True), Budget(None, lambda: NO_PRICES)
    watch = LimitsWatcher(limits, budget, stop, ScoreRule(offline=False), parallel=1)
    for index in range(1, 4):
        watch(TrialFinished(Trial(0, 0, index), lost(index)))
    assert not stop.requested


def test_where_no_model_played_the_user_there_is_no_such_check():
    """Nothing could be left out."""
    decision = gate_decision(make_plan(TEST_A), trial("passed"))
    assert "max-invalid-users" not in {check.name for check in decision.checks}


def test_a_critical_test_passes_by_its_valid_trials():
    """But those that are left out may have failed: then they decide, and nothing can be said."""
    critical = make_plan(TEST_A | {"critical": True}, loops=2)
    decision = gate_decision(critical, sound("passed"), lost(2), max_invalid_users=1, min_score=0)
    check = next(one for one in decision.checks if one.name == "critical:a")
    assert (check.seen, check.passed, check.note) == (100, True, "1 of 1 passed")
    assert decision.exit_code == 3
    assert "1 trial without a result would decide the verdict" in decision.reasons[0]
    failed = gate_decision(critical, sound("failed"), lost(2), max_invalid_users=1, min_score=0)
    assert (failed.exit_code, failed.reasons) == (1, ())
    none = gate_decision(critical, lost(), lost(2), max_invalid_users=2, min_score=0)
    assert not next(one for one in none.checks if one.name == "critical:a").passed
    assert none.exit_code == 3


def test_a_run_with_all_users_broken_says_nothing():
    """Whatever is allowed."""
    decision = gate_decision(make_plan(TEST_A, TEST_B), lost(), lost(), max_invalid_users=99, min_score=0)
    assert (decision.exit_code, decision.reasons) == (3, ("nothing could be scored",))


outcomes = st.sampled_from(["passed", "failed", "lost"])
runs = st.lists(st.lists(outcomes, min_size=2, max_size=2), min_size=1, max_size=4)


@given(runs, st.sampled_from([0, 50, 75, 100]), st.booleans())
@settings(max_examples=examples(40))
def test_leaving_out_neither_hides_nor_causes_a_failure(run, floor, critical):
    """A gate that holds would hold had all of them failed; one that fails would fail had all passed."""
    tests = [{"name": str(i), "critical": critical and not i} for i in range(len(run))]
    plan = make_plan(*tests, loops=2)

    def decided(instead: str | None):
        trials = [
            lost() if outcome == "lost" and not instead else sound(outcome.replace("lost", instead or ""))
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


def test_the_ledger_counts_conversations():
    """Those that were played again included, each rule once for each conversation."""
    again = replace(
        sound("passed"),
        attempts=(
            Attempt(status=EndState.INVALID_USER, error="e", user_audit=audit("meta", "meta", "length")),
            Attempt(status=EndState.FAILED, error="e"),
            Attempt(status=EndState.COMPLETED),
        ),
        user_audit=audit(by_model=True),
    )
    deaf = replace(sound("passed"), user_audit=audit(by_model=False))
    scripted = trial("passed")
    counted = scorecard(make_plan(TEST_A, loops=4), again, lost(2), deaf, scripted)
    assert counted.user_checks == UserChecks(
        conversations=5,
        rerun=2,
        invalid=1,
        audited=1,
        not_audited=1,
        by_rule={"meta": 2, "length": 1, "repeats": 1},
        violation_rate=counted.user_checks.violation_rate,
    )
    assert (counted.user_checks.violation_rate.value, counted.user_checks.violation_rate.count) == (2 / 3, 3)
    assert list(counted.user_checks.by_rule) == ["meta", "length", "repeats"]
    assert scorecard(make_plan(TEST_A), scripted).user_checks is None
    assert scorecard(make_plan(TEST_A), None).user_checks is None


def test_merging_makes_it_anew():
    """From the trials of all shards."""
    shards = [
        ShardRun(
            f"{name}.json",
            build.results(
                build.suite_result(name, build.test_result(f"t {name}", trials=(lost(), sound("passed"))))
            ),
        )
        for name in ("a", "b")
    ]
    merged = merge(shards)
    assert (merged.card.counts.invalid_users, merged.card.user_checks.invalid) == (2, 2)
    assert merged.card.user_checks.conversations == 6


def test_rate_of_users_out_of_character_has_an_interval():
    """It holds the truth in 95 of 100 runs: seeded ones, whose tests differ in how hard they are to play."""
    rng, covered, runs = Random(7), 0, 200
    for _ in range(runs):
        rates = [rng.choice((0.05, 0.1, 0.3)) for _ in range(20)]  # of any tests, so the mean is 0.15
        tests = [
            replace(_ANY, trials=tuple(_LOST if rng.random() < rate else _KEPT for _ in range(5)))
            for rate in rates
        ]
        result = user_checks(tests).violation_rate
        covered += result.low <= 0.15 <= result.high
    assert covered / runs >= 0.92


_ANY, _LOST, _KEPT = build.test_result(), lost(), sound("passed")
