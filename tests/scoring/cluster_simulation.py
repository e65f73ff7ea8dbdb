"""Agents whose tests are played with several users each: what their scores have in common counts once."""

from dataclasses import dataclass
from random import Random
from statistics import fmean

from simulated_agents import MEAN, Case, agent

from ci_evals.scoring.clusters import merged_pairs
from ci_evals.scoring.statistics import ALPHA, ScorePair, chance_of_drop, mean_interval


@dataclass(frozen=True)
class Personas:
    """Tests, each played with some users in some trials."""

    tests: int
    users: int
    trials: int
    shared: bool = False
    """True if what goes wrong in a trial goes wrong for all users of the test, as by a broken test system."""

    def scores(self, cases: list[Case], rng: Random) -> list[tuple[float, ...]]:
        """The scores of all tests' trials, those of one original test side by side."""
        played = []
        for case in cases:
            by_trial = [self._trial(case, rng) for _ in range(self.trials)]
            played += zip(*by_trial, strict=True)
        return played

    def _trial(self, case: Case, rng: Random) -> list[float]:
        if not self.shared:
            return [case.play(1, rng)[0] for _ in range(self.users)]
        astray = rng.random() < case.derails * 3
        score = 100 * case.chances[0] * (0.35 if astray else 1)
        return [min(100.0, max(0.0, score + rng.gauss(0, 5))) for _ in range(self.users)]

    @property
    def clusters(self) -> list[int]:
        """The original test of each test."""
        return [place // self.users for place in range(self.tests * self.users)]


def covers(setting: Personas, times: int) -> tuple[float, float]:
    """How often the interval of a score holds the true one: by original tests, and by all tests."""
    by_cluster = by_test = 0
    for number in range(times):
        rng = Random(f"cover {setting} {number}")
        means = [*map(fmean, setting.scores(agent(setting.tests, rng), rng))]
        by_cluster += _holds(mean_interval(means, setting.clusters))
        by_test += _holds(mean_interval(means))
    return by_cluster / times, by_test / times


def _holds(interval) -> bool:
    return interval.low <= MEAN <= interval.high


def called_worse(setting: Personas, times: int) -> tuple[float, float]:
    """How often an unchanged agent is called worse: by original tests, and by all tests."""
    by_cluster = by_test = 0
    for number in range(times):
        rng = Random(f"level {setting} {number}")
        cases = agent(setting.tests, rng)
        head, base = setting.scores(cases, rng), setting.scores(cases, rng)
        pairs = [ScorePair(one, other) for one, other in zip(head, base, strict=True)]
        by_cluster += _p(merged_pairs(pairs, setting.clusters), number) <= ALPHA
        by_test += _p(pairs, number) <= ALPHA
    return by_cluster / times, by_test / times


def _p(pairs: list[ScorePair], number: int) -> float:
    return chance_of_drop(pairs, str(number), draws=499).p
