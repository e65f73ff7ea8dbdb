"""The numbers of a run: from its trials to the scores and counts of tests, suites and the whole."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ci_evals.domain.actions import LogicPart
from ci_evals.domain.checks.evaluation import Graded
from ci_evals.domain.plan import Plan, PlannedSuite, SuiteModels
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.judge import VoteAgreement
from ci_evals.domain.results.process import Coverage, ProcessSummary
from ci_evals.domain.results.reused import ReusedTest, ReusedTests, TakenFrom
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.suite import ScoreSummary, SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Latency, Usage
from ci_evals.scoring import numbers, process
from ci_evals.scoring.agreement.votes import vote_agreement
from ci_evals.scoring.coverage import coverage_of, wanted_parts
from ci_evals.scoring.numbers import RunNumbers
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.simulated_users import user_checks
from ci_evals.scoring.usage import latency_of, usage_of


@dataclass(frozen=True)
class SuiteFacts:
    """The facts of a suite's report besides its numbers."""

    folder: str
    models: SuiteModels = field(default_factory=SuiteModels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard(ScoreSummary):
    """Everything that was counted: the part of a run's results that follows from its trials."""

    usage: Usage
    latency: Latency
    process: ProcessSummary
    coverage: Coverage
    user_checks: UserChecks | None
    vote_agreement: VoteAgreement | None
    arms: tuple[Arm, ...] = ()
    suites: tuple[SuiteResult, ...]

    def as_arm(self, name: str, *, gated: bool = False) -> Arm:
        """The arm with these numbers, of a run that played it alone."""
        return Arm(
            name=name,
            gated=gated,
            score=self.score,
            interval=self.interval,
            decided_share=self.decided_share,
            pass_at_k=self.pass_at_k,
            pass_hat_k=self.pass_hat_k,
            official=self.official,
            counts=self.counts,
            usage=self.usage,
            latency=self.latency,
            suites=() if gated else self.suites,
        )


def score(
    plan: Plan,
    played: Sequence[TrialResult | None],
    facts: Sequence[SuiteFacts],
    rule: ScoreRule,
    *,
    taken: ReusedTests = MappingProxyType({}),
    pooled: Mapping[tuple[int, int], Sequence[TrialResult]] = MappingProxyType({}),
    prices: PriceTable = NO_PRICES,
    shown: Callable[[str], str] = str,
) -> Scorecard:
    """The scorecard of a run. `played` is in the order of `plan.trials`, `facts` in that of its suites.

    `taken` has the tests that the plan does not play, `pooled` further trials of those that it plays, by the
    numbers of suite and test from 1.
    """
    trials: dict[tuple[int, int], list[TrialResult]] = {}
    for trial, result in zip(plan.trials, played, strict=True):
        played_trials = trials.setdefault((trial.suite, trial.test), [])
        if result is not None:
            played_trials.append(result)
    suites = []
    for s, (planned, suite_facts) in enumerate(zip(plan.suites, facts, strict=True)):
        tests = []
        for t, test in enumerate(planned.tests):
            if test.name in planned.reused:
                test_trials = _TestTrials.of(taken[planned.file, test.name])
            else:
                planned_number = plan.played_of(planned, test)
                more = pooled.get((s + 1, t + 1), ())
                test_trials = _TestTrials.with_pooled(trials.get((s, t), ()), planned_number, more)
            tests.append(_test(planned, t, test_trials, rule))
        suites.append(_suite(planned, suite_facts, tuple(tests), rule))
    usage = usage_of((result for result in played if result is not None), prices)
    return total(suites, usage, rule, wanted_parts(plan, shown))


def total(
    suites: Sequence[SuiteResult],
    usage: Usage,
    rule: ScoreRule,
    parts: frozenset[LogicPart] = frozenset(),
) -> Scorecard:
    """The scorecard of suites whose numbers have just been counted; `parts` of the agent's logic are to fire.

    The numbers of a single suite are the run's. Those that come from a file are `recounted` first.
    """
    tests = tuple(test for suite in suites for test in suite.tests)
    run: RunNumbers | SuiteResult
    if len(suites) == 1:
        run, whole_process = suites[0], suites[0].process
    else:
        run, whole_process = numbers.of_run(tests, rule), process.of_tests(tests, rule)
    return Scorecard(
        score=run.score,
        interval=run.interval,
        decided_share=run.decided_share,
        pass_at_k=run.pass_at_k,
        pass_hat_k=run.pass_hat_k,
        counts=run.counts,
        usage=usage,
        latency=latency_of(
            trial for test in tests for trial in test.trials if not (test.taken_from or trial.run)
        ),
        process=process.of_run(whole_process, run.score, usage, run.counts.played_trials),
        coverage=coverage_of(suites, parts),
        user_checks=user_checks(tests),
        vote_agreement=vote_agreement(suites),
        suites=tuple(suites),
    )


def recounted(suite: SuiteResult, rule: ScoreRule) -> SuiteResult:
    """The suite with every number computed again from its trials."""
    tests = []
    for test in suite.tests:
        trials = _compared(test.trials, test.optimal_tools)
        counted = numbers.of_test(trials, len(trials) + test.not_run, rule)
        tests.append(numbers.with_test_numbers(replace(test, trials=trials), counted))
    counted_suite = replace(suite, tests=tuple(tests))
    return numbers.with_suite_numbers(counted_suite, numbers.of_suite(counted_suite.tests, rule))


class _TestTrials(NamedTuple):
    played: Sequence[TrialResult]
    planned: int
    source: TakenFrom | None = None
    """The run that they are taken from, if none was played here."""

    @classmethod
    def of(cls, taken: ReusedTest) -> "_TestTrials":
        return cls(taken.trials, len(taken.trials), taken.source)

    @classmethod
    def with_pooled(
        cls, played: Sequence[TrialResult], planned: int, pooled: Sequence[TrialResult]
    ) -> "_TestTrials":
        """The trials of this run, and after them those of earlier attempts at its commit."""
        last = max([planned, *(trial.index for trial in played)])
        numbered = [replace(trial, index=last + number) for number, trial in enumerate(pooled, start=1)]
        return cls((*played, *numbered), planned + len(pooled))


def _test(planned: PlannedSuite, index: int, test_trials: _TestTrials, rule: ScoreRule) -> TestResult:
    test = planned.tests[index]
    trials = _compared(test_trials.played, test.optimal_tools)
    counted = numbers.of_test(trials, test_trials.planned, rule)
    rubrics = {}
    for number, evaluation in enumerate(test.evaluations, 1):
        if isinstance(evaluation, Graded):
            rubrics[number] = evaluation.whole_rubric
    return TestResult(
        name=test.name,
        tags=test.tags,
        cluster=test.cluster,
        difficulty=test.difficulty,
        critical=test.critical,
        may_escalate=test.may_escalate,
        min_score=test.min_score,
        quarantine=test.quarantine,
        taken_from=test_trials.source,
        line=planned.test_lines[index],
        digest=planned.test_digests[index],
        user_info=test.user_info,
        guidelines=test.guidelines,
        turns=test.turns,
        optimal_tools=test.optimal_tools,
        rubrics=rubrics,
        score=counted.score,
        pass_rate=counted.pass_rate,
        passed=counted.passed,
        outcome=counted.outcome,
        flaky=counted.flaky,
        statistics=counted.statistics,
        process=counted.process,
        trials=trials,
        not_run=test_trials.planned - len(trials),
    )


def _compared(trials: Sequence[TrialResult], optimal: Sequence[str] | None) -> tuple[TrialResult, ...]:
    """The trials compared with the optimal workflows of their test, which may have changed meanwhile."""
    return tuple(process.compared(trial, optimal) for trial in trials)


def _suite(
    planned: PlannedSuite, facts: SuiteFacts, tests: tuple[TestResult, ...], rule: ScoreRule
) -> SuiteResult:
    counted = numbers.of_suite(tests, rule)
    return SuiteResult(
        name=planned.suite.name,
        file=planned.file,
        description=planned.suite.description,
        digest=planned.digest,
        agent_id=planned.suite.agent_id,
        adapter=planned.suite.adapter,
        judge_model=facts.models.judge,
        judge_panel=facts.models.panel,
        judge_votes=facts.models.votes,
        user_model=facts.models.user,
        embedding_model=facts.models.embedder,
        min_score=planned.suite.min_score,
        folder=facts.folder,
        score=counted.score,
        interval=counted.interval,
        decided_share=counted.decided_share,
        pass_at_k=counted.pass_at_k,
        pass_hat_k=counted.pass_hat_k,
        counts=counted.counts,
        categories=counted.categories,
        aui_logic=counted.aui_logic,
        tags=counted.tags,
        difficulties=counted.difficulties,
        process=counted.process,
        tests=tests,
    )
