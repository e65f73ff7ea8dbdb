"""Agreement beyond chance on passes and fails, for labels that stand for unequally many items."""

from collections.abc import Iterable
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
    """Krippendorff's alpha (2018) of passes and fails: any number of raters, some of whom may be silent.

    Each thing counts as much as its split weighs, whatever the sum; a split may come several times. With
    equal weights it is the alpha of `scoring.krippendorff`.

    Args:
        splits: Of things, each with its weight.
        values: How many verdicts were given on things that have at least two; for the small sample's sake.

    Returns:
        None where all say the same throughout.
    """
    total: Any = 0
    passes: Any = 0
    apart: Any = 0
    for split, weight in splits:
        raters = split.passes + split.fails
        if raters > 1:
            total += weight * raters
            passes += weight * split.passes
            apart += weight * (2 * split.passes * split.fails) / (raters - 1)
    by_chance = 2 * passes * (total - passes) * values
    result: Number | None = 1 - (values - 1) * apart * total / by_chance if by_chance else None
    return result
