"""Verdicts that people labeled too, how raters agree on them, and intervals of what a sample tells."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.calibration.result import Counted
from ci_evals.scoring.agreement.beyond_chance import AgreementTable, Number, Split, alpha

K = TypeVar("K")

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
    """The label of each person, in an order that is the same throughout; None if none, or that it cannot
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


def estimate(
    value: float, drawn: Iterable[float | None], labels: int, highs: Sequence[float] | None = None
) -> Estimate:
    """A number with the middle 95 % of what it may be in truth; `highs` where its upper end is another's."""
    lows = sorted(number for number in drawn if number is not None)
    if not lows:
        return Estimate(value=value, count=labels)
    low = lows[int(0.025 * len(lows))]
    high = (sorted(highs) if highs else lows)[math.ceil(0.975 * len(lows)) - 1]
    return Estimate(value=value, low=min(low, value), high=max(high, value), count=labels)


_Weighed = Iterable[tuple[K, Number]]
"""What raters said of an item, and the share of all items of which they said that."""


@dataclass(frozen=True)
class RaterAgreement:
    """The agreement of raters, by labels that were drawn by the judge's verdicts, and weigh accordingly."""

    labeled: Sequence[LabeledVerdict]
    counted: Counted
    source: LabelSource

    def with_judge(self) -> Estimate | None:
        """Krippendorff's alpha of people and judge together; None if none differs."""
        sides = [
            Counter(
                Split(one.split.passes + passed, one.split.fails + (not passed))
                for one in self._with_verdict(passed)
            )
            for passed in (True, False)
        ]
        most = _most_raters(sides)
        alone = ((Split(most, 0), Split(1, most - 1)), (Split(0, most), Split(most - 1, 1)))
        return self._alpha(sides, alone, "alpha")

    def of_people(self) -> Estimate | None:
        """The alpha of the people alone; None if none differs, or no two labeled the same verdict."""
        sides = [
            Counter(one.split for one in self._with_verdict(passed) if one.split.raters > 1)
            for passed in (True, False)
        ]
        most = _most_raters(sides)
        any_split = (Split(most, 0), Split(0, most), Split(most - most // 2, most // 2))
        return self._alpha(sides, (any_split, any_split), "people")

    def of_two_people(self) -> Estimate | None:
        """Cohen's kappa between two people; None if there are more or fewer, or they differ in nothing."""
        people = {i for one in self.labeled for i, passed in enumerate(one.people) if passed is not None}
        if len(people) != 2:
            return None
        first, second = sorted(people)
        sides = [
            Counter(
                (one.people[first], one.people[second])
                for one in self._with_verdict(passed)
                if None not in (one.people[first], one.people[second])
            )
            for passed in (True, False)
        ]
        return self._estimate(sides, (_CELLS, _CELLS), (_CELLS, _CELLS), _kappa, "two people")

    def _with_verdict(self, passed: bool) -> Iterator[LabeledVerdict]:
        return (one for one in self.labeled if one.passed is passed)

    def _alpha(
        self, sides: Sequence[Counter[Split]], unseen: Sequence[Sequence[Split]], name: str
    ) -> Estimate | None:
        values = sum(split.raters for side in sides for split in side.elements())
        possible = [sorted({*side, *new}) for side, new in zip(sides, unseen, strict=True)]

        def of(weighed: _Weighed[Split, Number]) -> Number | None:
            return alpha(weighed, values)

        return self._estimate(sides, unseen, possible, of, name)

    def _estimate(
        self,
        sides: Sequence[Counter[K]],
        unseen: Sequence[Sequence[K]],
        possible: Sequence[Sequence[K]],
        agreement: Callable[[_Weighed[K, Any]], Any],
        name: str,
    ) -> Estimate | None:
        """The agreement where verdicts that the judge passes, and fails, were labeled so.

        Of what is `possible`, some of `unseen` is taken to be there though nobody saw it.
        """
        counted = self.counted
        drawn_from = (counted.passes, counted.fails)
        if any(of and not side for of, side in zip(drawn_from, sides, strict=True)):
            return None
        shares = [Fraction(of, max(1, sum(drawn_from))) for of in drawn_from]
        value = agreement(_weighed([[*side.items()] for side in sides], shares))
        if value is None:
            return None
        rng, drawn = self.source.rng(name), []
        tables = [
            [(key, side[key] / counted.design + (1 / len(new) if key in new else 0)) for key in keys]
            for side, new, keys in zip(sides, unseen, possible, strict=True)
        ]
        for _ in range(self.source.draws):
            passes = rng.betavariate(counted.passes + UNSEEN, counted.fails + UNSEEN)
            times = [[(key, rng.gammavariate(likely, 1)) for key, likely in table] for table in tables]
            drawn.append(agreement(_weighed(times, [passes, 1 - passes])))
        return estimate(float(value), drawn, sum(side.total() for side in sides))


def _most_raters(sides: Iterable[Iterable[Split]]) -> int:
    return max((split.raters for side in sides for split in side), default=2)


def _weighed(
    sides: Sequence[Sequence[tuple[K, Any]]], shares: Sequence[Number]
) -> Iterator[tuple[K, Number]]:
    """The weight of each key, if each side weighs its share."""
    for side, share in zip(sides, shares, strict=True):
        if total := sum(times for _, times in side):
            for key, times in side:
                yield key, share * times / total


_Cell = tuple[bool | None, bool | None]
_CELLS: tuple[_Cell, ...] = ((True, True), (True, False), (False, True), (False, False))


def _kappa(weighed: _Weighed[_Cell, Number]) -> Number | None:
    """Cohen's kappa of two people's labels."""
    cells: dict[_Cell, Any] = dict.fromkeys(_CELLS, 0)
    for cell, weight in weighed:
        cells[cell] += weight
    table: AgreementTable[Number] = AgreementTable(*cells.values())
    return table.kappa()
