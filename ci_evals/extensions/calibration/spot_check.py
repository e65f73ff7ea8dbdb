"""A judge on two runs of other agents: does it treat both alike, and what did change by people's labels?

Prediction-powered (Angelopoulos et al., 2023): the change as the judge has it, plus how far people are from
the judge on the verdicts that were drawn. docs/judge-statistics.md has the formulas and what they are worth.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TypeVar

from ci_evals.extensions.calibration.labeled_verdicts import UNSEEN
from ci_evals.scoring.statistics import t_share_below

FEWEST = 25
"""Labels of each run, with fewer of which nothing is told."""
ENOUGH = 200
"""Labels of each run with which the change is corrected also where the judge treats both alike."""
ALPHA = 0.05
_T = TypeVar("_T")


@dataclass(frozen=True)
class SideVerdict:
    """A verdict of the judge on one of the runs."""

    test: Hashable
    trial: Hashable
    """Within its test."""
    passed: bool
    people: bool | None = None
    """What people say; None if nobody does."""


@dataclass(frozen=True)
class Side:
    """All verdicts on one of the runs."""

    verdicts: Sequence[SideVerdict]

    @cached_property
    def rate(self) -> float:
        """The share that the judge passes."""
        return fmean(one.passed for one in self.verdicts)

    @cached_property
    def noise(self) -> float:
        """The variance of that share by the noise of trials: verdicts on one trial hang together.

        Where no test has two trials, tests take their place.
        """
        tests = _grouped(self.verdicts, lambda one: one.test)
        several: list[tuple[int, float]] = []
        for own in tests:
            middle, trials = fmean(one.passed for one in own), _grouped(own, lambda one: one.trial)
            if len(trials) > 1:
                sums = [math.fsum(one.passed - middle for one in trial) for trial in trials]
                several.append((len(sums), math.fsum(by**2 for by in sums) / (len(sums) - 1)))
        if several:
            single = (len(tests) - len(several)) * fmean(square for _, square in several)
            squares = math.fsum(trials * square for trials, square in several) + single
        else:
            sums = [math.fsum(one.passed - self.rate for one in own) for own in tests]
            squares = len(sums) / max(1, len(sums) - 1) * math.fsum(by**2 for by in sums)
        return squares / len(self.verdicts) ** 2

    @cached_property
    def labeled(self) -> Sequence[tuple[Hashable, int]]:
        """For each labeled verdict its test, and people less judge: 1, 0 or -1."""
        return [(one.test, one.people - one.passed) for one in self.verdicts if one.people is not None]

    @cached_property
    def correction(self) -> float:
        """What people pass more often than the judge."""
        return fmean(by for _, by in self.labeled)

    @cached_property
    def _clusters(self) -> list[list[tuple[Hashable, int]]]:
        """Labels of one test hang together; of a single test each stands for itself."""
        groups = _grouped(self.labeled, lambda one: one[0])
        return groups if len(groups) > 1 else [[one] for one in self.labeled]

    @property
    def freedom(self) -> int:
        """The degrees of freedom of `error`."""
        return len(self._clusters) - 1

    @cached_property
    def error(self) -> float:
        """The variance of that correction: labels of one test hang together, and no error is ruled out."""
        labels, unseen = len(self.labeled), UNSEEN / (len(self.labeled) + 1)
        sums = [math.fsum(by - self.correction for _, by in own) for own in self._clusters]
        squares = len(sums) / (len(sums) - 1) * math.fsum(by**2 for by in sums)
        return max(unseen * (1 - unseen) / labels, squares / labels**2)


@dataclass(frozen=True)
class SpotCheck:
    """The judge on a run and its baseline, each with at least two labels. Shares of all verdicts, 0 to 1."""

    head: Side
    base: Side

    @property
    def labels(self) -> tuple[int, int]:
        """Of this run, and of the baseline."""
        return len(self.head.labeled), len(self.base.labeled)

    @property
    def change(self) -> float:
        """The change as the judge has it."""
        return self.head.rate - self.base.rate

    @property
    def difference(self) -> float:
        """By how much people correct the change."""
        return self.head.correction - self.base.correction

    @property
    def p(self) -> float:
        """How likely labels differ from the judge so unequally, if it treats both runs alike.

        By Student's t, since few tests say little of how far labels vary; its degrees of freedom are Welch's.
        """
        here, there = self.head.error, self.base.error
        freedom = (here + there) ** 2 / (here**2 / self.head.freedom + there**2 / self.base.freedom)
        return 2 * t_share_below(-abs(self.difference) / math.sqrt(here + there), int(freedom))

    @property
    def differs(self) -> bool | None:
        """Whether the judge treats the new answers differently; None if there are too few labels to tell."""
        return self.p <= ALPHA if min(self.labels) >= FEWEST else None

    @property
    def corrects(self) -> bool:
        """Whether the change is to be told from people's labels."""
        return bool(self.differs) or min(self.labels) >= ENOUGH

    @property
    def corrected(self) -> float:
        """The change by people's labels."""
        return self.change + self.difference

    @property
    def error(self) -> float:
        """The standard error of the corrected change."""
        of_labels = (
            (1 - len(side.labeled) / len(side.verdicts)) * side.error for side in (self.head, self.base)
        )
        return math.sqrt(self.head.noise + self.base.noise + math.fsum(of_labels))

    @property
    def judge_error(self) -> float:
        """The standard error of the change as the judge has it, as if it never erred."""
        return math.sqrt(self.head.noise + self.base.noise)


def _grouped(items: Sequence[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    groups: dict[Hashable, list[_T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return [*groups.values()]
