"""The elements of charts: the library's own, their texts escaped and their numbers short.

The library escapes nothing. So every text goes through `words` or `titled`, and classes are our own. Nothing
has a style but by its classes, which the page's style sheet knows (`assets/charts.css`).
"""

import html
import unicodedata
from collections.abc import Iterable, Sequence

import svg

from ci_evals.reports import sanitize

WIDTH = 360
"""The width of every chart in units of a pixel on a phone, so that no text is smaller there than drawn."""

SIZE = 13
"""The size of text in the same units."""

_LONGEST = 1_000
"""Characters of any text: what is cut has its whole in the table beside the chart."""

_EMS = (("ijl.,:;'|! ", 0.32), ("tfr()/-", 0.42), ("sckvxyz", 0.56), ("mw@%+—…→", 0.95))
"""The widths of letters of a wide font, in its size; see `_em` for all others."""

Drawn = svg.Element


def picture(name: str, title: str, says: str, height: float, drawn: Iterable[Drawn]) -> str:
    """The whole chart as markup; `name` is its element's."""
    heads: list[Drawn] = [
        svg.Title(id=f"{name}-title", text=_escaped(title)),
        svg.Desc(id=f"{name}-desc", text=_escaped(says)),
    ]
    return svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, WIDTH, _short(height)),
        class_=["chart"],
        extra={"role": "img", "aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-desc"},
        elements=[*heads, *drawn],
    ).as_str()


def words(x: float, y: float, text: str, *classes: str) -> Drawn:
    """One line of text; it begins at `x` unless a class says otherwise (`c-end`, `c-middle`)."""
    return svg.Text(x=_short(x), y=_short(y), text=_escaped(text), class_=_classes(classes))


def titled(text: str, *drawn: Drawn) -> Drawn:
    """Elements that tell `text` where a pointer rests on them."""
    return svg.G(elements=[svg.Title(text=_escaped(text)), *drawn])


def line(x1: float, y1: float, x2: float, y2: float, *classes: str) -> Drawn:
    """A straight line."""
    return svg.Line(x1=_short(x1), y1=_short(y1), x2=_short(x2), y2=_short(y2), class_=_classes(classes))


def path(points: Sequence[tuple[float, float]], *classes: str) -> Drawn:
    """A line through points."""
    return svg.Polyline(points=_points(points), class_=_classes(("c-path", *classes)))


def circle(x: float, y: float, *classes: str, radius: float = 5) -> Drawn:
    """A mark."""
    return svg.Circle(cx=_short(x), cy=_short(y), r=_short(radius), class_=_classes(classes))


def diamond(x: float, y: float, *classes: str, radius: float = 6.5) -> Drawn:
    """Another mark."""
    corners = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
    return svg.Polygon(points=_points(corners), class_=_classes(classes))


def box(x: float, y: float, width: float, height: float, *classes: str) -> Drawn:
    """A bar."""
    return svg.Rect(
        x=_short(x),
        y=_short(y),
        width=_short(max(0.0, width)),
        height=_short(max(0.0, height)),
        class_=_classes(classes),
    )


def fitted(text: str, width: float, size: float = SIZE) -> str:
    """`text` on one line, cut with an ellipsis if its estimated width exceeds `width`."""
    text = sanitize.one_line(text, 500)
    room = width / size
    if _ems(text) <= room:
        return text
    room -= 1
    for index, sign in enumerate(text):
        room -= _em(sign)
        if room < 0:
            return text[:index].rstrip() + "…"
    return text


def width_of(text: str, size: float = SIZE) -> float:
    """An upper estimate of a text's width, made without its font."""
    return _ems(text) * size


def _ems(text: str) -> float:
    return sum(map(_em, text))


def _em(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in {"W", "F"}:
        return 1.05
    return next((em for signs, em in _EMS if sign in signs), 0.78 if sign.isupper() else 0.64)


def _short(value: float) -> float:
    """A coordinate: a tenth of a pixel is more than an eye sees. Never a negative zero."""
    rounded = round(float(value), 1) + 0.0
    return int(rounded) if rounded.is_integer() else rounded


def _points(points: Iterable[tuple[float, float]]) -> list[svg.Point]:
    return [svg.Point(_short(x), _short(y)) for x, y in points]


def _escaped(text: str) -> str:
    return html.escape(sanitize.xml(sanitize.one_line(text, _LONGEST)), quote=True)


def _classes(names: Sequence[str]) -> list[str] | None:
    return list(names) or None
