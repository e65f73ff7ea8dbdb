"""The validity of trials and the outcome of tests: rules that scorecard, gate and reports share."""

from collections.abc import Iterable, Sequence
from enum import Enum
from fractions import Fraction
from statistics import fmean

from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores
from ci_evals.scoring.scores import Choice, Counting


class Validity(Enum):
    """The validity of a trial: only a valid one tells what the agent is worth."""

    VALID = "valid"
    EXCLUDED = "excluded"
    """Its simulated user broke character. Such trials have a limit of their own (`max-invalid-users`)."""
    ERRORED = "errored"
    """It ended in an error, or a verdict of it could not be reached."""


def validity(trial: TrialResult, counting: Counting) -> Validity:
    """Return the validity of a trial."""
    if trial.excluded:
        return Validity.EXCLUDED
    if not trial.counts or any(undecided(finding, counting) for finding in trial.findings):
        return Validity.ERRORED
    return Validity.VALID


def undecided(finding: Finding, counting: Counting) -> bool:
    """Return whether a verdict is missing that was wanted."""
    return finding.outcome is Outcome.UNDECIDED and not counting.excused(finding)


def all_passed(trial: TrialResult, counting: Counting) -> bool:
    """Return whether every evaluation that was wanted passed, and at least one did."""
    required = [finding for finding in trial.findings if not counting.excused(finding)]
    return bool(required) and all(finding.outcome is Outcome.PASSED for finding in required)


def outcome_of(trials: Sequence[TrialResult], planned: int, counting: Counting) -> TestOutcome:
    """Return the outcome of a test with so many `planned` trials, of which these were played.

    Excluded trials are not needed as long as there is another one.
    """
    if not trials:
        return TestOutcome.NOT_RUN
    counted = [trial for trial in trials if not trial.excluded]
    complete = (trial for trial in counted if trial.complete)
    if any(finding.outcome is Outcome.FAILED for trial in complete for finding in trial.findings):
        return TestOutcome.FAILED
    if not counted or len(trials) < planned or not all(trial.counts for trial in counted):
        return TestOutcome.ERROR
    if all(all_passed(trial, counting) for trial in counted):
        return TestOutcome.PASSED
    return TestOutcome.UNDECIDED


def uncounted_trials(test: TestResult) -> int:
    """Return how many planned trials say nothing about the agent: broken off, excluded, or never started."""
    return sum(not trial.counts for trial in test.trials) + test.not_run


def scores_of_trials(
    test: TestResult, counting: Counting, choice: Choice = scores.every, assumed: int | None = None
) -> tuple[Fraction, ...]:
    """The scores of the test's trials that count. `assumed`: the score that each uncounted trial is given."""
    of_each = [scores.of_trial(trial, counting, choice) for trial in test.trials]
    others = [] if assumed is None else [Fraction(assumed)] * uncounted_trials(test)
    return (*(score for score in of_each if score is not None), *others)


def scores_of_tests(
    tests: Iterable[TestResult], counting: Counting, choice: Choice = scores.every, assumed: int | None = None
) -> tuple[Fraction, ...]:
    """The mean scores of the tests that have one."""
    means = [scores.mean(scores_of_trials(test, counting, choice, assumed)) for test in tests]
    return tuple(mean for mean in means if mean is not None)


def criteria_of(trials: Iterable[TrialResult], choice: Choice = scores.every) -> float:
    """The mean effective number of criteria in a trial: few heavy ones count as fewer."""
    effective = []
    for trial in trials:
        weights = [finding.weight for finding in trial.findings if choice(finding)]
        if squares := sum(weight**2 for weight in weights):
            effective.append(sum(weights) ** 2 / squares)
    return fmean(effective) if effective else 1.0
