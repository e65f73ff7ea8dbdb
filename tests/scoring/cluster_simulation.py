"""Agents whose tests are played with several users each: what their scores have in common counts once."""

from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

import builders as build
from plans import trial
from simulated_agents import MEAN, Case, agent

from ci_evals.gate.noise import TrialNoise
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


def newly_failing(setting: Personas, times: int) -> tuple[float, float, float]:
    """How often an unchanged agent newly fails a test, and its mean odds: by original tests, and by all.

    A trial goes wrong once in ten times on average: more often in some tests, and in all trials of a test's
    users at once if these are shared.
    """
    failing = by_cluster = by_test = 0.0
    for number in range(times):
        rng = Random(f"newly {setting} {number}")
        rates = [rng.betavariate(0.5, 4.5) for _ in range(setting.tests)]
        recorded, new = _passes(setting, rates, rng), _passes(setting, rates, rng)
        failing += any(all(was) and not all(now) for was, now in zip(recorded, new, strict=True))
        by_cluster += _odds_of_newly_failing(setting, recorded, number, clusters=True)
        by_test += _odds_of_newly_failing(setting, recorded, number, clusters=False)
    return failing / times, by_cluster / times, by_test / times


def _passes(setting: Personas, rates: list[float], rng: Random) -> list[list[bool]]:
    """Whether each trial of each test passes."""
    played = []
    for rate in rates:
        users = [[rng.random() >= rate for _ in range(setting.trials)] for _ in range(setting.users)]
        played += [users[0]] * setting.users if setting.shared else users
    return played


def _odds_of_newly_failing(
    setting: Personas, recorded: list[list[bool]], number: int, *, clusters: bool
) -> float:
    tests = []
    for place, passes in enumerate(recorded):
        trials = tuple(
            trial("passed" if passed else "failed", index=index) for index, passed in enumerate(passes, 1)
        )
        cluster = f"c{setting.clusters[place]}" if clusters else None
        tests.append(replace(build.test_result(f"t{place}", trials=trials), cluster=cluster))
    results = build.results(build.suite_result("S", *tests), run=build.run_info(id=f"run {number}"))
    passed = [place for place, test in enumerate(tests) if test.passed]
    return fmean(TrialNoise(results).misses(passed))


def _p(pairs: list[ScorePair], number: int) -> float:
    return chance_of_drop(pairs, str(number), draws=499).p
