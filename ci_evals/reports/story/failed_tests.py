"""The tests that fail: what failed, why, and the turn that shows it. Not yet sanitized."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import planned_turns
from ci_evals.domain.transcript import END_REASONS, Turn
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.reports.story import highlights, reliability
from ci_evals.reports.story.comparison import change
from ci_evals.reports.story.labels import OUTCOMES, RunOutcome

CONFIRMED = "confirmed"
"""The first word of the remark on a confirmed drop."""


@dataclass(frozen=True)
class FailedCriterion:
    """A criterion that failed, with the first trial that shows it."""

    finding: Finding
    trial: TrialResult
    times: int
    """In how many trials it failed."""
    trials: int
    """In how many trials it was decided."""

    @property
    def turn(self) -> Turn | None:
        """The turn that shows it."""
        return self.trial.turn_of(self.finding)


@dataclass(frozen=True)
class Quotation:
    """A turn that shows a failure."""

    turn: int
    trial: int | None
    """None if there is but one."""
    user: str
    agent: str


@dataclass(frozen=True)
class FailedTest:
    """A test that fails, as this run has it or, if it does not, as the comparison has it."""

    suite: str
    name: str
    test: TestResult | None
    change: TestChange | None = None
    file: str | None = None
    """The suite's file, as the results name it; None if no repository has it."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Reasons why criteria are less reliable, by criterion."""
    of_other_tool: bool = False
    """True of a test of another tool's results: its reason may be a message and a whole traceback."""
    in_failed_run: bool = False
    """True if the run failed: it also may have no verdict, or be reported only."""

    @property
    def fails_run(self) -> bool:
        """True if the run fails by this test alone."""
        test = self.test
        return self.in_failed_run and test is not None and test.critical and test.quarantine is None

    @cached_property
    def criteria(self) -> tuple[FailedCriterion, ...]:
        """The criteria that failed, first those that failed in most trials."""
        found = failed_criteria(self.test) if self.test else ()
        return tuple(sorted(found, key=lambda one: -one.times / one.trials))

    @property
    def early_end(self) -> str:
        """Why its conversation ended before all lines were sent; empty if none did.

        It is that of the trial that shows the first failed criterion.
        """
        if self.test is None or not self.test.trials:
            return ""
        trial = self.criteria[0].trial if self.criteria else self.test.trials[0]
        return early_end(self.test, trial)

    @property
    def first_reason(self) -> tuple[str, str] | None:
        """The first criterion that failed, and why."""
        if self.criteria:
            finding = self.criteria[0].finding
            return finding.criterion, self.reason(finding)
        evidence = self.change.evidence if self.change else None
        return (evidence.criterion, evidence.reason) if evidence else None

    def reason(self, finding: Finding) -> str:
        """The reason where there is little room: of another tool's results its first paragraph."""
        return finding.reason.partition("\n\n")[0] if self.of_other_tool else finding.reason

    @property
    def outcome(self) -> TestOutcome:
        """The test's outcome in this run."""
        return self.test.outcome if self.test else TestOutcome.FAILED

    @property
    def scores(self) -> str:
        """`79.9 → 70.0`; empty if it was not compared."""
        return change.scores(self.change) if self.change else ""

    @property
    def trials_passed(self) -> str:
        """`2 of 3 trials passed`; empty of a single one, or if none failed."""
        test = self.test
        if test is None or len(test.trials) == 1 or self.outcome is not TestOutcome.FAILED:
            return ""
        return f"{highlights.passes(test)} trials passed"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the test; a confirmed drop comes first."""
        test, became = self.test, self.change
        found = [
            CONFIRMED + (f" ({numbers.p_value(became.p)})" if became.p is not None else "")
            if became and became.confirmed
            else None,
            self.trials_passed,
            f"critical test{', so this alone fails the run' if self.fails_run else ''}"
            if test and test.critical
            else None,
            OUTCOMES[self.outcome].words if self.outcome is not TestOutcome.FAILED else None,
        ]
        return tuple(remark for remark in found if remark)

    def quotations(self, criteria: Sequence[FailedCriterion]) -> tuple[Quotation, ...]:
        """The turns that show these criteria: each turn once, whichever trial shows it first."""
        found: dict[int, Quotation] = {}
        several = self.test is not None and len(self.test.trials) > 1
        for one in criteria:
            if (turn := one.turn) and turn.index not in found:
                trial = one.trial.index if several else None
                found[turn.index] = Quotation(turn.index, trial, turn.user, turn.agent)
        evidence = self.change.evidence if self.change else None
        if not criteria and evidence and evidence.turn is not None:
            messages = evidence.user or "", evidence.agent or ""
            return (Quotation(evidence.turn, evidence.trial, *messages),)
        return tuple(found.values())


def early_end(test: TestResult, trial: TrialResult) -> str:
    """`ended after turn 1 of 3: the agent handed over to a person; 2 lines were never sent`.

    Empty if all fixed lines were sent, or if the trial broke off, which its error explains.
    """
    planned = planned_turns(test.turns)
    sent = len(trial.turns)
    unsent = sum(turn.fixed for turn in planned[sent:])
    if not unsent or not trial.complete:
        return ""
    lines = "1 line was" if unsent == 1 else f"{unsent} lines were"
    turn = f"ended after turn {sent} of {len(planned)}" if sent else "ended before the first turn"
    return f"{turn}: {END_REASONS[trial.status]}; {lines} never sent"


def failed_criteria(test: TestResult) -> tuple[FailedCriterion, ...]:
    """The criteria of a test that failed in some trial, in the order in which the suite has them.

    Trials that were cut off are left out: what they lack does not make the test fail.
    """
    by_criterion: dict[tuple[int, str], list[tuple[Finding, TrialResult]]] = defaultdict(list)
    for trial in (trial for trial in test.trials if trial.complete):
        for position, finding in enumerate(trial.findings):
            by_criterion[position, finding.criterion].append((finding, trial))
    out = []
    for _, found in sorted(by_criterion.items(), key=lambda item: item[0]):
        failed = [(finding, trial) for finding, trial in found if finding.fails]
        decided = sum(finding.fails or finding.outcome is Outcome.PASSED for finding, _ in found)
        if failed:
            finding, trial = failed[0]
            out.append(FailedCriterion(finding, trial, times=len(failed), trials=decided))
    return tuple(out)


def newly_failing(results: Results) -> tuple[FailedTest, ...]:
    """The tests that passed in the baseline and do not now: critical ones first, then the worst."""
    comparison = results.comparison
    if comparison is None:
        return ()
    not_passed: dict[tuple[str, str], deque[tuple[SuiteResult, TestResult]]] = defaultdict(deque)
    for suite in results.suites:
        for test in suite.tests:
            if test.outcome is not TestOutcome.PASSED:
                not_passed[suite.name, test.name].append((suite, test))
    warnings = reliability.CriterionWarnings(results)
    failed_run = highlights.run_outcome(results) is RunOutcome.FAILED
    out = []
    for became in change.failing(comparison):
        known = not_passed[became.suite, became.name]
        warned = warnings.of_test(became.suite, became.name)
        of, result = known.popleft() if known else (None, None)
        out.append(
            FailedTest(
                became.suite,
                became.name,
                result,
                became,
                file=highlights.file_of(of) if of else None,
                warnings=warned,
                of_other_tool=of is not None and of.of_other_tool,
                in_failed_run=failed_run,
            )
        )
    return _critical_first(out)


def others(results: Results, shown: Sequence[FailedTest]) -> tuple[FailedTest, ...]:
    """The failed tests that are not among `shown`, critical ones first."""
    known, warnings = {id(failed.test) for failed in shown}, reliability.CriterionWarnings(results)
    return _critical_first(
        FailedTest(
            suite.name,
            test.name,
            test,
            file=highlights.file_of(suite),
            warnings=warnings.of_test(suite.name, test.name),
            of_other_tool=suite.of_other_tool,
            in_failed_run=highlights.run_outcome(results) is RunOutcome.FAILED,
        )
        for suite, test in highlights.tests_of(results, TestOutcome.FAILED)
        if id(test) not in known
    )


def _critical_first(tests: Iterable[FailedTest]) -> tuple[FailedTest, ...]:
    """The tests in an order that puts critical ones first: each fails the gate alone."""
    return tuple(sorted(tests, key=lambda failed: not (failed.test and failed.test.critical)))
