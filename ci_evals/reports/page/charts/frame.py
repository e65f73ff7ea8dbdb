"""The frame of a chart: axes with hairlines, rows with names, the key to the marks, and shared marks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
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


_TOP = 24
"""Height of the key above rows."""
STACK = 24
"""Height of a bar of all parts together, above rows."""
AXIS = 18
"""Height of the numbers below an axis."""

Marks: TypeAlias = Callable[[float], Iterable[Drawn]]
"""The marks on a track at this height."""


@dataclass(frozen=True)
class TrackRow:
    """One row: its name and number, and the marks on its track."""

    name: str
    value: str
    marks: Marks
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


@dataclass(frozen=True)
class Chart:
    """A chart in words and as a table."""

    id: str
    title: str
    says: str
    headers: tuple[str, ...]
    rows: Iterable[tuple[str, ...]]

    def drawn(self, height: float, elements: Iterable[Drawn]) -> Figure:
        """The chart with its drawing."""
        picture = drawing.picture(self.id, self.title, self.says, height, elements)
        return Figure(self.id, self.title, self.says, picture, self.headers, tuple(self.rows))

    def in_rows(
        self,
        entries: Sequence[Entry],
        tracks: Sequence[TrackRow],
        *,
        scale: Scale | None = SCORES,
        more: int = 0,
    ) -> Figure:
        """The chart as rows below a key; `more` is the number of tests that are not drawn."""
        drawn = [*key(entries, 13), *rows(tracks, _TOP, scale)]
        height = _TOP + len(tracks) * ROW + (AXIS if scale else 0)
        if more:
            text = f"and {numbers.count(more, 'more test')}"
            drawn.append(drawing.words(0, height + 12, text, "c-tick"))
            height += AXIS
        return self.drawn(height, drawn)


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


def stacked(parts: Sequence[float]) -> Iterator[tuple[float, float]]:
    """The left end and the width of each part in one bar of all of them."""
    scale, begin = Scale(0, sum(parts), 0, WIDTH), 0.0
    for part in parts:
        left, right = scale(begin), scale(begin + part)
        begin += part
        width = max(1.0, right - left - 1) if part else 0.0
        yield min(left, WIDTH - width), width


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


@dataclass(frozen=True)
class Plot:
    """The area within two axes."""

    x: Scale
    y: Scale

    @property
    def left(self) -> float:
        """Its left end."""
        return self.x.start

    @property
    def right(self) -> float:
        """Its right end."""
        return self.x.end

    @property
    def bottom(self) -> float:
        """The height of the x axis."""
        return self.y.start

    @property
    def top(self) -> float:
        """The upper end of the y axis."""
        return self.y.end


def axes(
    plot: Plot, x: Iterable[tuple[float, str]], y: Iterable[tuple[float, str]], titles: tuple[str, str]
) -> Iterator[Drawn]:
    """Hairlines, numbers and titles of a plot; both axes are given as values with what stands there."""
    for value, text in y:
        height = plot.y(value)
        yield drawing.line(plot.left, height, plot.right, height, "c-grid")
        yield drawing.words(plot.left - 6, height + 4, text, "c-tick", "c-end")
    yield drawing.line(plot.left, plot.bottom, plot.right, plot.bottom, "c-axis")
    end = -1.0
    for value, text in x:
        center, half = plot.x(value), drawing.width_of(text, 12) / 2
        center = min(max(center, half), WIDTH - half)
        if center - half < end:
            continue
        end = center + half + 4
        yield drawing.words(center, plot.bottom + 16, text, "c-tick", "c-middle")
    across, upwards = titles
    yield drawing.words(0, plot.top - 12, upwards, "c-tick")
    if across:
        yield drawing.words(plot.right, plot.bottom + 32, across, "c-tick", "c-end")


def key(entries: Sequence[Entry], y: float, x: float = 0) -> Iterator[Drawn]:
    """One line that says what the marks stand for."""
    for entry in entries:
        yield from _mark(entry.mark, x + 7, y - 4)
        yield drawing.words(x + 19, y, entry.text, "c-tick")
        x += 19 + drawing.width_of(entry.text, 11) + 12


def _mark(kind: str, x: float, y: float) -> Iterator[Drawn]:
    match kind:
        case "head":
            yield drawing.circle(x, y, "c-head")
        case "base":
            yield drawing.circle(x, y, "c-base")
        case "bad":
            yield drawing.diamond(x, y, "c-bad")
        case "interval":
            yield drawing.box(x - 7, y - 3, 14, 6, "c-interval")
        case "floor":
            yield drawing.line(x, y - 7, x, y + 7, "c-floor")
        case "outline":
            yield drawing.line(x - 7, y, x + 7, y, "c-outline")
        case "ring":
            yield drawing.circle(x, y, "c-ring", radius=6)
        case "c-best" | "c-beaten":
            yield drawing.circle(x, y, kind, radius=4.5)
        case _:
            yield drawing.box(x - 5, y - 5, 10, 10, *kind.split())
