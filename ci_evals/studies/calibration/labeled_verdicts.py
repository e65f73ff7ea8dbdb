"""Verdicts that people labelled too, how raters agree on them, and intervals of what a sample tells."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ci_evals.domain.results.judge import Estimate
from ci_evals.scoring.agreement.kappa import AgreementTable, Number, Split, alpha
from ci_evals.studies.calibration.result import Counted

DRAWS = 1_000
"""Draws for the numbers of all verdicts; each of the many criteria has half as many."""
UNSEEN = 0.5
"""Jeffreys' prior, added to each count before drawing, so that no error is ruled out."""


@dataclass(frozen=True)
class LabeledVerdict:
    """A verdict of the judge, with what people said."""

    conversation: str
    """The conversation that it is of: verdicts on one conversation are alike."""
    passed: bool
    """The judge's verdict."""
    people: tuple[bool | None, ...]
    """The label of each person, in an order that is the same throughout; None where none, or that it cannot
    be told."""

    @cached_property
    def split(self) -> Split:
        """The people's labels."""
        return Split(self.people.count(True), self.people.count(False))

    @property
    def is_labeled(self) -> bool:
        """Tell whether anybody labeled it pass or fail."""
        return self.split.raters > 0

    @property
    def by_people(self) -> bool | None:
        """The majority label; None if there are as many passes as fails."""
        split = self.split
        return None if split.passes == split.fails else split.passes > split.fails


@dataclass(frozen=True)
class LabelSource:
    """A source of random numbers."""

    seed: str
    draws: int

    def rng(self, what: str) -> random.Random:
        """For one number: none depends on which others are told."""
        return random.Random(f"{self.seed} {what}")  # noqa: S311  # a simulation, not a secret


def only(values: Iterable[float | None]) -> list[float]:
    """The values that are not None."""
    return [value for value in values if value is not None]


def estimate(
    value: float, drawn: Sequence[float], labels: int, highs: Sequence[float] | None = None
) -> Estimate:
    """A number with the middle 95 % of what it may be in truth; `highs` where its upper end is another's."""
    if not drawn:
        return Estimate(value=value, count=labels)
    low = sorted(drawn)[int(0.025 * len(drawn))]
    high = sorted(highs or drawn)[math.ceil(0.975 * len(drawn)) - 1]
    return Estimate(value=value, low=min(low, value), high=max(high, value), count=labels)


class Alphas:
    """Krippendorff's alpha of labels that were drawn by the judge's verdicts, and weigh accordingly."""

    def __init__(self, labeled: Sequence[LabeledVerdict], counted: Counted, source: LabelSource) -> None:
        self._labeled, self._counted, self._source = labeled, counted, source

    def with_judge(self) -> Estimate | None:
        """The alpha of people and judge together; None if none differs."""
        sides = [
            Counter(
                Split(one.split.passes + passed, one.split.fails + (not passed))
                for one in self._with_verdict(passed)
            )
            for passed in (True, False)
        ]
        most = _most(sides)
        alone = ((Split(most, 0), Split(1, most - 1)), (Split(0, most), Split(most - 1, 1)))
        return self._estimate_of(sides, alone, "alpha")

    def of_people(self) -> Estimate | None:
        """The alpha of the people alone; None if none differs, or no two labeled the same verdict."""
        sides = [
            Counter(one.split for one in self._with_verdict(passed) if one.split.raters > 1)
            for passed in (True, False)
        ]
        most = _most(sides)
        any_split = (Split(most, 0), Split(0, most), Split(most - most // 2, most // 2))
        return self._estimate_of(sides, (any_split, any_split), "people")

    def _with_verdict(self, passed: bool) -> Iterable[LabeledVerdict]:
        return (one for one in self._labeled if one.passed is passed)

    def _estimate_of(
        self, sides: Sequence[Counter[Split]], unseen: Sequence[Sequence[Split]], name: str
    ) -> Estimate | None:
        """The alpha where verdicts that the judge passes, and fails, are split so.

        Of the splits `unseen` some are taken to be there though nobody saw them.
        """
        counted = self._counted
        drawn_from = (counted.passes, counted.fails)
        if any(of and not side for of, side in zip(drawn_from, sides, strict=True)):
            return None
        values = sum(split.raters for side in sides for split in side.elements())
        shares = [Fraction(of, max(1, sum(drawn_from))) for of in drawn_from]
        exact = [[(split, Fraction(times)) for split, times in side.items()] for side in sides]
        value = alpha(_weighed(exact, shares), values)
        if value is None:
            return None
        rng, found = self._source.rng(name), []
        tables = [
            [
                (split, side[split] / counted.design + (1 / len(new) if split in new else 0))
                for split in sorted({*side, *new})
            ]
            for side, new in zip(sides, unseen, strict=True)
        ]
        for _ in range(self._source.draws):
            passes = rng.betavariate(counted.passes + UNSEEN, counted.fails + UNSEEN)
            drawn = [[(split, rng.gammavariate(times, 1)) for split, times in table] for table in tables]
            found.append(alpha(_weighed(drawn, [passes, 1 - passes]), values))
        return estimate(float(value), only(found), sum(side.total() for side in sides))


def _most(sides: Iterable[Iterable[Split]]) -> int:
    return max((split.raters for side in sides for split in side), default=2)


def _weighed(
    sides: Sequence[Sequence[tuple[Split, Number]]], shares: Sequence[Number]
) -> Iterator[tuple[Split, Number]]:
    """The weight of each split, if each side weighs its share."""
    for side, share in zip(sides, shares, strict=True):
        if total := sum((times for _, times in side), 0 * share):
            weight = share / total
            for split, times in side:
                yield split, weight * times


def people_kappa(
    labeled: Sequence[LabeledVerdict], counted: Counted | None, source: LabelSource
) -> Estimate | None:
    """Cohen's kappa between two people; None where there are more or fewer, or they differ in nothing."""
    people = {index for one in labeled for index, passed in enumerate(one.people) if passed is not None}
    if not counted or len(people) != 2:
        return None
    first, second = sorted(people)
    cells = [
        Counter(
            (one.people[first], one.people[second])
            for one in labeled
            if one.passed is passed and None not in (one.people[first], one.people[second])
        )
        for passed in (True, False)
    ]
    drawn_from = (counted.passes, counted.fails)
    if not sum(drawn_from) or any(of and not side for of, side in zip(drawn_from, cells, strict=True)):
        return None
    shares = [Fraction(of, sum(drawn_from)) for of in drawn_from]
    exact = [{cell: Fraction(side[cell]) for cell in _CELLS} for side in cells]
    value = _two(exact, shares).kappa()
    if value is None:
        return None
    rng, found = source.rng("two people"), []
    for _ in range(source.draws):
        passes = rng.betavariate(counted.passes + UNSEEN, counted.fails + UNSEEN)
        drawn = [
            {cell: rng.gammavariate(side[cell] / counted.design + UNSEEN / 2, 1) for cell in _CELLS}
            for side in cells
        ]
        found.append(_two(drawn, [passes, 1 - passes]).kappa())
    return estimate(float(value), only(found), sum(side.total() for side in cells))


_Cell = tuple[bool | None, bool | None]
_CELLS: tuple[_Cell, ...] = ((True, True), (True, False), (False, True), (False, False))


def _two(sides: Sequence[Mapping[_Cell, Number]], shares: Sequence[Number]) -> AgreementTable[Number]:
    """The labels of two people, as shares of all verdicts."""
    found = [0 * shares[0]] * len(_CELLS)
    for side, share in zip(sides, shares, strict=True):
        if total := sum(side.values(), 0 * share):
            found = [part + share * side[cell] / total for part, cell in zip(found, _CELLS, strict=True)]
    return AgreementTable(*found)
