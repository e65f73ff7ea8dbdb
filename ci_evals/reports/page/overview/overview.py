"""The page before a test is opened, as facts that the templates only place."""

from collections.abc import Sequence
from typing import NamedTuple

from ci_evals.reports.page.charts import figures
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import headline, test_table, what_broke
from ci_evals.reports.page.overview.test_links import TestLinks
from ci_evals.reports.story.judging import Remark
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Table


class Reliability(NamedTuple):
    """The reliability of judge and simulated user, in sentences and tables."""

    remarks: Sequence[Remark]
    tables: Sequence[Table]
    long: Sequence[Table]
    """The tables with a row for each criterion or test."""


def values_of(story: Story, tests: Sequence[TestView]) -> dict[str, object]:
    """The values that the page's templates place, in plain text: they sanitize and escape it."""
    return {
        "story": story,
        "headline": headline.of(story),
        "what_broke": what_broke.of(story, TestLinks(tests)),
        "figures": figures.of_run(story),
        "tests": test_table.of(story, tests),
        "reliability": _reliability(story),
    }


def _reliability(story: Story) -> Reliability | None:
    """Return the section on judge and simulated user; None if nothing is known of them."""
    remarks = story.judging.remarks
    if not remarks:
        return None
    short: list[Table] = []
    long: list[Table] = []
    for table in story.judging.tables:
        (long if table.long else short).append(table)
    return Reliability(remarks, short, long)
