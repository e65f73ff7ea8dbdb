"""The page before a test is opened, as facts that the templates only place."""

from collections.abc import Sequence
from typing import NamedTuple

from ci_evals.domain.results.run import Results
from ci_evals.reports.facts import reliability
from ci_evals.reports.facts.comparison import arms, change
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.facts.judging.parts import PlainTable
from ci_evals.reports.facts.reliability import Remark
from ci_evals.reports.page.charts import figures
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import headline, tables, test_table, what_broke
from ci_evals.reports.page.overview.tables import Table
from ci_evals.reports.page.overview.test_links import TestLinks


class Reliability(NamedTuple):
    """The reliability of judge and simulated user, in sentences, charts and tables."""

    remarks: Sequence[Remark]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    long: Sequence[Table]
    """The tables with a row for each criterion or test."""


def values_of(
    results: Results, tests: Sequence[TestView], comparison_runs: ComparisonRuns
) -> dict[str, object]:
    """The values that the page's templates place, in plain text: they sanitize and escape it."""
    comparison, baseline = results.comparison, comparison_runs.baseline
    return {
        "headline": headline.of(results),
        "what_broke": what_broke.of(results, TestLinks(tests), comparison_runs),
        "suites": tables.of_suites(results),
        "gate": tables.of_gate(results),
        "figures": figures.of_run(results, tests, comparison_runs),
        "agents": [_table(plain) for plain in arms.tables(results)],
        "tests": test_table.of(results, tests),
        "differences": change.differences(comparison) if comparison else (),
        "groups": tables.of_groups(results),
        "process": tables.of_process(results, baseline),
        "usage": tables.of_usage(results),
        "latency": tables.of_latency(results, baseline),
        # Cost and latency on both sides, where the baseline itself is not there to be shown beside.
        "pace": change.pace(comparison) if comparison and not baseline else None,
        "coverage": tables.of_coverage(results),
        "reliability": _reliability(results),
    }


def _reliability(results: Results) -> Reliability | None:
    """Return the section on judge and simulated user; None if nothing is known of them."""
    remarks = reliability.remarks(results)
    if not remarks:
        return None
    short: list[Table] = []
    long: list[Table] = []
    for plain in reliability.tables(results):
        (long if plain.long else short).append(_table(plain))
    return Reliability(remarks, figures.of_reliability(results), short, long)


def _table(plain: PlainTable) -> Table:
    tones = ["bad" if bad else "" for bad in plain.bad]
    return Table(plain.title, plain.headers, plain.rows, plain.texts, tones)
