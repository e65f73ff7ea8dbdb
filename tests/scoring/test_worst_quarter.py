"""`--both-sides=worst-quarter`: the tests that look worst are played again, and new trials alone decide."""

from dataclasses import replace

import builders as build
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plans import card_of, planned
from test_ways_to_a_verdict import changed, outcomes

from ci_evals.domain.choices import BothSides, Regression
from ci_evals.domain.plan import BASE, HEAD
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.comparison import TestName
from ci_evals.domain.results.run import Results, WorstQuarter
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import BaselineResults, conclude
from ci_evals.job.job import Job
from ci_evals.job.stages import first_stage, largest_plan, next_stage
from ci_evals.runner import Options
from ci_evals.scoring.comparison.history import quarter_of, worst_tests
from ci_evals.scoring.comparison.rounds import WORST_QUARTER
from ci_evals.scoring.scorecard import Scorecard, recounted, total
from ci_evals.scoring.scores import ScoreRule
from ci_evals.support.redaction import Redactor

TESTS, FIRST, ALL = 5, 3, 12
RULE = ScoreRule(offline=False)
ALONE = planned(*({"name": f"Test {number}"} for number in range(1, TESTS + 1)), loops=FIRST)
PLAN = replace(ALONE, suites=ALONE.suites * 2, arms=(HEAD, BASE))


def runs_of(trials: int, verdicts=outcomes):
    trial = st.lists(verdicts, min_size=2, max_size=2)
    return st.lists(st.lists(trial, min_size=trials, max_size=trials), min_size=TESTS, max_size=TESTS)


def played(name: str, verdicts, suite, plan) -> Results:
    """A run that played what the plan has of this suite."""
    whole = build.run_of(name, verdicts)
    (own,) = whole.suites
    cut = [
        test.model_copy(
            update={"trials": tuple(test.trials[index - 1] for index in plan.indexes_of(suite, t))}
        )
        for test, t in zip(own.tests, suite.tests, strict=True)
    ]
    card = total([recounted(own.model_copy(update={"tests": tuple(cut)}), RULE)], whole.usage, RULE)
    return whole.model_copy(update={name: getattr(card, name) for name in Scorecard.model_fields})


def decided(head, base, earlier) -> Results:
    """The results that a run comes to whose agents would answer so."""
    history = tuple(build.run_of(f"main {number}", run) for number, run in enumerate(earlier))
    baseline = BaselineResults(history[-1], history=history)
    policy = Policy(min_score=0, max_errors=99, regression=Regression.SIGNIFICANT)
    job = Job(PLAN, policy, Options(), Redactor(), baseline, both_sides=BothSides.WORST_QUARTER)
    stage = first_stage(job)
    while True:
        now = stage.plan
        own, look = played("head", head, now.suites[0], now), None
        if not now.first_arm_only:
            beside = played("base", base, now.suites[1], now)
            names = [TestName(suite="Refunds", name=test.name) for _, test in now.again]
            again, look = WorstQuarter(trials=now.more, tests=tuple(names)), WORST_QUARTER
            arms = (Arm.of(HEAD, own, gated=True), Arm.of(BASE, beside))
            info = own.run.model_copy(update={"worst_quarter": again})
            own = own.model_copy(update={"arms": arms, "run": info})
        results = conclude(
            card_of(own), own.run, policy, RunEnding(), baseline, look=look, screening=now.first_arm_only
        )
        following = next_stage(job, stage, results)
        if following is None:
            return results
        stage = following


def chosen(results: Results) -> set[str]:
    again = results.run.worst_quarter
    return {test.name for test in again.tests} if again else set()


EARLIER = st.lists(runs_of(3, st.sampled_from([True, True, True, False])), min_size=1, max_size=4)


@settings(max_examples=25)
@given(head=runs_of(ALL), base=runs_of(ALL), earlier=EARLIER, data=st.data())
def test_no_worse_verdict_opens_the_gate_while_the_same_tests_are_chosen(head, base, earlier, data):
    """Neither a failed one nor one that could not be reached. A chosen test stays so when it scores lower."""
    worse = changed(head, data, data.draw(st.sampled_from([False, None])))
    before, after = (decided(run, base, earlier) for run in (head, worse))
    (test,) = [index for index in range(TESTS) if head[index] != worse[index]] or [0]
    if worse[test][:FIRST] == head[test][:FIRST] or f"Test {test + 1}" in chosen(before):
        assert chosen(after) == chosen(before)
        assert before.gate.passed or not after.gate.passed
    # What the first trials of another test change is which ones are played; the base is spared by none.
    assert bool(chosen(before)) <= bool(chosen(after))


@settings(max_examples=25)
@given(head=runs_of(ALL), base=runs_of(ALL, st.booleans()), earlier=EARLIER, data=st.data())
def test_no_better_base_agent_opens_the_gate(head, base, earlier, data):
    """The other side of the same change."""
    better = changed(base, data, into=True)
    before, after = (decided(head, run, earlier) for run in (base, better))
    assert before.gate.passed or not after.gate.passed


@settings(max_examples=25)
@given(head=runs_of(ALL), base=runs_of(ALL), earlier=EARLIER)
def test_the_trials_that_chose_the_tests_have_no_part_in_p(head, base, earlier):
    """However much worse they were: p is the same."""
    one = decided(head, base, earlier)
    assume(chosen(one))
    worse = [
        [*[[False, False]] * FIRST, *test[FIRST:]] if f"Test {number}" in chosen(one) else test
        for number, test in enumerate(head, start=1)
    ]
    other = decided(worse, base, earlier)
    assert (chosen(other), other.comparison.p) == (chosen(one), one.comparison.p)
    assert one.comparison.tests <= len(chosen(one)) == 3


GOOD, BAD = [[True, True]] * ALL, [[False, False]] * ALL
RECORDED = [[[True, True]] * 3] * TESTS


@pytest.mark.parametrize(
    ("base", "passes"),
    [([BAD, *[GOOD] * (TESTS - 1)], True), ([GOOD] * TESTS, False), ([[]] * TESTS, False)],
)
def test_a_broken_test_fails_unless_the_base_agent_fails_it_too(base, passes):
    """And a base agent of which nothing was scored is no pass."""
    head = [BAD, *[GOOD] * (TESTS - 1)]
    if not base[0]:
        base = [[[None, None]] * ALL] * TESTS
    results = decided(head, base, [RECORDED] * 4)
    assert "Test 1" in chosen(results)
    assert results.comparison.method == "both-sides"
    assert results.gate.passed is passes


def test_a_run_that_looks_no_worse_spares_the_base_agent():
    """As `auto` does."""
    results = decided([GOOD] * TESTS, [BAD] * TESTS, [RECORDED] * 4)
    assert (results.gate.passed, results.arms, results.run.worst_quarter) == (True, (), None)


@pytest.mark.parametrize(("tests", "again"), [(0, 0), (1, 1), (3, 3), (12, 3), (14, 4), (20, 5), (40, 10)])
def test_a_quarter_is_three_tests_at_least(tests, again):
    """Or all of fewer."""
    assert quarter_of(tests) == again


def test_the_worst_tests_by_hand():
    """By their fall over the noise of their own: 10 of a steady test are more than 20 of a restless one."""
    steady, restless = (50.0, 50.0, 50.0, 50.0), (0.0, 100.0, 0.0, 100.0)
    runs = [[steady, restless, steady, restless, steady]]
    head = [(40.0,), (30.0,), (50.0,), (0.0,), (60.0,)]
    assert worst_tests(head, runs) == (0, 1, 3)
    assert worst_tests([(40.0,), (0.0,), (50.0,), (30.0,), (60.0,)], [[(50.0,)] * 5]) == (0, 1, 3)
    assert worst_tests([], []) == ()


def test_the_largest_plan_plays_the_longest_tests_again():
    """At most: three trials of all tests, and nine more of three tests with each agent."""
    most = largest_plan(PLAN, BothSides.WORST_QUARTER)
    assert len(most.trials) == FIRST * TESTS + 2 * 9 * 3
    assert largest_plan(PLAN, BothSides.AUTO) is PLAN
