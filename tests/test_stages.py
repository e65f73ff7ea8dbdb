"""What is played after a look at a run, as long as the base agent waits."""

import builders as build

from ci_evals.domain.base import Interval
from ci_evals.domain.plan import BASE, HEAD, Plan
from ci_evals.domain.results.run import Results
from ci_evals.job.stages import Stage, next_stage

SCREENING = Stage(Plan((), loops=1, arms=(HEAD, BASE), first_arm_only=True))
CLOSE = build.check("min-score", 80, 85.0, passed=True, interval=Interval(low=70, high=95))


def run_with_checks(*checks, status: str = "completed") -> Results:
    test = build.test_result(trials=(build.trial_result(status=status),))
    return build.results(build.suite_result("Refunds", test), gate=build.decision(*checks, passed=True))


def next_stage_after(results: Results) -> Stage | None:
    return next_stage(SCREENING, results)


def test_score_near_threshold_does_not_start_base_agent():
    assert next_stage_after(run_with_checks(CLOSE)) is None


def test_trials_without_score_start_base_agent():
    """They might have failed: then the score would have looked lower."""
    assert next_stage_after(run_with_checks()) is None
    stage = next_stage_after(run_with_checks(status="failed"))
    assert not stage.plan.first_arm_only
    assert stage.because == ("trials without a score: 1",)
