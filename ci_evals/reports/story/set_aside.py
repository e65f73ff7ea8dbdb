"""The tests that count otherwise than the rest: in quarantine, or taken from an earlier run.

Sentences and marks, not yet sanitized.
"""

from collections import Counter
from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import Counts, TestResult
from ci_evals.domain.results.taken import TakenFrom
from ci_evals.reports.story.comparison import change
from ci_evals.reports.story.labels import OUTCOMES

_NAMED = 5
"""Tests that have a sentence each."""


def passed_of(counts: Counts) -> str:
    """The tests that passed, of those that could: `6 of 8`."""
    return f"{counts.passed:,} of {counts.deciding:,}"


def marks(test: TestResult) -> tuple[str, ...]:
    """The words to follow a test's outcome."""
    marks = (("in quarantine", test.quarantine), ("not played", test.taken_from))
    return tuple(mark for mark, holds in marks if holds)


def others(counts: Counts) -> tuple[str, ...]:
    """How many tests of a run count otherwise."""
    numbered = ((counts.quarantined, "in quarantine"), (counts.taken, "not played"))
    return tuple(f"{number:,} {words}" for number, words in numbered if number)


def sentences(results: Results) -> Iterator[str]:
    """Yield what a reader must know of these tests."""
    yield from _not_played(results)
    yield from _in_quarantine(results)


def sentences_of(test: TestResult) -> tuple[str, ...]:
    """What a reader must know of one of these tests."""
    said = []
    if source := test.taken_from:
        said.append(f"This test was not played: its trials are of {_run(source)}.")
    if why := quarantine(test):
        said.append(f"This test is {why}.")
    return tuple(said)


def not_played(test: TestResult) -> str | None:
    """Where the trials of a test are from; None if it was played."""
    return f"not played, taken from {_run(test.taken_from)}" if test.taken_from else None


def quarantine(test: TestResult) -> str | None:
    """Until when a test is in quarantine, and why; None for one that decides."""
    if (why := test.quarantine) is None:
        return None
    owner = f" (owner: {why.owner})" if why.owner else ""
    return f"in quarantine until {why.until}, so it decides nothing: {why.reason.rstrip('.')}{owner}"


def _not_played(results: Results) -> Iterator[str]:
    counted = Counter(test.taken_from for test in results.tests if test.taken_from)
    whole = numbers.count(results.counts.tests, "test")
    for source, number in counted.items():
        were = f"{number:,} of {whole} {'was' if number == 1 else 'were'} not played"
        match source.reason:
            case "passed":
                yield (
                    f"{were}: taken from {_run(source)}, in which {'it' if number == 1 else 'they'} passed. "
                    "A flaky test that is rerun until it passes looks sound."
                )
            case "unchanged":
                they_depend = "it depends" if number == 1 else "they depend"
                yield f"{were}, since no change touches what {they_depend} on: taken from {_run(source)}."


def _run(source: TakenFrom) -> str:
    commit = f" (commit {source.commit[: change.COMMIT]})" if source.commit else ""
    return f"the run of {change.moment(source.started_at)}{commit}"


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
