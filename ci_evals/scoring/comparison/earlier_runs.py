"""A run against the newest runs of its base branch, on the tests that it shares with the newest of them.

A smaller run among them is left out: one that lacks such a test, or has fewer trials of it than both this run
and the newest. Else an older run of a few tests would hide a drop of all others, and one of few trials would
look as if runs differed more than they do.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from statistics import fmean

from ci_evals.domain.results.comparison import Change, HistoryComparison, TestName
from ci_evals.domain.results.run import Results
from ci_evals.scoring.comparison import history
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule

_Run = Sequence[Sequence[float]]
_Scores = dict[tuple[int, int], tuple[Sequence[float], Sequence[float]]]
"""By the numbers of a test: the scores of its trials in this run and in an earlier one."""


class EarlierRuns:
    """The comparison of a run with several earlier ones, oldest first."""

    def __init__(self, head: Results, runs: Sequence[Results]) -> None:
        self._rule = ScoreRule(offline=head.run.offline)
        # Else a verdict that could not be reached might spare the base agent that a failed one has played.
        self._strict = replace(self._rule, undecided_fails=True)
        comparers = [comparer for run in runs if (comparer := RunComparer(head, run)).pairs]
        self._comparers = self._no_smaller(comparers)
        self._smaller = len(comparers) - len(self._comparers)
        compared = " ".join(comparer.base.run.id for comparer in self._comparers)
        self._seed = f"{head.run.id} {head.run.digests.suites} {compared}"
        self._changes: dict[ScoreRule, Change] = {}
        self._scores: dict[ScoreRule, list[_Scores]] = {}
        self._p: dict[object, float] = {}

    @cached_property
    def together(self) -> int:
        """The number of newest runs that belong together: before these main was another agent."""
        runs = self._runs(self._strict)[1]
        return history.window(runs) if runs else 0

    @property
    def decide(self) -> bool:
        """True if these are enough runs to tell a drop from what runs differ by themselves."""
        return self.together >= history.FEWEST_RUNS

    def change(self, rule: ScoreRule) -> Change:
        """The change against the runs that belong together, scored by this rule.

        Its p is the larger of two: of the trials, and of the runs as a whole.
        """
        if rule not in self._changes:
            head, together = self._runs(rule)[0], self._together(rule)
            if not together:
                return Change()
            score = fmean(map(fmean, head))
            base = fmean(fmean(map(fmean, run)) for run in together)
            pooled = self._p_of_trials(head, together)
            self._changes[rule] = Change(
                tests=len(head),
                head=score,
                base=base,
                delta=score - base,
                p=max(pooled, history.moderated_p(head, together)),
            )
        return self._changes[rule]

    def comparison(self) -> HistoryComparison | None:
        """The comparison as it stands in the results; None if there is nothing to compare with."""
        head, runs = self._runs(self._rule)
        if not runs:
            return None
        together = runs[-self.together :]
        change = self.change(self._rule)
        named = history.broken_tests(head, together, self._seed)
        pairs = {pair.numbers: pair for pair in self._comparers[-1].pairs}
        shared = [pairs[numbers] for numbers in self._scored(self._rule)[-1]]
        names = [TestName(suite=pair.suite, name=pair.head.name) for pair in shared]
        return HistoryComparison(
            runs=len(runs),
            smaller=self._smaller,
            together=self.together,
            tests=len(head),
            delta=change.delta,
            p=change.p,
            p_of_trials=self._p_of_trials(self._runs(self._strict)[0], self._together(self._strict)),
            spread=history.spread_between(together),
            smallest_drop=history.RunSpread.of(head, together).smallest_drop,
            broken_tests=tuple(names[index] for index in named.broken),
            probably_broken_tests=tuple(names[index] for index in named.probably),
        )

    def _together(self, rule: ScoreRule) -> list[list[Sequence[float]]]:
        """The scores of the runs that belong together."""
        return self._runs(rule)[1][-self.together :] if self.together else []

    def _runs(self, rule: ScoreRule) -> tuple[list[Sequence[float]], list[list[Sequence[float]]]]:
        """The scores of this run's tests, and those of each earlier run."""
        scored = self._scored(rule)
        if not scored or not scored[-1]:
            return [], []
        head = [own for own, _ in scored[-1].values()]
        return head, [[scores[numbers][1] for numbers in scored[-1]] for scores in scored]

    def _no_smaller(self, comparers: Sequence[RunComparer]) -> list[RunComparer]:
        """The runs that hold all of the newest one's tests, with enough trials; the newest is the last."""
        # Trials that broke off count as well: a run is as large as it was meant to be, whatever became of it.
        rule = replace(self._strict, assumed=0)
        sizes = [
            {
                pair.numbers: (len(own.head), len(own.base))
                for pair, own in comparer.scored_pairs(comparer.pairs, rule)
            }
            for comparer in comparers
        ]
        return [
            comparer
            for comparer, size in zip(comparers, sizes, strict=True)
            if all(size.get(numbers, (0, 0))[1] >= min(newest) for numbers, newest in sizes[-1].items())
        ]

    def _scored(self, rule: ScoreRule) -> list[_Scores]:
        if rule not in self._scores:
            self._scores[rule] = [
                {
                    pair.numbers: (own.head, own.base)
                    for pair, own in comparer.scored_pairs(comparer.pairs, rule)
                }
                for comparer in self._comparers
            ]
        return self._scores[rule]

    def _p_of_trials(self, head: _Run, together: Sequence[_Run]) -> float:
        """The p by trials; rules that come to the same scores share one, since it takes time."""
        key = (tuple(map(tuple, head)), tuple(tuple(map(tuple, run)) for run in together))
        if key not in self._p:
            self._p[key] = history.pooled_p(head, together, self._seed)
        return self._p[key]
