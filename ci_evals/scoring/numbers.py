"""The numbers of a test, a suite and a run, each computed from the trials below it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from statistics import fmean, stdev

from ci_evals.domain.base import Interval, Percent, Share
from ci_evals.domain.results.process import ProcessSummary
from ci_evals.domain.results.suite import (
    Counts,
    ScoreGroup,
    Statistics,
    SuiteResult,
    TestOutcome,
    TestResult,
)
from ci_evals.domain.results.trial import TrialResult, points
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome
from ci_evals.scoring import process, scores
from ci_evals.scoring.clusters import interval_of_mean
from ci_evals.scoring.scores import ScoreRule, Validity
from ci_evals.scoring.statistics import pass_at_k, pass_hat_k

_MOST_KINDS = 10_000
"""Values that are kept to be shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNumbers:
    """The numbers of a test, named as in a `TestResult`."""

    score: Percent | None
    pass_rate: float | None
    passed: bool
    outcome: TestOutcome
    flaky: bool
    statistics: Statistics | None
    process: ProcessSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNumbers:
    """The numbers of a suite or a run, named as in a `ScoreSummary`."""

    score: Percent | None
    interval: Interval | None
    decided_share: Share | None
    pass_at_k: dict[int, Share]
    pass_hat_k: dict[int, Share]
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteNumbers(RunNumbers):
    """The numbers of a suite, named as in a `SuiteResult`."""

    categories: tuple[ScoreGroup, ...]
    aui_logic: tuple[ScoreGroup, ...]
    tags: tuple[ScoreGroup, ...]
    difficulties: tuple[ScoreGroup, ...]
    process: ProcessSummary


def of_test(trials: Sequence[TrialResult], planned: int, rule: ScoreRule) -> TestNumbers:
    """The numbers of a test with so many `planned` trials, of which these were played."""
    trial_scores = []
    passed = []
    failed = False
    for trial in trials:
        score = scores.of_trial(trial, rule)
        if score is None:
            continue
        trial_scores.append(score)
        passed.append(scores.all_passed(trial, rule))
        failed = failed or scores.failed(trial)
    outcome = scores.outcome_of(trials, planned, rule)
    statistics = _statistics(tuple(trial_scores), sum(passed))
    return TestNumbers(
        score=statistics.mean if statistics else None,
        pass_rate=sum(passed) / len(passed) if passed else None,
        passed=outcome is TestOutcome.PASSED,
        outcome=outcome,
        flaky=any(passed) and failed,
        statistics=statistics,
        process=process.summary(trials, planned, rule),
    )


@lru_cache(_MOST_KINDS)
def _statistics(trial_scores: tuple[Fraction, ...], successes: int) -> Statistics | None:
    """Equal statistics as one object: most tests of a large run have the same."""
    mean = scores.mean(trial_scores)
    if mean is None:
        return None
    tried = len(trial_scores)
    return Statistics(
        mean=points(mean),
        standard_deviation=stdev(map(float, trial_scores)) if tried > 1 else None,
        min=points(min(trial_scores)),
        max=points(max(trial_scores)),
        pass_at_k={k: pass_at_k(tried, successes, k) for k in range(1, tried + 1)},
        pass_hat_k={k: pass_hat_k(tried, successes, k) for k in range(1, tried + 1)},
    )


def with_test_numbers(test: TestResult, numbers: TestNumbers) -> TestResult:
    """The test with these numbers instead of its own."""
    return replace(
        test,
        score=numbers.score,
        pass_rate=numbers.pass_rate,
        passed=numbers.passed,
        outcome=numbers.outcome,
        flaky=numbers.flaky,
        statistics=numbers.statistics,
        process=numbers.process,
    )


def of_run(tests: Sequence[TestResult], rule: ScoreRule) -> RunNumbers:
    """The numbers of a run with these tests."""
    deciding = scores.deciding(tests)
    score, interval = _score_of(deciding, rule)
    statistics = [test.statistics for test in deciding if test.statistics]
    return RunNumbers(
        score=score,
        interval=interval,
        decided_share=scores.decided_share(deciding, rule),
        pass_at_k=_means_by_k([of_test.pass_at_k for of_test in statistics]),
        pass_hat_k=_means_by_k([of_test.pass_hat_k for of_test in statistics]),
        counts=_counts(tests, deciding, rule),
    )


def _score_of(tests: Sequence[TestResult], rule: ScoreRule) -> tuple[Percent | None, Interval | None]:
    """The mean score of tests, and its interval."""
    test_scores = scores.test_scores(tests, rule)
    return points(scores.mean(test_scores)), interval_of_mean(tests, test_scores, rule)


def _means_by_k(of_tests: Sequence[dict[int, float]]) -> dict[int, float]:
    """The mean over tests, for each k that every test has so many scored trials for."""
    most = min(map(len, of_tests), default=0)
    return {k: fmean(by_k[k] for by_k in of_tests) for k in range(1, most + 1)}


def of_suite(tests: Sequence[TestResult], rule: ScoreRule) -> SuiteNumbers:
    """The numbers of a suite with these tests."""
    whole = of_run(tests, rule)
    deciding = scores.deciding(tests)
    return SuiteNumbers(
        score=whole.score,
        interval=whole.interval,
        decided_share=whole.decided_share,
        pass_at_k=whole.pass_at_k,
        pass_hat_k=whole.pass_hat_k,
        counts=whole.counts,
        categories=_category_groups(deciding, rule),
        aui_logic=_logic_groups(deciding, rule),
        tags=_groups(deciding, rule, lambda test: test.tags),
        difficulties=_groups(deciding, rule, _difficulty),
        process=process.of_tests(tests, rule),
    )


def with_suite_numbers(suite: SuiteResult, numbers: SuiteNumbers) -> SuiteResult:
    """The suite with these numbers instead of its own."""
    return replace(
        suite,
        score=numbers.score,
        interval=numbers.interval,
        decided_share=numbers.decided_share,
        pass_at_k=numbers.pass_at_k,
        pass_hat_k=numbers.pass_hat_k,
        counts=numbers.counts,
        categories=numbers.categories,
        aui_logic=numbers.aui_logic,
        tags=numbers.tags,
        difficulties=numbers.difficulties,
        process=numbers.process,
    )


def _category_groups(tests: Sequence[TestResult], rule: ScoreRule) -> tuple[ScoreGroup, ...]:
    groups = []
    for name, having in _by_name(tests, _categories).items():
        groups.append(group_of(name, having, replace(rule, finding_filter=scores.of_category(name))))
    return tuple(groups)


def _logic_groups(tests: Sequence[TestResult], rule: ScoreRule) -> tuple[ScoreGroup, ...]:
    groups = []
    for name, having in _by_name(tests, _logic).items():
        groups.append(group_of(name, having, replace(rule, finding_filter=scores.of_logic(name))))
    return tuple(groups)


def _groups(
    tests: Sequence[TestResult], rule: ScoreRule, names: Callable[[TestResult], Iterable[str]]
) -> tuple[ScoreGroup, ...]:
    return tuple(group_of(name, having, rule) for name, having in _by_name(tests, names).items())


def _by_name(
    tests: Sequence[TestResult], names: Callable[[TestResult], Iterable[str]]
) -> dict[str, list[TestResult]]:
    """The tests with each name, in the order of the names' first appearance."""
    having: dict[str, list[TestResult]] = {}
    for test in tests:
        for name in dict.fromkeys(names(test)):
            having.setdefault(name, []).append(test)
    return having


def _categories(test: TestResult) -> Iterable[str]:
    for trial in test.trials:
        for finding in trial.findings:
            if finding.category is not None:
                yield finding.category


def _logic(test: TestResult) -> Iterable[str]:
    for trial in test.trials:
        for finding in trial.findings:
            yield from finding.aui_logic


def _difficulty(test: TestResult) -> Iterable[str]:
    if test.difficulty is not None:
        yield test.difficulty


def group_of(name: str, tests: Sequence[TestResult], rule: ScoreRule) -> ScoreGroup:
    """The score of some tests, and the outcomes of their verdicts."""
    having = 0
    outcomes: Counter[Outcome] = Counter()
    for test in tests:
        chosen = [
            finding for trial in test.trials for finding in trial.findings if rule.finding_filter(finding)
        ]
        if chosen:
            having += 1
        outcomes.update(finding.outcome for finding in chosen)
    score, interval = _score_of(tests, rule)
    return ScoreGroup(
        name=name,
        score=score,
        interval=interval,
        tests=having,
        passed=outcomes[Outcome.PASSED],
        failed=outcomes[Outcome.FAILED],
        undecided=outcomes[Outcome.UNDECIDED],
    )


def _taken_trials(test: TestResult) -> int:
    """Return the number of trials of a test that this run did not play."""
    if test.taken_from:
        return len(test.trials)
    return sum(trial.run is not None for trial in test.trials)


def _counts(tests: Sequence[TestResult], deciding: Sequence[TestResult], rule: ScoreRule) -> Counts:
    statuses: Counter[EndState] = Counter()
    outcomes: Counter[Outcome] = Counter()
    validities: Counter[Validity] = Counter()
    scored = 0
    for test in tests:
        for trial in test.trials:
            statuses[trial.status] += 1
            scored += scores.is_scored(trial, rule)
            outcomes.update(finding.outcome for finding in trial.findings)
            # An earlier attempt had its own limits of errors: here its trials are evidence alone.
            if test.quarantine is None and trial.run is None:
                validities[scores.validity(trial, rule)] += 1
    test_outcomes = Counter(test.outcome for test in deciding)
    return Counts(
        tests=len(tests),
        quarantined=len(tests) - len(deciding),
        taken=sum(test.taken_from is not None for test in tests),
        passed=sum(test.passed for test in deciding),
        failed=test_outcomes[TestOutcome.FAILED],
        errors=validities[Validity.ERRORED],
        undecided=test_outcomes[TestOutcome.UNDECIDED],
        flaky=sum(test.flaky for test in deciding),
        trials=statuses.total(),
        taken_trials=sum(_taken_trials(test) for test in tests),
        scored_trials=scored,
        not_run=sum(test.not_run for test in tests),
        invalid_users=validities[Validity.EXCLUDED],
        by_status={state: statuses[state] for state in EndState},
        by_outcome={outcome: outcomes[outcome] for outcome in Outcome},
    )
