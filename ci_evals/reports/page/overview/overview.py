"""The page before a test is opened, as facts that the templates only place."""

from collections.abc import Sequence
from typing import NamedTuple

from ci_evals.reports.page.charts import figures
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import headline, test_table, what_broke
from ci_evals.reports.page.overview.test_links import TestLinks
from ci_evals.reports.story import changes, process, tables
from ci_evals.reports.story.judging import Remark
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Table


class Reliability(NamedTuple):
    """The reliability of judge and simulated user, in sentences and tables."""

    remarks: Sequence[Remark]
    tables: Sequence[Table]
    long: Sequence[Table]
    """The tables with a row for each criterion or test."""


def values_of(story: Story, tests: Sequence[TestView], comparison_runs: ComparisonRuns) -> dict[str, object]:
    """The values that the page's templates place, in plain text: they sanitize and escape it."""
    results = story.results
    comparison, baseline = results.comparison, comparison_runs.baseline
    return {
        "headline": headline.of(story),
        "what_broke": what_broke.of(story, TestLinks(tests), comparison_runs),
        "suites": story.tables.suites,
        "gate": story.tables.checks,
        "figures": figures.of_run(results, tests, comparison_runs),
        "agents": story.tables.agents,
        "tests": test_table.of(story, tests),
        "differences": changes.differences(comparison) if comparison else (),
        "groups": [(suite.name, table) for suite in results.suites for table in tables.groups(suite)],
        "process": process.process(results, baseline),
        "usage": tables.usage(results),
        "latency": tables.latency(results, baseline),
        # Cost and latency on both sides, where the baseline itself is not there to be shown beside.
        "pace": changes.pace(comparison) if comparison and not baseline else None,
        "coverage": process.coverage_tables(results),
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
