"""The input of the gate's rules: a run, its comparison with the baseline, and the parts of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.weakened import Weakened
from ci_evals.gate.selectors import Selector, SelectorKind
from ci_evals.scoring import scores
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.earlier_runs import EarlierRuns
from ci_evals.scoring.comparison.rounds import Look
from ci_evals.scoring.scores import FindingFilter, ScoreRule
from ci_evals.scoring.statistics import ALPHA


@dataclass(frozen=True)
class GateInput:
    """The results of a run, and their comparison with the baseline."""

    results: Results
    comparer: RunComparer | None = None
    """With the baseline, where there is one."""
    no_baseline_reason: str = "there is no baseline"
    """The reason if there is no comparer: nothing to compare with."""
    may_have_baseline: bool = False
    """True if there is no comparer, but there may be a baseline that was not found or not read."""
    weakened: Weakened | None = None
    """The requirements that were dropped since the baseline; None if they were not compared."""
    assumed_score: int | None = None
    """The score that each uncounted trial is given; None for no score at all."""
    only_played: bool = False
    """True to leave out tests without a trial, since no more were wanted."""
    earlier: EarlierRuns | None = None
    """Earlier runs of the base branch, where these decide whether the score fell."""
    look: Look | None = None
    """The limits by which a run in rounds is looked at; None for a run that is looked at once."""
    level: float = ALPHA
    """The highest p of a drop that fails a run that is looked at once."""

    @property
    def alpha(self) -> float:
        """The highest p of a drop that fails."""
        return self.look.fails_at if self.look else self.level

    @property
    def offline(self) -> bool:
        """True if no judge was wanted."""
        return self.results.run.offline


def why_not_compared(given: GateInput) -> str | None:
    """The reason why nothing can be compared with the baseline; None if something can."""
    comparer = given.comparer
    if comparer is None:
        return given.no_baseline_reason
    if comparer.pairs and comparer.overall_change().tests:
        return None
    reasons = [*comparer.reasons, *(reason for suite in comparer.suites for reason in suite.reasons)]
    return "; ".join(dict.fromkeys(reasons)) or comparer.nothing_in_common


class Scope(NamedTuple):
    """The part of the run that a check is about."""

    results: Results
    suite_number: int | None = None
    test_number: int | None = None
    selector: Selector | None = None

    @property
    def suite(self) -> SuiteResult | None:
        """The suite, if the check is about one suite or one of its tests."""
        if self.suite_number is None:
            return None
        return self.results.suites[self.suite_number - 1]

    @property
    def test(self) -> TestResult | None:
        """The test, if the check is about one."""
        if self.suite is None or self.test_number is None:
            return None
        return self.suite.tests[self.test_number - 1]

    @property
    def finding_filter(self) -> FindingFilter:
        """The findings that the check is about."""
        if self.selector is None:
            return scores.all_findings
        return self.selector.finding_filter

    @property
    def label(self) -> str:
        """A name for people that no other suite or test has, such as `suite:Refunds`; empty for the run."""
        if self.suite is None:
            return str(self.selector or "")
        suite = self.suite.name
        if sum(other.name == suite for other in self.results.suites) > 1:
            suite = f"{suite} ({self.suite.file})"
        if self.test is None:
            return f"{SelectorKind.SUITE}:{suite}"
        if sum(other.name == self.test.name for other in self.results.tests) > 1:
            return f"{SelectorKind.TEST}:{suite} › {self.test.name}"
        return f"{SelectorKind.TEST}:{self.test.name}"

    def check(self, kind: CheckKind, name: str, required: float | None, **fields: Any) -> GateCheck:
        """Return a check of this part; `fields` are what was seen."""
        identity = {
            "name": name,
            "kind": kind,
            "required": required,
            "suite": self.suite.name if self.suite else None,
            "suite_number": self.suite_number,
            "test": self.test.name if self.test else None,
            "test_number": self.test_number,
            "selector": str(self.selector) if self.selector else None,
        }
        return GateCheck(**identity | {"seen": None, "passed": None} | fields)


class TestInScope(NamedTuple):
    """A test that decides, and where it is."""

    scope: Scope
    suite: SuiteResult
    test: TestResult


class GatedRun:
    """A run whose parts can be selected. Tests in quarantine are in none of them."""

    def __init__(self, given: GateInput) -> None:
        self.given = given
        self.results = given.results
        self.whole = Scope(given.results)
        self.tests = list(self._deciding())

    def _deciding(self) -> Iterator[TestInScope]:
        for number, suite in enumerate(self.results.suites, start=1):
            for index, test in enumerate(suite.tests, start=1):
                if test.quarantine is None and (test.trials or not self.given.only_played):
                    yield TestInScope(Scope(self.results, number, index), suite, test)

    def selected(self, selector: Selector) -> Iterator[Scope]:
        """Yield the parts that a selector names: each suite, and each test, of that name by itself."""
        tests = [one for one in self.tests if selector.takes(one.suite.name, one.test)]
        whole = self.whole._replace(selector=selector)
        if selector.kind is SelectorKind.TEST and tests:
            for one in tests:
                yield one.scope._replace(selector=selector)
        elif selector.kind is SelectorKind.SUITE and tests:
            for number in dict.fromkeys(one.scope.suite_number for one in tests):
                yield whole._replace(suite_number=number)
        else:
            yield whole

    def tests_in(self, scope: Scope) -> list[TestInScope]:
        """Return the tests of a part."""
        return [
            one
            for one in self.tests
            if scope.suite_number in {None, one.scope.suite_number}
            and scope.test_number in {None, one.scope.test_number}
            and (scope.selector is None or scope.selector.takes(one.suite.name, one.test))
        ]

    def only_judged(self, tests: Sequence[TestResult], finding_filter: FindingFilter) -> bool:
        """Return whether all that these tests want is judged, and no judge was wanted."""
        rule = ScoreRule(self.given.offline)
        findings = [
            finding
            for test in tests
            for trial in test.trials
            for finding in trial.findings
            if finding_filter(finding)
        ]
        return bool(findings) and all(map(rule.not_judged, findings))
