"""Tests that count otherwise: those in quarantine, and those taken from an earlier run. Not yet sanitized."""

from collections import Counter
from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.reused import TakenFrom
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import Counts, TestResult
from ci_evals.reports.story.outcome_labels import OUTCOMES
from ci_evals.reports.story.phrases import commit_name, moment

_MOST_SET_ASIDE = 5
"""Tests that have a sentence each."""


def marks(test: TestResult) -> tuple[str, ...]:
    """The words to follow a test's outcome."""
    words = (("in quarantine", test.quarantine), ("not played", test.taken_from))
    return tuple(mark for mark, holds in words if holds)


def counts(found: Counts) -> tuple[str, ...]:
    """How many tests of a run count otherwise."""
    numbered = ((found.quarantined, "in quarantine"), (found.taken, "not played"))
    return tuple(f"{number:,} {words}" for number, words in numbered if number)


def notes(results: Results) -> Iterator[str]:
    """Yield what a reader must know of these tests."""
    yield from _taken_notes(results)
    yield from _quarantine_notes(results)


def facts(test: TestResult) -> tuple[str, ...]:
    """A remark for the reader of one of these tests."""
    said = []
    if source := test.taken_from:
        said.append(f"This test was not played: its trials are of {_source(source)}.")
    if why := quarantine(test):
        said.append(f"This test is {why}.")
    return tuple(said)


def taken_from(test: TestResult) -> str | None:
    """The origin of a test's trials; None if it was played."""
    return f"not played, taken from {_source(test.taken_from)}" if test.taken_from else None


def quarantine(test: TestResult) -> str | None:
    """Until when a test is in quarantine, and why; None for one that decides."""
    if (why := test.quarantine) is None:
        return None
    owner = f" (owner: {why.owner})" if why.owner else ""
    return f"in quarantine until {why.until}, so it decides nothing: {why.reason.rstrip('.')}{owner}"


def _taken_notes(results: Results) -> Iterator[str]:
    counted = Counter(test.taken_from for test in results.tests if test.taken_from)
    whole = numbers.count(results.counts.tests, "test")
    for source, number in counted.items():
        were, they, depend = "were", "they", "depend"
        if number == 1:
            were, they, depend = "was", "it", "depends"
        not_played = f"{number:,} of {whole} {were} not played"
        taken = f"taken from {_source(source)}"
        match source.reason:
            case "passed":
                looks = "A flaky test that is rerun until it passes looks sound."
                yield f"{not_played}: {taken}, in which {they} passed. {looks}"
            case "unchanged":
                yield f"{not_played}, since no change touches what {they} {depend} on: {taken}."


def _source(source: TakenFrom) -> str:
    commit, began = commit_name(source), moment(source.started_at)
    return f"the run of {began} (commit {commit})" if commit else f"the run of {began}"


def _quarantine_notes(results: Results) -> Iterator[str]:
    found = [
        (f"{suite.name} › {test.name}" if len(results.suites) > 1 else test.name, test)
        for suite in results.suites
        for test in suite.tests
        if test.quarantine
    ]
    for name, test in found[:_MOST_SET_ASIDE]:
        yield f"“{name}” ({OUTCOMES[test.outcome].words}) is {quarantine(test)}."
    if (more := len(found) - _MOST_SET_ASIDE) > 0:
        yield f"{numbers.count(more, 'more test')} {'is' if more == 1 else 'are'} in quarantine."
