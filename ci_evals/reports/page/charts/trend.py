"""The score from run to run."""

from collections.abc import Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Entry, Figure, Plot
from ci_evals.reports.page.charts.quality import score_scale
from ci_evals.reports.page.charts.scale import Scale
from ci_evals.reports.story import phrases
from ci_evals.reports.story.comparison_runs import ComparisonRun
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.story import THIS, Story

_PASSED = frozenset({RunOutcome.PASSED, RunOutcome.UNCHECKED})
_FEWEST = 3
"""Runs that make a trend, this one with them."""
_MOST = 40
"""Runs that are drawn, the last ones; more would lie on each other."""
_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 34.0, WIDTH - 10.0, 50.0, 200.0, 224.0
_READING = (
    "Each mark is a run, the oldest on the left. A dot passed its gate; a diamond failed it or has no "
    "verdict. The vertical line is the 95 % interval of the score."
)


def figure(story: Story) -> Figure | None:
    """Return the chart; None if there are not three runs with a score, each of its own time."""
    mine = story.this_run
    played = [run for run in (mine, *story.other_runs) if run.run_outcome is not RunOutcome.SKIPPED]
    runs = sorted(played, key=lambda run: run.at)
    if len({run.at for run in runs if run.score is not None}) < _FEWEST:
        return None
    words = Figure(
        id="chart-trend",
        title="Score over time",
        says=_says(runs),
        reading=_READING,
        headers=("began", "run", "commit", "score", "95 % interval", "verdict"),
        rows=[
            (
                f"{run.at:%Y-%m-%d %H:%M} UTC",
                run.label,
                phrases.commit_name(run),
                numbers.score(run.score),
                numbers.interval(run.interval),
                run.run_outcome.value.words,
            )
            for run in runs
        ],
    )
    return frame.drawn(words, _HEIGHT, _drawn(runs[-_MOST:], mine))


def _drawn(runs: Sequence[ComparisonRun], mine: ComparisonRun) -> Iterator[Drawn]:
    scored = [(index, run, run.score) for index, run in enumerate(runs) if run.score is not None]
    if not scored:
        return
    y = score_scale(runs, _BOTTOM, _TOP)
    plot = Plot(Scale(-0.3, len(runs) - 0.7, _LEFT, _RIGHT), y)
    entries = (Entry("passed", "c-best"), Entry("failed or no verdict", "bad"), Entry(THIS, "ring"))
    yield from frame.key(entries)
    yield from frame.axes(plot, list(_names(plot, runs, mine)), frame.scores_on(y), ("", "score"))
    yield drawing.path([(plot.x(index), y(score)) for index, _, score in scored], "c-line")
    for index, run, score in scored:
        yield drawing.titled(
            f"{_short(run)}, {run.at:%Y-%m-%d %H:%M}: {numbers.score(score)}; {run.run_outcome.value.words}",
            *_marks(plot.x(index), y, run, score, this=run is mine),
        )


def _marks(x: float, y: Scale, run: ComparisonRun, score: float, *, this: bool) -> Iterator[Drawn]:
    if run.interval:
        yield drawing.line(x, y(run.interval.low), x, y(run.interval.high), "c-reach")
    if this:
        yield drawing.circle(x, y(score), "c-ring", radius=9)
    if run.run_outcome in _PASSED:
        yield drawing.circle(x, y(score), "c-best", radius=4.5)
    else:
        yield drawing.diamond(x, y(score), "c-bad", radius=6)


def _names(plot: Plot, runs: Sequence[ComparisonRun], mine: ComparisonRun) -> Iterator[tuple[float, str]]:
    """Commits below the axis, as many as have room: first this run's, the first and the last."""
    last = len(runs) - 1
    here = next((index for index, run in enumerate(runs) if run is mine), last)
    taken: dict[int, tuple[float, float, str]] = {}
    for index in dict.fromkeys((here, 0, last, *range(last, -1, -1))):
        text = drawing.fitted(_short(runs[index]), 80, 12)
        half = drawing.width_of(text, 12) / 2 + 4
        x = min(max(plot.x(index), half), WIDTH - half)
        if all(x + half <= left or right <= x - half for left, right, _ in taken.values()):
            taken[index] = (x - half, x + half, text)
    for index in sorted(taken):
        yield index, taken[index][2]


def _short(run: ComparisonRun) -> str:
    return run.commit[:7] if run.commit else run.label


def _says(runs: Sequence[ComparisonRun]) -> str:
    scores = [run.score for run in runs if run.score is not None]
    passed = sum(run.run_outcome in _PASSED for run in runs)
    failed = sum(run.run_outcome is RunOutcome.FAILED for run in runs)
    text = f"{numbers.count(len(runs), 'run')}, {runs[0].at:%Y-%m-%d} to {runs[-1].at:%Y-%m-%d}: "
    text += f"scores {numbers.extent(min(scores), max(scores), numbers.score)}; {passed:,} passed"
    text += f", {failed:,} failed" if failed else ""
    unsure = len(runs) - passed - failed
    text += f", {unsure:,} without a verdict" if unsure else ""
    return f"{text}; the last {_MOST} are drawn." if len(runs) > _MOST else f"{text}."
