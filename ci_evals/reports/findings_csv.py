"""The findings of a run as CSV: one row for each criterion of each trial.

A trial without findings has a row too, so that none is missing.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding
from ci_evals.reports import sanitize
from ci_evals.reports.story.story import Story

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings that a spreadsheet takes for a formula."""


@dataclass(frozen=True)
class _Row:
    suite: SuiteResult
    test: TestResult
    trial: TrialResult | None
    finding: Finding | None

    def of_trial(self, show: Callable[[TrialResult], object]) -> object:
        return "" if self.trial is None else show(self.trial)

    def of_finding(self, show: Callable[[Finding], object]) -> object:
        return "" if self.finding is None else show(self.finding)


_COLUMNS: dict[str, Callable[[_Row], object]] = {
    "suite": lambda row: row.suite.name,
    "file": lambda row: row.suite.file,
    "line": lambda row: row.test.line,
    "test": lambda row: row.test.name,
    "testOutcome": lambda row: row.test.outcome.value,
    "testScore": lambda row: row.test.score,
    "trial": lambda row: row.of_trial(lambda trial: trial.index),
    "status": lambda row: row.of_trial(lambda trial: trial.status.value),
    "trialScore": lambda row: row.of_trial(lambda trial: trial.score),
    "durationSeconds": lambda row: row.of_trial(lambda trial: trial.duration_seconds),
    "criterion": lambda row: row.of_finding(lambda finding: finding.criterion),
    "kind": lambda row: row.of_finding(lambda finding: finding.kind),
    "strict": lambda row: row.of_finding(lambda finding: finding.strict),
    "category": lambda row: row.of_finding(lambda finding: finding.category),
    "weight": lambda row: row.of_finding(lambda finding: finding.weight),
    "outcome": lambda row: row.of_finding(lambda finding: finding.outcome.value),
    "cause": lambda row: row.of_finding(lambda finding: finding.cause and finding.cause.value),
    "grade": lambda row: row.of_finding(lambda finding: finding.grade and finding.grade.score),
    "turns": lambda row: row.of_finding(lambda finding: " ".join(map(str, finding.evidence))),
    "reason": lambda row: row.of_finding(lambda finding: finding.reason),
}
"""The columns, with the keys of the results file where it has them. A new one is a line here."""


def render(story: Story) -> Iterator[str]:
    """Yield the file, a row at a time, by the rules of RFC 4180."""
    yield _line(_COLUMNS)
    for row in _rows(story):
        yield _line(_cell(show(row)) for show in _COLUMNS.values())


def _rows(story: Story) -> Iterator[_Row]:
    for row in story.suites:
        suite = row.suite
        for test in suite.tests:
            if not test.trials:
                yield _Row(suite, test, None, None)
            for trial in test.trials:
                for finding in trial.findings or (None,):
                    yield _Row(suite, test, trial, finding)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = sanitize.clean(str(value))
    # A number may begin with a sign; words that do would be calculated.
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
