"""What stands around the marks of a chart: axes with hairlines, rows with names, and the key to the marks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_evals.reports.page.charts import drawing
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.scale import Scale, ticks

ROW = 44
"""Height of a row: a name with a number, and the track below it."""
MOST_ROWS = 25
"""Of a chart; the table beside it has all."""
_VALUE = 200
"""The most that a number may take of a row's width; a file of somebody else's may hold a long one."""
_SIDE = 7
"""Room for half a mark at both ends of a track."""
_TRACK = 28
"""How far the track stands below the top of its row."""

SCORES = Scale(0, 100, _SIDE, WIDTH - _SIDE)
"""The scale of tracks of scores, in points."""


@dataclass(frozen=True)
class Row:
    """One row: what stands at its left and right, and the marks on its track."""

    name: str
    value: str
    marks: tuple[Drawn, ...] = ()
    classes: tuple[str, ...] = ()
    """Of the value."""
    about: str = ""
    """Told where a pointer rests on it, beside the whole name."""


def track_of(place: int, top: float) -> float:
    """The height at which the track of a row lies, whose rows begin at `top`."""
    return top + place * ROW + _TRACK


def rows(found: Sequence[Row], top: float, scale: Scale | None = SCORES) -> Iterator[Drawn]:
    """All rows, each with its track and the ticks of the scale, if there is one; the numbers stand below."""
    if scale:
        yield from _numbers(scale, top + len(found) * ROW + 12)
    for place, row in enumerate(found):
        base = top + place * ROW
        value = drawing.fitted(row.value, _VALUE)
        name = drawing.fitted(row.name, WIDTH - drawing.width_of(value) - 10)
        yield drawing.titled(
            f"{row.name}: {row.about or row.value}",
            drawing.box(0, base + 2, WIDTH, ROW - 4, "c-hit"),
            drawing.words(0, base + 14, name, "c-name"),
            drawing.words(WIDTH, base + 14, value, "c-end", "c-value", *row.classes),
            *(_track(scale, track_of(place, top)) if scale else ()),
            *row.marks,
        )


def _numbers(scale: Scale, y: float) -> Iterator[Drawn]:
    """Below the last track, what its ticks stand for."""
    for value in ticks(scale.low, scale.high):
        first, last = value == scale.low, value == scale.high
        place = 0 if first else WIDTH if last else scale(value)
        side = "c-start" if first else "c-end" if last else "c-middle"
        yield drawing.words(place, y, f"{value:g}", "c-tick", side)


def _track(scale: Scale, y: float) -> Iterator[Drawn]:
    yield drawing.line(scale.start, y, scale.end, y, "c-track")
    for value in ticks(scale.low, scale.high):
        yield drawing.line(scale(value), y - 4, scale(value), y + 4, "c-track")


AXIS = 18
"""Height of the numbers below an axis."""


@dataclass(frozen=True)
class Plot:
    """The area within two axes."""

    x: Scale
    y: Scale

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.x.start

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.x.end

    @property
    def bottom(self) -> float:
        """Where the x axis lies."""
        return self.y.start

    @property
    def top(self) -> float:
        """Where the y axis ends."""
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
        place, half = plot.x(value), drawing.width_of(text, 12) / 2
        place = min(max(place, half), WIDTH - half)
        if place - half < end:
            continue
        end = place + half + 4
        yield drawing.words(place, plot.bottom + 16, text, "c-tick", "c-middle")
    across, upwards = titles
    yield drawing.words(0, plot.top - 12, upwards, "c-tick")
    if across:
        yield drawing.words(plot.right, plot.bottom + 32, across, "c-tick", "c-end")


@dataclass(frozen=True)
class Entry:
    """A mark, drawn around the point 0, 0 of its own place, and what it stands for."""

    text: str
    mark: str
    """`head`, `base`, `interval`, `floor`, `bad`, or a class of a box."""


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
