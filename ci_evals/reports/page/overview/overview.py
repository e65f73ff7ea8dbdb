"""What stands on the page before a test is opened, as facts that its template only places."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.facts import change
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import gallery
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import broken, head, measures, process, trust
from ci_evals.reports.page.overview import tests as table_of_tests
from ci_evals.reports.page.overview.head import Head
from ci_evals.reports.page.overview.measures import Coverage
from ci_evals.reports.page.overview.places import Places
from ci_evals.reports.page.overview.table import Table
from ci_evals.reports.page.overview.tests import Tests
from ci_evals.reports.page.overview.told import Broken
from ci_evals.reports.page.overview.trust import Trust


@dataclass(frozen=True)
class Overview:
    """All of it, in plain text that is made safe to be shown, and not yet escaped."""

    head: Head
    broken: Broken
    suites: Table
    gate: Table | None
    figures: tuple[Figure, ...]
    tests: Tests
    differences: tuple[tuple[str, tuple[str, ...]], ...]
    """Tests that were not compared: why, and their names."""
    groups: tuple[Table, ...]
    process: Table
    usage: Table | None
    latency: Table | None
    pace: str | None
    """Cost and latency on both sides, where the baseline itself is not there to be shown beside."""
    coverage: Coverage
    trust: Trust | None
    trusted: tuple[Figure, ...]
    """The charts of judge and simulated user."""


def of(results: Results, tests: Sequence[TestView], comparison_runs: ComparisonRuns) -> Overview:
    """The overview of these results."""
    found, places = results.comparison, Places(tests)
    differences = change.differences(found) if found else ()
    return Overview(
        head=head.of(results, places),
        broken=broken.of(results, places, comparison_runs),
        suites=measures.of_suites(results),
        gate=measures.of_gate(results),
        figures=tuple(map(_clean, gallery.figures(results, tests, comparison_runs))),
        tests=table_of_tests.of(results, tests),
        differences=tuple((one.title, tuple(map(sanitize.one_line, one.tests))) for one in differences),
        groups=measures.of_groups(results),
        process=process.table_of(results, comparison_runs.baseline),
        usage=measures.of_usage(results),
        latency=measures.of_latency(results, comparison_runs.baseline),
        pace=change.pace(found) if found and not comparison_runs.baseline else None,
        coverage=measures.of_coverage(results),
        trust=trust.of(results),
        trusted=tuple(map(_clean, gallery.of_trust(results))),
    )


def _clean(figure: Figure) -> Figure:
    return replace(
        figure,
        title=sanitize.one_line(figure.title),
        says=sanitize.one_line(figure.says),
        headers=tuple(map(sanitize.one_line, figure.headers)),
        rows=tuple(tuple(map(sanitize.one_line, row)) for row in figure.rows),
    )
