"""All charts of a page, in the order of reading."""

from collections.abc import Sequence

from ci_evals.domain.results.run import Results
from ci_evals.reports.page.charts import changes, latency, quality, scores, trend
from ci_evals.reports.page.charts.figure import Figure
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView


def of_run(
    results: Results, tests: Sequence[TestView], comparison_runs: ComparisonRuns
) -> tuple[Figure, ...]:
    """The charts that these results have something to show in."""
    drawn = (
        scores.by_suite(results),
        changes.figure(results, tests),
        latency.figure(results, comparison_runs.baseline),
        quality.figure(results, comparison_runs),
        trend.figure(results, comparison_runs),
    )
    return tuple(figure for figure in drawn if figure)
