"""The level of attempts at one commit, by simulated commits that are evaluated several times.

The agents are those of `logit_agents`. All commits of a row are played at once, as arrays whose first axis is
the commit and whose second is the test. Levels and looks are the functions that a run uses; the permutation
test is written anew for arrays, and compared with that of a run.

A session moves all tests of an attempt, as another day or load does. `drift` is its standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import pi, sqrt
from random import Random
from statistics import NormalDist

import numpy as np
import pytest
from doc_pages import page, table
from each_row import each_row
from logit_agents import KINDS, LogitAgent

from ci_evals.scoring.comparison.reruns import level, share_of_level, with_share
from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS, Look, looks_at
from ci_evals.scoring.statistics import ALPHA, ScorePair, chance_of_drop

Numbers = np.ndarray
FEW, MANY = 1_999, 9_999
"""Arrangements drawn: many where the limit is low."""
LOOPS = 3
REPLACE, SQUARES, POOL = "replace", "6/(π²k²)", "pool"
"""The newest attempt alone; all trials, with a level that falls with every attempt; what a run does."""
BROKEN = {"a fifth of the tests": (5, 0.35), "one test": (0, 0.10)}
"""The part of the tests that breaks (0: one test), and what these keep of the chance of their criteria."""
_NODES = np.array([0.7 * step for step in range(-8, 9)])
_WEIGHTS = np.exp(-(_NODES**2) / 2)
_TIE = 1e-9
_ORDERS = 64


@dataclass(frozen=True)
class Commits:
    """The commits of one row."""

    kind: str = "heavy"
    tests: int = 20
    policy: str = POOL
    rounds: bool = False
    both_sides: bool = False
    """The base agent is played in every attempt too."""
    drift: float = 0.0
    points: float = 0.0
    """The points that the agent has lost, spread over all tests."""
    broken: str = ""
    """Which of its tests broke, as in `BROKEN`."""
    level: float = 1.0
    """The part of the level that `REPLACE` uses."""
    times: int = 2_000

    @cached_property
    def looks(self) -> tuple[Look | None, ...]:
        """The looks of one attempt; None for the only one of a run without rounds."""
        if not self.rounds:
            return (None,)
        return looks_at(BOTH_SIDES_LOOKS if self.both_sides else LOOKS, both_sides=self.both_sides)

    @property
    def agents(self) -> tuple["Agents", "Agents"]:
        """The base agent of each commit, and its head."""
        base = head = _agents(self.kind, self.tests, self.times)
        if self.points:
            head = base.worse(self.points)
        if self.broken:
            rng, (part, keeps) = Random(self.broken), BROKEN[self.broken]
            number = round(self.tests / part) if part else 1
            head = head.broken([rng.sample(range(self.tests), number) for _ in range(self.times)], keeps)
        return base, head


@dataclass(frozen=True)
class Agents:
    """One agent for each commit. A criterion that a test does not have has the weight 0."""

    logits: Numbers
    weights: Numbers
    noise: Numbers

    @classmethod
    def of(cls, agents: Sequence[LogitAgent]) -> "Agents":
        """Bring agents into arrays."""
        most = max(len(case.logits) for agent in agents for case in agent)
        shape = (len(agents), len(agents[0]), most)
        logits, weights = np.zeros(shape), np.zeros(shape)
        for commit, agent in enumerate(agents):
            for test, case in enumerate(agent):
                logits[commit, test, : len(case.logits)] = case.logits
                weights[commit, test, : len(case.weights)] = case.weights
        return cls(logits, weights, np.array([[case.noise for case in agent] for agent in agents]))

    def scores(self, by: Numbers) -> Numbers:
        """The true score of each agent after its logits have moved."""
        total = 0
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            moved = self.logits + (self.noise * node + by[:, None])[..., None]
            total = total + weight * (self.weights * _chance(moved)).sum(2)
        return (100 * total / self.weights.sum(2)).mean(1) / _WEIGHTS.sum()

    def slope(self) -> Numbers:
        """The points by which a score moves with its logits."""
        step = np.full(len(self.logits), 0.25)
        return (self.scores(step) - self.scores(-step)) / 0.5

    def worse(self, points: float) -> "Agents":
        """The same agents after they have lost so many points, all tests alike."""
        low, high = np.zeros(len(self.logits)), np.full(len(self.logits), 12.0)
        wanted = self.scores(low) - points
        for _ in range(20):
            middle = (low + high) / 2
            above = self.scores(-middle) > wanted
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return Agents(self.logits - low[:, None, None], self.weights, self.noise)

    def broken(self, tests: Sequence[Sequence[int]], keeps: float) -> "Agents":
        """The same agents after these tests have kept so much of the chance of their criteria."""
        chance = keeps * _chance(self.logits)
        logits = self.logits.copy()
        for commit, some in enumerate(tests):
            for test in some:
                logits[commit, test] = np.log(chance[commit, test] / (1 - chance[commit, test]))
        return Agents(logits, self.weights, self.noise)

    def play(self, trials: int, session: Numbers, rng: np.random.Generator) -> Numbers:
        """The scores of some trials: the last axis of what is returned."""
        shape = (*self.noise.shape, trials)
        moved = self.noise[..., None] * rng.standard_normal(shape) + session[:, None, None]
        passed = np.zeros(shape)
        for criterion in range(self.logits.shape[2]):
            chance = _chance(self.logits[..., criterion, None] + moved)
            passed += self.weights[..., criterion, None] * (rng.random(shape) < chance)
        return 100 * passed / self.weights.sum(2)[..., None]


@lru_cache(4)
def _agents(kind: str, tests: int, times: int) -> Agents:
    rng = Random(f"{kind} {tests}")
    return Agents.of([KINDS[kind](tests, rng) for _ in range(times)])


class Trials:
    """The trials of one side of all commits. Not every commit has all: a run in rounds ends early."""

    def __init__(self, commits: int, tests: int) -> None:
        self.scores = np.zeros((commits, tests, 0))
        self.counted = np.zeros((commits, 0), dtype=bool)
        self.sums = np.zeros((3, commits, tests))
        """Of the scores that count, of their squares and of their cubes."""

    def add(self, scores: Numbers) -> None:
        """Add trials, of which none counts yet."""
        more = np.zeros((len(scores), scores.shape[2]), dtype=bool)
        self.scores = np.concatenate([self.scores, scores], axis=2)
        self.counted = np.concatenate([self.counted, more], axis=1)

    def count(self, commits: Numbers, start: int, stop: int) -> None:
        """Count these trials of these commits from now on."""
        self.counted[commits, start:stop] = True
        scores = self.scores[commits, :, start:stop]
        for power in (1, 2, 3):
            self.sums[power - 1, commits] += (scores**power).sum(2)

    def of(self, commit: int) -> Numbers:
        """The scores of one commit that count, by test."""
        return self.scores[commit][:, self.counted[commit]]


class Attempts:
    """What the attempts at all commits show, one after the other."""

    def __init__(self, given: Commits) -> None:
        self.given = given
        self.base, self.head = given.agents
        self.slope = self.base.slope()
        self.rng = np.random.default_rng([given.times, given.tests, *given.kind.encode()])
        self.dice = np.random.default_rng(1)
        self.drops = np.zeros((given.times, 0), dtype=bool)
        """Of each commit, whether its attempts showed a drop, until now."""
        self._start()
        recorded = self.base.play(LOOPS, self._session(), self.rng)
        self.recorded = Trials(given.times, given.tests)
        self.recorded.add(recorded)
        self.recorded.count(np.ones(given.times, dtype=bool), 0, LOOPS)

    def _start(self) -> None:
        self.of_head = Trials(self.given.times, self.given.tests)
        self.of_base = Trials(self.given.times, self.given.tests)

    def _session(self) -> Numbers:
        return self.rng.standard_normal(self.given.times) * self.given.drift / self.slope

    def attempt(self, asked: Numbers) -> Numbers:
        """Play all commits once more, and return which of those that are asked about show a drop."""
        given, session = self.given, self._session()
        if given.policy == REPLACE:
            self._start()
        shares = self._shares()
        looks, played = given.looks, 0
        most = looks[-1].trials if looks[-1] else LOOPS
        sides = [(self.of_head, self.head)]
        if given.both_sides:
            sides.append((self.of_base, self.base))
        for trials, agents in sides:
            trials.add(agents.play(most, session, self.rng))
        result, going = np.zeros(given.times, dtype=bool), np.ones(given.times, dtype=bool)
        for look in looks:
            until = look.trials if look else LOOPS
            for trials, _ in sides:
                first = trials.counted.shape[1] - most
                trials.count(going & asked, first + played, first + until)
            played = until
            rough = self.approximate_p()
            for commit in np.flatnonzero(going & asked):
                decision = self._decision(commit, rough[commit], look, shares[commit])
                result[commit] = decision == "fail"
                going[commit] = decision == "continue"
        self.drops = np.concatenate([self.drops, result[:, None]], axis=1)
        return result

    def _shares(self) -> list[float]:
        """The part of the level that this attempt may use, of each commit."""
        match self.given.policy:
            case "replace":
                return [self.given.level] * self.given.times
            case "pool":
                return [_share(tuple(drops)) for drops in self.drops.tolist()]
        share = 6 / (pi * (self.drops.shape[1] + 1)) ** 2
        return [share] * self.given.times

    def _decision(self, commit: int, rough: float, look: Look | None, share: float) -> str:
        if look is None:
            return "fail" if self._is_at_most(commit, rough, ALPHA * share) else "pass"
        look = with_share(look, share)
        if self._is_at_most(commit, rough, look.fails_at):
            return "fail"
        return "pass" if look.is_last or rough > look.passes_above else "continue"

    def _is_at_most(self, commit: int, rough: float, limit: float) -> bool:
        """Return whether p is at most this. Drawn only if the approximation is near the limit."""
        if not _is_near(rough, limit):
            return bool(rough <= limit)
        return self.p(commit, FEW if limit > 0.01 else MANY) <= limit

    def p(self, commit: int, draws: int = MANY) -> float:
        """The p of a permutation test, of a commit as it stands."""
        return drawn_p(self.of_head.of(commit), self.other.of(commit), self.dice, draws)

    @property
    def other(self) -> Trials:
        return self.of_base if self.given.both_sides else self.recorded

    def approximate_p(self) -> Numbers:
        return approximate_p(self.of_head, self.other)


@lru_cache(None)
def _share(drops: tuple[bool, ...]) -> float:
    return share_of_level(drops)


def _is_near(rough: float, limit: float) -> bool:
    """Return whether an approximate p may be on the other side of the limit than the p that is drawn."""
    return limit / 3 - 0.0005 < rough < limit + min(3 * limit, 0.03) + 0.0005


def approximate_p(head: Trials, base: Trials) -> Numbers:
    """The p of a permutation test, by an Edgeworth series of three cumulants."""
    heads, bases = head.counted.sum(1), base.counted.sum(1)
    total = np.maximum(heads + bases, 3)
    delta = head.sums[0] / np.maximum(heads, 1)[:, None] - base.sums[0] / np.maximum(bases, 1)[:, None]
    mean, squares, cubes = (head.sums + base.sums) / total[:, None]
    second = (squares - mean**2).sum(1)
    third = (cubes - 3 * mean * squares + 2 * mean**3).sum(1)
    # Cumulants of the mean of a sample that is drawn without replacement, and so of the change.
    up = total / np.maximum(bases, 1)
    some = np.maximum(heads, 1)
    variance = second * up**2 * bases / (some * (total - 1))
    skew = third * up**3 * bases * (total - 2 * heads) / (some**2 * (total - 1) * np.maximum(total - 2, 1))
    result = []
    for change, square, cube in zip(delta.sum(1), variance, skew, strict=True):
        result.append(_edgeworth(float(change), float(square), float(cube)))
    return np.array(result)


def _edgeworth(change: float, variance: float, skew: float) -> float:
    if variance <= _TIE:
        return 1.0
    normal = NormalDist()
    z = change / sqrt(variance)
    p = normal.cdf(z) - normal.pdf(z) * skew / variance**1.5 * (z * z - 1) / 6
    return min(1.0, max(0.0, p))


def drawn_p(head: Numbers, base: Numbers, rng: np.random.Generator, draws: int) -> float:
    """The p of a permutation test of one commit, by drawn arrangements.

    They are drawn once for all tests of a size, and dealt to each test in an order of its own.
    """
    heads, bases = head.shape[1], base.shape[1]
    scores = np.concatenate([head, base], axis=1)
    sums = scores @ _subsets(heads, heads + bases, draws)
    change = sums / heads - (scores.sum(1)[:, None] - sums) / bases
    seen = (head.mean(1) - base.mean(1)).sum()
    orders = rng.integers(_ORDERS, size=len(scores))
    total = np.zeros(draws)
    for one, order, turn in zip(change, orders, rng.integers(draws, size=len(scores)), strict=True):
        total += np.roll(one[_order(int(order), draws)], turn)
    return (1 + int((total <= seen + _TIE).sum())) / (1 + draws)


@lru_cache(24)
def _subsets(heads: int, trials: int, draws: int) -> Numbers:
    """Arrangements drawn at random, in columns: 1 for a trial that is the head's."""
    keys = np.random.default_rng([heads, trials]).random((draws, trials))
    chosen = keys.argpartition(heads - 1, axis=1)[:, :heads]
    subsets = np.zeros((draws, trials))
    np.put_along_axis(subsets, chosen, 1, axis=1)
    return subsets.T.copy()


@lru_cache(None)
def _order(number: int, draws: int) -> Numbers:
    return np.random.default_rng(number).permutation(draws)


def _chance(logits: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


def _share_until(commits: Commits, reruns: tuple[int, ...], *, drop: bool) -> list[float]:
    """The share of commits of which an attempt shows a drop, or none, until then."""
    attempts = Attempts(commits)
    done, shares = np.zeros(commits.times, dtype=bool), []
    for number in range(max(reruns) + 1):
        result = attempts.attempt(~done)
        done |= ~done & (result == drop)
        if number in reruns:
            shares.append(float(done.mean()))
    return shares


called_worse_by = partial(_share_until, drop=True)
"""The share of commits that are called worse in any attempt, after each of these numbers of reruns."""
green_after = partial(_share_until, drop=False)
"""The share that is green after at most so many reruns, by somebody who stops at the first green."""


DOCS = page("statistics.md")
TIMES = 2_000
GATES = {
    "each attempt alone": {"policy": REPLACE},
    "all trials, level 6 / (π² k²)": {"policy": SQUARES},
    "all trials": {"policy": POOL},
    "all trials, `--rounds=auto`": {"rounds": True},
    "all trials, `--against`": {"both_sides": True},
    "all trials, both options": {"rounds": True, "both_sides": True},
}
DAMAGES = {
    "5 points, spread": {"points": 5.0},
    "10 points, spread": {"points": 10.0},
    "a fifth of the tests": {"broken": "a fifth of the tests"},
    "one test": {"broken": "one test"},
}
RERUNS = (0, 1, 2, 5, 20)
UNTIL_GREEN = (0, 1, 2, 5, 10)


def test_attempt_levels_sum_to_one_reset_after_a_drop_and_scale_fail_limits():
    """The chance of any false alarm is at most that; no rerun makes a found drop harder to find."""
    shares = [share_of_level([False] * earlier) for earlier in range(10_000)]
    assert 0.9999 < sum(shares) <= 1
    assert shares == sorted(shares, reverse=True)
    for drops in ([True], [True] * 20, [False, True], [True, False, False], [False] * 9 + [True]):
        assert share_of_level(drops) == share_of_level([])
        assert level(share_of_level(drops)) == pytest.approx(0.045)
    for earlier in range(8):
        for index in range(earlier):
            drops = [False] * earlier
            without = share_of_level(drops)
            drops[index] = True
            assert share_of_level(drops) >= without
    # A rerun's share scales the fail limits of rounds; they pass as before.
    for look in looks_at(LOOKS):
        part = with_share(look, 0.9)
        assert part.fails_at == pytest.approx(0.9 * look.fails_at)
        same = [(one.passes_above, one.margin, one.is_last) for one in (part, look)]
        assert same[0] == same[1]


def _of_unchanged(times, name, points):
    return called_worse_by(Commits(times=times, drift=float(points), **GATES[name]), RERUNS)


def _of_other_kinds(times, kind, tests):
    return called_worse_by(Commits(kind, int(tests), times=times), RERUNS)


def _of_broken(times, damage, name):
    return green_after(Commits(times=times, **GATES[name], **DAMAGES[damage]), UNTIL_GREEN)


def _of_cleared(times, name):
    return green_after(Commits(times=times, **GATES[name]), UNTIL_GREEN)


def _of_single_looks(times, damage):
    result = []
    for share in (1.0, share_of_level([]), 6 / pi**2):
        commits = Commits(policy=REPLACE, level=share, times=times, **DAMAGES[damage])
        result += called_worse_by(commits, (0,))
    return result


TABLES = {
    "unchanged agent": (_of_unchanged, 2, TIMES),
    "unchanged agent of the kind": (_of_other_kinds, 2, TIMES),
    "broken agent": (_of_broken, 2, TIMES // 4),
    "unchanged agent, rerun until green": (_of_cleared, 1, TIMES),
    "drop found by one run": (_of_single_looks, 1, TIMES),
}
"""The figures of a row, the cells that name it, and how many commits it is of."""
ROWS = [(heading, cells) for heading in TABLES for cells in table(heading, DOCS)]


@pytest.mark.simulate
@pytest.mark.parametrize(("heading", "cells"), ROWS)
def test_docs_tables_of_reruns_equal_the_simulation(heading, cells):
    """The same dice come to the same figures, but for the last digit."""
    figures, keys, times = TABLES[heading]
    promised = [float(cell.removesuffix(" %")) for cell in cells[keys:]]
    seen = [100 * share for share in figures(times, *cells[:keys])]
    assert seen == pytest.approx(promised, abs=0.25)


def _figures(cells) -> list[float]:
    return [float(cell.removesuffix(" %")) for cell in cells[2:]]


UNCHANGED = table("unchanged agent", DOCS)
ALONE = {cells[1]: _figures(cells) for cells in UNCHANGED if cells[0] == "each attempt alone"}


@each_row("cells", [cells for cells in UNCHANGED if cells[0].startswith("all trials")])
def test_docs_tables_show_few_false_alarms_of_reruns(cells):
    """At most 5 % if both sides have the same conditions; else a tenth of what attempts alone add."""
    first, *later = _figures(cells)
    error = 100 * sqrt(ALPHA * (1 - ALPHA) / TIMES)
    if cells[1] == "0" or cells[0].endswith(("`--against`", "both options")):
        assert later[-1] <= 100 * ALPHA + 2 * error
    alone = ALONE[cells[1]]
    assert later[-1] - first <= (alone[-1] - alone[0]) / 10


@pytest.mark.slow
@pytest.mark.parametrize("gate", [{}, {"rounds": True}, {"rounds": True, "both_sides": True}])
def test_simulated_permutation_test_equals_that_of_a_run(gate):
    """The p of arrays and of `chance_of_drop`, of pooled trials too; the approximation errs by little."""
    attempts = Attempts(Commits(times=2, points=5.0, **gate))
    everyone = np.ones(2, dtype=bool)
    for _ in range(2):
        attempts.attempt(everyone)
        rough = attempts.approximate_p()
        for commit in range(2):
            head, base = attempts.of_head.of(commit), attempts.other.of(commit)
            pairs = [ScorePair(tuple(own), tuple(other)) for own, other in zip(head, base, strict=True)]
            p = chance_of_drop(pairs, "seed").p
            error = sqrt(p * (1 - p) / MANY)
            assert attempts.p(commit) == pytest.approx(p, abs=6 * error + 0.001)
            assert rough[commit] == pytest.approx(p, abs=6 * error + 0.01)


@pytest.mark.parametrize("times", [100, pytest.param(200, marks=pytest.mark.simulate)])
def test_reruns_add_few_false_alarms_and_hide_no_broken_agent(times):
    """Each attempt alone adds one after the other; all of them together hardly any."""
    alone = called_worse_by(Commits(policy=REPLACE, times=times), (0, 5))
    together = called_worse_by(Commits(times=times), (0, 5))
    assert together[1] <= ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / times)
    assert alone[1] > together[1]
    # By each attempt alone a broken agent is nearly always green after ten reruns.
    damage = DAMAGES["a fifth of the tests"]
    alone = green_after(Commits(policy=REPLACE, times=times // 2, **damage), (0, 10))
    together = green_after(Commits(times=times // 2, **damage), (0, 10))
    assert alone[1] > 0.5
    assert together[1] <= together[0] + 0.2
