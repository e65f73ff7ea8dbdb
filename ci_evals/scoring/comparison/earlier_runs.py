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
from ci_evals.scoring import scores
from ci_evals.scoring.clusters import clusters_of_pairs, merged
from ci_evals.scoring.comparison import history
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule

_Run = Sequence[Sequence[float]]
_Scores = dict[tuple[int, int], tuple[float, ...]]
"""By the numbers of a test: the scores of its trials."""


class EarlierRuns:
    """The comparison of a run with several earlier ones, oldest first."""

    def __init__(self, head: Results, runs: Sequence[Results]) -> None:
        self._rule = ScoreRule(offline=head.run.offline)
        # Else a verdict that could not be reached might spare the base agent that a failed one has played.
        self._strict = replace(self._rule, undecided_fails=True)
        comparers = [comparer for run in runs if (comparer := RunComparer(head, run)).pairs]
        self._pairs = {pair.numbers: pair for pair in comparers[-1].pairs} if comparers else {}
        earlier = [(comparer.base.run.id, _scores_of(comparer)) for comparer in comparers]
        large = self._no_smaller([run for _, run in earlier])
        compared = [own for own, is_large in zip(earlier, large, strict=True) if is_large]
        self._earlier = [run for _, run in compared]
        self._smaller = len(earlier) - len(compared)
        self._seed = f"{head.run.id} {head.run.digests.suites} {' '.join(name for name, _ in compared)}"
        self._changes: dict[ScoreRule, Change] = {}
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
                tests=len(self._head(rule)),
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
        return HistoryComparison(
            runs=len(runs),
            smaller=self._smaller,
            together=self.together,
            tests=len(self._head(self._rule)),
            delta=change.delta,
            p=change.p,
            p_of_trials=self._p_of_trials(self._runs(self._strict)[0], self._together(self._strict)),
            spread=history.spread_between(together),
            smallest_drop=history.RunSpread.of(head, together).smallest_drop,
        )

    def named(self) -> tuple[tuple[TestName, ...], tuple[TestName, ...]]:
        """The tests that broke, and those that probably did; both by the runs that belong together."""
        head, earlier = self._runs_by_test(self._rule)
        together = earlier[-self.together :] if self.together else []
        if not together:
            return (), ()
        found = history.broken_tests(head, together, self._seed)
        shared = [self._pairs[numbers] for numbers in self._head(self._rule)]
        names = [TestName(suite=pair.suite, name=pair.head.name) for pair in shared]
        return tuple(names[index] for index in found.broken), tuple(names[index] for index in found.probably)

    def _together(self, rule: ScoreRule) -> list[list[Sequence[float]]]:
        """The scores of the runs that belong together."""
        return self._runs(rule)[1][-self.together :] if self.together else []

    def _runs(self, rule: ScoreRule) -> tuple[list[Sequence[float]], list[list[Sequence[float]]]]:
        """The scores of this run, and those of each earlier run, with each cluster of tests as one test."""
        head, earlier = self._runs_by_test(rule)
        pairs = [self._pairs[numbers] for numbers in self._head(rule)]
        clusters = clusters_of_pairs((pair.head, pair.base) for pair in pairs)
        return [*merged(head, clusters)], [[*merged(run, clusters)] for run in earlier]

    def _runs_by_test(self, rule: ScoreRule) -> tuple[list[Sequence[float]], list[list[Sequence[float]]]]:
        """The scores of this run's tests, and those of each earlier run."""
        head = self._head(rule)
        if not head:
            return [], []
        return [*head.values()], [[run[numbers] for numbers in head] for run in self._earlier]

    def _head(self, rule: ScoreRule) -> _Scores:
        """The scores of this run's tests that are compared: those that the newest earlier run holds."""
        newest = self._earlier[-1] if self._earlier else {}
        scored = {numbers: scores.of_trials(self._pairs[numbers].head, rule) for numbers in newest}
        return {numbers: tuple(map(float, own)) for numbers, own in scored.items() if own}

    def _no_smaller(self, earlier: Sequence[_Scores]) -> list[bool]:
        """For each run whether it holds all of the newest one's tests, with enough trials."""
        # Trials that broke off count as well: a run is as large as it was meant to be, whatever became of it.
        rule = replace(self._strict, assumed=0)
        wanted = {
            numbers: min(len(own), here)
            for numbers, own in (earlier[-1] if earlier else {}).items()
            if (here := len(scores.of_trials(self._pairs[numbers].head, rule)))
        }
        return [
            all(len(run.get(numbers, ())) >= number for numbers, number in wanted.items()) for run in earlier
        ]

    def _p_of_trials(self, head: _Run, together: Sequence[_Run]) -> float:
        """The p by trials; rules that come to the same scores share one, since it takes time."""
        key = (tuple(map(tuple, head)), tuple(tuple(map(tuple, run)) for run in together))
        if key not in self._p:
            self._p[key] = history.pooled_p(head, together, self._seed)
        return self._p[key]


def _scores_of(comparer: RunComparer) -> _Scores:
    """The scores of an earlier run, of the tests that can be compared with it."""
    rule = ScoreRule(offline=comparer.base.run.offline)
    scored = {pair.numbers: scores.of_trials(pair.base, rule) for pair in comparer.pairs}
    return {numbers: tuple(map(float, own)) for numbers, own in scored.items() if own}
