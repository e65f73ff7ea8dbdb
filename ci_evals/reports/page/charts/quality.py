"""The cost of runs against their scores, and the frontier that no other run beats in both."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain.base import Interval
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Chart, Entry, Plot
from ci_evals.reports.page.charts.pareto import Candidate, dominated, frontier
from ci_evals.reports.page.charts.scale import Scale, above, decades, ticks
from ci_evals.reports.page.comparison_runs import ComparisonRun, ComparisonRuns

_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 34.0, WIDTH - 8.0, 50.0, 230.0, 270.0
_FAR = 30
"""From here on, as times of the least cost, the highest wants an axis of equal factors."""
_LABELLED = 8
_FEW = 4
"""Runs that a sentence names."""
_SIZE = 12
THIS = "this run"
_TRUSTED = frozenset({RunOutcome.PASSED, RunOutcome.UNCHECKED, RunOutcome.FAILED})


@dataclass(frozen=True)
class _PricedRun(Candidate):
    interval: Interval | None = None
    this: bool = False


def figure(results: Results, comparison_runs: ComparisonRuns) -> Figure | None:
    """Return the chart; None if fewer than two runs have both cost and score, or nothing cost anything.

    What a run scored that cannot be trusted, nobody knows.
    """
    mine = ComparisonRun.of(results, THIS)
    names = _names([run.label for run in comparison_runs.others])
    runs = [
        _PricedRun(name, round(run.cost_usd, 9), run.score, run.interval, run is mine)
        for name, run in zip([THIS, *names], [mine, *comparison_runs.others], strict=True)
        if run.cost_usd is not None and run.score is not None and run.run_outcome in _TRUSTED
    ]
    if not any(run.this for run in runs) or len(runs) < 2 or not any(run.cost for run in runs):
        return None
    best, beaten = frontier(runs), {id(run): by for run, by in dominated(runs)}
    says = _says(runs, best, list(dominated(runs)))
    chart = Chart(
        id="chart-cost",
        title="Cost against quality",
        says=says,
        headers=("run", "cost a trial", "score", "95 %", "beaten by"),
        rows=(
            (
                run.name,
                numbers.money(run.cost),
                numbers.score(run.score),
                numbers.interval(run.interval),
                ", ".join(other.name for other in beaten.get(id(run), ())),
            )
            for run in sorted(runs, key=lambda run: (run.cost, -run.score))
        ),
    )
    return chart.drawn(_HEIGHT, _drawn(runs, best))


def _names(labels: Sequence[str]) -> list[str]:
    """The last part of each path; the whole where others end alike."""
    ends = [label.rstrip("/").rsplit("/", 1)[-1] for label in labels]
    return [label if ends.count(end) > 1 else end or label for label, end in zip(labels, ends, strict=True)]


def score_scale(values: Iterable[float], bottom: float, top: float) -> Scale:
    """A scale of scores from a ten below the least to a ten above the highest."""
    found = [*values]
    low = max(0, 10 * math.floor((min(found) - 3) / 10))
    high = min(100, 10 * math.ceil((max(found) + 3) / 10))
    return Scale(low, high, bottom, top)


def _drawn(runs: Sequence[_PricedRun], best: Sequence[Candidate]) -> Iterator[Drawn]:
    plot, costs = _plot(runs)
    scores = [(value, f"{value:g}") for value in ticks(plot.y.low, plot.y.high)]
    yield from frame.key((Entry(THIS, "head"), Entry("frontier", "c-best"), Entry("beaten", "c-beaten")), 13)
    cents = all(round(value, 2) == value for value in costs)
    dollars = [(value, f"${value:,.2f}" if cents else f"${value:,.10g}") for value in costs]
    yield from frame.axes(plot, dollars, scores, ("US dollars a trial, of judge and simulated user", "score"))
    yield drawing.path(list(_steps(plot, best)), "c-frontier")
    for run in runs:
        yield from _run(plot, run, on_it=run in best)
    yield from _labels(plot, runs, best)


def _plot(runs: Sequence[_PricedRun]) -> tuple[Plot, tuple[float, ...]]:
    """The plot, and the costs that its axis names."""
    ends = [end for run in runs if run.interval for end in (run.interval.low, run.interval.high)]
    y = score_scale([*(run.score for run in runs), *ends], _BOTTOM, _TOP)
    least, most = min(run.cost for run in runs), max(run.cost for run in runs)
    if least > 0 and most > _FAR * least:
        costs = decades(least, most)
        return Plot(Scale(costs[0], costs[-1], _LEFT, _RIGHT, log=True), y), costs
    high = above(most * 1.02)
    return Plot(Scale(0, high, _LEFT, _RIGHT), y), ticks(0, high)


def _steps(plot: Plot, best: Sequence[Candidate]) -> Iterator[tuple[float, float]]:
    """The best score that any cost can buy."""
    last = _BOTTOM
    for run in best:
        yield plot.x(run.cost), last
        last = plot.y(run.score)
        yield plot.x(run.cost), last
    yield _RIGHT, last


def _run(plot: Plot, run: _PricedRun, *, on_it: bool) -> Iterator[Drawn]:
    x, y = plot.x(run.cost), plot.y(run.score)
    text = f"{run.name}: {numbers.score(run.score)} for {numbers.money(run.cost)} a trial"
    marks = []
    if run.interval:
        low, high = plot.y(run.interval.low), plot.y(run.interval.high)
        marks.append(drawing.line(x, low, x, high, "c-reach"))
    if run.this:
        marks.append(drawing.circle(x, y, "c-head"))
    else:
        marks.append(drawing.circle(x, y, "c-best" if on_it else "c-beaten", radius=4.5))
    yield drawing.titled(text, *marks)


def _labels(plot: Plot, runs: Sequence[_PricedRun], best: Sequence[Candidate]) -> Iterator[Drawn]:
    """Names beside the marks, if they cover no other name and no mark."""
    marks = [(plot.x(run.cost), plot.y(run.score)) for run in runs]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in marks]
    named = [run for run in runs if run.this]
    named += [run for run in runs if run in best and not run.this][:_LABELLED]
    for run in named:
        text = drawing.fitted(run.name, 120, _SIZE)
        wide = drawing.width_of(text, _SIZE)
        x, y = plot.x(run.cost), plot.y(run.score)
        right, left, middle = x + 9, x - 9 - wide, x - wide / 2
        places = [(at, y + by) for by in (-7, 15) for at in (right, left)]
        places += [(middle, y - 11), (middle, y + 19), (right, y + 4), (left, y + 4)]
        for at, base in places:
            area = (at, base - 10, at + wide, base + 3)
            inside = at >= _LEFT and at + wide <= WIDTH and area[1] >= _TOP - 8 and area[3] <= _BOTTOM
            if inside and not any(_meet(area, other) for other in taken):
                taken.append(area)
                yield drawing.words(at, base, text, "c-label")
                break


def _meet(run: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return run[0] < other[2] and other[0] < run[2] and run[1] < other[3] and other[1] < run[3]


def _says(
    runs: Sequence[_PricedRun],
    best: Sequence[Candidate],
    beaten: Sequence[tuple[Candidate, tuple[Candidate, ...]]],
) -> str:
    worth = "is worth its cost" if len(best) == 1 else "are worth their cost"
    text = f"Of {len(runs):,} runs {len(best):,} {worth}"
    text += f": {_listed([run.name for run in best])}"
    for better in sorted(best, key=lambda run: run.name != THIS):
        if worse := [run.name for run, by in beaten if better in by]:
            text += f"; {better.name} costs no more than {_listed(worse)} and scores no less"
            break
    mine = next((by for run, by in beaten if run.name == THIS), ())
    if mine:
        text += f"; {THIS} is beaten by {_listed([run.name for run in mine])}"
    return f"{text}."


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:_FEW], *([f"{len(names) - _FEW:,} more"] if len(names) > _FEW else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
