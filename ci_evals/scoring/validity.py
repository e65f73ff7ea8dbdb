"""What makes a trial unsound, a test passed: rules that scorecard and gate share."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import fmean

from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores
from ci_evals.scoring.scores import Choice, Counting

CUT_OFF = frozenset({EndState.FAILED, EndState.INTERRUPTED, EndState.INVALID_USER})
"""Conversations that broke off, or whose user broke its role: what their agent did not do, it may not have
come to."""


def left_out(trial: TrialResult) -> bool:
    """Whether its simulated user broke its role: it says nothing of the agent, and is not needed."""
    return trial.status is EndState.INVALID_USER


def unsound(trial: TrialResult, counting: Counting) -> bool:
    """Whether the trial ended in an error, or holds a verdict that could not be reached.

    One that is left out is not: such trials have a limit of their own.
    """
    if left_out(trial):
        return False
    return not trial.counts or any(undecided(finding, counting) for finding in trial.findings)


def undecided(finding: Finding, counting: Counting) -> bool:
    """Whether a verdict is missing that was wanted."""
    return finding.outcome is Outcome.UNDECIDED and not counting.excused(finding)


def all_passed(trial: TrialResult, counting: Counting) -> bool:
    """Whether every evaluation that was wanted passed, and at least one did."""
    wanted = [finding for finding in trial.findings if not counting.excused(finding)]
    return bool(wanted) and all(finding.outcome is Outcome.PASSED for finding in wanted)


def outcome_of(trials: Sequence[TrialResult], planned: int, counting: Counting) -> TestOutcome:
    """What a test came to, of whose `planned` trials these were played.

    Those that are left out are not needed, as long as one other is there.
    """
    if not trials:
        return TestOutcome.NOT_RUN
    counted = [trial for trial in trials if not left_out(trial)]
    whole = [trial for trial in counted if trial.status not in CUT_OFF]
    if any(finding.outcome is Outcome.FAILED for trial in whole for finding in trial.findings):
        return TestOutcome.FAILED
    if not counted or len(trials) < planned or not all(trial.counts for trial in counted):
        return TestOutcome.ERROR
    if all(all_passed(trial, counting) for trial in counted):
        return TestOutcome.PASSED
    return TestOutcome.UNDECIDED


def lost_trials(test: TestResult) -> int:
    """How many planned trials say nothing of the agent: they broke off, are left out, or never began."""
    return sum(not trial.counts for trial in test.trials) + test.not_run


def scores_of_trials(
    test: TestResult, counting: Counting, choice: Choice = scores.every, lost: int | None = None
) -> tuple[Fraction, ...]:
    """The scores of the test's trials that count. `lost`: what each lost trial is supposed to have scored."""
    of_each = [scores.of_trial(trial, counting, choice) for trial in test.trials]
    supposed = [] if lost is None else [Fraction(lost)] * lost_trials(test)
    return (*(score for score in of_each if score is not None), *supposed)


def scores_of_tests(
    tests: Iterable[TestResult], counting: Counting, choice: Choice = scores.every, lost: int | None = None
) -> tuple[Fraction, ...]:
    """The mean scores of the tests that have one."""
    means = [scores.mean(scores_of_trials(test, counting, choice, lost)) for test in tests]
    return tuple(mean for mean in means if mean is not None)


def criteria_of(trials: Iterable[TrialResult], choice: Choice = scores.every) -> float:
    """The mean effective number of criteria in a trial: few heavy ones count as fewer."""
    found = []
    for trial in trials:
        weights = [finding.weight for finding in trial.findings if choice(finding)]
        if squares := sum(weight**2 for weight in weights):
            found.append(sum(weights) ** 2 / squares)
    return fmean(found) if found else 1.0
