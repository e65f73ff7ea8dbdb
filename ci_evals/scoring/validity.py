"""The validity of trials and the outcome of tests: rules that scorecard, gate and reports share."""

from collections.abc import Iterable, Sequence
from enum import Enum
from fractions import Fraction
from statistics import fmean

from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores
from ci_evals.scoring.scores import FindingFilter, UndecidedRule


class Validity(Enum):
    """The validity of a trial: only a valid one tells what the agent is worth."""

    VALID = "valid"
    EXCLUDED = "excluded"
    """Its simulated user broke character. Such trials have a limit of their own (`max-invalid-users`)."""
    ERRORED = "errored"
    """It ended in an error, or a verdict of it could not be reached."""


def validity(trial: TrialResult, rule: UndecidedRule) -> Validity:
    """Return the validity of a trial."""
    if trial.excluded:
        return Validity.EXCLUDED
    if not trial.counts or any(undecided(finding, rule) for finding in trial.findings):
        return Validity.ERRORED
    return Validity.VALID


def undecided(finding: Finding, rule: UndecidedRule) -> bool:
    """Return whether a verdict is missing that was wanted."""
    return finding.outcome is Outcome.UNDECIDED and not rule.not_judged(finding)


def all_passed(trial: TrialResult, rule: UndecidedRule) -> bool:
    """Return whether every evaluation that was wanted passed, and at least one did."""
    required = [finding for finding in trial.findings if not rule.not_judged(finding)]
    return bool(required) and all(finding.outcome is Outcome.PASSED for finding in required)


def outcome_of(trials: Sequence[TrialResult], planned: int, rule: UndecidedRule) -> TestOutcome:
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
    if all(all_passed(trial, rule) for trial in counted):
        return TestOutcome.PASSED
    return TestOutcome.UNDECIDED


def uncounted_trials(test: TestResult) -> int:
    """Return how many planned trials say nothing about the agent: broken off, excluded, or never started."""
    return sum(not trial.counts for trial in test.trials) + test.not_run


def scores_of_trials(
    test: TestResult,
    rule: UndecidedRule,
    finding_filter: FindingFilter = scores.all_findings,
    assumed: int | None = None,
) -> tuple[Fraction, ...]:
    """The scores of the test's trials that count. `assumed`: the score that each uncounted trial is given."""
    of_each = [scores.of_trial(trial, rule, finding_filter) for trial in test.trials]
    others = [] if assumed is None else [Fraction(assumed)] * uncounted_trials(test)
    return (*(score for score in of_each if score is not None), *others)


def scores_of_tests(
    tests: Iterable[TestResult],
    rule: UndecidedRule,
    finding_filter: FindingFilter = scores.all_findings,
    assumed: int | None = None,
) -> tuple[Fraction, ...]:
    """The mean scores of the tests that have one."""
    means = [scores.mean(scores_of_trials(test, rule, finding_filter, assumed)) for test in tests]
    return tuple(mean for mean in means if mean is not None)


def criteria_of(trials: Iterable[TrialResult], finding_filter: FindingFilter = scores.all_findings) -> float:
    """The mean effective number of criteria in a trial: few heavy ones count as fewer."""
    effective = []
    for trial in trials:
        weights = [finding.weight for finding in trial.findings if finding_filter(finding)]
        if squares := sum(weight**2 for weight in weights):
            effective.append(sum(weights) ** 2 / squares)
    return fmean(effective) if effective else 1.0
