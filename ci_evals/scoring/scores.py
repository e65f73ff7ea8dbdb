"""The one sum behind every score, and the rules on which trials count and what becomes of a test.

The sum is the weighted share of findings that passed, trial by trial, test by test. It is made of exact
fractions, so that the order of trials and findings cannot matter.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from itertools import chain, repeat
from statistics import fmean
from typing import TypeVar

from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult, passed_share
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause, Finding, Outcome

FindingFilter = Callable[[Finding], bool]
_FindingsShare = tuple[tuple[Finding, ...], Fraction | None]
_MOST_SHARES = 10_000
T = TypeVar("T")


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
    """True if the run had no judge on purpose: then `no_judge` is left out."""
    undecided_fails: bool = False
    """True if other undecided verdicts count as failed, as for floors of the gate; else they do not count."""
    finding_filter: FindingFilter = all_findings
    assumed: int | None = None
    """The score that each uncounted trial is given; None for no score at all."""
    _shares: dict[int, "_FindingsShare"] = field(default_factory=dict, init=False, repr=False, compare=False)

    def share(self, findings: tuple[Finding, ...]) -> Fraction | None:
        """Return the share of findings that passed, in points; computed once for those that trials share."""
        known = self._shares.get(id(findings))
        if known is None or known[0] is not findings:
            if len(self._shares) >= _MOST_SHARES:
                self._shares.clear()
            known = findings, passed_share(filter(self.counts, findings))
            self._shares[id(findings)] = known
        return known[1]

    def counts(self, finding: Finding) -> bool:
        """Return whether the finding is in the denominator."""
        if finding.outcome is Outcome.UNDECIDED and (not self.undecided_fails or self.not_judged(finding)):
            return False
        return self.finding_filter(finding)

    def not_judged(self, finding: Finding) -> bool:
        """Return whether the verdict is missing because no judge was wanted."""
        return self.offline and finding.cause is Cause.NO_JUDGE


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
    required = [finding for finding in trial.findings if not rule.not_judged(finding)]
    return bool(required) and all(finding.outcome is Outcome.PASSED for finding in required)


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


Alike = Sequence[tuple[TestResult, int]]
"""Tests, each with how many came to the same."""


def alike(tests: Sequence[TestResult]) -> Alike:
    """Return a test of each kind, and how many there are: those whose trials share status and findings.

    Each test by itself if some are clustered, since the order of these matters.
    """
    if any(test.cluster for test in tests):
        return [(test, 1) for test in tests]
    found: dict[object, list[TestResult]] = {}
    kind = once_made(kind_of)
    for test in tests:
        found.setdefault(kind(test), []).append(test)
    return [(same[0], len(same)) for same in found.values()]


def made_of(test: TestResult) -> int:
    """Return what is equal for tests that share their trials: they were made of one, and differ by name only.

    The others have trials of their own, while they are kept.
    """
    return id(test.trials or test)


def once_made(derive: Callable[[TestResult], T]) -> Callable[[TestResult], T]:
    """Derive something once from tests that share their trials, while they are kept."""
    known: dict[int, T] = {}

    def of(test: TestResult) -> T:
        key = made_of(test)
        if key not in known:
            if len(known) >= _MOST_SHARES:
                known.clear()
            known[key] = derive(test)
        return known[key]

    return of


def kind_of(test: TestResult) -> object:
    """Return what is equal for tests that count alike, while they are kept."""
    return (
        *[(id(trial.status), id(trial.findings)) for trial in test.trials],
        *(test.tags, test.difficulty, test.quarantine is None, test.taken_from is None, test.not_run),
        *(test.passed, id(test.outcome), test.flaky, id(test.statistics)),
    )


def kinds(tests: Iterable[TestResult]) -> list[tuple[TrialResult, int]]:
    """Return a trial of each kind, and how many there are: those of one status that share their findings."""
    numbers: Counter[tuple[int, int]] = Counter()  # counted one by one: a list would take 20 MB of 200,000
    of_each: dict[tuple[int, int], TrialResult] = {}
    for test in tests:
        for trial in test.trials:
            key = id(trial.status), id(trial.findings)
            numbers[key] += 1
            of_each[key] = trial
    return [(of_each[key], number) for key, number in numbers.items()]


def uncounted_trials(test: TestResult) -> int:
    """Return how many planned trials say nothing about the agent: broken off, excluded, or never started."""
    return sum(not trial.counts for trial in test.trials) + test.not_run


def of_trial(trial: TrialResult, rule: ScoreRule) -> Fraction | None:
    """The trial's score in points; None if it does not count, or nothing in it does."""
    return rule.share(trial.findings) if trial.counts else None


def of_trials(test: TestResult, rule: ScoreRule) -> tuple[Fraction, ...]:
    """The scores of the test's trials that have one, and those that the rule assumes."""
    of_each = [score for trial in test.trials if (score := of_trial(trial, rule)) is not None]
    if rule.assumed is not None and len(of_each) < len(test.trials) + test.not_run:
        of_each += [Fraction(rule.assumed)] * uncounted_trials(test)
    return tuple(of_each)


@dataclass(frozen=True)
class Means:
    """The mean scores of tests that have one, each weighing the same however many trials it had."""

    exact: Sequence[Fraction]
    numbers: Sequence[int]
    """How many tests have each."""

    def __len__(self) -> int:
        return sum(self.numbers)

    @property
    def mean(self) -> Fraction | None:
        """The score of all; None of none."""
        return mean(self.exact, self.numbers)

    @property
    def floats(self) -> list[float]:
        """The score of each test."""
        return repeated(zip(map(float, self.exact), self.numbers, strict=True))


def means_of(tests: Alike, rule: ScoreRule) -> Means:
    """Return the mean scores of tests."""
    of_each = ((mean(of_trials(test, rule)), number) for test, number in tests)
    scored = [(score, number) for score, number in of_each if score is not None]
    return Means([score for score, _ in scored], [number for _, number in scored])


def repeated(counted: Iterable[tuple[float, int]]) -> list[float]:
    """Return numbers, each as often as it is counted."""
    return [*chain.from_iterable(repeat(value, number) for value, number in counted)]


def mean(values: Sequence[Fraction], numbers: Iterable[int] = repeat(1)) -> Fraction | None:
    """The mean of values, each counted a number of times; None of nothing."""
    if len(values) < 2:
        return values[0] if values else None
    numerators: dict[int, int] = {}  # by denominator: integers are added in a tenth of the time
    counted = 0
    for value, number in zip(values, numbers, strict=False):
        numerator, denominator = value.as_integer_ratio()
        numerators[denominator] = numerators.get(denominator, 0) + number * numerator
        counted += number
    return sum((Fraction(*parts[::-1]) for parts in numerators.items()), Fraction()) / counted


def decided_share(tests: Alike, rule: ScoreRule) -> float | None:
    """Return the share of the criteria's weight on which the score rests, 0 to 1; None without any weight.

    Tests weigh the same, and so do the planned trials of a test, as in the score. A trial that is not scored
    decides nothing; an excluded one is not counted.
    """
    of_each = ((_decided_of_test(test, rule), number) for test, number in tests)
    shares = repeated((share, number) for share, number in of_each if share is not None)
    return fmean(shares) if shares else None


def _decided_of_test(test: TestResult, rule: ScoreRule) -> float | None:
    shares = [0.0] * test.not_run
    for trial in test.trials:
        if trial.excluded:
            continue
        weight = math.fsum(finding.weight for finding in trial.findings)
        if of_trial(trial, rule) is None:
            shares.append(0.0)
        elif weight:
            known = (f.weight for f in trial.findings if f.outcome is not Outcome.UNDECIDED)
            shares.append(min(1.0, math.fsum(known) / weight))
    return fmean(shares) if shares else None


def criteria_of(tests: Iterable[TestResult], rule: ScoreRule) -> float:
    """The mean effective number of criteria in a trial: few heavy ones count as fewer."""
    effective: list[tuple[float, int]] = []
    for trial, number in kinds(tests):
        weights = [finding.weight for finding in trial.findings if rule.finding_filter(finding)]
        if squares := sum(weight**2 for weight in weights):
            effective.append((sum(weights) ** 2 / squares, number))
    return fmean(repeated(effective)) if effective else 1.0
