"""The one sum behind every score: the weighted share of findings that passed, trial by trial, test by test.

Exact fractions throughout, so that the order of trials and findings cannot matter.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult, passed_share
from ci_evals.domain.verdict import Cause, Finding, Outcome

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
class UndecidedRule:
    """The rule by which undecided verdicts count.

    `offline`: whether the run had no judge on purpose; then `no_judge` is left out by every rule.
    `undecided_fails`: whether the others count as failed, as the gate's floors want it, or are left out.
    """

    offline: bool
    undecided_fails: bool = False

    def counts(self, finding: Finding) -> bool:
        """Return whether the finding is in the denominator."""
        if finding.outcome is not Outcome.UNDECIDED:
            return True
        return self.undecided_fails and not self.not_judged(finding)

    def not_judged(self, finding: Finding) -> bool:
        """Return whether the verdict is missing because no judge was wanted."""
        return self.offline and finding.cause is Cause.NO_JUDGE


def of_trial(
    trial: TrialResult, rule: UndecidedRule, finding_filter: FindingFilter = all_findings
) -> Fraction | None:
    """The trial's score in points; None where it does not count or holds nothing that counts."""
    if not trial.counts:
        return None
    return passed_share(f for f in trial.findings if finding_filter(f) and rule.counts(f))


def of_test(
    test: TestResult, rule: UndecidedRule, finding_filter: FindingFilter = all_findings
) -> Fraction | None:
    """The mean over the test's scored trials."""
    return mean(of_trial(trial, rule, finding_filter) for trial in test.trials)


def of_tests(
    tests: Sequence[TestResult], rule: UndecidedRule, finding_filter: FindingFilter = all_findings
) -> Fraction | None:
    """The mean over tests, each weighing the same however many trials it had."""
    return mean(of_test(test, rule, finding_filter) for test in tests)


def decided(tests: Sequence[TestResult], rule: UndecidedRule) -> float | None:
    """Return the share of the criteria's weight on which the score rests, 0 to 1; None without any weight.

    Tests weigh the same, and so do the planned trials of a test, as in the score. A trial that is not scored
    decides nothing; one that is left out is not counted.
    """
    shares = [_decided_of_test(test, rule) for test in tests]
    known = [share for share in shares if share is not None]
    return fmean(known) if known else None


def _decided_of_test(test: TestResult, rule: UndecidedRule) -> float | None:
    shares = [0.0] * test.not_run
    for trial in test.trials:
        if trial.excluded:
            continue
        total = math.fsum(finding.weight for finding in trial.findings)
        if of_trial(trial, rule) is None:
            shares.append(0.0)
        elif total:
            known = (f.weight for f in trial.findings if f.outcome is not Outcome.UNDECIDED)
            shares.append(min(1.0, math.fsum(known) / total))
    return fmean(shares) if shares else None


def mean(values: Iterable[Fraction | None]) -> Fraction | None:
    """The mean of those that are there; None where none is."""
    there = [value for value in values if value is not None]
    return sum(there, Fraction()) / len(there) if there else None
