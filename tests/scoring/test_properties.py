"""Laws that hold for any run."""

from dataclasses import replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from plans import gate_decision, make_plan, scorecard
from property_examples import examples

from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause, DimensionGrade, Finding, Grade, Outcome

undecided = st.sampled_from([Cause.NO_EVIDENCE, Cause.JUDGE_ERROR, Cause.NOT_REACHED])
weights = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0, 3.0, 1e-9, 7.25])


def grade_of(parts) -> Grade:
    dimensions = (
        DimensionGrade(name=str(i), level="l", score=score, weight=weight, reason="r")
        for i, (score, weight) in enumerate(parts)
    )
    return Grade.of(0.7, tuple(dimensions))


def finding_of(outcome, cause, weight, category, grade) -> Finding:
    cause = cause if outcome is Outcome.UNDECIDED else None
    fields = {"outcome": outcome, "cause": cause, "weight": weight, "category": category, "grade": grade}
    return Finding(criterion="c", kind="judged", reason="r", aui_logic=(), **fields)


scores = st.sampled_from([0.0, 0.1, 0.5, 0.75, 1.0])
grades = st.lists(st.tuples(scores, weights), min_size=1, max_size=3).map(grade_of)
categories = st.sampled_from([None, "tone"])
findings = st.builds(
    finding_of, st.sampled_from(Outcome), undecided, weights, categories, st.one_of(st.none(), grades)
)
trials = st.builds(
    partial(TrialResult, index=1, duration_seconds=1),
    status=st.sampled_from(EndState),
    findings=st.lists(findings, min_size=1, max_size=4).map(tuple),
)
LOOPS = 2
runs = st.lists(st.lists(trials, min_size=LOOPS, max_size=LOOPS), min_size=1, max_size=3)
LIMITS = {"max_errors": st.integers(0, 6), "max_invalid_users": st.integers(0, 6)}
policies = st.fixed_dictionaries({"min_score": st.sampled_from([0, 50, 80, 100])} | LIMITS)


def plan_of(run, critical=False):
    test = {"minScore": 40, "evaluations": [{"criterion": "c", "category": "tone"}]}
    tests = [test | {"name": str(i), "critical": critical and i == 0} for i in range(len(run))]
    return make_plan(*tests, loops=LOOPS, minScore=30)


def flat(run):
    return [trial for test in run for trial in test]


@given(runs)
def test_scores_of_arbitrary_runs_lie_between_0_and_100_or_are_none(run):
    """Never NaN."""
    result = scorecard(plan_of(run), *flat(run))
    scores = [result.score, *(t.score for t in result.suites[0].tests), *(t.score for t in flat(run))]
    scores += [g.score for g in result.suites[0].categories]
    assert all(score is None or 0 <= score <= 100 for score in scores)


@given(runs, st.randoms(use_true_random=False))
def test_score_is_the_same_in_any_order_of_tests_trials_and_findings(run, rng):
    """Neither of findings in a trial, nor of trials in a test, nor of tests in a suite."""

    def shuffled(items):
        return rng.sample(items, len(items))

    other = [
        [replace(trial, findings=tuple(shuffled(trial.findings))) for trial in shuffled(test)]
        for test in shuffled(run)
    ]
    assert scorecard(plan_of(run), *flat(run)).score == scorecard(plan_of(other), *flat(other)).score


@settings(max_examples=examples(300))
@given(runs, policies, st.data())
def test_undecided_verdict_never_passes_a_failed_gate(run, policy, data):
    """The law that keeps a broken judge from letting a broken agent through."""
    places = [
        (t, i, f) for t, test in enumerate(run) for i, r in enumerate(test) for f in range(len(r.findings))
    ]
    t, i, f = data.draw(st.sampled_from(places))
    trial = run[t][i]
    changed = list(trial.findings)
    cause = data.draw(undecided)
    if changed[f].outcome is Outcome.UNDECIDED and cause is Cause.NOT_REACHED:
        # A verdict that was missing is not made undecided, but becomes a failure of the agent.
        cause = changed[f].cause
    changed[f] = replace(changed[f], outcome=Outcome.UNDECIDED, cause=cause)
    other = [list(test) for test in run]
    other[t][i] = replace(trial, findings=tuple(changed))
    plan = plan_of(run, critical=True)
    before, after = gate_decision(plan, *flat(run), **policy), gate_decision(plan, *flat(other), **policy)
    assert before.passed or not after.passed
    was = {check.name: check.passed for check in before.checks}
    assert all(was[check.name] or not check.passed for check in after.checks)


@given(runs, policies, st.booleans())
def test_exit_code_agrees_with_the_decision_and_is_not_0_without_a_score(run, policy, enforced):
    """0 exactly if it passed, or was not enforced and could be trusted. Whatever is allowed, a run without a
    score has no verdict, unless the agent ended conversations before their lines."""
    plan = plan_of(run)
    decision = gate_decision(plan, *flat(run), enforced=enforced, **policy)
    assert decision.exit_code in {0, 1, 3}
    if enforced:
        assert (decision.exit_code == 0) == decision.passed
    if scorecard(plan, *flat(run)).score is None:
        ended = any(f.cause is Cause.NOT_REACHED for trial in flat(run) for f in trial.findings)
        code = gate_decision(plan, *flat(run), **policy).exit_code
        assert code in ({1, 3} if ended else {3})
