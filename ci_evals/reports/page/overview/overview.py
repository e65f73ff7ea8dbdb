"""The page before a test is opened, as facts that the templates only place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.facts import change, reliability
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import figures
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import headline, measures, process, test_table, what_broke
from ci_evals.reports.page.overview.headline import Headline
from ci_evals.reports.page.overview.measures import CoverageTables
from ci_evals.reports.page.overview.table import Table, table
from ci_evals.reports.page.overview.test_links import TestLinks
from ci_evals.reports.page.overview.test_table import TestTable
from ci_evals.reports.page.overview.what_broke import WhatBroke

_REMARK = 1_000
"""Characters of a remark."""


@dataclass(frozen=True)
class Reliability:
    """The reliability of judge and simulated user, in sentences, charts and tables."""

    remarks: tuple[tuple[str, str], ...]
    """Each a topic and what is known of it."""
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    long: tuple[Table, ...]
    """The tables with a row for each criterion or test."""


@dataclass(frozen=True)
class Overview:
    """The overview in plain texts, made safe to be shown and not yet escaped."""

    headline: Headline
    what_broke: WhatBroke
    suites: Table
    gate: Table | None
    figures: tuple[Figure, ...]
    tests: TestTable
    differences: tuple[tuple[str, tuple[str, ...]], ...]
    """Tests that were not compared: why, and their names."""
    groups: tuple[Table, ...]
    process: Table
    usage: Table | None
    latency: Table | None
    pace: str | None
    """Cost and latency on both sides, where the baseline itself is not there to be shown beside."""
    coverage: CoverageTables
    reliability: Reliability | None


def of(results: Results, tests: Sequence[TestView], comparison_runs: ComparisonRuns) -> Overview:
    """The overview of these results."""
    comparison, links = results.comparison, TestLinks(tests)
    differences = change.differences(comparison) if comparison else ()
    return Overview(
        headline=headline.of(results, links),
        what_broke=what_broke.of(results, links, comparison_runs),
        suites=measures.of_suites(results),
        gate=measures.of_gate(results),
        figures=tuple(map(_clean, figures.of_run(results, tests, comparison_runs))),
        tests=test_table.of(results, tests),
        differences=tuple(
            (difference.title, tuple(map(sanitize.one_line, difference.tests))) for difference in differences
        ),
        groups=measures.of_groups(results),
        process=process.table_of(results, comparison_runs.baseline),
        usage=measures.of_usage(results),
        latency=measures.of_latency(results, comparison_runs.baseline),
        pace=change.pace(comparison) if comparison and not comparison_runs.baseline else None,
        coverage=measures.of_coverage(results),
        reliability=_reliability(results),
    )


def _reliability(results: Results) -> Reliability | None:
    """Return the section on judge and simulated user; None if nothing is known of them."""
    remarks = reliability.remarks(results)
    if not remarks:
        return None
    tables = [
        (
            plain.long,
            table(
                plain.title,
                plain.headers,
                plain.rows,
                texts=plain.texts,
                tones=["bad" if bad else "" for bad in plain.bad],
            ),
        )
        for plain in reliability.tables(results)
    ]
    return Reliability(
        remarks=tuple((remark.topic, sanitize.one_line(remark.text, _REMARK)) for remark in remarks),
        figures=tuple(map(_clean, figures.of_reliability(results))),
        tables=tuple(whole for long, whole in tables if not long),
        long=tuple(whole for long, whole in tables if long),
    )


def _clean(figure: Figure) -> Figure:
    return replace(
        figure,
        title=sanitize.one_line(figure.title),
        says=sanitize.one_line(figure.says),
        headers=tuple(map(sanitize.one_line, figure.headers)),
        rows=tuple(tuple(map(sanitize.one_line, row)) for row in figure.rows),
    )
