"""All charts of a page, in the order of reading."""

from collections.abc import Sequence

from ci_evals.domain.results.run import Results
from ci_evals.reports.page.charts import (
    agreement,
    changes,
    latency,
    looks,
    quality,
    scores,
    spending,
    trend,
    trials,
)
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.story import reliability
from ci_evals.reports.story.figure import Figure


def of_run(
    results: Results, tests: Sequence[TestView], comparison_runs: ComparisonRuns
) -> tuple[Figure, ...]:
    """The charts that these results have something to show in."""
    drawn = (
        scores.by_suite(results),
        changes.figure(results, tests),
        scores.by_group(results, comparison_runs.baseline),
        trend.figure(results, comparison_runs),
        looks.figure(results),
        quality.figure(results, comparison_runs),
        trials.figure(results, comparison_runs.baseline),
        latency.figure(results, comparison_runs.baseline),
        spending.time(results),
        spending.usage(results),
    )
    return tuple(figure for figure in drawn if figure)


def of_reliability(results: Results) -> tuple[Figure, ...]:
    """The charts of judge and simulated user."""
    votes = agreement.figure(results)
    of_studies = (figure for study in reliability.studies(results) for figure in study.figures())
    return (*([votes] if votes else []), *of_studies)
