"""Annotations at the lines of the suites' files, where a reviewer reads the change."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.reports import sanitize
from ci_evals.reports.story import failures, test_words
from ci_evals.reports.story.failures import Became, FailedTest
from ci_evals.reports.story.outcome_labels import OUTCOMES, RunOutcome
from ci_evals.reports.story.phrases import NO_REASON, capitalized, sentence
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.tables import TestRow

_TITLE_LIMIT = 200
_REASON_LIMIT = 800
_WHY_LIMIT = 400
"""Characters of a reason that several tests share, which leave room for their names."""
_NAMED = 3
"""Tests that an annotation names."""


class Severity(StrEnum):
    """The severity of an annotation."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True)
class Annotation:
    """One message, at a place in a file where there is one. Its texts are sanitized, each of one line."""

    severity: Severity
    title: str
    message: str
    file: str | None = None
    line: int | None = None


def annotations(story: Story) -> tuple[Annotation, ...]:
    """The verdict, then the tests that failed, the worst first, then what else went wrong, each cause once.

    Last come the criteria that are to be trusted less.

    Nothing is an error where the gate fails nothing, since it holds or was only reported.
    """
    outcome = story.outcome
    if outcome is RunOutcome.SKIPPED:
        return (_of_run(story, Severity.NOTICE),)
    unchecked = outcome is RunOutcome.UNCHECKED
    green = outcome is RunOutcome.PASSED or unchecked or _only_reported(story)
    return (
        *([_of_run(story, Severity.WARNING)] if unchecked else []),
        *([] if green else [_of_run(story, Severity.ERROR)]),
        *_failed(story, Severity.WARNING if green else Severity.ERROR),
        *_trial_errors(story),
        *_criterion_warnings(story),
    )


def _only_reported(story: Story) -> bool:
    return story.outcome is RunOutcome.FAILED and story.run.gate.exit_code == Exit.PASSED


def _of_run(story: Story, severity: Severity) -> Annotation:
    reasons = [story.verdict(), *story.run.gate.reasons[1:], story.failed_checks]
    if story.outcome is not RunOutcome.SKIPPED:
        reasons.append(story.numbers.text)
    sentences = [
        *(sentence(capitalized(reason)) for reason in reasons if reason),
        *story.notices.checks_not_made,
    ]
    return _annotation(severity, "ci-evals", " ".join(sentences))


def _failed(story: Story, severity: Severity) -> Iterator[Annotation]:
    newly = [(one.suite, one.name) for one in (*story.change.news.broke, *story.change.news.unjudged)]

    def badness(row: TestRow) -> tuple[int, bool, float]:
        key = (row.suite.name, row.test.name)
        place = newly.index(key) if key in newly else len(newly)
        return place, not row.test.critical, row.test.score or 0

    failed = (
        row
        for suite in story.suites
        for row in suite.tests
        if row.test.outcome is TestOutcome.FAILED and row.test.quarantine is None
    )
    for row in sorted(failed, key=badness):
        suite, test = row.suite, row.test
        criteria = [
            f"{failed.finding.criterion}: {failed.finding.reason or NO_REASON}"
            for failed in failures.failed_criteria(test)
        ]
        since = " (passed in the baseline)" if row.became is Became.BROKE else ""
        early_end = FailedTest(suite.name, test.name, test).early_end
        before = sentence(capitalized(early_end)) + " " if early_end else ""
        message = f"Score {numbers.score(test.score)}{since}. {before}{' | '.join(criteria)}"
        yield _annotation(severity, f"Failed: {test.name}", message, suite, test)


def _trial_errors(story: Story) -> Iterator[Annotation]:
    for errors in story.errors:
        if all(test.outcome is TestOutcome.PASSED for _, test in errors.affected):
            continue
        names, count = errors.tests, len(errors.tests)
        met = names[0] if count == 1 else numbers.count(count, "test")
        which = f". {met} affected: {numbers.listed(names, _NAMED, 'test')}" if count > 1 else ""
        result = OUTCOMES[errors.outcome].words.capitalize()
        message = f"{errors.what}: {sanitize.one_line(errors.reason, _WHY_LIMIT)}{which}"
        yield _annotation(Severity.WARNING, f"{result}: {met}", message, *errors.affected[0])


def _criterion_warnings(story: Story) -> Iterator[Annotation]:
    """The criteria that are less reliable, a warning for each test."""
    for suite_row in story.suites:
        suite = suite_row.suite
        for test in suite.tests:
            warnings = story.judging.of_criteria.of_test(suite.name, test.name)
            warned = [f"{name}: {why}" for name, why in warnings.items()]
            if warned:
                yield _annotation(
                    Severity.WARNING, f"Less reliable: {test.name}", " | ".join(warned), suite, test
                )


def _annotation(
    severity: Severity,
    title: str,
    message: str,
    suite: SuiteResult | None = None,
    test: TestResult | None = None,
) -> Annotation:
    file = test_words.file_of(suite) if suite else None
    return Annotation(
        severity=severity,
        title=sanitize.log_line(title, _TITLE_LIMIT),
        message=sanitize.log_line(message, _REASON_LIMIT),
        file=file,
        line=test.line if test and file else None,
    )
