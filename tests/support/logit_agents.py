"""Four kinds of agents with known true scores, harder for the statistics than those of `simulated_agents`.

docs/statistics.md describes them. A session, such as another day or another load, moves all tests of a run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log
from random import Random
from statistics import fmean

_NODES = [0.7 * step for step in range(-8, 9)]
_WEIGHTS = [exp(-(node**2) / 2) for node in _NODES]
"""For means over a normal distribution: such a sum is exact to six digits."""


@dataclass(frozen=True)
class LogitCase:
    """One test as an agent fares in it."""

    logits: tuple[float, ...]
    """Of the chances that each criterion passes."""
    weights: tuple[int, ...]
    noise: float
    """The standard deviation by which a trial moves all its criteria."""

    @cached_property
    def score(self) -> float:
        """The true score, in points."""
        means = [
            sum(
                share * _chance(logit + self.noise * node)
                for node, share in zip(_NODES, _WEIGHTS, strict=True)
            )
            for logit in self.logits
        ]
        held = sum(weight * mean for weight, mean in zip(self.weights, means, strict=True))
        return 100 * held / sum(self.weights) / sum(_WEIGHTS)

    @property
    def criteria(self) -> float:
        """The effective number of criteria."""
        return sum(self.weights) ** 2 / sum(weight**2 for weight in self.weights)

    def play(self, trials: int, rng: Random) -> tuple[float, ...]:
        """The scores of some trials."""
        total, criteria = sum(self.weights), list(zip(self.weights, self.logits, strict=True))
        scores = []
        for _ in range(trials):
            moved = rng.gauss(0, self.noise)
            passed = sum(weight for weight, logit in criteria if rng.random() < _chance(logit + moved))
            scores.append(100 * passed / total)
        return tuple(scores)

    def moved(self, by: float) -> "LogitCase":
        """The same test after all its logits have moved."""
        return replace(self, logits=tuple(logit + by for logit in self.logits))


LogitAgent = list[LogitCase]


def heavy(tests: int, rng: Random) -> LogitAgent:
    """Heavy-tailed difficulties, one to eight criteria of unequal weights, tests that vary unequally."""

    def case() -> LogitCase:
        middle, criteria = 2.6 + 1.1 * _students_t(rng), rng.randint(1, 8)
        noise = min(4.0, max(0.1, rng.lognormvariate(-0.2, 0.9)))
        return _case(middle, 0.7, rng.choices((1, 2, 5), k=criteria), noise, rng)

    return [case() for _ in range(tests)]


def perfect(tests: int, rng: Random) -> LogitAgent:
    """Four of five tests nearly always pass; the others are fragile."""

    def case() -> LogitCase:
        chance = 0.997 if rng.random() < 0.8 else rng.uniform(0.2, 0.9)
        return _case(_logit(chance), 0.3, rng.choices((1, 2), k=5), 0.5, rng)

    return [case() for _ in range(tests)]


def binary(tests: int, rng: Random) -> LogitAgent:
    chances = [min(0.995, max(0.01, rng.betavariate(4, 1))) for _ in range(tests)]
    return [LogitCase((_logit(chance),), (1,), 0.0) for chance in chances]


def mild(tests: int, rng: Random) -> LogitAgent:
    """Normal difficulties, five criteria of equal weight."""
    return [_case(rng.gauss(2, 1.2), 0.4, [1] * 5, 0.8, rng) for _ in range(tests)]


KINDS: dict[str, Callable[[int, Random], LogitAgent]] = {
    "heavy": heavy, "perfect": perfect, "binary": binary, "mild": mild,
}  # fmt: skip


MEANS = {"heavy": 81.7, "perfect": 90.6, "binary": 80.0, "mild": 81.0}
"""The mean score over all tests that such agents could be asked; a test estimates it anew."""


@dataclass(frozen=True)
class Sessions:
    """How runs of one agent differ: standard deviations of normal shifts, in points of the run's score."""

    points: float = 0
    """What moves all tests of a run alike."""
    by_test: float = 0
    """What moves each test by itself."""

    def of(self, whole: LogitAgent, rng: Random) -> tuple[LogitAgent, LogitAgent]:
        """The agent in two sessions."""
        if not (self.points or self.by_test):
            return whole, whole
        slope = (_score(whole, 0.25) - _score(whole, -0.25)) / 0.5

        def one() -> LogitAgent:
            shift = rng.gauss(0, self.points / slope)
            return [case.moved(shift + rng.gauss(0, self.by_test / slope)) for case in whole]

        return one(), one()


def _case(middle: float, differ: float, weights: list[int], noise: float, rng: Random) -> LogitCase:
    return LogitCase(tuple(rng.gauss(middle, differ) for _ in weights), tuple(weights), noise)


def _students_t(rng: Random) -> float:
    """Student's t with two degrees of freedom."""
    return rng.gauss(0, 1) / rng.expovariate(1) ** 0.5


def _score(whole: LogitAgent, by: float) -> float:
    return fmean(case.moved(by).score for case in whole)


def _logit(chance: float) -> float:
    return log(chance / (1 - chance))


def _chance(logit: float) -> float:
    return 1 / (1 + exp(-min(30.0, max(-30.0, logit))))
