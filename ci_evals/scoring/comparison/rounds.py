"""Looks at a run in rounds: whether its trials until now decide, or more are to be played.

The limits are those of a random search over rules, rounded by hand and checked by simulation with permutation
tests on other populations: an unchanged agent fails at most 5 % of runs over all looks together. A pass at an
early look is binding, which is what allows the limit of the last one. docs/rounds.md has the tables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.gate import LookDecision
from ci_evals.scoring.statistics import ScorePair, pooled_variance, shrunk_variance, t_quantile

LOOKS = (2, 3, 5, 7)
"""The trials of each test after which a run in rounds looks."""
BOTH_SIDES_LOOKS = LOOKS[1:]
"""The trials of each test and side after which a run looks that plays the base agent too."""
_LAST = LOOKS[-1]
_FAILS_AT: Mapping[int, float] = {2: 0.0025, 3: 0.007, 5: 0.018, 7: 0.045}
_PASSES_ABOVE: Mapping[int, float] = {2: 0.50, 3: 0.28, 5: 0.18, 7: 0.045}
_PASSES_ABOVE_BOTH_SIDES: Mapping[int, float] = {**_PASSES_ABOVE, 3: 0.50}
_MARGINS: Mapping[int, float] = {2: 2.5, 3: 2.2, 5: 2.0, 7: 2.0}
"""How many standard errors a score is off its threshold where a look decides."""
_Z = 1.96


@dataclass(frozen=True)
class Look:
    """The limits of one look."""

    trials: int
    """Of each test, until then."""
    fails_at: float
    """The highest p of a drop that fails."""
    passes_above: float
    """A higher p passes."""
    margin: float
    """Standard errors between a score and its threshold that decide."""
    is_last: bool

    def decision(self, p: float) -> LookDecision:
        """Decide by the p of a drop."""
        if p <= self.fails_at:
            return "fail"
        return "pass" if self.is_last or p > self.passes_above else "continue"

    def settles_score(self, distance: float, tests: Sequence[Sequence[float]]) -> bool:
        """Return whether the mean of these tests' trials is on its side of a threshold for good.

        `distance` is that between score and threshold, in points. The question is about these tests, not
        others like them, so that only the noise of trials counts. Single trials decide nothing. A few trials
        that all passed do not decide either: they leave some doubt.
        """
        doubted = not self.is_last and 0 < distance <= self.margin * _doubted_error(tests)
        return not doubted and self._settles(distance, [tests])

    def settles_drop(self, distance: float, pairs: Sequence[ScorePair]) -> bool:
        """The same of the change of these tests, and a threshold for that."""
        return self._settles(distance, [[pair.head for pair in pairs], [pair.base for pair in pairs]])

    def _settles(self, distance: float, sides: Sequence[Sequence[Sequence[float]]]) -> bool:
        if self.is_last:
            return True
        tests = [scores for side in sides for scores in side]
        freedom = sum(len(scores) - 1 for scores in tests)
        pool = pooled_variance(tests)
        if pool is None:
            return False
        squares = math.fsum(shrunk_variance(scores, pool) / len(scores) for scores in tests)
        error = math.sqrt(squares) / len(sides[0])
        return abs(distance) > self.margin * t_quantile(freedom) / _Z * error


def _doubted_error(tests: Sequence[Sequence[float]]) -> float:
    """The standard error of the mean of tests, in points, as if of two more trials one had failed."""
    trials = sum(map(len, tests))
    passed = (trials + 1) / (trials + 2)
    variance = 100**2 * passed * (1 - passed)
    return math.sqrt(math.fsum(variance / len(scores) for scores in tests)) / len(tests)


def looks_at(trials: Sequence[int], *, both_sides: bool = False) -> tuple[Look, ...]:
    """The looks after these numbers of trials of each test, in ascending order.

    Each has the limits that were searched for after so many trials, and the last one those of the last look:
    with fewer looks, fewer unchanged agents fail. With `both_sides`, the limits are those of a run that
    compares with the base agent in the same rounds. Numbers that are not in `LOOKS` (a foreign file may have
    any) have the limits of the next smaller one.
    """
    passes_above = _PASSES_ABOVE_BOTH_SIDES if both_sides else _PASSES_ABOVE
    last = trials[-1] if trials else 0
    known = [_LAST if number == last else _known(number) for number in trials]
    return tuple(
        Look(
            number,
            fails_at=_FAILS_AT[like],
            passes_above=passes_above[like],
            margin=_MARGINS[like],
            is_last=number == last,
        )
        for number, like in zip(trials, known, strict=True)
    )


def _known(trials: int) -> int:
    return max((look for look in LOOKS if look <= trials), default=LOOKS[0])
