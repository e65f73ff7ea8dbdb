"""The frame of a chart: axes with hairlines, rows with names, the key to the marks, and shared marks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from ci_evals.domain import numbers
from ci_evals.reports.page.charts import drawing
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.scale import Scale, ticks

ROW = 44
"""Height of a row: a name with a number, and the track below it."""
MOST_ROWS = 25
"""Rows of a chart; the table beside it has all."""
_VALUE = 200
"""The most that a number may take of a row's width; a file of somebody else's may hold a long one."""
_SIDE = 7
"""Room for half a mark at both ends of a track."""
_TRACK = 28
"""The distance of the track from the top of its row."""

SCORES = Scale(0, 100, _SIDE, WIDTH - _SIDE)
"""The scale of tracks of scores, in points."""

KEY = 13
"""The base line of the key."""
_TOP = 24
"""Height of the key above rows."""
AXIS = 18
"""Height of the numbers below an axis."""


@dataclass(frozen=True)
class Figure:
    """One chart. Its texts are plain, neither sanitized nor escaped."""

    id: str
    """The id of the element, `chart-scores`."""
    title: str
    says: str
    """A description of it, in one sentence with the numbers that matter."""
    reading: str
    """How to read it: what the marks mean."""
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    """The drawn numbers as a table."""
    svg: str = ""
    """Markup, made by the drawing library."""


@dataclass(frozen=True)
class TrackRow:
    """One row: its name and number, and the marks on its track."""

    name: str
    value: str
    marks: Callable[[float], Iterable[Drawn]]
    """The marks on a track at this height."""
    classes: tuple[str, ...] = ()
    """Classes of the value."""
    about: str = ""
    """Shown when a pointer rests on the row, beside the whole name."""


@dataclass(frozen=True)
class Entry:
    """A mark, drawn around the point 0, 0 of its own, and what it stands for."""

    text: str
    mark: str
    """`head`, `base`, `interval`, `floor`, `bad`, or a class of a box."""


class Plot(NamedTuple):
    """The area within two axes: `x.start` is its left end, `y.start` its lower one."""

    x: Scale
    y: Scale


Labels: TypeAlias = Iterable[tuple[float, str]]
"""Values of an axis, each with what stands there."""


def drawn(figure: Figure, height: float, elements: Iterable[Drawn]) -> Figure:
    """The chart with its drawing."""
    return replace(figure, svg=drawing.picture(figure.id, figure.title, figure.says, height, elements))


def drawn_in_rows(
    figure: Figure,
    entries: Iterable[Entry],
    tracks: Sequence[TrackRow],
    *,
    scale: Scale | None = SCORES,
    more: int = 0,
) -> Figure:
    """The chart as rows below a key; `more` is the number of tests that are not drawn."""
    elements = [*key(entries), *rows(tracks, _TOP, scale)]
    height = _TOP + len(tracks) * ROW + (AXIS if scale else 0)
    if more:
        elements.append(drawing.words(0, height + 12, f"and {numbers.count(more, 'more test')}", "c-tick"))
        height += AXIS
    return drawn(figure, height, elements)


def rows(tracks: Sequence[TrackRow], top: float, scale: Scale | None = SCORES) -> Iterator[Drawn]:
    """Draw all rows, each with its track and the ticks of the scale, if there is one; numbers below."""
    if scale:
        yield from _numbers(scale, top + len(tracks) * ROW + 12)
    for index, row in enumerate(tracks):
        base = top + index * ROW
        track = base + _TRACK
        value = drawing.fitted(row.value, _VALUE)
        name = drawing.fitted(row.name, WIDTH - drawing.width_of(value) - 10)
        yield drawing.titled(
            f"{row.name}: {row.about or row.value}",
            drawing.box(0, base + 2, WIDTH, ROW - 4, "c-hit"),
            drawing.words(0, base + 14, name, "c-name"),
            drawing.words(WIDTH, base + 14, value, "c-end", "c-value", *row.classes),
            *(_track(scale, track) if scale else ()),
            *row.marks(track),
        )


def interval_mark(low: float, high: float, y: float) -> Drawn:
    """An interval of scores on the track at `y`."""
    return drawing.box(SCORES(low), y - 4, SCORES(high) - SCORES(low), 8, "c-interval")


def floor_mark(floor: float, y: float) -> Drawn:
    """The floor of a score."""
    return drawing.line(SCORES(floor), y - 9, SCORES(floor), y + 9, "c-floor")


def score_mark(score: float, y: float, *, bad: bool) -> Drawn:
    """A score: a diamond if it is bad."""
    mark = drawing.diamond if bad else drawing.circle
    return mark(SCORES(score), y, "c-bad" if bad else "c-head")


def _numbers(scale: Scale, y: float) -> Iterator[Drawn]:
    """Below the last track, what its ticks stand for."""
    for value in ticks(scale.low, scale.high):
        first, last = value == scale.low, value == scale.high
        x = 0 if first else WIDTH if last else scale(value)
        side = "c-start" if first else "c-end" if last else "c-middle"
        yield drawing.words(x, y, f"{value:g}", "c-tick", side)


def _track(scale: Scale, y: float) -> Iterator[Drawn]:
    yield drawing.line(scale.start, y, scale.end, y, "c-track")
    for value in ticks(scale.low, scale.high):
        yield drawing.line(scale(value), y - 4, scale(value), y + 4, "c-track")


def scores_on(scale: Scale) -> Labels:
    """The round scores of an axis."""
    return [(value, f"{value:g}") for value in ticks(scale.low, scale.high)]


def counts_on(scale: Scale) -> Labels:
    """The whole numbers of an axis that counts."""
    found = ticks(scale.low, scale.high, 4)
    return [(value, f"{value:,.0f}") for value in found if value == int(value)]


def axes(plot: Plot, x: Labels, y: Labels, titles: tuple[str, str]) -> Iterator[Drawn]:
    """Hairlines, numbers and titles of a plot."""
    left, right, bottom = plot.x.start, plot.x.end, plot.y.start
    for value, text in y:
        height = plot.y(value)
        yield drawing.line(left, height, right, height, "c-grid")
        yield drawing.words(left - 6, height + 4, text, "c-tick", "c-end")
    yield drawing.line(left, bottom, right, bottom, "c-axis")
    end = -1.0
    for value, text in x:
        center, half = plot.x(value), drawing.width_of(text, 12) / 2
        center = min(max(center, half), WIDTH - half)
        if center - half < end:
            continue
        end = center + half + 4
        yield drawing.words(center, bottom + 16, text, "c-tick", "c-middle")
    across, upwards = titles
    yield drawing.words(0, plot.y.end - 12, upwards, "c-tick")
    if across:
        yield drawing.words(right, bottom + 32, across, "c-tick", "c-end")


def bar_height(plot: Plot, value: float) -> float:
    """The height of a bar of a histogram: never too low to be seen."""
    return max(1.5, plot.y.start - plot.y(value))


def key(entries: Iterable[Entry]) -> Iterator[Drawn]:
    """One line that says what the marks stand for."""
    x = 0.0
    for entry in entries:
        yield _mark(entry.mark, x + 7, KEY - 4)
        yield drawing.words(x + 19, KEY, entry.text, "c-tick")
        x += 19 + drawing.width_of(entry.text, 11) + 12


def _mark(kind: str, x: float, y: float) -> Drawn:
    marks: dict[str, Drawn] = {
        "head": drawing.circle(x, y, "c-head"),
        "base": drawing.circle(x, y, "c-base"),
        "bad": drawing.diamond(x, y, "c-bad"),
        "interval": drawing.box(x - 7, y - 3, 14, 6, "c-interval"),
        "floor": drawing.line(x, y - 7, x, y + 7, "c-floor"),
        "ring": drawing.circle(x, y, "c-ring", radius=6),
        "c-best": drawing.circle(x, y, "c-best", radius=4.5),
        "c-beaten": drawing.circle(x, y, "c-beaten", radius=4.5),
    }
    return marks.get(kind) or drawing.box(x - 5, y - 5, 10, 10, *kind.split())
