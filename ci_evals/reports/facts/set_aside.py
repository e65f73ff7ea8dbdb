"""The tests that count otherwise than the rest: in quarantine. Sentences and marks, not yet sanitized."""

from collections.abc import Iterator

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import Counts, TestResult
from ci_evals.reports import numbers
from ci_evals.reports.facts.labels import OUTCOMES

_NAMED = 5
"""Tests that have a sentence each."""


def passed_of(counts: Counts) -> str:
    """The tests that passed, of those that could: `6 of 8`."""
    return f"{counts.passed:,} of {counts.deciding:,}"


def marks(test: TestResult) -> tuple[str, ...]:
    """The words to follow a test's outcome."""
    return ("in quarantine",) if test.quarantine else ()


def sentences(results: Results) -> Iterator[str]:
    """Yield what a reader must know of these tests."""
    yield from _in_quarantine(results)


def sentences_of(test: TestResult) -> tuple[str, ...]:
    """What a reader must know of one of these tests."""
    why = quarantine(test)
    return (f"This test is {why}.",) if why else ()


def quarantine(test: TestResult) -> str | None:
    """Until when a test is in quarantine, and why; None for one that decides."""
    if (why := test.quarantine) is None:
        return None
    owner = f" (owner: {why.owner})" if why.owner else ""
    return f"in quarantine until {why.until}, so it decides nothing: {why.reason.rstrip('.')}{owner}"


def _in_quarantine(results: Results) -> Iterator[str]:
    found = [
        (f"{suite.name} › {test.name}" if len(results.suites) > 1 else test.name, test)
        for suite in results.suites
        for test in suite.tests
        if test.quarantine
    ]
    for name, test in found[:_NAMED]:
        yield f"“{name}” ({OUTCOMES[test.outcome].words}) is {quarantine(test)}."
    if (more := len(found) - _NAMED) > 0:
        yield f"{numbers.count(more, 'more test')} {'is' if more == 1 else 'are'} in quarantine."
