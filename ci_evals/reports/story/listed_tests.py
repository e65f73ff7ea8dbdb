"""The tests that reports list: of a large run of another tool not all."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.reports.story.outcome_labels import OUTCOMES

MOST_TESTS = 1_000
"""Tests of other tools up to which reports list all and each gets a file. All are in the results file."""
_WORST_FIRST = (
    TestOutcome.FAILED,
    TestOutcome.ERROR,
    TestOutcome.UNDECIDED,
    TestOutcome.NOT_RUN,
    TestOutcome.PASSED,
)


def lists_some_tests(results: Results) -> bool:
    """Return whether reports list only some tests: all suites are another tool's, and there are many."""
    return sum(len(suite.tests) for suite in results.suites) > MOST_TESTS and all(
        suite.of_other_tool for suite in results.suites
    )


@dataclass(frozen=True)
class ListedTests:
    """The tests that reports list: those that changed, then the worst."""

    listed: frozenset[int] | None = None
    """The identities of their results; None for all."""
    left_out: Mapping[TestOutcome, int] = field(default_factory=dict)
    """Tests that are not listed, by outcome."""
    most: int | None = None
    """Tests of any further list up to which each is shown; None for all."""

    def has(self, test: TestResult) -> bool:
        """Return whether the test is listed."""
        return self.listed is None or id(test) in self.listed

    @property
    def note(self) -> str | None:
        """How many of each outcome are not listed, in a sentence; None if all are listed."""
        if self.listed is None:
            return None
        left = (
            f"{self.left_out[outcome]:,} {OUTCOMES[outcome].words}"
            for outcome in _WORST_FIRST
            if self.left_out.get(outcome)
        )
        return (
            f"{numbers.count(sum(self.left_out.values()), 'test')} not listed: {', '.join(left)}. "
            "All tests are in _results.json."
        )


def of_run(results: Results) -> ListedTests:
    """Return the tests of a run to list: of many at most `MOST_TESTS`."""
    if not lists_some_tests(results):
        return ListedTests()
    comparison = results.comparison
    broke = {(test.suite, test.name) for test in comparison.regressed} if comparison else set()
    fixed = {(test.suite, test.name) for test in comparison.fixed} if comparison else set()
    ranked: dict[int, list[TestResult]] = {}
    for suite in results.suites:
        for test in suite.tests:
            rank = 2 * _WORST_FIRST.index(test.outcome)
            name = (suite.name, test.name)
            if name in broke:
                rank = -1
            elif name in fixed:
                rank -= 1
            ranked.setdefault(rank, []).append(test)
    ordered = (test for rank in sorted(ranked) for test in ranked[rank])
    listed = frozenset(map(id, islice(ordered, MOST_TESTS)))
    return ListedTests(listed, Counter(test.outcome for test in ordered), MOST_TESTS)
