"""The comparison of a run with its baseline: the tests that can be compared, and their change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain

from ci_evals.domain.results.comparison import (
    Baseline,
    Change,
    Comparison,
    Efficiency,
    Evidence,
    SuiteComparison,
    TestChange,
)
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult, points
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores, statistics
from ci_evals.scoring.comparison import divergence
from ci_evals.scoring.comparison.pairing import Side, SuitePair, TestPair, differences, pair
from ci_evals.scoring.scores import FindingFilter, UndecidedRule
from ci_evals.scoring.usage import cost_of_trial
from ci_evals.scoring.validity import all_passed, criteria_of, scores_of_trials, undecided

SUSPECT = 15
"""Points that a test must fall by to be called suspect."""


@dataclass(frozen=True)
class ComparedPart:
    """A part of the paired tests, and the way in which it is scored."""

    pairs: tuple[TestPair, ...]
    finding_filter: FindingFilter = scores.all_findings
    undecided_fails: bool = False
    """True if undecided verdicts of this run count as failed, as the gate wants it."""
    assumed: int | None = None
    """The score that each uncounted trial of this run is given."""


class RunComparer:
    """Two runs, test by test: `head`, which is looked at, and `base`, the baseline."""

    def __init__(self, head: Side, base: Side) -> None:
        self.head, self.base = head, base
        self.reasons = tuple(differences(head, base))
        """The reasons why nothing of the two runs can be compared."""
        self.suites = pair(head, base)
        self._overall_changes: dict[tuple[bool, int | None], Change] = {}

    @cached_property
    def pairs(self) -> tuple[TestPair, ...]:
        """All tests that may be compared."""
        allowed = () if self.reasons else (suite for suite in self.suites if not suite.reasons)
        return tuple(pair for suite in allowed for pair in suite.pairs)

    def change(self, part: ComparedPart, *, tested: bool = True) -> Change:
        """The change of these tests' score, with its interval and, if `tested` (it takes time), p."""
        scored = [(pair, *self._scores(pair, part)) for pair in part.pairs]
        scored = [(pair, head, base) for pair, head, base in scored if head and base]
        if not scored:
            return Change()
        head = scores.mean(scores.mean(head) for _, head, _ in scored)
        base = scores.mean(scores.mean(base) for _, _, base in scored)
        assert head is not None and base is not None  # noqa: S101, PT018  # none of the means is of nothing
        pairs = [_floats(head, base) for _, head, base in scored]
        trials = chain.from_iterable((*pair.head.trials, *pair.base.trials) for pair, _, _ in scored)
        spread = statistics.spread_of(pairs, criteria_of(trials, part.finding_filter))
        chance = statistics.chance_of_drop(pairs, self.seed) if tested else None
        delta = float(head - base)
        open_drop = chance is not None and delta < 0 and chance.p > statistics.ALPHA
        return Change(
            tests=len(pairs),
            base=points(base),
            head=points(head),
            delta=delta,
            interval=spread.interval(delta, float(base)) if spread else None,
            p=chance.p if chance else None,
            method=chance.method if chance else None,
            smallest_p=chance.smallest if chance else None,
            fewest_broken=statistics.fewest_broken(pairs),
            estimated_from=spread.estimated_from if spread else None,
            detectable=spread.detectable if spread else None,
            trials_needed=spread.trials_needed(-delta, len(pairs)) if spread and open_drop else None,
        )

    def overall_change(self, *, undecided_fails: bool = False, assumed: int | None = None) -> Change:
        """The change of all tests that may be compared."""
        open_verdicts = undecided_fails and self._undecided
        if (open_verdicts, assumed) not in self._overall_changes:
            part = ComparedPart(self.pairs, undecided_fails=open_verdicts, assumed=assumed)
            self._overall_changes[open_verdicts, assumed] = self.change(part)
        return self._overall_changes[open_verdicts, assumed]

    @cached_property
    def _undecided(self) -> bool:
        """True if this run holds a verdict that was wanted and not reached: else it counts in no way."""
        rule = UndecidedRule(offline=self.head.run.offline)
        return any(
            undecided(finding, rule)
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
        """Tests that passed in the baseline and do not pass now. `assumed`: as for a `ComparedPart`."""
        rule = UndecidedRule(offline=self.head.run.offline)

        def fails(test: TestResult) -> bool:
            broken_off = len(test.trials) - len(_complete_trials(test)) + test.not_run
            return not all(all_passed(trial, rule) for trial in _complete_trials(test)) or (
                assumed == 0 and broken_off > 0
            )

        return tuple(pair for pair in self.pairs if pair.base.passed and fails(pair.head))

    @property
    def nothing_in_common(self) -> str:
        """The reason why there is nothing to compare if no suite has one of its own."""
        if not {suite.name for suite in self.head.suites} & {suite.name for suite in self.base.suites}:
            return "the baseline has no suite of this name"
        if not any(suite.pairs for suite in self.suites):
            return "no test is defined alike in the baseline"
        return "no test was scored on both sides"

    def comparison(self) -> Comparison:
        """The comparison as it stands in the results."""
        overall, suspects = self.overall_change(), self._suspects()
        failing = (self._with_proof(pair) for pair in self.newly_failing())
        reasons = [*self.reasons]
        if not self.reasons:
            reasons += [f"{suite.name}: {reason}" for suite in self.suites for reason in suite.reasons]
            if not overall.tests and not reasons:
                reasons += [self.nothing_in_common]
        return Comparison(
            **overall.model_dump(),
            comparable=overall.tests > 0,
            reasons=tuple(reasons),
            baseline=Baseline(
                score=self.base.score,
                commit=self.base.run.git.commit,
                at=self.base.run.started_at,
                run_id=self.base.run.id,
                tests=sum(len(suite.tests) for suite in self.base.suites),
                trials=self.base.trials,
            ),
            regressed=_worst_first(failing),
            fixed=tuple(
                self._test_change(pair, pair.base)
                for pair in self.pairs
                if pair.base.outcome is TestOutcome.FAILED and pair.head.passed
            ),
            suspects=suspects,
            new=tuple(name for suite in self.suites for name in suite.new),
            removed=tuple(name for suite in self.suites for name in suite.removed),
            changed=tuple(name for suite in self.suites for name in suite.changed),
            deltas=tuple(sorted(scores.delta for _, scores in self._scored)),
            suites=tuple(self._of_suite(suite) for suite in self.suites),
            head_efficiency=_efficiency(self.head),
            base_efficiency=_efficiency(self.base),
        )

    def _of_suite(self, suite: SuitePair) -> SuiteComparison:
        reasons = self.reasons or suite.reasons
        change = Change() if reasons else self.change(ComparedPart(suite.pairs))
        if not reasons and not change.tests:
            alike = "was scored on both sides" if suite.pairs else "is defined alike in both runs"
            reasons = (f"no test {alike}",)
        return SuiteComparison(
            **change.model_dump(), name=suite.name, comparable=change.tests > 0, reasons=reasons
        )

    def _suspects(self) -> tuple[TestChange, ...]:
        return _worst_first(
            self._with_proof(pair) for pair, _ in self._scored if pair.numbers in self._proofs
        )

    @cached_property
    def _proofs(self) -> Mapping[tuple[int, int], float | None]:
        """The adjusted p of each suspect, by the numbers of its suite and test."""
        if not any(scores.delta <= -SUSPECT for _, scores in self._scored):
            return {}
        proven = statistics.proven_drops([scores for _, scores in self._scored], self.seed)
        return {
            pair.numbers: p
            for (pair, scores), p in zip(self._scored, proven, strict=True)
            if scores.delta <= -SUSPECT
        }

    def _with_proof(self, pair: TestPair) -> TestChange:
        """A test of this run, with its p if it is a suspect."""
        change = self._test_change(pair, pair.head)
        if pair.numbers not in self._proofs:
            return change
        p = self._proofs[pair.numbers]
        return change.model_copy(update={"p": p, "confirmed": p is not None and p <= statistics.ALPHA})

    @cached_property
    def _scored(self) -> tuple[tuple[TestPair, statistics.ScorePair], ...]:
        """The tests that were scored on both sides, with the scores of their trials."""
        part = ComparedPart(self.pairs)
        scored = ((pair, *self._scores(pair, part)) for pair in self.pairs)
        return tuple((pair, _floats(head, base)) for pair, head, base in scored if head and base)

    def _test_change(self, pair: TestPair, shown: TestResult) -> TestChange:
        head, base = pair.head.score, pair.base.score
        here = UndecidedRule(offline=self.head.run.offline)
        there = UndecidedRule(offline=self.base.run.offline)
        return TestChange(
            suite=pair.suite,
            name=pair.head.name,
            base=base,
            head=head,
            delta=None if head is None or base is None else head - base,
            evidence=_evidence(shown, here),
            first_divergence=divergence.of_test(pair, here, there),
        )

    def _scores(
        self, pair: TestPair, part: ComparedPart
    ) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        here = UndecidedRule(offline=self.head.run.offline, undecided_fails=part.undecided_fails)
        there = UndecidedRule(offline=self.base.run.offline)
        return (
            scores_of_trials(pair.head, here, part.finding_filter, part.assumed),
            scores_of_trials(pair.base, there, part.finding_filter),
        )


def _worst_first(changes: Iterable[TestChange]) -> tuple[TestChange, ...]:
    return tuple(sorted(changes, key=lambda change: 0.0 if change.delta is None else change.delta))


def _complete_trials(test: TestResult) -> list[TrialResult]:
    return [trial for trial in test.trials if trial.complete]


def _floats(head: Sequence[Fraction], base: Sequence[Fraction]) -> statistics.ScorePair:
    return statistics.ScorePair(tuple(map(float, head)), tuple(map(float, base)))


def _evidence(test: TestResult, rule: UndecidedRule) -> Evidence | None:
    """The first verdict that failed, or else the first that could not be reached."""
    verdicts = [(trial, finding) for trial in _complete_trials(test) for finding in trial.findings]
    failed = [(trial, finding) for trial, finding in verdicts if finding.outcome is Outcome.FAILED]
    missing = [(trial, finding) for trial, finding in verdicts if undecided(finding, rule)]
    for trial, finding in [*failed, *missing]:
        return _shown(trial, finding)
    return None


def _shown(trial: TrialResult, finding: Finding) -> Evidence:
    turn = trial.turn_of(finding)
    return Evidence(
        criterion=finding.criterion,
        reason=finding.reason if finding.outcome is Outcome.FAILED else f"undecided: {finding.reason}",
        trial=trial.index,
        turn=turn.index if turn else None,
        user=turn.user if turn else None,
        agent=turn.agent if turn else None,
    )


def _efficiency(side: Side) -> Efficiency:
    tokens = side.usage.tokens
    return Efficiency(
        cost_usd_per_trial=cost_of_trial(side.usage, side.trials),
        tokens_per_trial=(tokens.input + tokens.output) / side.trials if side.trials else None,
        median_latency_seconds=side.latency.median,
        p95_latency_seconds=side.latency.p95,
    )
