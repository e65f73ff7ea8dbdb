"""Agents whose true scores are known, for holding the statistics to what they claim.

docs/statistics.md describes them: most tests near the ceiling, and criteria that fail together.
"""

from dataclasses import dataclass
from functools import cached_property
from random import Random

from ci_evals.scoring.statistics import ScorePair

CRITERIA = 5
MEAN = 83.84
"""The mean score over all tests that such agents could be asked; a test estimates it anew."""
_DERAILED = 0.35
"""What is left of every criterion's chance in a trial that went astray."""


@dataclass(frozen=True)
class Case:
    """One test as an agent fares in it."""

    chances: tuple[float, ...]
    """How likely each criterion passes."""
    weights: tuple[int, ...]
    derails: float
    """How likely a trial goes astray."""

    @cached_property
    def score(self) -> float:
        """The true score, in points."""
        held = sum(weight * chance for weight, chance in zip(self.weights, self.chances, strict=True))
        return 100 * (1 - self.derails * (1 - _DERAILED)) * held / sum(self.weights)

    def verdicts(self, rng: Random) -> list[bool]:
        """One trial: which criteria pass."""
        left = _DERAILED if rng.random() < self.derails else 1.0
        return [rng.random() < left * chance for chance in self.chances]

    def play(self, trials: int, rng: Random) -> tuple[float, ...]:
        """The scores of some trials."""
        total = sum(self.weights)
        played = (zip(self.weights, self.verdicts(rng), strict=True) for _ in range(trials))
        return tuple(100 * sum(weight for weight, passed in one if passed) / total for one in played)

    def worse(self, by: float) -> "Case":
        """The same test after every criterion has lost so much of its chance."""
        left = tuple(min(1.0, max(0.0, chance - by)) for chance in self.chances)
        return Case(left, self.weights, self.derails)


Agent = list[Case]


def agent(tests: int, rng: Random) -> Agent:
    """An agent, by how it fares in each of its tests."""
    return [_case(rng) for _ in range(tests)]


def _case(rng: Random) -> Case:
    middle = rng.betavariate(6, 0.7)
    chances = tuple(min(0.995, max(0.02, rng.gauss(middle, 0.08))) for _ in range(CRITERIA))
    return Case(chances, tuple(rng.choices((1, 2), k=CRITERIA)), rng.betavariate(1, 12))


def spread(whole: Agent) -> Agent:
    """After every criterion of every test has lost 10 points."""
    return drifted(whole, 0.1)


def concentrated(whole: Agent) -> Agent:
    """After a fifth of the tests have lost 60 points each: a workflow that broke."""
    broken = round(len(whole) / 5)
    return [case.worse(0.6) for case in whole[:broken]] + whole[broken:]


def drifted(whole: Agent, by: float) -> Agent:
    """After every criterion of every test has lost so much of its chance."""
    return [case.worse(by) for case in whole]


def unchanged(whole: Agent) -> Agent:
    return whole


def score(whole: Agent) -> float:
    """The true score of an agent over its own tests."""
    return sum(case.score for case in whole) / len(whole)


def pairs(head: Agent, base: Agent, trials: tuple[int, int], rng: Random) -> list[ScorePair]:
    """Both agents played, with so many trials of each test for head and base."""
    return [
        ScorePair(one.play(trials[0], rng), other.play(trials[1], rng))
        for one, other in zip(head, base, strict=True)
    ]
