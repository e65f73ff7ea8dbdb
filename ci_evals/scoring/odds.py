"""How often an unchanged agent would fail the gate, told from the noise of recorded trials.

Runs like the recorded one are drawn at random. Each test's score is drawn around the recorded one, as far as
its trials differ: once for what the recorded trials leave open, and once for the noise of the new ones.
Whether all trials of a test pass is drawn likewise from the share that passed. docs/statistics.md has more.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ci_evals.domain.results import CheckOdds, GateCheck, Odds, SuiteResult, TestResult
from ci_evals.scoring import share
from ci_evals.scoring.selectors import Selector
from ci_evals.scoring.share import Choice, Counting
from ci_evals.scoring.soundness import all_passed, criteria_of, scores_of_trials
from ci_evals.scoring.statistics import noise_of

WORTH_TELLING = 0.05
"""Odds above which a run speaks of them; a floor is proposed that keeps them below."""
_DRAWS = 2_000
_TIE = 1e-9


@dataclass(frozen=True)
class _Run:
    """A run that was drawn: for each test how far it moved, in standard errors, and whether it passed."""

    moves: Sequence[float]
    passes: Sequence[bool]


_Measure = Callable[[_Run], float]
_Fails = Callable[[_Run], bool]


def odds_of(
    suites: Sequence[SuiteResult], checks: Iterable[GateCheck], *, offline: bool, seed: str
) -> Odds | None:
    """How often a run of the same agent would fail these checks.

    Floors are looked at, critical tests, and, as if the recorded run were the baseline, drops and newly
    failing tests. Errors, cost and latency are not.

    Args:
        suites: What was recorded.
        checks: The gate's.
        offline: Whether nothing was to be judged.
        seed: The same seed gives the same answer.

    Returns:
        None where nothing was scored.
    """
    noise = _Noise(suites, offline=offline)
    whole = noise.score([place for place, _ in enumerate(noise.tests)])
    if whole is None:
        return None
    rng = random.Random(seed)  # noqa: S311  # a simulation, not a secret
    runs = [noise.draw(rng) for _ in range(_DRAWS)]
    failures = [(check.name, fails) for check in checks for fails in _failing(check, noise)]
    failed = [(name, [fails(run) for run in runs]) for name, fails in failures]
    together = [any(one) for one in zip(*(found for _, found in failed), strict=True)]
    scores = sorted(map(whole, runs))
    lowest = scores[math.ceil(WORTH_TELLING * _DRAWS) - 1]
    return Odds(
        share=fmean(together) if together else 0.0,
        checks=tuple(CheckOdds(name=name, share=fmean(found)) for name, found in failed),
        floor=math.floor(10 * min(100.0, max(0.0, lowest))) / 10,
        loops=max(noise.planned),
    )


class _Noise:
    """What the trials of a run tell of its tests."""

    def __init__(self, suites: Sequence[SuiteResult], *, offline: bool) -> None:
        self.tests = [(suite.name, test) for suite in suites for test in suite.tests]
        self.planned = [len(test.trials) + test.not_run for _, test in self.tests]
        self._strict = Counting(offline=offline, undecided_fails=True)
        shown = Counting(offline=offline)
        passed = [
            [all_passed(trial, shown) for trial in test.trials if trial.scored] for _, test in self.tests
        ]
        counts = [(sum(found), len(found) - sum(found)) for found in passed]
        # A test's own trials are few: they count with two more of a test that is mostly like it.
        held, mended = _steady(counts), _steady([(no, yes) for yes, no in counts])
        self._beliefs = [
            (yes + 2 * rate, no + 2 * (1 - rate))
            for yes, no in counts
            for rate in [held if yes >= no else 1 - mended]
        ]

    def draw(self, rng: random.Random) -> _Run:
        """A run of the same agent."""
        return _Run(
            moves=[rng.gauss() for _ in self.tests],
            passes=[
                rng.random() < (rng.betavariate(*belief) if all(belief) else float(belief[0] > 0)) ** trials
                for belief, trials in zip(self._beliefs, self.planned, strict=True)
            ],
        )

    def where(self, holds: Callable[[str, TestResult], bool]) -> list[int]:
        """The places of some tests."""
        return [place for place, (suite, test) in enumerate(self.tests) if holds(suite, test)]

    def score(
        self, places: Sequence[int], choice: Choice = share.every, *, change: bool = False
    ) -> _Measure | None:
        """The score of some tests, or its change, in a run that was drawn; None where there is none."""
        trials = [scores_of_trials(self.tests[place][1], self._strict, choice) for place in places]
        found = [(place, tuple(map(float, own))) for place, own in zip(places, trials, strict=True) if own]
        if not found:
            return None
        criteria = criteria_of((t for place, _ in found for t in self.tests[place][1].trials), choice)
        variances = noise_of([own for _, own in found], criteria)
        # Twice: for what the recorded trials leave open of the test's true score, and for the new trials.
        errors = [
            (place, math.sqrt(variance * (1 / len(own) + 1 / self.planned[place])) / len(found))
            for (place, own), variance in zip(found, variances, strict=True)
        ]
        middle = 0.0 if change else fmean(fmean(own) for _, own in found)
        return lambda run: middle + sum(error * run.moves[place] for place, error in errors)


def _steady(counts: Sequence[tuple[int, int]]) -> float:
    """How likely a trial comes out one way where another trial of its test did: (that way, the other way).

    Of single trials nothing is known but how often they came out so: then it is that.
    """
    others = sum(this * (this + that - 1) for this, that in counts)
    if others:
        return sum(this * (this - 1) for this, _ in counts) / others
    trials = sum(map(sum, counts))
    return sum(this for this, _ in counts) / trials if trials else 0.0


def _failing(check: GateCheck, noise: _Noise) -> Iterator[_Fails]:
    """How to tell whether a run fails a check, for the checks that noise can fail."""
    kind, _, name = (
        check.name.partition(" ") if check.name.startswith("max-drop") else check.name.partition(":")
    )
    selector = Selector.read(name if kind == "max-drop" else check.name)
    places = noise.where(lambda suite, test: selector is None or selector.takes(suite, test))
    choice, required = selector.choice if selector else share.every, check.required or 0.0
    if kind == "max-drop" and (change := noise.score(places, choice, change=True)):
        yield lambda run: -change(run) > required + _TIE
    elif kind == "regression" and required == 0:
        passing = noise.where(lambda _, test: test.passed)
        yield lambda run: not all(run.passes[place] for place in passing)
    elif kind == "critical":
        critical = noise.where(lambda _, test: test.critical and test.name == name)
        yield lambda run: not all(run.passes[place] for place in critical)
    elif (kind == "min-score" or selector) and (score := noise.score(places, choice)):
        yield lambda run: score(run) < required - _TIE
