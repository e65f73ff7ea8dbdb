"""What a run's results say at the lines of its suites' files, where a reviewer reads the change."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ci_evals.domain.results import Results, SuiteResult, TestResult
from ci_evals.reports import change, highlights, numbers, sanitize
from ci_evals.reports.highlights import Standing

_TITLE_LIMIT = 200
_REASON_LIMIT = 800
_BUNDLED = ("demo:", "quack:")


class Level(StrEnum):
    """How loud an annotation is."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True)
class Annotation:
    """One message, at a place in a file where there is one. Its texts are sanitised, each of one line."""

    level: Level
    title: str
    message: str
    file: str | None = None
    line: int | None = None


def annotations(results: Results) -> tuple[Annotation, ...]:
    """The verdict, then the tests that failed, the worst first, then those that came to nothing."""
    standing = highlights.standing(results)
    if standing is Standing.SKIPPED:
        return (_of_run(results, Level.NOTICE),)
    holds = standing is Standing.HOLDS
    return (
        *([] if holds else [_of_run(results, Level.ERROR)]),
        *_failed(results, Level.WARNING if holds else Level.ERROR),
        *_unsound(results),
    )


def _of_run(results: Results, level: Level) -> Annotation:
    reasons = "; ".join(results.gate.reasons) or results.run.stopped_because
    told = [highlights.verdict(results), reasons or change.sentence(results)]
    return _made(level, "ci-evals", ": ".join(told))


def _failed(results: Results, level: Level) -> Iterator[Annotation]:
    found = results.comparison
    newly = [(test.suite, test.name) for test in change.failing(found)] if found else []

    def badness(failed: tuple[SuiteResult, TestResult]) -> tuple[int, bool, float]:
        suite, test = failed
        key = (suite.name, test.name)
        return newly.index(key) if key in newly else len(newly), not test.critical, test.score or 0

    for suite, test in sorted(highlights.tests_of(results, "failed"), key=badness):
        criteria = [
            f"{failed.finding.criterion}: {failed.finding.reason or 'no reason was given'}"
            for failed in highlights.failed_criteria(test)
        ]
        since = " (passed in the baseline)" if (suite.name, test.name) in newly else ""
        told = f"score {numbers.score(test.score)}{since}. {' | '.join(criteria)}"
        yield _made(level, f"Failed: {test.name}", told, suite, test)


def _unsound(results: Results) -> Iterator[Annotation]:
    for suite, test in highlights.tests_of(results, "error", "undecided", "not_run"):
        if highlights.only_judge_missing(test):
            continue
        found = highlights.troubles([suite.model_copy(update={"tests": (test,)})])
        told = "; ".join(f"{trouble.what}: {trouble.why}" for trouble in found)
        yield _made(Level.WARNING, f"{highlights.result(test)}: {test.name}", told, suite, test)


def _made(
    level: Level, title: str, message: str, suite: SuiteResult | None = None, test: TestResult | None = None
) -> Annotation:
    own = suite is not None and not suite.file.startswith(_BUNDLED)
    return Annotation(
        level=level,
        title=sanitize.log_line(title, _TITLE_LIMIT),
        message=sanitize.log_line(message, _REASON_LIMIT),
        file=suite.file if suite and own else None,
        line=test.line if test and own else None,
    )
