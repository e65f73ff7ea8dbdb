"""The table of all tests: a row each, with what it is filtered and sorted by."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ci_evals.domain.transcript import EndState
from ci_evals.reports import sanitize
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.story import tables, test_words
from ci_evals.reports.story.failures import Became
from ci_evals.reports.story.outcome_labels import OUTCOMES
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Room, Table
from ci_evals.reports.story.tables import TestRow

_NAME = 300
"""Characters of a name."""
_ORDER = ("failed", "error", "undecided", "not_run", "passed")
"""Outcomes, the worst first."""


@dataclass(frozen=True)
class PageRow:
    """One test of the page."""

    view: TestView
    of: TestRow

    @property
    def outcome(self) -> str:
        """Its outcome."""
        return self.view.test.outcome.value

    @property
    def words(self) -> str:
        """The words for the outcome: `failed`."""
        return OUTCOMES[self.outcome].words

    @property
    def order(self) -> int:
        """To sort by: the worst first, and of these what is new."""
        return 2 * _ORDER.index(self.outcome) + (self.of.became not in {Became.BROKE, Became.UNJUDGED})

    @property
    def excluded(self) -> int:
        """Trials that are excluded for their simulated user."""
        return sum(trial.status is EndState.INVALID_USER for trial in self.view.test.trials)

    @property
    def other_marks(self) -> tuple[str, ...]:
        """The words for a test that counts otherwise than the rest."""
        return test_words.set_aside_marks(self.view.test)

    @cached_property
    def facets(self) -> dict[str, list[str]]:
        """The values for the filters."""
        test = self.view.test
        marks = (("flaky", test.flaky), ("changed", self.of.changed))
        return {
            "status": [self.outcome],
            "suite": [_line(self.view.suite)],
            "tags": list(map(_line, test.tags)),
            "categories": list(map(_line, self.of.categories)),
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

    table: Table
    rows: Sequence[PageRow]
    """The tests of its rows."""

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
                FilterChoice(value, OUTCOMES[value].words if facet == "status" else value, counts[value])
                for value in values
                if counts[value]
            ]
            if len(choices) > 1:
                yield facet, label, choices

    def marked(self, mark: str) -> int:
        """The number of rows with a mark, `flaky` or `changed`."""
        return sum(mark in row.facets["marks"] for row in self.rows)


def of(story: Story, tests: Sequence[TestView]) -> TestTable:
    """The table of these tests, those first that failed."""
    by_test = {id(row.test): row for suite in story.suites for row in suite.tests}
    several = len({view.suite for view in tests}) > 1
    rows = []
    for view in tests:
        shown = replace(by_test[id(view.test)], suite_shown=view.suite if several else "")
        rows.append(PageRow(view, shown))
    rows.sort(key=lambda row: row.order)
    return TestTable(tables.tests("Tests", [row.of for row in rows], Room.MUCH), rows)


def _line(text: str) -> str:
    return sanitize.one_line(text, _NAME)
