"""Numbers of a run are checked before it ends: a bug of ours must not pass the gate."""

import math
from dataclasses import fields, replace

import builders as build
import pytest
from each_row import each_row
from pydantic import ValidationError

from ci_evals.domain.plan import BASE, HEAD
from ci_evals.domain.results.run import Results
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import BaselineResults, Conclusion, conclude
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

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
    """Of a run, a suite, a test or another agent: there are no results that could pass."""
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
