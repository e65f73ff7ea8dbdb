"""Runs like a recorded one, drawn at random from the noise of its trials.

Each test's score moves around the recorded one as far as its trials differ: twice, for the uncertainty of
the recorded score, and for the noise of the new run. Whether all trials of a test pass is drawn from what the
recorded trials of all tests show of such tests. docs/statistics.md has more.
"""

import math
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import product
from statistics import fmean

from ci_evals.domain.results.gate import CheckId
from ci_evals.domain.results.run import Results, RunInfo
from ci_evals.domain.results.suite import TestResult
from ci_evals.gate.selectors import Selector
from ci_evals.scoring import scores
from ci_evals.scoring.clusters import clusters_of, merged
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.statistics import noise_of, wilson

DRAWS = 2_000
_KEPT = 200
"""Tests, and sets of tests, whose draws are kept for other checks: 16 and 170 kB each."""
_RATES = [1 / (1 + 10 ** (step / 4)) for step in range(-16, 17)]
"""Possible pass rates: one in 10,000, all but one, and each order of magnitude between as likely."""
_BELIEFS = [
    (rate * weight, (1 - rate) * weight)
    for rate, weight in product(_RATES, (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64))
]
"""Beta distributions that the pass rates of an agent's tests may have: from all of them at never or always to
all at one rate."""


_Count = tuple[int, int]


@dataclass(frozen=True)
class DrawnScores:
    """The score of some tests in runs that were drawn, and how far it is from the recorded one."""

    drawn: Sequence[float]
    changes: Sequence[float]


class TrialNoise:
    """The noise of a run's tests, and runs drawn from it: each list has a value for each run."""

    def __init__(self, results: Results) -> None:
        run = results.run
        self.tests: list[tuple[str, TestResult]] = []
        self.numbers: list[tuple[int, int]] = []
        for suite_number, suite in enumerate(results.suites, start=1):
            for test_number, test in enumerate(suite.tests, start=1):
                if test.quarantine is None:
                    self.tests.append((suite.name, test))
                    self.numbers.append((suite_number, test_number))
        self.planned = [_planned(run, test) for _, test in self.tests]
        self._seed = run.id
        self._shown = ScoreRule(offline=run.offline)
        self.scores = lru_cache(_KEPT)(self._scores)
        self._moves = lru_cache(_KEPT)(self._drawn_moves)

    def about(self, check: CheckId) -> tuple[int, ...]:
        """The places of the tests that a check is about."""
        selector = Selector.read(check.selector or "")
        places = []
        for place, ((suite, test), numbers) in enumerate(zip(self.tests, self.numbers, strict=True)):
            suite_number, test_number = numbers
            if check.suite_number not in {None, 0, suite_number}:
                continue
            if check.test_number not in {None, 0, test_number}:
                continue
            if check.test in {None, test.name} and (selector is None or selector.takes(suite, test)):
                places.append(place)
        return tuple(places)

    def _scores(self, places: tuple[int, ...], part: Selector | None) -> DrawnScores | None:
        """The scores of this part of some tests; None where there are none."""
        findings = part.finding_filter if part else scores.all_findings
        rule = replace(self._shown, undecided_fails=True, finding_filter=findings)
        trials = [scores.of_trials(self.tests[index][1], rule) for index in places]
        scored = [(index, tuple(map(float, own))) for index, own in zip(places, trials, strict=True) if own]
        if not scored:
            return None
        criteria = scores.criteria_of((self.tests[index][1] for index, _ in scored), rule)
        clusters = clusters_of([self.tests[index][1] for index, _ in scored])
        first = {cluster: index for (index, _), cluster in reversed([*zip(scored, clusters, strict=True)])}
        units = [*zip(dict.fromkeys(clusters), merged([own for _, own in scored], clusters), strict=True)]
        noise = noise_of([own for _, own in units], criteria * len(scored) / len(units))
        moves, squares = [0.0] * DRAWS, 0.0
        for (cluster, own), variance in zip(units, noise, strict=True):
            index = first[cluster]
            # Twice: for what the recorded trials leave open of the test's true score, and for the new trials.
            square = variance * (1 / len(own) + 1 / self.planned[index]) / (100 * len(units)) ** 2
            error = math.sqrt(square)
            moves = [move + error * own for move, own in zip(moves, self._moves(index), strict=True)]
            squares += square
        recorded, count = fmean(fmean(own) for _, own in units) / 100, sum(len(own) for _, own in units)
        # As if of two more trials one had failed: a perfect record leaves some doubt.
        doubted = (recorded * count + 1) / (count + 2)
        n_eff = doubted * (1 - doubted) / squares
        # The noise itself is told from few trials, so that far moves come more often: Student's t.
        freedom = count - len(units) or len(units) - 1 or 1
        rng = self._rng(f"noise {freedom}")
        far = [move / math.sqrt(squares * rng.gammavariate(freedom / 2, 2 / freedom)) for move in moves]
        return DrawnScores([100 * wilson(recorded, n_eff, z) for z in far], [100 * move for move in moves])

    def misses(self, places: Iterable[int]) -> list[bool]:
        """Return whether some trial of these tests does not pass."""
        missed = [False] * DRAWS
        for index in places:
            chances = _chances_to_pass(self._counts[index], self.planned[index])
            missed = [
                miss or luck >= chances[belief]
                for miss, luck, belief in zip(missed, self._luck(index), self._beliefs, strict=True)
            ]
        return missed

    def _luck(self, index: int) -> list[float]:
        """Draw the luck of a test. In a share of the runs all tests of its cluster have the same."""
        own = self._rng(f"passes {index}")
        lucks = [own.random() for _ in range(DRAWS)]
        cluster = self.tests[index][1].cluster
        if cluster and self._share_together:
            common = self._rng(f"passes of {cluster}")
            for run in range(DRAWS):
                is_shared, luck = common.random() < self._share_together, common.random()
                lucks[run] = luck if is_shared else lucks[run]
        return lucks

    @cached_property
    def _share_together(self) -> float:
        """The share of misses that tests of one cluster have in common.

        From the recorded trials: 0 if two of its tests miss in the same trials as often as by chance, near 1
        if they do whenever they can. One more miss by chance is assumed, so that few of them say little.
        """
        seen, most = 0.0, 1.0
        last: dict[str, dict[tuple[str | None, int], bool]] = {}
        for _, test in self.tests:
            if test.cluster is None:
                continue
            own = {
                (trial.run, trial.index): not scores.all_passed(trial, self._shown)
                for trial in test.trials
                if trial.scored
            }
            other = last.get(test.cluster, {})
            both = [(own[trial], other[trial]) for trial in own.keys() & other.keys()]
            last[test.cluster] = own
            if both:
                one, two = (sum(misses) for misses in zip(*both, strict=True))
                by_chance = one * two / len(both)
                seen += sum(map(all, both)) - by_chance
                most += min(one, two) - by_chance
        return max(0.0, seen / most)

    @cached_property
    def _counts(self) -> list[_Count]:
        """For each test, how many of its scored trials passed and how many did not."""
        counts = []
        for _, test in self.tests:
            passes = [scores.all_passed(trial, self._shown) for trial in test.trials if trial.scored]
            counts.append((sum(passes), len(passes) - sum(passes)))
        return counts

    @cached_property
    def _beliefs(self) -> list[int]:
        """The places of beliefs, each drawn as often as the recorded trials make it likely."""
        counts = Counter(self._counts)
        logs = []
        for a, b in _BELIEFS:
            prior = _log_beta(a, b)
            logs.append(
                sum(times * (_log_beta(yes + a, no + b) - prior) for (yes, no), times in counts.items())
            )
        likeliest = max(logs)
        weights = [math.exp(log - likeliest) for log in logs]
        return self._rng("beliefs").choices(range(len(weights)), weights, k=DRAWS)

    def _drawn_moves(self, index: int) -> Sequence[float]:
        """Draw how far a test's score moves, in standard errors."""
        rng = self._rng(f"moves {index}")
        return array("d", (rng.gauss() for _ in range(DRAWS)))

    def _rng(self, purpose: str) -> random.Random:
        """For each purpose its own, so that no draw depends on what else is looked at."""
        return random.Random(f"{self._seed} {purpose}")  # noqa: S311  # a simulation, not a secret


def _planned(run: RunInfo, test: TestResult) -> int:
    """The trials of a test in a run like the recorded one.

    Rounds decide at the level of a run that plays all of them.
    """
    if run.rounds:
        return run.rounds.looks[-1]
    own = sum(trial.run is None for trial in test.trials)
    return max(1, own + test.not_run)


@cache
def _chances_to_pass(count: _Count, trials: int) -> list[float]:
    """For each belief, how likely all trials of a test pass of which so many were recorded."""
    yes, no = count
    return [math.exp(_log_beta(yes + a + trials, no + b) - _log_beta(yes + a, no + b)) for a, b in _BELIEFS]


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
