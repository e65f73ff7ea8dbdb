"""The comparison of a run with its baseline: the tests that can be compared, and their change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain

from ci_evals.domain.results.comparison import (
    Baseline,
    Change,
    Comparison,
    Efficiency,
    Evidence,
    Method,
    SuiteComparison,
    TestChange,
)
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult, points
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores, statistics
from ci_evals.scoring.clusters import clusters_of_pairs, merged_pairs
from ci_evals.scoring.comparison import divergence
from ci_evals.scoring.comparison.pairing import SuitePair, TestPair, differences, pair
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import agent_models, cost_of_trial

SUSPECT = 15
"""Points that a test must fall by to be called suspect."""


_ScoredPair = tuple[TestPair, tuple[Fraction, ...], tuple[Fraction, ...]]
"""A test with the scores of its trials on both sides."""


class RunComparer:
    """Two runs, test by test: `head`, which is looked at, and `base`, the baseline."""

    def __init__(
        self, head: Results, base: Results, method: Method = "recorded", *, of_base_commit: bool = False
    ) -> None:
        self.head, self.base, self.method = head, base, method
        self._of_base_commit = of_base_commit
        self.reasons = tuple(differences(head, base))
        """The reasons why nothing of the two runs can be compared."""
        self.suites = pair(head, base)
        self._here = ScoreRule(offline=head.run.offline)
        self._there = ScoreRule(offline=base.run.offline)
        self._changes: dict[object, Change] = {}
        self._test_changes: dict[tuple[int, int], TestChange] = {}

    @cached_property
    def pairs(self) -> tuple[TestPair, ...]:
        """All tests that may be compared."""
        allowed = () if self.reasons else (suite for suite in self.suites if not suite.reasons)
        return tuple(pair for suite in allowed for pair in suite.pairs)

    def change(self, of: Iterable[TestPair], rule: ScoreRule | None = None, *, tested: bool = True) -> Change:
        """The change of these tests' score, with its interval and, if `tested` (it takes time), p.

        `rule` is how this run is scored. The baseline is scored as it is shown, by the same findings.
        """
        pairs, rule = tuple(of), rule or self._here
        key = (tuple(pair.numbers for pair in pairs), rule, tested)
        if key not in self._changes:
            self._changes[key] = self._change(pairs, rule, tested=tested)
        return self._changes[key]

    def _change(self, of: Iterable[TestPair], rule: ScoreRule, *, tested: bool) -> Change:
        scored = self._scored(of, rule)
        if not scored:
            return Change()
        head = _mean([_mean(head) for _, head, _ in scored])
        base = _mean([_mean(base) for _, _, base in scored])
        pairs = _clustered([(pair, _floats(head, base)) for pair, head, base in scored])
        tests = chain.from_iterable((pair.head, pair.base) for pair, _, _ in scored)
        criteria = scores.criteria_of(tests, rule) * len(scored) / len(pairs)
        spread = statistics.spread_of(pairs, criteria)
        chance = statistics.chance_of_drop(pairs, self.seed) if tested else None
        delta = float(head - base)
        open_drop = chance is not None and delta < 0 and chance.p > statistics.ALPHA
        return Change(
            tests=len(scored),
            base=points(base),
            head=points(head),
            delta=delta,
            interval=spread.interval(delta, float(base)) if spread else None,
            p=chance.p if chance else None,
            test=chance.test if chance else None,
            smallest_p=chance.smallest if chance else None,
            fewest_broken=statistics.fewest_broken(pairs),
            estimated_from=spread.estimated_from if spread else None,
            detectable=spread.detectable if spread else None,
            trials_needed=spread.trials_needed(-delta, len(pairs)) if spread and open_drop else None,
        )

    def scored_pairs(
        self, of: Iterable[TestPair], rule: ScoreRule
    ) -> list[tuple[TestPair, statistics.ScorePair]]:
        """Those of these tests that were scored on both sides, with the scores of their trials."""
        return [(pair, _floats(head, base)) for pair, head, base in self._scored(of, rule)]

    def clustered_pairs(self, of: Iterable[TestPair], rule: ScoreRule) -> list[statistics.ScorePair]:
        """The scores of these tests' trials on both sides, with each cluster of tests as one test."""
        return _clustered(self.scored_pairs(of, rule))

    def overall_change(self, *, undecided_fails: bool = False, assumed: int | None = None) -> Change:
        """The change of all tests that may be compared."""
        undecided_fails = undecided_fails and self._undecided
        rule = replace(self._here, undecided_fails=undecided_fails, assumed=assumed)
        return self.change(self.pairs, rule)

    @cached_property
    def _undecided(self) -> bool:
        """True if this run holds a verdict that was wanted and not reached: else it counts in no way."""
        return any(
            scores.undecided(finding, self._here)
            for pair in self.pairs
            for trial in pair.head.trials
            for finding in trial.findings
        )

    @property
    def seed(self) -> str:
        """The seed of all shuffling: the two runs and their suites, and none of their verdicts."""
        runs = (self.head.run, self.base.run)
        return " ".join(f"{run.id} {run.digests.suites}" for run in runs)

    def newly_failing(self, assumed: int | None = None) -> tuple[TestPair, ...]:
        """Tests that passed in the baseline and do not pass now. `assumed`: as for a `ScoreRule`."""

        def fails(test: TestResult) -> bool:
            complete = _complete_trials(test)
            broken_off = len(complete) < len(test.trials) or test.not_run > 0
            passed = all(scores.all_passed(trial, self._here) for trial in complete)
            return not passed or (broken_off and assumed == 0)

        return tuple(pair for pair in self.pairs if pair.base.passed and fails(pair.head))

    @property
    def nothing_in_common(self) -> str:
        """The reason why there is nothing to compare if no suite has one of its own."""
        if not {suite.name for suite in self.head.suites} & {suite.name for suite in self.base.suites}:
            return "the baseline has no suite of this name"
        if not any(suite.pairs for suite in self.suites):
            return "no test has the same definition in the baseline"
        return "no test was scored on both sides"

    def _reasons_of_suites(self) -> Iterator[str]:
        """The suites' own reasons, each with its suite unless all share it."""
        for reason in dict.fromkeys(chain.from_iterable(suite.reasons for suite in self.suites)):
            having = [suite.name for suite in self.suites if reason in suite.reasons]
            if len(having) == len(self.suites):
                yield reason
            else:
                yield from (f"{name}: {reason}" for name in having)

    def comparison(self) -> Comparison:
        """The comparison as it stands in the results."""
        overall, reasons = self.overall_change(), [*self.reasons]
        if not self.reasons:
            reasons += self._reasons_of_suites()
            if not overall.tests and not reasons:
                reasons += [self.nothing_in_common]
        return Comparison(
            comparable=overall.tests > 0,
            reasons=tuple(reasons),
            method=self.method,
            baseline=Baseline(
                score=self.base.score,
                commit=self.base.run.git.commit,
                uncommitted_changes=self.base.run.git.uncommitted_changes,
                branch=self.base.run.git.branch,
                of_base_commit=self._of_base_commit,
                at=self.base.run.started_at,
                run_id=self.base.run.id,
                tests=sum(len(suite.tests) for suite in self.base.suites),
                trials=_played(self.base),
                agent_models=agent_models(self.base.usage),
            ),
            regressed=_worst_first(map(self._with_proof, self.newly_failing())),
            fixed=tuple(
                self._test_change(pair, pair.base)
                for pair in self.pairs
                if pair.base.outcome is TestOutcome.FAILED and pair.head.passed
            ),
            suspects=_worst_first(
                self._with_proof(pair) for pair in self.pairs if pair.numbers in self._proofs
            ),
            new=tuple(name for suite in self.suites for name in suite.new),
            removed=tuple(name for suite in self.suites for name in suite.removed),
            changed=tuple(name for suite in self.suites for name in suite.changed),
            deltas=tuple(sorted(own.delta for _, own in self._score_pairs)),
            suites=tuple(self._of_suite(suite) for suite in self.suites),
            head_efficiency=_efficiency(self.head),
            base_efficiency=_efficiency(self.base),
        ).with_change(overall)

    def _of_suite(self, suite: SuitePair) -> SuiteComparison:
        reasons = self.reasons or suite.reasons
        change = Change() if reasons else self.change(suite.pairs)
        baseline_score = None if reasons else suite.base_score
        if not reasons and not change.tests:
            alike = "was scored on both sides" if suite.pairs else "is defined alike in both runs"
            reasons = (f"no test {alike}",)
        return SuiteComparison(
            name=suite.name,
            comparable=change.tests > 0,
            reasons=reasons,
            baseline_score=baseline_score,
            base_scores=() if reasons else _base_scores(suite),
        ).with_change(change)

    @cached_property
    def _proofs(self) -> Mapping[tuple[int, int], float | None]:
        """The adjusted p of each suspect, by the numbers of its suite and test."""
        suspects = [pair.numbers for pair, own in self._score_pairs if own.delta <= -SUSPECT]
        if not suspects:
            return {}
        proven = statistics.proven_drops([own for _, own in self._score_pairs], self.seed)
        by_test = {pair.numbers: p for (pair, _), p in zip(self._score_pairs, proven, strict=True)}
        return {numbers: by_test[numbers] for numbers in suspects}

    def _with_proof(self, pair: TestPair) -> TestChange:
        """A test of this run, with its p if it is a suspect."""
        change = self._test_changes.get(pair.numbers)
        if change is None:
            change = self._test_change(pair, pair.head)
            if pair.numbers in self._proofs:
                p = self._proofs[pair.numbers]
                confirmed = p is not None and p <= statistics.ALPHA
                change = replace(change, p=p, confirmed=confirmed)
            self._test_changes[pair.numbers] = change
        return change

    @cached_property
    def _score_pairs(self) -> list[tuple[TestPair, statistics.ScorePair]]:
        """The tests that were scored on both sides, with the scores of their trials."""
        return self.scored_pairs(self.pairs, self._here)

    def _test_change(self, pair: TestPair, shown: TestResult) -> TestChange:
        head, base = pair.head.score, pair.base.score
        return TestChange(
            suite=pair.suite,
            name=pair.head.name,
            base=base,
            head=head,
            delta=None if head is None or base is None else head - base,
            evidence=_evidence(shown, self._here),
            first_divergence=divergence.of_test(pair, self._here, self._there),
        )

    def _scored(self, pairs: Iterable[TestPair], rule: ScoreRule) -> list[_ScoredPair]:
        there = replace(self._there, finding_filter=rule.finding_filter)
        scored = []
        for test in pairs:
            head, base = scores.of_trials(test.head, rule), scores.of_trials(test.base, there)
            if head and base:
                scored.append((test, head, base))
        return scored


def _clustered(scored: Sequence[tuple[TestPair, statistics.ScorePair]]) -> list[statistics.ScorePair]:
    return merged_pairs(
        [own for _, own in scored], clusters_of_pairs((pair.head, pair.base) for pair, _ in scored)
    )


def _base_scores(suite: SuitePair) -> tuple[float | None, ...]:
    """The baseline's score of each test of this run's suite, up to the last one that was compared."""
    by_number = {pair.numbers[1]: pair.base.score for pair in suite.pairs}
    return tuple(by_number.get(number) for number in range(1, max(by_number, default=0) + 1))


def _worst_first(changes: Iterable[TestChange]) -> tuple[TestChange, ...]:
    return tuple(sorted(changes, key=lambda change: 0.0 if change.delta is None else change.delta))


def _complete_trials(test: TestResult) -> list[TrialResult]:
    return [trial for trial in test.trials if trial.complete]


def _mean(scored: Sequence[Fraction]) -> Fraction:
    return scores.mean(scored) or Fraction()


def _floats(head: tuple[Fraction, ...], base: tuple[Fraction, ...]) -> statistics.ScorePair:
    return statistics.ScorePair(_in_binary(head), _in_binary(base))


@lru_cache(10_000)
def _in_binary(exact: tuple[Fraction, ...]) -> tuple[float, ...]:
    return tuple(map(float, exact))


def _evidence(test: TestResult, rule: ScoreRule) -> Evidence | None:
    """The first verdict that failed, or else the first that could not be reached."""
    first_undecided: Evidence | None = None
    for trial in _complete_trials(test):
        for finding in trial.findings:
            if finding.outcome is Outcome.FAILED:
                return _evidence_in(trial, finding, finding.reason)
            if first_undecided is None and scores.undecided(finding, rule):
                first_undecided = _evidence_in(trial, finding, f"undecided: {finding.reason}")
    return first_undecided


def _evidence_in(trial: TrialResult, finding: Finding, reason: str) -> Evidence:
    turn = trial.turn_of(finding)
    return Evidence(
        criterion=finding.criterion,
        reason=reason,
        trial=trial.index,
        turn=turn.index if turn else None,
        user=turn.user if turn else None,
        agent=turn.agent if turn else None,
    )


def _efficiency(run: Results) -> Efficiency:
    usage, trials = run.own_usage, run.counts.played_trials
    tokens = usage.tokens
    return Efficiency(
        cost_usd_per_trial=cost_of_trial(usage, trials),
        tokens_per_trial=(tokens.input + tokens.output) / trials if trials else None,
        median_latency_seconds=run.latency.median,
        p95_latency_seconds=run.latency.p95,
    )


def _played(run: Results) -> int:
    return sum(len(test.trials) for suite in run.suites for test in suite.tests)
