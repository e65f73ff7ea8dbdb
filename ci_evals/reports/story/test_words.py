"""A test in words: its result, its trials, and why it counts otherwise than the rest. Not yet sanitized."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.results.reused import TakenFrom
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import Counts, SuiteResult, TestResult
from ci_evals.domain.suite import is_bundled
from ci_evals.domain.verdict import NOT_WANTED, Cause, Outcome
from ci_evals.reports.story.outcome_labels import OUTCOMES
from ci_evals.reports.story.phrases import commit_name, moment
from ci_evals.scoring import scores

_MOST_SET_ASIDE = 5
"""Tests that have a sentence each."""


def file_of(suite: SuiteResult) -> str | None:
    """The suite's file; None of a bundled suite or another tool's results, which no repository has."""
    return None if is_bundled(suite.file) or suite.of_other_tool else suite.file


def only_model_missing(test: TestResult) -> Cause | None:
    """Return why no model was there to decide this test; None unless that alone was missing."""
    undecided = [f for trial in test.trials for f in trial.findings if f.outcome is Outcome.UNDECIDED]
    causes = {finding.cause for finding in undecided}
    is_open = test.outcome == "undecided" and causes <= NOT_WANTED
    return min(filter(None, causes), default=None) if is_open else None


def test_result(test: TestResult) -> str:
    """A test's outcome with what else is to be said of it: `failed (critical test, flaky)`."""
    findings = [finding for trial in test.trials for finding in trial.findings]
    causes = [finding.cause for finding in findings if finding.outcome is Outcome.UNDECIDED]
    marks = [mark for mark, holds in (("critical test", test.critical), ("flaky", test.flaky)) if holds]
    if causes and test.outcome == "passed":
        # As with the provider offline, where a missing judge is no fault of the test.
        became = "not judged" if set(causes) == {Cause.NO_JUDGE} else "undecided"
        marks.append(f"{numbers.count(len(causes), 'criterion', 'criteria')} {became}")
    marks += set_aside_marks(test)
    words = "not scored" if test.outcome == "passed" and test.score is None else OUTCOMES[test.outcome].words
    return f"{words} ({', '.join(marks)})" if marks else words


def trial_counts(test: TestResult) -> str:
    """The number of its trials that passed, and of those that decide nothing: `1 of 3, 2 errored`."""
    counted = sum(trial.counts for trial in test.trials)
    excluded = sum(trial.excluded for trial in test.trials)
    failed = sum(trial.counts and scores.failed(trial) for trial in test.trials)
    others = (
        (max(0, counted - _passed(test) - failed), "undecided"),
        (len(test.trials) - counted - excluded, "errored"),
        (excluded, "excluded"),
        (test.not_run, "not run"),
    )
    return ", ".join([trials_passed(test), *(f"{number} {words}" for number, words in others if number)])


def trials_passed(test: TestResult) -> str:
    """The number of all its trials that passed: `1 of 3`."""
    return f"{_passed(test)} of {len(test.trials) + test.not_run}"


def _passed(test: TestResult) -> int:
    return round((test.pass_rate or 0) * sum(trial.scored for trial in test.trials))


def passes(test: TestResult) -> str:
    """The number of scored trials that passed every evaluation: `2 of 3`."""
    return f"{_passed(test)} of {sum(trial.scored for trial in test.trials)}"


class FlakyTests(NamedTuple):
    """The tests whose trials disagree."""

    title: str
    tests: tuple[tuple[TestResult, str], ...]
    """Each with how often it passed."""


def flaky(suites: Iterable[SuiteResult]) -> FlakyTests:
    """Return the tests whose trials disagree."""
    tests = [test for suite in suites for test in suite.tests if test.flaky]
    title = f"{numbers.count(len(tests), 'flaky test')}: not all trials agree"
    return FlakyTests(title, tuple((test, f"{passes(test)} trials passed") for test in tests))


def pass_hat_k(test: TestResult) -> dict[int, float]:
    """By k how likely all of k trials pass."""
    return test.statistics.pass_hat_k if test.statistics else {}


def tests_of(results: Results, *outcomes: str) -> Iterator[tuple[SuiteResult, TestResult]]:
    """The tests with one of these outcomes, in the order of the run, without those in quarantine."""
    for suite in results.suites:
        for test in scores.deciding(suite.tests):
            if test.outcome in outcomes:
                yield suite, test


def passed_of(counts: Counts) -> str:
    """The tests that passed, of those that could: `6 of 8`."""
    return f"{counts.passed:,} of {counts.deciding:,}"


def set_aside_marks(test: TestResult) -> tuple[str, ...]:
    """The words to follow a test's outcome."""
    words = (("in quarantine", test.quarantine), ("not played", test.taken_from))
    return tuple(mark for mark, holds in words if holds)


def set_aside_counts(found: Counts) -> tuple[str, ...]:
    """How many tests of a run count otherwise."""
    numbered = ((found.quarantined, "in quarantine"), (found.taken, "not played"))
    return tuple(f"{number:,} {words}" for number, words in numbered if number)


def set_aside_notes(results: Results) -> Iterator[str]:
    """Yield what a reader must know of these tests."""
    yield from _taken_notes(results)
    yield from _quarantine_notes(results)


def set_aside_facts(test: TestResult) -> tuple[str, ...]:
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
