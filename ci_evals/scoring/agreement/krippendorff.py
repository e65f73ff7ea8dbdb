"""Krippendorff's alpha: how far any number of raters agree beyond chance, some of whom may be silent.

Klaus Krippendorff, Content Analysis (4th edition, 2018), chapter 12, and Computing Krippendorff's
Alpha-Reliability (2011). A unit is a thing that was rated, as the values that its raters gave it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Number = Fraction | float
Coincidences = Mapping[tuple[Any, Any], Number]
"""The times that a value stood beside another: each pair in a unit of m values counts 1 / (m - 1)."""


def alpha(
    units: Iterable[Sequence[Any]], of: Callable[[Coincidences], Number | None] | None = None
) -> Number | None:
    """The alpha of these units, exactly: 1 is full agreement, 0 what chance gives, less is worse than that.

    `of` is `nominal`, where it is not given, or `ordinal`. Units with fewer than two values say nothing. None
    where nothing is left, or where all values are the same: nobody can know whether the raters would tell
    others apart.
    """
    return (of or nominal)(coincidences(units))


def nominal(beside: Coincidences) -> Number | None:
    """The alpha of values that are the same or not."""
    given = _given(beside)
    if len(given) < 2:
        return None
    seen = sum(many for (first, second), many in beside.items() if first != second)
    total = sum(given.values())
    return _alpha(seen, total**2 - sum(many**2 for many in given.values()), total)


def ordinal(beside: Coincidences) -> Number | None:
    """The alpha of values that have an order: two are as far apart as there were answers between them."""
    given = _given(beside)
    if len(given) < 2:
        return None
    # How many answers were below a value, and half of its own: distances are differences of these.
    rank: dict[Any, Number] = {}
    below: Number = 0
    for value in sorted(given):
        rank[value] = below + given[value] / 2
        below += given[value]
    seen = sum(many * (rank[first] - rank[second]) ** 2 for (first, second), many in beside.items())
    mean = sum(given[value] * at for value, at in rank.items())
    squares = sum(given[value] * at**2 for value, at in rank.items())
    return _alpha(seen, 2 * (below * squares - mean**2), below)


def coincidences(units: Iterable[Sequence[Any]]) -> dict[tuple[Any, Any], Fraction]:
    """The coincidences of these units, exactly."""
    pairs: dict[tuple[Any, Any], Fraction] = {}
    for values in units:
        counts = Counter(values)
        for first, many in counts.items():
            for second, more in counts.items():
                if ways := many * (more - (first == second)):
                    before = pairs.get((first, second), Fraction())
                    pairs[first, second] = before + Fraction(ways, len(values) - 1)
    return pairs


def _given(beside: Coincidences) -> dict[Any, Number]:
    """Count how often each value was given."""
    given: dict[Any, Number] = {}
    for (first, _), many in beside.items():
        given[first] = given.get(first, 0) + many
    return given


def _alpha(seen: Number, expected: Number, total: Number) -> Number:
    """1 - seen / expected disagreement, both summed over pairs of values."""
    return 1 - (total - 1) * seen / expected
