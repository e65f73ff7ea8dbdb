"""All charts of a page, in the order of reading."""

from ci_evals.reports.page.charts import changes, latency, quality, scores, trend
from ci_evals.reports.page.charts.figure import Figure
from ci_evals.reports.story.story import Story


def of_run(story: Story) -> tuple[Figure, ...]:
    """The charts that a run has something to show in."""
    drawn = (chart.figure(story) for chart in (scores, changes, latency, quality, trend))
    return tuple(figure for figure in drawn if figure)
