"""The table of all tests: a row each, with what it is filtered and sorted by."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState
from ci_evals.reports import sanitize
from ci_evals.reports.facts import headline, highlights, labels, set_aside
from ci_evals.reports.facts.failed_tests import FailedTest
from ci_evals.reports.facts.headline import Became
from ci_evals.reports.page.embedded_data import TestView

_NAME = 300
"""Characters of a name."""
_ORDER = ("failed", "error", "undecided", "not_run", "passed")
"""Outcomes, the worst first."""


class NumberCell(NamedTuple):
    """A number as it is shown, and to sort by; None if there is none."""

    text: str
    key: float | None


@dataclass(frozen=True)
class TestRow:
    """One test."""

    view: TestView
    became: Became | None
    base: float | None
    """The baseline's score, if the two were compared."""

    @property
    def outcome(self) -> str:
        """Its outcome."""
        return self.view.test.outcome.value

    @property
    def words(self) -> str:
        """The words for the outcome: `failed`."""
        return labels.OUTCOMES[self.outcome].words

    @property
    def order(self) -> int:
        """To sort by: the worst first, and of these what is new."""
        return 2 * _ORDER.index(self.outcome) + (self.became not in {Became.BROKE, Became.UNJUDGED})

    @property
    def score(self) -> NumberCell:
        """The score."""
        return NumberCell(numbers.score(self.view.test.score), self.view.test.score)

    @property
    def baseline(self) -> NumberCell:
        """The baseline's score."""
        return NumberCell("" if self.base is None else numbers.score(self.base), self.base)

    @cached_property
    def delta(self) -> NumberCell:
        """The change of the score."""
        score = self.view.test.score
        delta = None if self.base is None or score is None else score - self.base
        return NumberCell("" if delta is None else numbers.changed(self.base, score), delta)

    @property
    def changed(self) -> bool:
        """True if the score or the outcome differs from the baseline's."""
        return bool(self.became) or bool(self.delta.key and abs(self.delta.key) > 1e-9)

    @property
    def passes(self) -> NumberCell:
        """The trials that passed."""
        test = self.view.test
        scored = any(trial.scored for trial in test.trials)
        return NumberCell(highlights.passes(test) if scored else numbers.NONE, test.pass_rate)

    @property
    def latency(self) -> NumberCell:
        """The median latency of its replies."""
        latencies = [seconds for trial in self.view.test.trials for seconds in trial.turns.latencies]
        half = median(latencies) if latencies else None
        return NumberCell(numbers.latency(half), half)

    @property
    def excluded(self) -> int:
        """Trials that are excluded for their simulated user."""
        return sum(trial.status is EndState.INVALID_USER for trial in self.view.test.trials)

    @property
    def other_marks(self) -> tuple[str, ...]:
        """The words for a test that counts otherwise than the rest."""
        return set_aside.marks(self.view.test)

    @property
    def worst(self) -> str:
        """The criterion that failed most; may be empty."""
        failed = FailedTest("", "", self.view.test).criteria
        return failed[0].finding.criterion if failed else ""

    @cached_property
    def facets(self) -> dict[str, list[str]]:
        """The values for the filters."""
        test = self.view.test
        findings = (finding for trial in test.trials for finding in trial.findings)
        categories = dict.fromkeys(finding.category for finding in findings if finding.category)
        marks = (("flaky", test.flaky), ("changed", self.changed))
        return {
            "status": [self.outcome],
            "suite": [_line(self.view.suite)],
            "tags": list(map(_line, test.tags)),
            "categories": list(map(_line, categories)),
            "marks": [*(mark for mark, is_set in marks if is_set), *self.other_marks],
        }


class FilterChoice(NamedTuple):
    """A value that rows can be filtered by."""

    value: str
    words: str
    rows: int


@dataclass(frozen=True)
class TestTable:
    """The table, and what it can be filtered by."""

    rows: Sequence[TestRow]
    several_suites: bool
    compared: bool
    """True if there is a baseline to show beside the scores."""

    @property
    def filters(self) -> Iterable[tuple[str, str, list[FilterChoice]]]:
        """The filters with something to choose from: facet, label and choices."""
        for facet, label in (
            ("status", "Result"),
            ("suite", "Suite"),
            ("tags", "Tag"),
            ("categories", "Category"),
        ):
            counts = Counter(value for row in self.rows for value in set(row.facets[facet]))
            values = _ORDER if facet == "status" else sorted(counts, key=str.casefold)
            choices = [
                FilterChoice(
                    value, labels.OUTCOMES[value].words if facet == "status" else value, counts[value]
                )
                for value in values
                if counts[value]
            ]
            if len(choices) > 1:
                yield facet, label, choices

    def marked(self, mark: str) -> int:
        """The number of rows with a mark, `flaky` or `changed`."""
        return sum(mark in row.facets["marks"] for row in self.rows)


def of(results: Results, tests: Sequence[TestView]) -> TestTable:
    """The table of these tests."""
    comparison, became = results.comparison, headline.became(results)
    named = (
        {
            (test.suite, test.name): test.base
            for test in (*comparison.suspects, *comparison.fixed, *comparison.regressed)
        }
        if comparison
        else {}
    )
    compared = comparison is not None and comparison.delta is not None
    rows = []
    for view in tests:
        name = (view.of.name, view.test.name)
        base = view.base.score if compared and view.base and view.same else None
        rows.append(TestRow(view, became.get(name), named.get(name, base)))
    several = len({view.suite for view in tests}) > 1
    return TestTable(rows, several, any(row.base is not None for row in rows))


def _line(text: str) -> str:
    return sanitize.one_line(text, _NAME)
