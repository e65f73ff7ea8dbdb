"""The rows of tables on suites, tests, trials, groups and checks, in plain text; not yet sanitized."""

from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.suite import ScoreGroup, SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports.facts import gate, highlights, labels, set_aside
from ci_evals.reports.facts.comparison import change
from ci_evals.reports.facts.judging import verdicts
from ci_evals.scoring import scores

SUITE_COLUMNS = (
    "score",
    "95 % interval",
    "compared tests",
    "baseline",
    "change",
    "95 % interval of the change",
    "p",
    "tests passed",
)
GROUP_COLUMNS = ("score", "95 % interval", "tests", "passed", "failed", "undecided")
TEST_COLUMNS = ("result", "score", "trials passed", "total time")
TRIAL_COLUMNS = ("ended", "score", "verdicts", "turns", "time")
CHECK_COLUMNS = ("required", "seen", "note")


def of_suite(suite: SuiteResult, became: SuiteComparison | None) -> list[str]:
    """Score, change and passed tests of a suite; empty where a number is missing."""
    passed, tests = set_aside.passed_of(suite.counts), suite.counts.deciding
    if change.too_little_decided(suite):
        return [numbers.NONE, *[""] * (len(SUITE_COLUMNS) - 2), passed]
    score = [numbers.score(suite.score), numbers.interval(suite.interval) if suite.interval else ""]
    if became is None or became.delta is None:
        return [*score, "", "", "", "", "", passed]
    part = became.tests != tests or numbers.score(became.head) != numbers.score(suite.score)
    return [
        *score,
        f"{numbers.score(became.head)} ({became.tests} of {tests})" if part else "",
        numbers.score(became.base),
        numbers.changed(became.base, became.head),
        numbers.change_interval(became.interval, became.base, became.head) if became.interval else "",
        numbers.chance(became.p) if change.shows_p(became) else "",
        passed,
    ]


@dataclass(frozen=True)
class SuiteInBrief:
    """A suite in few words."""

    outcome: TestOutcome
    """The worst that happened to its tests."""
    score: str
    base: str
    change: str
    tests: str


_WORST = (TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.UNDECIDED, TestOutcome.NOT_RUN)


def of_suite_in_brief(suite: SuiteResult, became: SuiteComparison | None) -> SuiteInBrief:
    """Score, baseline, change and passed tests; the score of the compared tests too if it is another one."""
    outcomes = {test.outcome for test in scores.deciding(suite.tests)}
    compared = became if became and became.delta is not None else None
    base = compared.base if compared else became.baseline_score if became else None
    too_little = change.too_little_decided(suite) is not None
    score = numbers.NONE if too_little else numbers.points(suite.score)
    if compared and not too_little and numbers.points(compared.head) != score:
        score = f"{score} ({numbers.points(compared.head)} compared)"
    return SuiteInBrief(
        next((outcome for outcome in _WORST if outcome in outcomes), TestOutcome.PASSED),
        score,
        numbers.points(base),
        numbers.points_changed(compared.base, compared.head) if compared and not too_little else numbers.NONE,
        set_aside.passed_of(suite.counts),
    )


def of_group(group: ScoreGroup) -> list[str]:
    """Score and outcomes of a group of tests."""
    return [
        numbers.score(group.score),
        numbers.interval(group.interval) if group.interval else "",
        str(group.tests),
        str(group.passed),
        str(group.failed),
        str(group.undecided),
    ]


def groups_of(suite: SuiteResult) -> tuple[tuple[str, str, tuple[ScoreGroup, ...]], ...]:
    """The groups that a suite has, each kind with a title and what heads its names."""
    kinds = (
        ("By category", "category", suite.categories),
        ("By AUI Logic", "AUI logic", suite.aui_logic),
        ("By tag", "tag", suite.tags),
        ("By difficulty", "difficulty", suite.difficulties),
    )
    return tuple(kind for kind in kinds if kind[2])


def of_test(test: TestResult) -> list[str]:
    """The result of a test and of its trials."""
    return [
        highlights.result(test),
        numbers.NONE if test.outcome is TestOutcome.ERROR else numbers.score(test.score),
        highlights.trials(test),
        numbers.duration(sum(trial.duration_seconds for trial in test.trials)),
    ]


def of_trial(trial: TrialResult) -> list[str]:
    """The end state and the verdicts of a trial."""
    return [
        labels.spaced(trial.status),
        numbers.score(trial.score),
        verdicts.tally(trial.findings),
        str(len(trial.turns)),
        numbers.duration(trial.duration_seconds),
    ]


def of_check(check: GateCheck) -> list[str]:
    """The requirement of a check and the value it saw."""
    if check.kind is CheckKind.CRITICAL and check.seen is not None and check.note:
        return [gate.required(check), check.note, ""]
    return [gate.required(check), gate.seen(check), check.note or ""]
