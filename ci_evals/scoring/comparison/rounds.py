"""Looks at a run in rounds: whether its trials until now decide, or more are to be played.

The limits are those of a random search over rules, rounded by hand and checked by simulation with permutation
tests on other populations: an unchanged agent fails at most 5 % of runs over all looks together. A pass at an
early look is binding, which is what allows the limit of the last one. docs/rounds.md has the tables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ci_evals.scoring.statistics import ScorePair, pooled_variance, shrunk_variance, t_quantile

LOOKS = (2, 3, 5, 7)
"""The trials of each test after which `--rounds=auto` looks."""
BOTH_SIDES_LOOKS = LOOKS[1:]
"""The trials of each test and side after which a run looks that plays the base agent too."""
_LAST = LOOKS[-1]
_FAILS_AT: Mapping[float, float] = {2: 0.0025, 3: 0.007, 5: 0.018, 7: 0.045}
_PASSES_ABOVE: Mapping[float, float] = {2: 0.50, 3: 0.28, 5: 0.18, 7: 0.045}
_PASSES_ABOVE_BOTH_SIDES: Mapping[float, float] = {**_PASSES_ABOVE, 3: 0.50}
_MARGINS: Mapping[float, float] = {2: 2.5, 3: 2.2, 5: 2.0}
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

    def settles(self, p: float) -> bool:
        """Return whether a drop of this p is decided, either way."""
        return self.is_last or p <= self.fails_at or p > self.passes_above

    def settles_score(self, distance: float, tests: Sequence[Sequence[float]]) -> bool:
        """Return whether the mean of these tests' trials is on its side of a threshold for good.

        `distance` is that between score and threshold, in points. The question is about these tests, not
        others like them, so that only the noise of trials counts. Single trials decide nothing.
        """
        return self._settles(distance, [tests])

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


def looks_at(trials: Sequence[int], *, both_sides: bool = False) -> tuple[Look, ...]:
    """The looks after these numbers of trials of each test, in ascending order.

    Those of `LOOKS` have the limits that were searched for. Other lists have them in between: by the share
    of the most trials that a look has, on a straight line. With `both_sides`, the limits are those of a run
    that compares with the base agent in the same rounds.
    """
    passes_above = _PASSES_ABOVE_BOTH_SIDES if both_sides else _PASSES_ABOVE
    last = trials[-1] if trials else 0
    shares = [number * _LAST / last for number in trials]
    return tuple(
        Look(
            number,
            fails_at=_between(_FAILS_AT, share),
            passes_above=_between(passes_above, share),
            margin=_between(_MARGINS, share),
            is_last=number == last,
        )
        for number, share in zip(trials, shares, strict=True)
    )


def _between(values: Mapping[float, float], trials: float) -> float:
    if trials in values:
        return values[trials]
    points = sorted(values.items())
    if trials <= points[0][0]:
        return points[0][1]
    for (low, below), (high, above) in pairwise(points):
        if trials <= high:
            return below + (above - below) * (trials - low) / (high - low)
    return points[-1][1]
