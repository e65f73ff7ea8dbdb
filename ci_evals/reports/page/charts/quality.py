"""The cost of runs against their scores, and the Pareto frontier that no other run beats in both."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.base import Interval
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Entry, Figure, Plot
from ci_evals.reports.page.charts.scale import Scale, above, decades, ticks
from ci_evals.reports.story.comparison_runs import ComparisonRun
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.story import THIS, Story

_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 34.0, WIDTH - 8.0, 50.0, 230.0, 270.0
_FAR = 30
"""From here on, as times of the least cost, the highest needs an axis of equal factors."""
_LABELLED = 8
_FEWEST = 3
"""Runs from which on there is something to compare, whatever their models."""
_FEW = 4
"""Runs that a sentence names."""
_SIZE = 12
_TRUSTED = frozenset({RunOutcome.PASSED, RunOutcome.UNCHECKED, RunOutcome.FAILED})
_READING = (
    "Each mark is a run: higher scores better, further left is cheaper. Runs on the line form the Pareto "
    "frontier: no other run costs no more and scores no less. The cost includes judge, simulated user and "
    "embedding model, not of the agent."
)


@dataclass(frozen=True)
class PricedRun:
    """A run with known cost and known score."""

    name: str
    cost: float
    """US dollars per trial."""
    score: float
    """0 to 100."""
    interval: Interval | None = None

    def dominates(self, other: "PricedRun") -> bool:
        """True if it costs no more and scores no less, and is not the same in both."""
        return (
            self.cost <= other.cost
            and self.score >= other.score
            and (self.cost, self.score) != (other.cost, other.score)
        )


def frontier(runs: Iterable[PricedRun]) -> list[PricedRun]:
    """The runs that no other dominates, the cheapest first; of equal ones all."""
    best: list[PricedRun] = []
    for run in sorted(runs, key=lambda run: (run.cost, -run.score)):
        if not best or not best[-1].dominates(run):
            best.append(run)
    return best


def figure(story: Story) -> Figure | None:
    """Return the chart; None if too few runs have both cost and score, or nothing cost anything.

    Three are enough, or two with different models.

    The score of a run without a verdict says nothing.
    """
    names = [THIS, *_names([run.label for run in story.other_runs])]
    all_runs = [story.this_run, *story.other_runs]
    runs = [
        PricedRun(name, round(run.cost_usd, 9), run.score, run.interval)
        for name, run in zip(names, all_runs, strict=True)
        if run.cost_usd is not None and run.score is not None and run.run_outcome in _TRUSTED
    ]
    priced = {run.name for run in runs}
    models = {run.models for name, run in zip(names, all_runs, strict=True) if name in priced}
    if len(runs) < _FEWEST and (len(runs) < 2 or len(models) < 2):
        return None
    if runs[0].name != THIS or not any(run.cost for run in runs):
        return None
    best = frontier(runs)
    better = {id(run): [other.name for other in best if other.dominates(run)] for run in runs}
    words = Figure(
        id="chart-cost",
        title="Cost against quality",
        says=_says(runs, best, better[id(runs[0])]),
        reading=_READING,
        headers=("run", "cost per trial", "score", "95 % interval", "beaten by"),
        rows=[
            (
                run.name,
                numbers.money(run.cost),
                numbers.score(run.score),
                numbers.interval(run.interval),
                ", ".join(better[id(run)]),
            )
            for run in sorted(runs, key=lambda run: (run.cost, -run.score))
        ],
    )
    return frame.drawn(words, _HEIGHT, _drawn(runs, best))


def _names(labels: Sequence[str]) -> list[str]:
    """The last part of each path; the whole where others end alike."""
    ends = [label.rstrip("/").rsplit("/", 1)[-1] for label in labels]
    return [label if ends.count(end) > 1 else end or label for label, end in zip(labels, ends, strict=True)]


def score_scale(runs: Iterable[ComparisonRun | PricedRun], bottom: float, top: float) -> Scale:
    """A scale of scores from a ten below the least score or end of an interval to a ten above the highest."""
    values = [run.score for run in runs if run.score is not None]
    values += [end for run in runs if run.interval for end in (run.interval.low, run.interval.high)]
    low = max(0, 10 * math.floor((min(values) - 3) / 10))
    high = min(100, 10 * math.ceil((max(values) + 3) / 10))
    return Scale(low, high, bottom, top)


def _drawn(runs: Sequence[PricedRun], best: Sequence[PricedRun]) -> Iterator[Drawn]:
    plot, costs = _plot(runs)
    yield from frame.key([Entry(THIS, "head"), Entry("frontier", "c-best"), Entry("beaten", "c-beaten")])
    cents = all(round(value, 2) == value for value in costs)
    dollars = [(value, f"${value:,.2f}" if cents else f"${value:,.10g}") for value in costs]
    yield from frame.axes(plot, dollars, frame.scores_on(plot.y), ("US dollars per trial", "score"))
    yield drawing.path(list(_steps(plot, best)), "c-frontier")
    for run in runs:
        x, y = plot.x(run.cost), plot.y(run.score)
        marks = []
        if run.interval:
            low, high = plot.y(run.interval.low), plot.y(run.interval.high)
            marks.append(drawing.line(x, low, x, high, "c-reach"))
        if run is runs[0]:
            marks.append(drawing.circle(x, y, "c-head"))
        else:
            marks.append(drawing.circle(x, y, "c-best" if run in best else "c-beaten", radius=4.5))
        text = f"{run.name}: {numbers.score(run.score)} for {numbers.money(run.cost)} per trial"
        yield drawing.titled(text, *marks)
    yield from _labels(plot, runs, best)


def _plot(runs: Sequence[PricedRun]) -> tuple[Plot, tuple[float, ...]]:
    y = score_scale(runs, _BOTTOM, _TOP)
    least, most = min(run.cost for run in runs), max(run.cost for run in runs)
    if least > 0 and most > _FAR * least:
        costs = decades(least, most)
        return Plot(Scale(costs[0], costs[-1], _LEFT, _RIGHT, log=True), y), costs
    high = above(most * 1.02)
    return Plot(Scale(0, high, _LEFT, _RIGHT), y), ticks(0, high)


def _steps(plot: Plot, best: Sequence[PricedRun]) -> Iterator[tuple[float, float]]:
    """The best score that any cost can buy."""
    last = _BOTTOM
    for run in best:
        yield plot.x(run.cost), last
        last = plot.y(run.score)
        yield plot.x(run.cost), last
    yield _RIGHT, last


def _labels(plot: Plot, runs: Sequence[PricedRun], best: Sequence[PricedRun]) -> Iterator[Drawn]:
    """Names beside the marks, if they cover no other name and no mark."""
    marks = [(plot.x(run.cost), plot.y(run.score)) for run in runs]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in marks]
    for run in [runs[0], *[run for run in best if run is not runs[0]][:_LABELLED]]:
        text = drawing.fitted(run.name, 120, _SIZE)
        wide = drawing.width_of(text, _SIZE)
        x, y = plot.x(run.cost), plot.y(run.score)
        right, left = x + 9, x - 9 - wide
        places = [(at, y + by) for by in (-7, 15) for at in (right, left)]
        for at, base in (*places, (x - wide / 2, y - 11), (x - wide / 2, y + 19)):
            area = (at, base - 10, at + wide, base + 3)
            inside = at >= _LEFT and at + wide <= WIDTH and area[1] >= _TOP - 8 and area[3] <= _BOTTOM
            if inside and not any(_meet(area, other) for other in taken):
                taken.append(area)
                yield drawing.words(at, base, text, "c-label")
                break


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _says(runs: Sequence[PricedRun], best: Sequence[PricedRun], better: Sequence[str]) -> str:
    names = numbers.listed([run.name for run in best], _FEW)
    text = f"{len(best):,} of {len(runs):,} runs on the Pareto frontier: {names}"
    return (
        f"{text}. {THIS.capitalize()} is beaten by {numbers.listed(better, _FEW)}." if better else f"{text}."
    )
