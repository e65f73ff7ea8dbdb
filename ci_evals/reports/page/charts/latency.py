"""The chart of the time that the agent took to reply."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Chart, Plot
from ci_evals.reports.page.charts.scale import Scale, above, decades, step, ticks

_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, WIDTH - 8.0, 24.0, 150.0
_BINS = 20
_NAMED = 7
"""Edges that all have room for their number."""
_WIDE = 20
"""From here on, as times of the median, the slowest reply wants an axis of equal factors."""
_LONGEST = 1e6
"""The most by which such an axis spans the times; faster replies are counted with its fastest."""
_LONG = 100
"""Seconds: what takes longer is text in minutes and hours."""
_AT_ONCE = 1e-6
"""Seconds: no agent is so fast, and no axis so short."""
_UNITS = ((1.0, "milliseconds", 1e-3), (600.0, "seconds", 1.0), (36_000.0, "minutes", 60.0))


@dataclass(frozen=True)
class LatencySummary:
    """Two times that say how fast a run's replies came, in seconds."""

    whose: str
    median: float
    p95: float
    kind: str
    """`head` or `base`."""


@dataclass(frozen=True)
class Axis:
    """The bins of the times, in a unit of so many seconds."""

    edges: tuple[float, ...]
    unit: str
    size: float
    log: bool = False
    """True if they grow by factors."""

    @property
    def named(self) -> tuple[float, ...]:
        """The times that stand at it."""
        if not self.log:
            return ticks(self.edges[0], self.edges[-1])
        tens = tuple(edge for edge in self.edges if math.log10(edge).is_integer())
        return tens if len(self.edges) > _NAMED else self.edges


def figure(results: Results, baseline: Results | None) -> Figure | None:
    """Return the chart; None if no reply came."""
    seconds = sorted(
        time
        for suite in results.suites
        for test in suite.tests
        for trial in test.trials
        for time in trial.turns.latencies
    )
    if not seconds:
        return None
    summaries = tuple(_summaries(results, baseline))
    axis = _axis(seconds, max([seconds[-1], *(summary.p95 for summary in summaries)]))
    counts = _counted([time / axis.size for time in seconds], axis.edges)
    says = _says(len(seconds), seconds[-1], summaries)
    height = _BOTTOM + 40 + 38 * len(summaries)
    chart = Chart(
        id="chart-latency",
        title="Time to reply",
        says=says,
        headers=(axis.unit, "replies"),
        rows=(
            (f"{_plain(low)} to {_plain(high)}", str(count))
            for (low, high), count in zip(pairwise(axis.edges), counts, strict=True)
        ),
    )
    return chart.drawn(height, _drawn(axis, counts, summaries))


def _summaries(results: Results, baseline: Results | None) -> Iterator[LatencySummary]:
    here = results.latency
    if here.median is not None and here.p95 is not None:
        yield LatencySummary("this run", here.median, here.p95, "head")
    then = baseline.latency if baseline else None
    efficiency = results.comparison.base_efficiency if results.comparison else None
    median = then.median if then else efficiency.median_latency_seconds if efficiency else None
    p95 = then.p95 if then else efficiency.p95_latency_seconds if efficiency else None
    if median is not None and p95 is not None:
        yield LatencySummary("baseline", median, p95, "base")


def _axis(seconds: Sequence[float], slowest: float) -> Axis:
    """The axis of the bins, from the fastest reply to the slowest of both runs."""
    middle = seconds[len(seconds) // 2]
    unit, size = next(((name, size) for limit, name, size in _UNITS if slowest < limit), ("hours", 3600.0))
    if slowest <= _AT_ONCE:
        return Axis((0.0, 1.0), unit, size)
    if slowest <= _WIDE * middle:
        wide = step(slowest / size, _BINS)
        bins = round(above(slowest / size, _BINS) / wide)
        return Axis(tuple(round(number * wide, 12) for number in range(bins + 1)), unit, size)
    if size > 1:
        unit, size = "seconds", 1.0
    fastest = next((time for time in seconds if time > 0), slowest)
    edges = decades(max(fastest, slowest / _LONGEST) / size, slowest / size, _BINS)
    return Axis(edges, unit, size, log=True)


def _counted(seconds: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Replies by bin, each with its lower end; what is faster than all is in the first."""
    counts = [0] * (len(edges) - 1)
    for time in seconds:
        index = bisect_right(edges, time) - 1
        counts[min(max(index, 0), len(counts) - 1)] += 1
    return counts


def _drawn(axis: Axis, counts: Sequence[int], summaries: Sequence[LatencySummary]) -> Iterator[Drawn]:
    edges = axis.edges
    high = above(max(counts), 4)
    plot = Plot(Scale(edges[0], edges[-1], _LEFT, _RIGHT, log=axis.log), Scale(0, high, _BOTTOM, _TOP))
    replies = [(value, f"{value:,.0f}") for value in ticks(0, high, 4) if value == int(value)]
    times = [(value, _plain(value)) for value in axis.named]
    yield from frame.axes(plot, times, replies, (axis.unit, "replies"))
    for index, count in enumerate(counts):
        left, right = plot.x(edges[index]), plot.x(edges[index + 1])
        if count:
            tall = max(1.5, plot.bottom - plot.y(count))
            yield drawing.box(left + 1, plot.bottom - tall, right - left - 2, tall, "c-bar")
    for index, summary in enumerate(summaries):
        yield from _drawn_summary(summary, plot, axis.size, _BOTTOM + 56 + 38 * index)


def _drawn_summary(summary: LatencySummary, plot: Plot, size: float, height: float) -> Iterator[Drawn]:
    """A line of a run's median, a circle, and 95th percentile, a diamond, on the axis above it."""
    median, p95 = plot.x(summary.median / size), plot.x(summary.p95 / size)
    text = f"{summary.whose}: median {_time(summary.median)}, 95 % within {_time(summary.p95)}"
    style = f"c-{summary.kind}"
    yield drawing.words(0, height, text, "c-name")
    yield drawing.line(plot.left, height + 12, plot.right, height + 12, "c-track")
    yield drawing.line(median, height + 12, p95, height + 12, f"{style}-line")
    yield drawing.circle(median, height + 12, style)
    yield drawing.diamond(p95, height + 12, style)


def _time(seconds: float) -> str:
    return numbers.latency(seconds) if seconds < _LONG else numbers.duration(seconds)


def _plain(number: float) -> str:
    return f"{float(f'{number:.3g}'):,.10g}" if number < 1000 else f"{number:,.0f}"


def _says(replies: int, slowest: float, summaries: Sequence[LatencySummary]) -> str:
    text = numbers.count(replies, "reply", "replies")
    here = next((summary for summary in summaries if summary.kind == "head"), None)
    base = next((summary for summary in summaries if summary.kind == "base"), None)
    if here:
        text += f": half within {_time(here.median)}, 95 % within {_time(here.p95)}"
    text += f"; the slowest took {_time(slowest)}"
    if base:
        there = f"{_time(base.median)} and {_time(base.p95)}"
        text += f"; in the baseline half and 95 % came within {there}"
    return f"{text}."
