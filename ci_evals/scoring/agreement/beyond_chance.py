"""Agreement beyond chance: Cohen's kappa of two raters, and Krippendorff's alpha of any number.

Klaus Krippendorff, Content Analysis (4th edition, 2018), chapter 12, and Computing Krippendorff's
Alpha-Reliability (2011). A unit is a thing that was rated, as the values that its raters gave it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

Number = TypeVar("Number", float, Fraction)


@dataclass(frozen=True)
class AgreementTable(Generic[Number]):
    """Two raters' verdicts on the same things, as shares of all: together 1."""

    both_pass: Number
    first_passes: Number
    """The first alone."""
    second_passes: Number
    both_fail: Number

    @property
    def agreed(self) -> Number:
        """The share of items on which both say the same."""
        return self.both_pass + self.both_fail

    def kappa(self) -> Number | None:
        """Cohen's kappa (1960): the agreement beyond chance, of what is possible beyond chance.

        None where both say the same throughout: then chance would agree as well.
        """
        first, second = self.both_pass + self.first_passes, self.both_pass + self.second_passes
        by_chance = first * second + (1 - first) * (1 - second)
        return (self.agreed - by_chance) / (1 - by_chance) if by_chance != 1 else None

    def sensitivity(self) -> Number | None:
        """The share that the first passes of what the second passes; None if that is nothing."""
        passes = self.both_pass + self.second_passes
        return self.both_pass / passes if passes else None

    def specificity(self) -> Number | None:
        """The share that the first fails of what the second fails; None if that is nothing."""
        fails = self.both_fail + self.first_passes
        return self.both_fail / fails if fails else None


@dataclass(frozen=True, order=True)
class Split:
    """The numbers of raters that pass and fail an item."""

    passes: int
    fails: int

    @property
    def raters(self) -> int:
        """The number of raters that decided."""
        return self.passes + self.fails


def alpha(splits: Iterable[tuple[Split, Number]], values: int) -> Number | None:
    """Krippendorff's alpha of passes and fails: 1 is full agreement, 0 what chance gives.

    Each thing counts as much as its split weighs, whatever the sum; a split may come several times.

    Args:
        splits: Of things, each with its weight. Those with fewer than two raters say nothing.
        values: How many verdicts were given on things that have at least two; for the small sample's sake.

    Returns:
        None where all say the same throughout: nobody can know whether the raters would tell others apart.
    """
    total: Any = 0
    passes: Any = 0
    apart: Any = 0
    for split, weight in splits:
        if split.raters > 1:
            total += weight * split.raters
            passes += weight * split.passes
            apart += weight * (2 * split.passes * split.fails) / (split.raters - 1)
    by_chance = 2 * passes * (total - passes) * values
    result: Number | None = 1 - (values - 1) * apart * total / by_chance if by_chance else None
    return result


Coincidences = Mapping[tuple[float, float], Number]
"""The times that a value stood beside another: each pair in a unit of m values counts 1 / (m - 1)."""


def ordinal_alpha(beside: Coincidences[Number]) -> Number | None:
    """Krippendorff's alpha of values that have an order: the answers between two are how far they are apart.

    None where all values are the same, or there are none.
    """
    given: dict[float, Any] = defaultdict(int)
    for (value, _), times in beside.items():
        given[value] += times
    if len(given) < 2:
        return None
    # How many answers were below a value, and half of its own: distances are differences of these.
    rank: dict[float, Any] = {}
    total: Any = 0
    for value in sorted(given):
        rank[value] = total + given[value] / 2
        total += given[value]
    apart = sum(times * (rank[first] - rank[second]) ** 2 for (first, second), times in beside.items())
    mean = sum(given[value] * at for value, at in rank.items())
    squares = sum(given[value] * at**2 for value, at in rank.items())
    result: Number = 1 - (total - 1) * apart / (2 * (total * squares - mean**2))
    return result


def coincidences(units: Iterable[Sequence[float]]) -> dict[tuple[float, float], Fraction]:
    """The coincidences of these units, exactly. Units with fewer than two values have none."""
    pairs: dict[tuple[float, float], Fraction] = defaultdict(Fraction)
    for values in units:
        counts = Counter(values)
        for first, many in counts.items():
            for second, more in counts.items():
                if ways := many * (more - (first == second)):
                    pairs[first, second] += Fraction(ways, len(values) - 1)
    return pairs
