"""The score from run to run."""

from collections.abc import Iterator, Sequence

from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Chart, Entry, Plot
from ci_evals.reports.page.charts.quality import THIS, score_scale
from ci_evals.reports.page.charts.scale import Scale, ticks
from ci_evals.reports.page.comparison_runs import ComparisonRun, ComparisonRuns

_PASSED = frozenset({RunOutcome.PASSED, RunOutcome.UNCHECKED})
_FEWEST = 3
"""Runs that make a trend, this one with them."""
_MOST = 40
"""Runs that are drawn, the last ones; more would lie on each other."""
_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 34.0, WIDTH - 10.0, 50.0, 200.0, 224.0


def figure(results: Results, comparison_runs: ComparisonRuns) -> Figure | None:
    """Return the chart; None if there are not three runs with a score, each of its own time."""
    mine = ComparisonRun.of(results, THIS)
    played = [run for run in (mine, *comparison_runs.others) if run.run_outcome is not RunOutcome.SKIPPED]
    runs = sorted(played, key=lambda run: run.at)
    if len({run.at for run in runs if run.score is not None}) < _FEWEST:
        return None
    says = _says(runs, mine)
    chart = Chart(
        id="chart-trend",
        title="Score over time",
        says=says,
        headers=("began", "run", "commit", "score", "95 %", "verdict"),
        rows=(
            (
                f"{run.at:%Y-%m-%d %H:%M} UTC",
                run.label,
                (run.commit or "")[:7],
                numbers.score(run.score),
                numbers.interval(run.interval),
                run.run_outcome.value.words,
            )
            for run in runs
        ),
    )
    return chart.drawn(_HEIGHT, _drawn(runs[-_MOST:], mine))


def _drawn(runs: Sequence[ComparisonRun], mine: ComparisonRun) -> Iterator[Drawn]:
    scored = [(index, run, run.score) for index, run in enumerate(runs) if run.score is not None]
    if not scored:
        return
    ends = [end for run in runs if run.interval for end in (run.interval.low, run.interval.high)]
    y = score_scale([*(score for _, _, score in scored), *ends], _BOTTOM, _TOP)
    plot = Plot(Scale(-0.3, len(runs) - 0.7, _LEFT, _RIGHT), y)
    yield from frame.key(
        (Entry("gate holds", "c-best"), Entry("does not, or is not trusted", "bad"), Entry(THIS, "ring")), 13
    )
    scores = [(value, f"{value:g}") for value in ticks(y.low, y.high)]
    yield from frame.axes(plot, list(_names(plot, runs, mine)), scores, ("", "score"))
    yield drawing.path([(plot.x(index), y(score)) for index, _, score in scored], "c-line")
    for index, run, score in scored:
        yield from _run(plot.x(index), plot, run, score, this=run is mine)


def _run(x: float, plot: Plot, run: ComparisonRun, score: float, *, this: bool) -> Iterator[Drawn]:
    y = plot.y(score)
    text = f"{_short(run)}, {run.at:%Y-%m-%d %H:%M}: {numbers.score(score)}"
    text += "" if run.run_outcome in _PASSED else f"; {run.run_outcome.value.words}"
    marks = []
    if run.interval:
        marks.append(drawing.line(x, plot.y(run.interval.low), x, plot.y(run.interval.high), "c-reach"))
    if this:
        marks.append(drawing.circle(x, y, "c-ring", radius=9))
    holds = run.run_outcome in _PASSED
    marks.append(
        drawing.circle(x, y, "c-best", radius=4.5) if holds else drawing.diamond(x, y, "c-bad", radius=6)
    )
    yield drawing.titled(text, *marks)


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


def _says(runs: Sequence[ComparisonRun], mine: ComparisonRun) -> str:
    first, last = runs[0], runs[-1]
    text = f"{numbers.count(len(runs), 'run')} from {first.at:%Y-%m-%d} to {last.at:%Y-%m-%d}"
    scores = [run.score for run in runs if run.score is not None]
    text += f" scored {numbers.extent(min(scores), max(scores), numbers.score)}"
    if mine.score is not None:
        text += f", this one {numbers.score(mine.score)}"
    failed = sum(run.run_outcome is RunOutcome.FAILED for run in runs)
    unsure = sum(run.run_outcome not in {RunOutcome.FAILED, *_PASSED} for run in runs)
    text += f"; the gate did not hold in {failed:,} of them" if failed else ""
    text += f"; {unsure:,} cannot be trusted" if unsure else "" if failed else "; the gate held in all"
    more = len(runs) - _MOST
    return f"{text}; the last {_MOST} are drawn." if more > 0 else f"{text}."
