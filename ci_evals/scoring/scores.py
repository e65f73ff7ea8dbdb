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

Choice = Callable[[Finding], bool]


def every(_: Finding) -> bool:
    """Chooses all findings."""
    return True


def of_category(name: str) -> Choice:
    """Chooses the findings of a category."""
    return lambda finding: finding.category == name


def of_logic(code: str) -> Choice:
    """Chooses the findings that an AUI logic rule governs."""
    return lambda finding: code in finding.aui_logic


@dataclass(frozen=True)
class Counting:
    """The way in which undecided verdicts count.

    `offline`: whether the run had no judge on purpose; then `no_judge` is left out in every way of counting.
    `undecided_fails`: whether the others count as failed, as the gate's floors want it, or are left out.
    """

    offline: bool
    undecided_fails: bool = False

    def counts(self, finding: Finding) -> bool:
        """Return whether the finding stands below the line of the share."""
        if finding.outcome is not Outcome.UNDECIDED:
            return True
        return self.undecided_fails and not self.excused(finding)

    def excused(self, finding: Finding) -> bool:
        """Return whether the verdict is missing because no judge was wanted."""
        return self.offline and finding.cause is Cause.NO_JUDGE


def of_trial(trial: TrialResult, counting: Counting, choice: Choice = every) -> Fraction | None:
    """The trial's score in points; None where it does not count or holds nothing that counts."""
    if not trial.counts:
        return None
    return passed_share(f for f in trial.findings if choice(f) and counting.counts(f))


def of_test(test: TestResult, counting: Counting, choice: Choice = every) -> Fraction | None:
    """The mean over the test's scored trials."""
    return mean(of_trial(trial, counting, choice) for trial in test.trials)


def of_tests(tests: Sequence[TestResult], counting: Counting, choice: Choice = every) -> Fraction | None:
    """The mean over tests, each weighing the same however many trials it had."""
    return mean(of_test(test, counting, choice) for test in tests)


def decided(tests: Sequence[TestResult], counting: Counting) -> float | None:
    """Return the share of the criteria's weight on which the score rests, 0 to 1; None without any weight.

    Tests weigh the same, and so do the planned trials of a test, as in the score. A trial that is not scored
    decides nothing; one that is left out is not counted.
    """
    shares = [_decided_of_test(test, counting) for test in tests]
    known = [share for share in shares if share is not None]
    return fmean(known) if known else None


def _decided_of_test(test: TestResult, counting: Counting) -> float | None:
    shares = [0.0] * test.not_run
    for trial in test.trials:
        if trial.excluded:
            continue
        total = math.fsum(finding.weight for finding in trial.findings)
        if of_trial(trial, counting) is None:
            shares.append(0.0)
        elif total:
            known = (f.weight for f in trial.findings if f.outcome is not Outcome.UNDECIDED)
            shares.append(min(1.0, math.fsum(known) / total))
    return fmean(shares) if shares else None


def mean(values: Iterable[Fraction | None]) -> Fraction | None:
    """The mean of those that are there; None where none is."""
    there = [value for value in values if value is not None]
    return sum(there, Fraction()) / len(there) if there else None
