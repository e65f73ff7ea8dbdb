"""Every way to a verdict, from the first look to the last, as a run takes it; and impossible numbers."""

import math
from dataclasses import fields, replace
from functools import lru_cache

import builders as build
import pytest
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples
from pydantic import ValidationError

from ci_evals.domain.choices import BothSides, Regression
from ci_evals.domain.plan import BASE, HEAD, Plan
from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import BaselineResults, Conclusion, conclude
from ci_evals.job.job import Job
from ci_evals.job.pool import Pool
from ci_evals.job.stages import first_stage, next_stage
from ci_evals.runner import Options
from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS, looks_at
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

TESTS, MOST, RECORDED = 3, 7, 3
WAYS: dict[str, Plan] = {
    "recorded": Plan((), loops=3),
    "rounds": Plan((), loops=MOST, looks=LOOKS),
    "both sides": Plan((), loops=3, arms=(HEAD, BASE)),
    "both sides in rounds": Plan((), loops=MOST, looks=BOTH_SIDES_LOOKS, arms=(HEAD, BASE)),
}
"""Each with earlier runs to compare with or without: with a base agent they screen, else they decide."""
outcomes = st.sampled_from([True, True, False, None])


def runs_of(trials: int, verdicts=outcomes):
    """Tests, trials, criteria."""
    return st.tuples(*[st.tuples(*[st.tuples(verdicts, verdicts)] * trials)] * TESTS)


run_of = lru_cache(64)(build.results_of_verdicts)


def final_results(plan: Plan, head, base, earlier, *, both_sides=BothSides.AUTO) -> Results:
    """The results that a run comes to whose agents would answer so."""
    history = tuple(run_of(f"main {number}", run) for number, run in enumerate(earlier))
    baseline = BaselineResults(history[-1], history=history) if history else BaselineResults()
    policy = Policy(min_score=0, max_errors=99, regression=Regression.SIGNIFICANT)
    job = Job(plan, policy, Options(), Redactor(), baseline, both_sides=both_sides)
    stage = first_stage(job)
    while stage:
        now, arms = stage.plan, ()
        played_head, played_base = (tuple(test[: now.loops] for test in side) for side in (head, base))
        own = run_of("head", played_head)
        if len(now.arms) > 1 and not now.first_arm_only:
            others = (build.arm(name, run_of(name, played_base)) for name in now.arms[1:])
            arms = (build.arm(HEAD, own, gated=True), *others)
        rounds = Rounds(looks=now.looks, played=now.loops) if now.looks else None
        own = replace(own, arms=arms, run=replace(own.run, rounds=rounds))
        card = Scorecard(**{field.name: getattr(own, field.name) for field in fields(Scorecard)})
        sides = BASE in now.arms and not now.first_arm_only
        looks = (each for each in looks_at(now.looks, both_sides=sides) if each.trials == now.loops)
        options = {"look": next(looks, None), "screening": now.first_arm_only}
        results = conclude(card, own.run, policy, RunEnding(), baseline, **options)
        stage = next_stage(stage, results)
    return results


def with_verdict(run, data, into):
    """The same run with one other verdict."""
    test = data.draw(st.integers(0, TESTS - 1))
    trial = data.draw(st.integers(0, len(run[test]) - 1))
    criterion = data.draw(st.integers(0, 1))
    other = [[[*criteria] for criteria in trials] for trials in run]
    other[test][trial][criterion] = into
    return tuple(tuple(map(tuple, trials)) for trials in other)


SLOW_WAYS = [pytest.param(way, marks=pytest.mark.slow) for way in WAYS if way != "rounds"]


@pytest.mark.parametrize("way", ["rounds", *SLOW_WAYS])
@settings(max_examples=examples(150))
@given(runs=st.sampled_from([0, 1, 4]), both_sides=st.sampled_from(BothSides), data=st.data())
def test_worse_verdict_never_passes_a_failed_gate_in_any_mode(way, runs, both_sides, data):
    """Neither a failed one nor one that could not be reached, in any trial: played in time or not at all."""
    head, base = data.draw(runs_of(MOST)), data.draw(runs_of(MOST))
    earlier = data.draw(st.lists(runs_of(RECORDED, st.booleans()), min_size=runs, max_size=runs))
    worse = with_verdict(head, data, data.draw(st.sampled_from([False, None])))
    before = final_results(WAYS[way], head, base, earlier, both_sides=both_sides)
    after = final_results(WAYS[way], worse, base, earlier, both_sides=both_sides)
    assert before.gate.passed or not after.gate.passed


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(head=runs_of(MOST), base=runs_of(MOST, st.booleans()), data=st.data())
def test_better_base_agent_never_passes_a_failed_gate(head, base, data):
    better = with_verdict(base, data, into=True)
    way = WAYS["both sides in rounds"]
    before, after = (final_results(way, head, b, (), both_sides=BothSides.ALWAYS) for b in (base, better))
    assert before.gate.passed or not after.gate.passed


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(head=runs_of(3), other=runs_of(3), earlier=runs_of(RECORDED, st.booleans()))
def test_gate_decision_is_unchanged_by_other_arms_of_run(head, other, earlier):
    arms = Plan((), loops=3, arms=("today", "cheaper", "third"))
    gates = [final_results(plan, head, other, [earlier]).gate for plan in (arms, WAYS["recorded"])]
    assert gates[0] == gates[1]


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(head=runs_of(3), other=runs_of(3), data=st.data())
def test_worse_results_of_compared_agent_never_raise_its_change(head, other, data):
    """Its change does not rise; the p of several agents is never lower than that of one."""
    worse = with_verdict(other, data, into=False)
    two, three = (Plan((), loops=3, arms=arms) for arms in (("today", "other"), ("today", "other", "more")))
    before, after = (final_results(two, head, run, ()).arms[1] for run in (other, worse))
    assert after.delta <= before.delta
    assert final_results(three, head, other, ()).arms[1].p_adjusted >= before.p_adjusted


@pytest.mark.parametrize(("way", "spared"), [*zip(WAYS, ("history", "rounds") * 2, strict=True)])
def test_each_mode_detects_drop_and_saves_trials_if_there_is_none(way, spared):
    """Else the laws above say little."""
    fine, broken = (((verdicts,) * MOST,) * TESTS for verdicts in ((True, True), (False, False)))
    recorded = [(((True, True),) * RECORDED,) * TESTS] * 4
    passed, failed = (final_results(WAYS[way], head, fine, recorded) for head in (fine, broken))
    assert (passed.gate.passed, passed.comparison.method) == (True, spared)
    assert not failed.gate.passed
    assert (failed.comparison.method == "both-sides") == (BASE in WAYS[way].arms)


@pytest.mark.parametrize(("arm", "screens"), [(0, True), (1, False)])
def test_base_agent_of_an_earlier_attempt_is_run_again(arm, screens):
    """A drop that it proved is not cleared by a look at earlier runs."""
    baseline = BaselineResults(build.results_of_verdicts("main", [[[True, True]]]))
    pool = Pool(trials={(arm, 1, 1): (build.trial_result(run="first"),)})
    job = Job(WAYS["both sides"], Policy(), Options(), Redactor(), baseline, pool=pool)
    assert first_stage(job).plan.first_arm_only is screens


RUN = build.results_of_verdicts("head", [[[True]], [[True]]])
POLICY = Policy(min_score=80)


def card_of(run: Results) -> Scorecard:
    return Scorecard(**{field.name: getattr(run, field.name) for field in fields(Scorecard)})


def with_suite(run: Results, **numbers) -> Results:
    return replace(run, suites=(replace(run.suites[0], **numbers),))


def with_test(run: Results, **numbers) -> Results:
    first, *others = run.suites[0].tests
    return with_suite(run, tests=(replace(first, **numbers), *others))


def with_base_agent(run: Results, base: Results) -> Results:
    return replace(run, arms=(build.arm(HEAD, run, gated=True), build.arm(BASE, base)))


@each_row("wrong", [101.0, -1.0, math.nan, math.inf])
@each_row("of", ["run", "suite", "test", "statistics", "base agent"])
def test_impossible_score_raises_instead_of_passing_the_gate(of, wrong):
    """Be it of a run, a suite, a test or another agent: there are no results that could pass."""
    assert conclude(card_of(RUN), RUN.run, POLICY, RunEnding()).gate.exit_code == 0
    statistics = replace(RUN.suites[0].tests[0].statistics, mean=wrong)
    run = {
        "run": lambda: replace(RUN, score=wrong),
        "suite": lambda: with_suite(RUN, score=wrong),
        "test": lambda: with_test(RUN, score=wrong),
        "statistics": lambda: with_test(RUN, statistics=statistics),
        "base agent": lambda: with_base_agent(RUN, with_test(RUN, score=wrong)),
    }[of]()
    with pytest.raises((ValueError, OverflowError)):
        conclude(card_of(run), run.run, POLICY, RunEnding())


def test_run_with_impossible_score_stops_with_validation_error():
    """With and without a baseline: the error goes up to the command, which exits 70."""
    stop = Stop()
    conclusion = Conclusion(POLICY, Redactor(), stop, BaselineResults(RUN))
    with pytest.raises(ValidationError, match="less than or equal to 100"):
        conclusion.results(lambda: card_of(replace(RUN, score=101.0)), lambda: RUN.run)
    assert isinstance(stop.bug, ValidationError)
