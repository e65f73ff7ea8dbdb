"""How often the statistics err about agents whose true scores are known: figures of docs/statistics.md."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from statistics import fmean, variance

import builders as build
from logit_agents import KINDS, MEANS, LogitAgent, Sessions
from simulated_agents import CRITERIA, MEAN, Agent, agent, pairs, score, unchanged

from ci_evals.domain.results.gate import GateCheck, Odds
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.gate.odds import odds_of
from ci_evals.scoring.statistics import (
    ALPHA,
    ScorePair,
    chance_of_drop,
    mean_interval,
    proven_drops,
    spread_of,
)

DRAWS = 99
"""Fewer than a run has: the level of the test is the same, its power a little lower."""
Damage = Callable[[Agent], Agent]


@dataclass(frozen=True)
class Setting:
    """What is played, and how often."""

    tests: int
    head: int = 3
    """Trials of each test."""
    base: int = 3
    times: int = 1_000
    kind: str = ""
    """A kind of `logit_agents`; else agents of `simulated_agents`."""

    def agents(self) -> Iterator[tuple[Agent | LogitAgent, Random]]:
        """An agent for each time, with the dice for it."""
        for time in range(self.times):
            rng = Random(f"{self.kind}{self.tests} {self.head} {self.base} {time}")
            yield (KINDS[self.kind] if self.kind else agent)(self.tests, rng), rng

    def pairs(self, damage: Damage) -> Iterator[tuple[list[ScorePair], Random]]:
        """Each agent after some damage against what it was."""
        for whole, rng in self.agents():
            yield pairs(damage(whole), whole, (self.head, self.base), rng), rng


def covers(setting: Setting) -> float:
    """How often the interval of a score holds the mean of all tests that might have been asked."""
    result = [
        mean_interval([fmean(case.play(setting.head, rng)) for case in whole])
        for whole, rng in setting.agents()
    ]
    return fmean(bounds.low <= MEAN <= bounds.high for bounds in result)


def covers_if_trials_were_independent(setting: Setting) -> float:
    """The same of the textbook's interval, which does not know that trials belong to tests."""
    result = []
    for whole, rng in setting.agents():
        scores = [one for case in whole for one in case.play(setting.head, rng)]
        half = 1.96 * sqrt(variance(scores) / len(scores))
        result.append(abs(fmean(scores) - MEAN) <= half)
    return fmean(result)


def covers_change(setting: Setting, damage: Damage) -> float:
    """How often the interval of a change holds the true change of these tests."""
    result = []
    for whole, rng in setting.agents():
        worse = damage(whole)
        played = pairs(worse, whole, (setting.head, setting.base), rng)
        base = fmean(fmean(pair.base) for pair in played)
        bounds = spread_of(played, CRITERIA).interval(fmean(pair.delta for pair in played), base)
        result.append(bounds.low <= score(worse) - score(whole) <= bounds.high)
    return fmean(result)


def proven(setting: Setting, damage: Damage) -> float:
    """How often a drop is proven."""
    return fmean(_p(played, rng) <= ALPHA for played, rng in setting.pairs(damage))


def fell(setting: Setting, damage: Damage, by: float = 0) -> float:
    """How often the score is lower by more than so many points."""
    return fmean(fmean(pair.delta for pair in played) < -by for played, _ in setting.pairs(damage))


def alarms(setting: Setting, sessions: Sessions) -> float:
    """How often an unchanged agent is called worse by p if its two runs are of different sessions."""
    result = []
    for whole, rng in setting.agents():
        head, base = sessions.of(whole, rng)
        played = pairs(head, base, (setting.head, setting.base), rng)
        result.append(_p(played, rng) <= ALPHA)
    return fmean(result)


def false_claims(setting: Setting, sessions: Sessions) -> float:
    """How often any test of an unchanged agent is called worse if its two runs are of different sessions."""
    result = []
    for whole, rng in setting.agents():
        played = pairs(*sessions.of(whole, rng), (setting.head, setting.base), rng)
        result.append(any(p is not None and p <= ALPHA for p in proven_drops(played, str(rng.random()))))
    return fmean(result)


@dataclass(frozen=True)
class ScoreIntervals:
    """Where the interval of a score lies."""

    covers: float
    above: float
    """How often the whole of it is above the mean of all tests that might have been asked."""
    below: float
    covers_these: float
    """How often it holds the true score of the very tests that were asked."""


def score_intervals(setting: Setting) -> ScoreIntervals:
    """Where the interval of a score lies, of agents of one kind."""
    result, mean = [], MEANS[setting.kind]
    for whole, rng in setting.agents():
        bounds = mean_interval([fmean(case.play(setting.head, rng)) for case in whole])
        above, below = bounds.low > mean, bounds.high < mean
        result.append((not (above or below), above, below, bounds.low <= score(whole) <= bounds.high))
    return ScoreIntervals(*(fmean(of_one) for of_one in zip(*result, strict=True)))


def covers_no_change(setting: Setting, trials: Callable[[int, Random], tuple[int, int]]) -> float:
    """How often the interval of a change holds 0, of an unchanged agent; `trials` of each test by place."""
    result = []
    for whole, rng in setting.agents():
        counts = [trials(place, rng) for place in range(len(whole))]
        played = [
            ScorePair(case.play(head, rng), case.play(base, rng))
            for case, (head, base) in zip(whole, counts, strict=True)
        ]
        delta = fmean(pair.delta for pair in played)
        spread = spread_of(played, fmean(case.criteria for case in whole))
        bounds = spread.interval(delta, fmean(fmean(pair.base) for pair in played))
        result.append(bounds.low <= 1e-9 and bounds.high >= -1e-9)
    return fmean(result)


@dataclass(frozen=True)
class Claims:
    """What is said of single tests."""

    any_false: float
    """How often any test is called worse that is not."""
    found: float
    """How many of the tests that are worse are called so."""


def claims(setting: Setting, damage: Damage) -> Claims:
    """Which tests are called worse, of agents some of whose tests may be."""
    false, outcome = [], []
    for whole, rng in setting.agents():
        worse = damage(whole)
        played = pairs(worse, whole, (setting.head, setting.base), rng)
        texts = [p is not None and p <= ALPHA for p in proven_drops(played, str(rng.random()))]
        truly = [head != base for head, base in zip(worse, whole, strict=True)]
        false.append(any(result and not true for result, true in zip(texts, truly, strict=True)))
        outcome += [result for result, true in zip(texts, truly, strict=True) if true]
    return Claims(fmean(false), fmean(outcome) if outcome else 0.0)


def newly_failing(setting: Setting) -> float:
    """How often an unchanged agent does not pass a test in all trials that it passed in all before."""
    flawless = 100 - 1e-9
    return fmean(
        any(min(pair.base) > flawless > min(pair.head) for pair in played)
        for played, _ in setting.pairs(unchanged)
    )


def misses(setting: Setting, by: float) -> float:
    """How often an unchanged agent misses a floor so many points below its true score."""
    return fmean(
        fmean(fmean(case.play(setting.head, rng)) for case in whole) < score(whole) - by
        for whole, rng in setting.agents()
    )


@dataclass(frozen=True)
class PredictedOdds:
    """What a recorded run told of a floor, and what came of it."""

    odds: float
    missed: float
    """How often further runs of the same agent missed it."""


def odds_of_floors(
    setting: Setting, floors: Sequence[float], *, further: int = 20
) -> list[list[PredictedOdds]]:
    """For each agent what a recorded run tells of these floors, against further runs."""
    result = []
    for whole, rng in setting.agents():
        odds = _odds(whole, setting, rng, *[_check("min-score", floor) for floor in floors])
        scores = _further(whole, setting, further, rng)
        result.append(
            [
                PredictedOdds(check.share, fmean(score < floor - 1e-9 for score in scores))
                for check, floor in zip(odds.checks, floors, strict=True)
            ]
        )
    return result


def missing_proposed_floors(setting: Setting, *, further: int = 20) -> list[float]:
    """For each agent how often further runs miss the floor that a recorded run proposes."""
    result = []
    for whole, rng in setting.agents():
        floor = _odds(whole, setting, rng).floor
        result.append(fmean(score < floor - 1e-9 for score in _further(whole, setting, further, rng)))
    return result


def odds_of_newly_failing(setting: Setting) -> list[float]:
    """For each agent what a recorded run tells of tests that will newly fail."""
    check = _check("regression", 0)
    return [_odds(whole, setting, rng, check).share for whole, rng in setting.agents()]


def _check(name: str, required: float) -> GateCheck:
    return build.check(name=name, required=required, seen=None, passed=True)


def _odds(whole: Agent, setting: Setting, rng: Random, *checks: GateCheck) -> Odds:
    run = build.run_info(id=str(rng.random()))
    return odds_of(build.results(suite_of(whole, setting.head, rng), run=run), checks)


def _further(whole: Agent, setting: Setting, runs: int, rng: Random) -> list[float]:
    return [fmean(fmean(case.play(setting.head, rng)) for case in whole) for _ in range(runs)]


def suite_of(whole: Agent, trials: int, rng: Random) -> SuiteResult:
    """A recorded run of an agent."""
    tests = []
    for place, case in enumerate(whole):
        played = [
            build.trial_result(
                index,
                turns=(),
                findings=tuple(
                    build.finding("passed" if passed else "failed", weight=weight)
                    for weight, passed in zip(case.weights, case.verdicts(rng), strict=True)
                ),
            )
            for index in range(1, trials + 1)
        ]
        tests.append(build.test_result(f"t{place}", trials=tuple(played)))
    return build.suite_result("S", *tests)


def _p(played: list[ScorePair], rng: Random) -> float:
    return chance_of_drop(played, str(rng.random()), DRAWS).p
