"""How many tests changed by how much, as a drawing: whether one flow broke or everything got a little worse.

It holds numbers alone, no text of anybody's.
"""

from collections.abc import Sequence
from math import ceil, floor

from ci_evals.domain.results.comparison import Comparison
from ci_evals.reports.markdown.sections import Rank, Section, folded, section

_FEWEST = 10
"""Changed tests below which a list of them says it all."""
_WIDTHS = (1, 2, 5, 10, 20)
"""Points that a bar may stand for."""
_MOST_BARS = 12
_STILL = 1e-9
"""What binary arithmetic leaves of no change."""


def of_changes(comparison: Comparison | None) -> Section | None:
    """The histogram of the changed tests, folded; None where few changed."""
    deltas = comparison.deltas if comparison else ()
    changed = [delta for delta in deltas if abs(delta) > _STILL]
    if len(changed) < _FEWEST:
        return None
    fell = sum(delta < 0 for delta in changed)
    rose, still = len(changed) - fell, len(deltas) - len(changed)
    title = f"How much tests changed: {fell:,} fell, {rose:,} rose, {still:,} did not change"
    labels, bars = histogram(changed)
    drawing = section("chart", labels=labels, bars=bars)
    return folded(title, Section("the chart of the changes", drawing, Rank.TELLING))


def histogram(changes: Sequence[float]) -> tuple[list[str], list[int]]:
    """The ranges of points from the deepest fall to the highest rise, and how many changes lie in each.

    A change of zero is in none, one that lies on a border in the range nearer to zero.
    """
    width = next(
        width for width in _WIDTHS if _place(max(changes), width) - _place(min(changes), width) < _MOST_BARS
    )
    places = [_place(delta, width) for delta in changes]
    shown = [place for place in range(min(places), max(places) + 1) if place]
    return [_label(place, width) for place in shown], [places.count(place) for place in shown]


def _place(delta: float, width: int) -> int:
    """Which range a change is in, counted from zero: -1 is the first fall, 1 the first rise."""
    share = round(delta / width, 9)
    return floor(share) if share < 0 else ceil(share)


def _label(place: int, width: int) -> str:
    near, far = (abs(place) - 1) * width, abs(place) * width
    return f"-{far} to {-near}" if place < 0 else f"{f'+{near}' if near else near} to +{far}"
