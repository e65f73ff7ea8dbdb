"""The numbers of a run: from its trials to the scores and counts of tests, suites and the whole."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, NamedTuple

from ci_evals.domain.actions import LogicPart
from ci_evals.domain.checks.evaluation import Graded
from ci_evals.domain.plan import Plan, PlannedSuite, SuiteModels
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.judge import VoteAgreement
from ci_evals.domain.results.process import Coverage, ProcessSummary
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.suite import (
    Counts,
    ScoreGroup,
    ScoreSummary,
    Statistics,
    SuiteResult,
    TestOutcome,
    TestResult,
)
from ci_evals.domain.results.taken import TakenFrom, TakenTest, TakenTests
from ci_evals.domain.results.trial import TrialResult, points
from ci_evals.domain.results.usage import Latency, Usage
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome
from ci_evals.scoring import process, scores
from ci_evals.scoring.agreement.votes import vote_agreement
from ci_evals.scoring.coverage import coverage_of, wanted_parts
from ci_evals.scoring.scores import Alike, ScoreRule
from ci_evals.scoring.simulated_users import user_checks
from ci_evals.scoring.statistics import mean_interval, pass_at_k, pass_hat_k
from ci_evals.scoring.usage import latency_of, usage_of


@dataclass(frozen=True)
class SuiteFacts:
    """The facts of a suite's report besides its numbers."""

    folder: str
    models: SuiteModels = field(default_factory=SuiteModels)


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


def score(
    plan: Plan,
    played: Sequence[TrialResult | None],
    facts: Sequence[SuiteFacts],
    rule: ScoreRule,
    *,
    taken: TakenTests = MappingProxyType({}),
    prices: PriceTable = NO_PRICES,
    shown: Callable[[str], str] = str,
) -> Scorecard:
    """The scorecard of a run. `played` is in the order of `plan.trials`, `facts` in that of its suites.

    `taken` has the tests that the plan does not play.
    """
    trials: dict[tuple[int, int], list[TrialResult]] = {}
    for trial, result in zip(plan.trials, played, strict=True):
        played_trials = trials.setdefault((trial.suite, trial.test), [])
        if result is not None:
            played_trials.append(result)
    suites = []
    for s, (planned, fact) in enumerate(zip(plan.suites, facts, strict=True)):
        own = [
            _TestTrials.of(taken[planned.file, test.name])
            if test.name in planned.reused
            else _TestTrials(trials.get((s, t), ()), plan.played_of(planned, test))
            for t, test in enumerate(planned.tests)
        ]
        tests = tuple(_test(planned, t, own[t], rule) for t in range(len(own)))
        suites.append(_suite(planned, fact, tests, rule))
    usage = usage_of((result for result in played if result is not None), prices)
    return total(suites, usage, rule, wanted_parts(plan, shown))


def total(
    suites: Sequence[SuiteResult],
    usage: Usage,
    rule: ScoreRule,
    parts: frozenset[LogicPart] = frozenset(),
) -> Scorecard:
    """The scorecard of suites whose own numbers are there; `parts` of the agent's logic are to fire."""
    tests = tuple(test for suite in suites for test in suite.tests)
    if len(suites) == 1:  # of many tests it takes seconds to count the same again
        summary = {name: getattr(suites[0], name) for name in ScoreSummary.model_fields}
        processes = suites[0].process
    else:
        summary, processes = _summary(scores.alike(tests), rule), process.of_tests(tests, rule)
    return Scorecard(
        **summary,
        usage=usage,
        latency=latency_of(trial for test in tests for trial in test.trials if not test.taken_from),
        process=process.of_run(processes, summary["score"], usage, summary["counts"].played_trials),
        coverage=coverage_of(suites, parts),
        user_checks=user_checks(tests),
        vote_agreement=vote_agreement(suites),
        suites=tuple(suites),
    )


def recounted(suite: SuiteResult, rule: ScoreRule) -> SuiteResult:
    """The suite with every number computed again from its trials."""
    tests = tuple(
        test.model_copy(
            update={
                "trials": (trials := _compared(test.trials, test.optimal_tools)),
                **numbers_of_test(trials, len(trials) + test.not_run, rule),
            }
        )
        for test in suite.tests
    )
    return suite.model_copy(update=numbers_of_suite(tests, rule))


class _TestTrials(NamedTuple):
    played: Sequence[TrialResult]
    planned: int
    source: TakenFrom | None = None
    """The run that they are taken from, if none was played here."""

    @classmethod
    def of(cls, taken: TakenTest) -> "_TestTrials":
        return cls(taken.trials, len(taken.trials), taken.source)


def _test(planned: PlannedSuite, index: int, own: _TestTrials, rule: ScoreRule) -> TestResult:
    test = planned.tests[index]
    trials, loops = _compared(own.played, test.optimal_tools), own.planned
    result = TestResult(
        name=test.name,
        tags=test.tags,
        difficulty=test.difficulty,
        critical=test.critical,
        min_score=test.min_score,
        quarantine=test.quarantine,
        taken_from=own.source,
        line=planned.test_lines[index],
        digest=planned.test_digests[index],
        user_info=test.user_info,
        guidelines=test.guidelines,
        turns=test.turns,
        optimal_tools=test.optimal_tools,
        rubrics={
            number: evaluation.whole_rubric
            for number, evaluation in enumerate(test.evaluations, 1)
            if isinstance(evaluation, Graded)
        },
        trials=trials,
        not_run=loops - len(trials),
        **numbers_of_test(trials, loops, rule),
    )
    for record in (result, result.statistics, result.process, result.process.times):
        if record:
            record.slim()
    return result


def _compared(trials: Sequence[TrialResult], optimal: Sequence[str] | None) -> tuple[TrialResult, ...]:
    """The trials compared with the optimal workflows of their test, which may have changed meanwhile."""
    return tuple(process.compared(trial, optimal) for trial in trials)


def numbers_of_test(trials: Sequence[TrialResult], planned: int, rule: ScoreRule) -> dict[str, Any]:
    """The numbers of a test, by the names of their fields."""
    scored = [(trial, score) for trial in trials if (score := scores.of_trial(trial, rule)) is not None]
    passed, of_each = [scores.all_passed(trial, rule) for trial, _ in scored], [score for _, score in scored]
    outcome = scores.outcome_of(trials, planned, rule)
    return {
        "score": points(scores.mean(of_each)),
        "pass_rate": sum(passed) / len(passed) if passed else None,
        "passed": outcome is TestOutcome.PASSED,
        "outcome": outcome,
        "flaky": any(passed) and any(scores.failed(trial) for trial, _ in scored),
        "statistics": _statistics(of_each, passed),
        "process": process.summary(trials, planned, rule),
    }


def _statistics(of_each: Sequence[Fraction], passed: Sequence[bool]) -> Statistics | None:
    if not of_each:
        return None
    shown = [float(score) for score in of_each]
    tried, successes = len(passed), sum(passed)
    return Statistics(
        mean=points(scores.mean(of_each)),
        standard_deviation=stdev(shown) if tried > 1 else None,
        min=points(min(of_each)),
        max=points(max(of_each)),
        pass_at_k={k: pass_at_k(tried, successes, k) for k in range(1, tried + 1)},
        pass_hat_k={k: pass_hat_k(tried, successes, k) for k in range(1, tried + 1)},
    )


def _passing(tests: Alike) -> dict[str, dict[int, float]]:
    """pass@k and pass^k over tests: the mean, for each k that every test has so many scored trials for."""
    statistics = [(test.statistics, number) for test, number in tests if test.statistics]
    most = min((len(own.pass_hat_k) for own, _ in statistics), default=0)

    def means(of: Callable[[Statistics], dict[int, float]]) -> dict[int, float]:
        by_k = [[(of(own)[k], number) for own, number in statistics] for k in range(1, most + 1)]
        return {k: fmean(scores.repeated(counted)) for k, counted in enumerate(by_k, 1)}

    return {"pass_at_k": means(lambda own: own.pass_at_k), "pass_hat_k": means(lambda own: own.pass_hat_k)}


def _score_of(tests: Alike, rule: ScoreRule) -> dict[str, Any]:
    """The mean score of tests, and its interval."""
    means, clusters = scores.means_of(tests, rule), None
    if any(test.cluster for test, _ in tests):
        scored = (test for test, _ in tests if scores.of_trials(test, rule))
        clusters = [test.cluster or (test.name,) for test in scored]
    return {"score": points(means.mean), "interval": mean_interval(means.floats, clusters)}


def _summary(tests: Alike, rule: ScoreRule) -> dict[str, Any]:
    """The numbers of a suite or a run."""
    deciding = _deciding(tests)
    return {
        **_score_of(deciding, rule),
        "decided_share": scores.decided_share(deciding, rule),
        **_passing(deciding),
        "counts": _counts(tests, rule),
    }


def _deciding(tests: Alike) -> Alike:
    return [(test, number) for test, number in tests if scores.deciding([test])]


def _suite(
    planned: PlannedSuite, facts: SuiteFacts, tests: tuple[TestResult, ...], rule: ScoreRule
) -> SuiteResult:
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
        **numbers_of_suite(tests, rule),
    )


def numbers_of_suite(tests: tuple[TestResult, ...], rule: ScoreRule) -> dict[str, Any]:
    """The numbers of a suite, by the names of their fields, and its tests."""
    every = scores.alike(tests)
    deciding = _deciding(every)
    logic = _names(
        code for test, _ in deciding for t in test.trials for f in t.findings for code in f.aui_logic
    )
    difficulties = _names(test.difficulty for test, _ in deciding)
    return {
        **_summary(every, rule),
        "categories": tuple(
            _group(n, own, replace(rule, finding_filter=scores.of_category(n)))
            for n, own in _by(_categories, deciding).items()
        ),
        "aui_logic": tuple(
            _group(n, deciding, replace(rule, finding_filter=scores.of_logic(n))) for n in logic
        ),
        "tags": tuple(_group(n, own, rule) for n, own in _by(lambda test: test.tags, deciding).items()),
        "difficulties": tuple(
            _group(n, [own for own in deciding if own[0].difficulty == n], rule) for n in difficulties
        ),
        "process": process.of_tests(tests, rule),
        "tests": tests,
    }


def _by(
    names: Callable[[TestResult], Iterable[str]], tests: Alike
) -> dict[str, list[tuple[TestResult, int]]]:
    """The tests with each name, in the order of the names' first appearance."""
    found: dict[str, list[tuple[TestResult, int]]] = {}
    for test, number in tests:
        for name in dict.fromkeys(names(test)):
            found.setdefault(name, []).append((test, number))
    return found


def _categories(test: TestResult) -> list[str]:
    return _names(finding.category for trial in test.trials for finding in trial.findings)


def _names(names: Iterable[str | None]) -> list[str]:
    """Each name once, in the order of first appearance in the suite."""
    return list(dict.fromkeys(name for name in names if name is not None))


def _group(name: str, tests: Alike, rule: ScoreRule) -> ScoreGroup:
    having = 0
    outcomes: Counter[Outcome] = Counter()
    for test, number in tests:
        of_test = (finding for trial in test.trials for finding in trial.findings)
        chosen = [*filter(rule.finding_filter, of_test)]
        having += number * bool(chosen)
        for finding in chosen:
            outcomes[finding.outcome] += number
    return ScoreGroup(
        name=name,
        **_score_of(tests, rule),
        tests=having,
        passed=outcomes[Outcome.PASSED],
        failed=outcomes[Outcome.FAILED],
        undecided=outcomes[Outcome.UNDECIDED],
    )


def _counts(tests: Alike, rule: ScoreRule) -> Counts:
    statuses: Counter[EndState] = Counter()
    outcomes: Counter[Outcome] = Counter()
    validities: Counter[scores.Validity] = Counter()
    scored = 0
    for test, number in tests:
        for trial in test.trials:
            statuses[trial.status] += number
            scored += number * (scores.of_trial(trial, rule) is not None)
            for finding in trial.findings:
                outcomes[finding.outcome] += number
            if test.quarantine is None:
                validities[scores.validity(trial, rule)] += number
    deciding = _deciding(tests)
    return Counts(
        tests=sum(number for _, number in tests),
        quarantined=sum(number for test, number in tests if test.quarantine),
        taken=sum(number for test, number in tests if test.taken_from),
        passed=sum(number for test, number in deciding if test.passed),
        failed=sum(number for test, number in deciding if test.outcome is TestOutcome.FAILED),
        errors=validities[scores.Validity.ERRORED],
        undecided=sum(number for test, number in deciding if test.outcome is TestOutcome.UNDECIDED),
        flaky=sum(number for test, number in deciding if test.flaky),
        trials=statuses.total(),
        taken_trials=sum(number * len(test.trials) for test, number in tests if test.taken_from),
        scored_trials=scored,
        not_run=sum(number * test.not_run for test, number in tests),
        invalid_users=validities[scores.Validity.EXCLUDED],
        by_status={state: statuses[state] for state in EndState},
        by_outcome={outcome: outcomes[outcome] for outcome in Outcome},
    )
