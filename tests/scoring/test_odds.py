"""How often an unchanged agent would fail the gate. tests/scoring/test_simulation.py sees whether it does."""

from dataclasses import replace
from random import Random

import builders as build
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import scorecard_of_results, trial
from property_examples import examples

from ci_evals.domain.choices import Regression
from ci_evals.domain.results.gate import GateCheck, Odds
from ci_evals.domain.results.run import Rounds
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.odds import odds_of
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import BaselineResults, conclude


def suite(*tests: list, **fields) -> SuiteResult:
    """A suite of tests with these trials, each so many criteria passed of five, or outcomes in words."""

    def outcomes(one) -> tuple[str, ...]:
        return one if isinstance(one, tuple) else ("passed",) * one + ("failed",) * (5 - one)

    made = []
    for number, trials in enumerate(tests):
        played = tuple(trial(*outcomes(one), index=index) for index, one in enumerate(trials, start=1))
        made.append(build.test_result(f"t{number}", trials=played, **fields))
    return build.suite_result("S", *made)


def check(name: str, required: float | None = None) -> GateCheck:
    return build.check(name=name, required=required, seen=None, passed=True)


def odds_with(whole: SuiteResult, *checks: GateCheck, seed: str = "seed", offline: bool = False) -> Odds:
    config = {"provider": "offline" if offline else "openai"}
    return odds_of(build.results(whole, run=build.run_info(id=seed, config=config)), checks)


def odds(whole: SuiteResult, name: str, required: float | None = None) -> float:
    (result,) = odds_with(whole, check(name, required)).checks
    return result.share


MIXED = suite([5, 4, 5], [3, 5, 5], [5, 5, 5], [4, 2, 5], [5, 5, 4], [5, 5, 5])
"""Its score is 91.1."""
STEADY = suite(*[[5, 5, 5]] * 6)


def test_only_limits_that_the_gate_checked_have_odds():
    """Without a baseline no drop fails the gate; the command `odds` may ask of one all the same."""
    results = build.results(MIXED)
    policy = Policy(min_score=90, max_drop=2, regression=Regression.ANY)
    result = conclude(scorecard_of_results(results), results.run, policy, RunEnding())
    names = ["min-score", "max-drop", "regression", "max-errors"]
    assert [check.name for check in result.gate.checks] == names
    assert [one.name for one in result.odds.checks] == ["min-score"]
    assert result.odds.share == result.odds.checks[0].share
    card, baseline = scorecard_of_results(results), BaselineResults(results)
    compared = conclude(card, results.run, policy, RunEnding(), baseline)
    assert [one.name for one in compared.odds.checks] == names[:3]
    assert odds_with(MIXED, check("max-drop", 2)).checks


def test_odds_leave_out_unscored_trials_and_count_undecided_verdicts_as_failed():
    """Verdicts without a judge, if it was left out on purpose, are left out too."""
    broken = build.test_result("broken", trials=(trial("passed", status="failed"),))
    assert odds_of(build.results(build.suite_result("S", broken)), [check("min-score", 80)]) is None
    whole = replace(MIXED, tests=(*MIXED.tests, broken))
    assert odds(whole, "min-score", 88) == pytest.approx(odds(MIXED, "min-score", 88), abs=0.06)
    whole = suite(*[[("passed", "passed", "judge_error")] * 3] * 6)
    assert odds(whole, "min-score", 80) > 0.9
    offline = suite(*[[("passed", "passed", "no_judge")] * 3] * 6)
    (result,) = odds_with(offline, check("min-score", 80), offline=True).checks
    assert result.share < 0.05


def test_minimum_is_missed_more_often_the_higher_it_is_and_rarely_if_proposed():
    """At the recorded score it is a coin toss; no score lies outside 0 to 100."""
    assert odds(MIXED, "min-score", MIXED.score) == pytest.approx(0.5, abs=0.05)
    falling = [odds(MIXED, "min-score", floor) for floor in (95, 91, 88, 85, 80, 70)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 0.05 < 0.5 < falling[0]
    assert [odds(MIXED, "min-score", floor) for floor in (0, 100.5)] == [0, 1]
    # The proposed minimum is the highest that less than one run of twenty misses, to a tenth of a point.
    proposed = odds_with(MIXED).floor
    assert odds(MIXED, "min-score", proposed) < 0.05 <= odds(MIXED, "min-score", proposed + 0.2)
    assert proposed < MIXED.score


def test_odds_fall_with_more_trials_up_to_the_last_look_and_never_reach_zero():
    """The proposed floor is below 100, yet nearer to it the more was played."""
    floors = [odds_with(suite(*[[5] * trials] * 6)).floor for trials in (1, 3, 10)]
    assert floors == sorted(floors)
    assert 60 < floors[0] < floors[-1] < 100
    assert 0.02 < odds(STEADY, "regression", 0) < 0.2
    few, many = suite([4], [5], [3], [5], [4], [5]), suite(*[[4, 5, 3, 5, 4, 5]] * 6)
    assert odds(many, "min-score", 80) < odds(few, "min-score", 80)
    assert (odds_with(few).loops, odds_with(many).loops) == (1, 6)
    # Looks before the last decide at the same level; how many were taken changes no odds but the noise.
    few = suite([4, 5], [5, 4], [3, 5], [5, 5])

    def odds_in(rounds: Rounds | None) -> Odds:
        run = build.run_info(config={"provider": "openai"}, rounds=rounds)
        return odds_of(build.results(few, run=run), [check("min-score", 80)])

    rounds = odds_in(Rounds(looks=(2, 3, 5, 7), played=2))
    assert (odds_in(None).loops, rounds.loops) == (2, 7)
    assert rounds.share < odds_in(None).share


def test_odds_of_max_drop_use_current_run_as_baseline():
    """No drop at all is allowed in half of all runs, a deep one in hardly any."""
    falls = [odds(MIXED, "max-drop", drop) for drop in (0, 3, 15)]
    assert falls[0] == pytest.approx(0.5, abs=0.05)
    assert falls[0] > falls[1] > falls[2]
    assert odds(MIXED, "max-drop suite:S", 3) == falls[1]


def test_odds_of_threshold_are_computed_on_its_part_and_absent_if_it_is_empty():
    fields = {"category": "tone", "aui_logic": ("R1",)}
    outcomes = enumerate(("passed", "failed", "passed"), start=1)
    trials = tuple(trial("passed", "passed", outcome, index=i, **fields) for i, outcome in outcomes)
    fields = {"tags": ("billing",), "difficulty": "hard", "trials": trials}
    whole = build.suite_result("S", *(build.test_result(f"t{number}", **fields) for number in range(5)))
    for name in ("suite:S", "test:t3", "tag:billing", "difficulty:hard", "category:tone", "logic:R1"):
        assert odds(whole, name, whole.score) == pytest.approx(0.5, abs=0.05), name
        assert odds(whole, name, 20) < 0.05, name
    assert odds_with(whole, check("tag:other", 99)).checks == ()


def test_odds_of_newly_failing_and_critical_tests_follow_from_their_own_trials():
    """A test that passed in one of one trial may well not pass again."""
    failing = suite([4, 4, 4], [3, 3, 3])
    assert odds(failing, "regression", 0) == 0
    alone, among = suite([5], [4], [3], [2]), suite([5, 5, 5], *[[5, 4, 5]] * 5)
    assert odds(alone, "regression", 0) > 0.3
    assert odds(among, "regression", 0) > odds(STEADY, "regression", 0)
    whole = suite([5, 5, 5], [5, 4, 4], critical=True)
    steady, shaky = odds(whole, "critical:t0"), odds(whole, "critical:t1")
    assert steady < 0.5 < shaky
    assert odds(suite([5, 5, 5], *[[5, 5, 5]] * 9, critical=True), "critical:t0") < steady
    # Critical tests of one name have each the odds of its own trials.

    def critical(outcome):
        trials = tuple(trial(outcome, index=i) for i in range(1, 6))
        return build.test_result("t", trials=trials, critical=True)

    suites = build.suite_result("A", critical("passed")), build.suite_result("B", critical("failed"))
    results = build.results(*suites)
    result = conclude(scorecard_of_results(results), results.run, Policy(min_score=0), RunEnding()).odds
    (good, bad) = [one for one in result.checks if one.kind == "critical"]
    assert [one.suite for one in (good, bad)] == ["A", "B"]
    assert [one.name for one in (good, bad)] == ["critical:A › t", "critical:B › t"]
    assert good.share < 0.5 < bad.share


def test_odds_cover_only_checks_that_noise_can_fail_and_none_changes_another():
    """A significant drop is one that noise makes in one run of twenty at most, by what it means."""
    limits = {"regression": 0.05, "max-errors": 0, "max-cost": 1, "max-p95-latency": 3}
    result = odds_with(MIXED, *(check(name, limit) for name, limit in limits.items()))
    assert (result.checks, result.share) == ((), 0)
    limits = {"min-score": 88, "max-drop": 4, "regression": 0, "test:t3": 60}
    result = odds_with(MIXED, *(check(name, limit) for name, limit in limits.items()))
    shares = [one.share for one in result.checks]
    assert [one.name for one in result.checks] == list(limits)
    assert max(shares) <= result.share <= sum(shares)
    # Another seed gives odds that differ by no more than drawing does; other checks change none.
    minimum = check("min-score", 88)
    first = odds_with(MIXED, minimum)
    assert odds_with(MIXED, minimum) == first
    assert odds_with(MIXED, minimum, seed="other").share == pytest.approx(first.share, abs=0.06)
    beside = odds_with(MIXED, check("critical:t0"), minimum, check("regression", 0))
    assert beside.checks[-1].share == odds(MIXED, "regression", 0)


SIZES = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=examples(25))
@given(SIZES, st.floats(0, 100), st.integers(0, 10_000))
def test_odds_of_arbitrary_run_lie_between_zero_and_one(sizes, floor, seed):
    checks = (check("min-score", floor), check("max-drop", 5), check("regression", 0))
    result = odds_with(suite(*sizes), *checks, seed=str(seed))
    assert all(0 <= one.share <= 1 for one in result.checks)
    assert 0 <= result.floor <= 100


@pytest.mark.parametrize(
    "tests", [pytest.param(150, marks=pytest.mark.slow), pytest.param(300, marks=pytest.mark.simulate)]
)
def test_odds_of_large_suite_are_low_for_score_and_certain_for_regression(tests):
    rng = Random(1)
    whole = suite(*[[rng.choice((3, 4, 5, 5, 5)) for _ in range(2)] for _ in range(tests)])
    assert odds(whole, "min-score", whole.score - 4) < 0.05
    assert odds(whole, "regression", 0) == 1
