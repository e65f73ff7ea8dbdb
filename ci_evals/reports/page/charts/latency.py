"""The chart of the time that the agent took to reply."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ci_evals.domain import numbers
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Figure, Plot
from ci_evals.reports.page.charts.scale import Scale, above, decades, step, ticks
from ci_evals.reports.story.story import LatencySummary, Story

_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, WIDTH - 8.0, 24.0, 150.0
_BINS = 20
_NAMED = 7
"""Edges that all have room for their number."""
_WIDE = 20
"""From here on, as times of the median, the slowest reply needs an axis of equal factors."""
_LONGEST = 1e6
"""The most by which such an axis spans the times; faster replies are counted with its fastest."""
_LONG = 100
"""Seconds: what takes longer is text in minutes and hours."""
_AT_ONCE = 1e-6
"""Seconds: no agent is so fast, and no axis so short."""
_READING = (
    "Bars count the agent's replies by the time each took, in seconds. "
    "Below, a circle marks the median and a diamond the 95th percentile (p95)."
)


def figure(story: Story) -> Figure | None:
    """Return the chart; None if no reply came."""
    seconds = sorted(
        time
        for suite in story.suites
        for row in suite.tests
        for trial in row.test.trials
        for time in trial.turns.latencies
    )
    summaries = story.latency
    if not seconds or not summaries:
        return None
    slowest = max([seconds[-1], *(summary.p95 for summary in summaries)])
    log = slowest > max(_AT_ONCE, _WIDE * seconds[len(seconds) // 2])
    edges = _factors(seconds, slowest) if log else _steps(slowest)
    counts = [0] * (len(edges) - 1)
    for time in seconds:
        counts[min(max(bisect_right(edges, time) - 1, 0), len(counts) - 1)] += 1
    words = Figure(
        id="chart-latency",
        title="Reply latency",
        says=_says(seconds, summaries),
        reading=_READING,
        headers=("seconds", "replies"),
        rows=[
            (f"{_plain(low)} to {_plain(high)}", str(count))
            for (low, high), count in zip(pairwise(edges), counts, strict=True)
        ],
    )
    return frame.drawn(words, _BOTTOM + 40 + 38 * len(summaries), _drawn(edges, counts, summaries, log=log))


def _steps(slowest: float) -> tuple[float, ...]:
    """The edges of bins of equal width, from 0 to the slowest reply of both runs."""
    if slowest <= _AT_ONCE:
        return (0.0, 1.0)
    wide = step(slowest, _BINS)
    return tuple(round(number * wide, 12) for number in range(round(above(slowest, _BINS) / wide) + 1))


def _factors(seconds: Sequence[float], slowest: float) -> tuple[float, ...]:
    """The edges of bins that grow by factors, from the fastest reply on."""
    fastest = next((time for time in seconds if time > 0), slowest)
    return decades(max(fastest, slowest / _LONGEST), slowest, _BINS)


def _drawn(
    edges: Sequence[float], counts: Sequence[int], summaries: Sequence[LatencySummary], *, log: bool
) -> Iterator[Drawn]:
    y = Scale(0, above(max(counts), 4), _BOTTOM, _TOP)
    plot = Plot(Scale(edges[0], edges[-1], _LEFT, _RIGHT, log=log), y)
    named = edges if log else ticks(edges[0], edges[-1])
    if len(named) > _NAMED:
        named = [edge for edge in edges if math.log10(edge).is_integer()]
    times = [(value, _plain(value)) for value in named]
    yield from frame.axes(plot, times, frame.counts_on(y), ("seconds", "replies"))
    for (low, high), count in zip(pairwise(map(plot.x, edges)), counts, strict=True):
        if count:
            tall = frame.bar_height(plot, count)
            yield drawing.box(low + 1, _BOTTOM - tall, high - low - 2, tall, "c-bar")
    for index, summary in enumerate(summaries):
        height, style = _BOTTOM + 56 + 38 * index, f"c-{summary.kind}"
        median, p95 = plot.x(summary.median), plot.x(summary.p95)
        text = f"{summary.whose}: median {_time(summary.median)}, p95 {_time(summary.p95)}"
        yield drawing.words(0, height, text, "c-name")
        yield drawing.line(plot.x.start, height + 12, plot.x.end, height + 12, "c-track")
        yield drawing.line(median, height + 12, p95, height + 12, f"{style}-line")
        yield drawing.circle(median, height + 12, style)
        yield drawing.diamond(p95, height + 12, style)


def _time(seconds: float) -> str:
    return numbers.latency(seconds) if seconds < _LONG else numbers.duration(seconds)


def _plain(number: float) -> str:
    return f"{float(f'{number:.3g}'):,.10g}" if number < 1000 else f"{number:,.0f}"


def _says(seconds: Sequence[float], summaries: Sequence[LatencySummary]) -> str:
    parts = [f"{one.whose}: median {_time(one.median)}, p95 {_time(one.p95)}" for one in summaries]
    replies = numbers.count(len(seconds), "reply", "replies")
    return "; ".join([f"{replies}, the slowest after {_time(seconds[-1])}", *parts]) + "."
