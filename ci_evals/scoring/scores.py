"""The one sum behind every score, and the rules on which trials count and what becomes of a test.

The sum is the weighted share of findings that passed, trial by trial, test by test. It is made of exact
fractions, so that the order of trials and findings cannot matter.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from statistics import fmean

from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult, passed_share
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import NOT_WANTED, Cause, Finding, Outcome

FindingFilter = Callable[[Finding], bool]


def all_findings(_: Finding) -> bool:
    """Accept all findings."""
    return True


def of_category(name: str) -> FindingFilter:
    """Return a filter for the findings of a category."""
    return lambda finding: finding.category == name


def of_logic(code: str) -> FindingFilter:
    """Return a filter for the findings that an AUI logic rule governs."""
    return lambda finding: code in finding.aui_logic


@dataclass(frozen=True)
class ScoreRule:
    """The rule by which a score is made: which findings count, and how what is missing counts."""

    offline: bool
    """True if the run had no models on purpose: then `no_judge` and `no_user` are left out."""
    undecided_fails: bool = False
    """True if other undecided verdicts count as failed, as for floors of the gate; else they do not count."""
    finding_filter: FindingFilter = all_findings
    assumed: int | None = None
    """The score that each uncounted trial is given; None for no score at all."""

    def counts(self, finding: Finding) -> bool:
        """Return whether the finding is in the denominator."""
        if finding.outcome is Outcome.UNDECIDED and (not self.undecided_fails or self.not_judged(finding)):
            return False
        return self.finding_filter(finding)

    def not_judged(self, finding: Finding) -> bool:
        """Return whether the verdict is missing because no model was wanted."""
        return self.offline and finding.cause in NOT_WANTED


class Validity(Enum):
    """The validity of a trial: only a valid one tells what the agent is worth."""

    VALID = "valid"
    EXCLUDED = "excluded"
    """Its simulated user broke character. Such trials have a limit of their own (`max-invalid-users`)."""
    ERRORED = "errored"
    """It ended in an error, or a verdict of it is missing through no act of the agent."""


def validity(trial: TrialResult, rule: ScoreRule) -> Validity:
    """Return the validity of a trial."""
    if trial.excluded:
        return Validity.EXCLUDED
    if not trial.counts or any(missing(finding, rule) for finding in trial.findings):
        return Validity.ERRORED
    return Validity.VALID


def missing(finding: Finding, rule: ScoreRule) -> bool:
    """Return whether a verdict that was wanted is missing through no act of the agent."""
    return undecided(finding, rule) and not finding.fails


def undecided(finding: Finding, rule: ScoreRule) -> bool:
    """Return whether a verdict is missing that was wanted."""
    return finding.outcome is Outcome.UNDECIDED and not rule.not_judged(finding)


def all_passed(trial: TrialResult, rule: ScoreRule) -> bool:
    """Return whether every evaluation that was wanted passed, and at least one did."""
    any_passed = False
    for finding in trial.findings:
        if rule.not_judged(finding):
            continue
        if finding.outcome is not Outcome.PASSED:
            return False
        any_passed = True
    return any_passed


def failed(trial: TrialResult) -> bool:
    """Return whether the agent failed an evaluation of the trial, or ended it before one could be decided."""
    return any(finding.fails for finding in trial.findings)


def failed_in_error(trial: TrialResult, rule: ScoreRule) -> bool:
    """Return whether all that makes the trial errored is an error of the agent before lines that it needs."""
    by_agent = trial.status is EndState.AGENT_ERROR and not trial.counts and ended_too_early(trial)
    return by_agent and not any(missing(finding, rule) for finding in trial.findings)


def ended_too_early(trial: TrialResult) -> bool:
    """Return whether the agent ended the trial before lines that an evaluation needs."""
    return any(finding.cause is Cause.NOT_REACHED for finding in trial.findings)


def outcome_of(trials: Sequence[TrialResult], planned: int, rule: ScoreRule) -> TestOutcome:
    """Return the outcome of a test with so many `planned` trials, of which these were played.

    Excluded trials are not needed as long as there is another one.
    """
    if not trials:
        return TestOutcome.NOT_RUN
    counted = [trial for trial in trials if not trial.excluded]
    complete = (trial for trial in counted if trial.complete)
    if any(failed(trial) for trial in complete):
        return TestOutcome.FAILED
    if not counted or len(trials) < planned or not all(trial.counts for trial in counted):
        return TestOutcome.ERROR
    if all(all_passed(trial, rule) for trial in counted):
        return TestOutcome.PASSED
    return TestOutcome.UNDECIDED


def deciding(tests: Iterable[TestResult]) -> tuple[TestResult, ...]:
    """The tests that scores, checks and comparisons are about: all but those in quarantine."""
    return tuple(test for test in tests if test.quarantine is None)


def uncounted_trials(test: TestResult) -> int:
    """Return how many planned trials say nothing about the agent: broken off, excluded, or never started."""
    return sum(not trial.counts for trial in test.trials) + test.not_run


def failed_uncounted(test: TestResult) -> int:
    """Return how many trials without a score fail the test all the same: the agent broke off whole ones."""
    return sum(not trial.counts and trial.complete and failed(trial) for trial in test.trials)


def of_trial(trial: TrialResult, rule: ScoreRule) -> Fraction | None:
    """The trial's score in points; None if it does not count, or nothing in it does."""
    if not trial.counts:
        return None
    return passed_share(filter(rule.counts, trial.findings))


def is_scored(trial: TrialResult, rule: ScoreRule) -> bool:
    """Return whether `of_trial` has a score, without computing it."""
    return trial.counts and any(finding.weight for finding in trial.findings if rule.counts(finding))


def of_trials(test: TestResult, rule: ScoreRule) -> tuple[Fraction, ...]:
    """The scores of the test's trials that have one, and those that the rule assumes."""
    trial_scores = []
    for trial in test.trials:
        score = of_trial(trial, rule)
        if score is not None:
            trial_scores.append(score)
    if rule.assumed is not None:
        trial_scores += [Fraction(rule.assumed)] * uncounted_trials(test)
    return tuple(trial_scores)


def test_scores(tests: Iterable[TestResult], rule: ScoreRule) -> list[Fraction]:
    """Return the score of each test that has one: the mean over its trials, however many there are."""
    means = []
    for test in tests:
        score = mean(of_trials(test, rule))
        if score is not None:
            means.append(score)
    return means


def mean(values: Sequence[Fraction]) -> Fraction | None:
    """The mean of values; None of nothing."""
    if len(values) < 2:
        return values[0] if values else None
    numerators: Counter[int] = Counter()  # by denominator: integers are added in a tenth of the time
    for value in values:
        numerators[value.denominator] += value.numerator
    total = Fraction()
    for denominator, numerator in numerators.items():
        total += Fraction(numerator, denominator)
    return total / len(values)


def decided_share(tests: Iterable[TestResult], rule: ScoreRule) -> float | None:
    """Return the share of the criteria's weight on which the score rests, 0 to 1; None without any weight.

    Tests weigh the same, and so do the planned trials of a test, as in the score. A trial that is not scored
    decides nothing; an excluded one is not counted.
    """
    shares = []
    for test in tests:
        share = _decided_of_test(test, rule)
        if share is not None:
            shares.append(share)
    return fmean(shares) if shares else None


def _decided_of_test(test: TestResult, rule: ScoreRule) -> float | None:
    shares = [0.0] * test.not_run
    for trial in test.trials:
        if trial.excluded:
            continue
        weight = math.fsum(finding.weight for finding in trial.findings)
        if not is_scored(trial, rule):
            shares.append(0.0)
        elif weight:
            decided = [f.weight for f in trial.findings if f.outcome is not Outcome.UNDECIDED]
            shares.append(min(1.0, math.fsum(decided) / weight))
    return fmean(shares) if shares else None


def criteria_of(tests: Iterable[TestResult], rule: ScoreRule) -> float:
    """The mean effective number of criteria in a trial: few heavy ones count as fewer."""
    effective = []
    for test in tests:
        for trial in test.trials:
            weights = [finding.weight for finding in trial.findings if rule.finding_filter(finding)]
            squares = sum(weight**2 for weight in weights)
            if squares:
                effective.append(sum(weights) ** 2 / squares)
    return fmean(effective) if effective else 1.0
