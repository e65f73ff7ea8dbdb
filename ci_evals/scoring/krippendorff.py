"""Krippendorff's alpha: how far any number of raters agree beyond chance, some of whom may be silent.

Klaus Krippendorff, Content Analysis (4th edition, 2018), chapter 12, and Computing Krippendorff's
Alpha-Reliability (2011). A unit is a thing that was rated, as the values that its raters gave it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Given = Mapping[Any, Fraction]
"""How often each value was given, in the order of the values."""
Metric = Callable[[Given, Any, Any], Fraction]
"""How far two values are apart, squared."""


def nominal(given: Given, one: Any, other: Any) -> Fraction:  # noqa: ARG001  # as a metric is
    """Values are the same or not."""
    return Fraction(one != other)


def ordinal(given: Given, one: Any, other: Any) -> Fraction:
    """Values have an order: two are as far apart as there were answers between them."""
    low, high = sorted((one, other))
    between = sum((many for value, many in given.items() if low <= value <= high), Fraction())
    return (between - (given[low] + given[high]) / 2) ** 2


def alpha(units: Iterable[Sequence[Any]], metric: Metric = nominal) -> Fraction | None:
    """The alpha of these units, exactly: 1 is full agreement, 0 what chance gives, less is worse than that.

    It is 1 - seen / expected disagreement. Units with fewer than two values say nothing. None where nothing
    is left, or where all values are the same: nobody can know whether the raters would tell others apart.
    """
    beside = coincidences(units)
    counts: dict[Any, Fraction] = {}
    for (one, _), many in beside.items():
        counts[one] = counts.get(one, Fraction()) + many
    given = {value: counts[value] for value in sorted(counts)}
    apart = {(one, other): metric(given, one, other) for one in given for other in given}
    seen = sum((many * apart[pair] for pair, many in beside.items()), Fraction())
    expected = sum((given[one] * given[other] * far for (one, other), far in apart.items()), Fraction())
    return 1 - (sum(given.values()) - 1) * seen / expected if expected else None


def coincidences(units: Iterable[Sequence[Any]]) -> dict[tuple[Any, Any], Fraction]:
    """How often a value stood beside another: each pair in a unit of m values counts 1 / (m - 1)."""
    found: dict[tuple[Any, Any], Fraction] = {}
    for values in units:
        counts = Counter(values)
        for one, many in counts.items():
            for other, more in counts.items():
                if ways := many * (more - (one == other)):
                    found[one, other] = found.get((one, other), Fraction()) + Fraction(ways, len(values) - 1)
    return found
