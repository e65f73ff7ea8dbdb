"""The shares of agent, simulated user and judge in the noise of scores, separated by what is kept fixed.

A new conversation varies by all three; one with the same user messages, by agent and judge; a conversation
that is judged again, by the judge alone. What one varies more than the next is the part of the one that is
let loose: the analysis of variance of a nested design (Searle, Casella and McCulloch, 1992). All variances
are in square points. docs/judge-statistics.md has the formulas.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from statistics import fmean, variance
from typing import Literal

from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.noise.result import NoiseShare
from ci_evals.scoring.statistics import t_quantile

DRAWS = 999
_LEAST_SCORES = 2
_ROUNDING = 1e-9
"""Square points: what is less comes from binary numbers."""
_MOST = 2500.0
"""No scores between 0 and 100 have a larger variance (Popoviciu)."""
_LEAST_SPREAD = 0.3
"""Share of the observed spread: a draw of tests that happen to be alike still has some."""

Source = Literal["agent", "user", "judge"]


@dataclass(frozen=True)
class TestScores:
    """The scores of one test, in points."""

    fresh: tuple[float, ...]
    """Played as the suite has it, each judged once."""
    fixed: tuple[float, ...] | None = None
    """Played with the words of one recorded user, each judged once. None if no model writes the user's
    words, so that they are held anyhow."""
    judged: tuple[float, ...] | None = None
    """One conversation, judged again and again. None if no judge has a say."""

    @property
    def enough(self) -> bool:
        """Tell whether there is a variance of each kind."""
        kinds = (self.fresh, self.fixed, self.judged)
        return all(len(scores) >= _LEAST_SCORES for scores in kinds if scores is not None)


@dataclass(frozen=True)
class NoiseSources:
    """The estimated variances, by source."""

    parts: tuple[NoiseShare, ...]
    """Agent, user, judge: of one trial and one vote."""
    between: Estimate
    """Variance of the tests' own scores."""

    def of(self, source: Source) -> float:
        """The variance that one source makes."""
        return next(part.variance.value for part in self.parts if part.source == source)


def sources_of(samples: Sequence[TestScores], seed: int, draws: int = DRAWS) -> NoiseSources:
    """Estimate the variance of each source. Each is a mean over tests, so that the test is the unit.

    Estimates below 0, which chance makes of small ones, are shown as 0. Intervals are 95 % by the bootstrap-t
    over tests (Efron and Tibshirani, 1993), and no narrower than Student's; none where all tests are alike.

    Args:
        samples: Of at least two tests, with enough scores each.
        seed: What the bootstrap is drawn by.
        draws: How many.
    """
    tests = len(samples)
    fresh = [variance(one.fresh) for one in samples]
    fixed = [
        whole if one.fixed is None else variance(one.fixed) for one, whole in zip(samples, fresh, strict=True)
    ]
    judge = [0.0 if one.judged is None else variance(one.judged) for one in samples]
    parts: dict[Source, list[float]] = {
        "agent": [mine - judges for mine, judges in zip(fixed, judge, strict=True)],
        "user": [whole - rest for whole, rest in zip(fresh, fixed, strict=True)],
        "judge": judge,
    }
    absent: set[Source] = {"user"} if all(one.fixed is None for one in samples) else set()
    absent |= {"judge"} if all(one.judged is None for one in samples) else set()
    means = [fmean(one.fresh) for one in samples]
    middle = fmean(means)
    # Their mean is the variance of the tests' means, less what trials within them make of it.
    between = [
        (mean - middle) ** 2 * tests / (tests - 1) - within / len(one.fresh)
        for one, mean, within in zip(samples, means, fresh, strict=True)
    ]
    boot = _Bootstrap(tests, seed, draws)
    freedom = sum(len(one.judged) - 1 for one in samples if one.judged)
    whole = math.fsum(max(0.0, fmean(values)) for values in parts.values())
    return NoiseSources(
        parts=tuple(
            NoiseShare(
                source=source,
                variance=_exactly(0, tests)
                if source in absent
                else boot.variance(values, freedom if source == "judge" else None),
                share=None
                if whole < _ROUNDING
                else boot.share(values, fresh, whole, known=source in absent or len(absent) == 2),
            )
            for source, values in parts.items()
        ),
        between=boot.variance(between),
    )


def _exactly(value: float, tests: int) -> Estimate:
    """An estimate without error, of what is known."""
    return Estimate(value=value, low=value, high=value, count=tests)


class _Bootstrap:
    """Intervals of means and of ratios of means over tests, all by the same draws of tests."""

    def __init__(self, tests: int, seed: int, draws: int) -> None:
        self._tests, self._seed, self._draws = tests, seed, draws

    @cached_property
    def _picks(self) -> list[list[int]]:
        rng = random.Random(f"noise {self._seed}")  # noqa: S311  # a simulation, not a secret
        return [rng.choices(range(self._tests), k=self._tests) for _ in range(self._draws)]

    def variance(self, values: Sequence[float], freedom: int | None = None) -> Estimate:
        """The mean of what the tests tell of a variance, not below 0.

        With `freedom`, of variances that are no differences, the upper end is reckoned on the logarithm too,
        from no smaller an error than scores of a normal distribution have with so many degrees of freedom:
        where few verdicts change, tests look alike that are not.
        """
        value, found = max(0.0, fmean(values)), self.interval(values, [1.0] * self._tests)
        if found and freedom:
            error = max(math.sqrt(variance(values) / self._tests) / value, math.sqrt(2 / freedom))
            high = value * math.exp(t_quantile(self._tests - 1) * error)
            found = found[0], max(found[1], high)
        return self._within(value, _MOST, found)

    def share(
        self, values: Sequence[float], fresh: Sequence[float], whole: float, *, known: bool
    ) -> Estimate:
        """The share that a source has of all noise; `known` where it is there alone, or not at all."""
        value = max(0.0, fmean(values)) / whole
        if known:
            return _exactly(value, self._tests)
        found = self.interval(values, fresh) if fmean(fresh) > _ROUNDING else None
        return self._within(value, 1.0, found)

    def _within(self, value: float, most: float, found: tuple[float, float] | None) -> Estimate:
        if found is None:
            return Estimate(value=value, count=self._tests)
        low, high = (min(most, max(0.0, bound)) for bound in found)
        return Estimate(value=value, low=min(low, value), high=max(high, value), count=self._tests)

    def interval(self, tops: Sequence[float], bottoms: Sequence[float]) -> tuple[float, float] | None:
        """The interval of the ratio of two means; None if no test differs from the others."""
        seen = sum(tops) / sum(bottoms)
        # By hand, as what `_error` does takes small differences of large numbers.
        squares = math.fsum((top - seen * bottom) ** 2 for top, bottom in zip(tops, bottoms, strict=True))
        error = math.sqrt(squares * self._tests / (self._tests - 1)) / sum(bottoms)
        if error < _ROUNDING:
            return None
        studentised = []
        for pick in self._picks:
            some, whole = [tops[index] for index in pick], [bottoms[index] for index in pick]
            if math.fsum(whole) < _ROUNDING:
                continue
            drawn = sum(some) / sum(whole)
            studentised.append((drawn - seen) / max(_error(some, whole, drawn), _LEAST_SPREAD * error))
        studentised.sort()
        least = t_quantile(self._tests - 1)
        below = max(least, _quantile(studentised, 0.975))
        above = max(least, -_quantile(studentised, 0.025))
        return seen - below * error, seen + above * error


def _error(tops: Sequence[float], bottoms: Sequence[float], ratio: float) -> float:
    """The standard error of a ratio of means, by its linear part."""
    count = len(tops)
    squares = sum(map(mul, tops, tops)) - 2 * ratio * sum(map(mul, tops, bottoms))
    squares += ratio**2 * sum(map(mul, bottoms, bottoms))
    return math.sqrt(max(0.0, squares) * count / (count - 1)) / sum(bottoms)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of ordered numbers; 0 if there are none."""
    if not ordered:
        return 0.0
    index = share * (len(ordered) - 1)
    low = math.floor(index)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (index - low) * (ordered[high] - ordered[low])
