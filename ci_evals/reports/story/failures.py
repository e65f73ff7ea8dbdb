"""What failed: tests with their criteria, reasons and turns, and the errors of trials. Not yet sanitized."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import planned_turns
from ci_evals.domain.transcript import END_REASONS, EndState, FailureCause, Turn
from ci_evals.domain.verdict import NOT_WANTED, Cause, Finding, Outcome
from ci_evals.reports.story import changes, gate, test_words
from ci_evals.reports.story.judging import CriterionWarnings
from ci_evals.reports.story.outcome_labels import AT_FAULT, CAUSES, ERRORS, OUTCOMES, RunOutcome
from ci_evals.reports.story.phrases import spaced

CONFIRMED = "confirmed"
"""The first word of the remark on a confirmed drop."""
_MOST_SUITES = 5
"""Suites that are named with their errors."""
_Tests = list[tuple[SuiteResult, TestResult]]
_Error = tuple[EndState, FailureCause | None, str]
_Undecided = tuple[Cause | None, str]


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
    base: str = "the baseline"
    """The other side of the comparison, in a sentence."""
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
    def reasons(self) -> frozenset[tuple[str, str, str]]:
        """The criteria that failed, each with its reason and warning; empty if none is known."""
        findings = [failed.finding for failed in self.criteria]
        return frozenset(
            (each.criterion, self.reason(each), self.warnings.get(each.criterion, "")) for each in findings
        )

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

    def divergence(self, show: Callable[[str], str] = str) -> str:
        """The first divergence of its conversation from the baseline's, in a sentence; empty if unknown.

        `show` writes a name. Of several trials it names those that are compared.
        """
        first = self.change.first_divergence if self.change else None
        if first is None:
            return ""
        several = self.test is not None and len(self.test.trials) > 1
        return changes.divergence_sentence(first, show, several=several, base=self.base)

    @property
    def outcome(self) -> TestOutcome:
        """The test's outcome in this run."""
        return self.test.outcome if self.test else TestOutcome.FAILED

    @property
    def scores(self) -> str:
        """`79 → 70`; empty if it was not compared."""
        return changes.scores(self.change) if self.change else ""

    @property
    def trials_passed(self) -> str:
        """`2 of 3 trials passed`; empty of a single one, or if none failed."""
        test = self.test
        if test is None or len(test.trials) == 1 or self.outcome is not TestOutcome.FAILED:
            return ""
        return f"{test_words.passes(test)} trials passed"

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


def by_reasons(tests: Iterable[FailedTest]) -> Iterator[tuple[FailedTest, FailedTest | None]]:
    """Yield the tests, those together that failed by the same criteria for the same reasons.

    Each but the first of these comes with that one, whose story is its own too.
    """
    groups: dict[object, list[FailedTest]] = {}
    for test in tests:
        key = (test.reasons, test.early_end) if test.reasons else id(test)
        groups.setdefault(key, []).append(test)
    for first, *others in groups.values():
        yield first, None
        yield from ((other, first) for other in others)


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


def newly_failing(results: Results, warnings: CriterionWarnings) -> tuple[FailedTest, ...]:
    """The tests that passed in the baseline and do not now: critical ones first, then the worst."""
    comparison = results.comparison
    if comparison is None:
        return ()
    not_passed: dict[tuple[str, str], deque[tuple[SuiteResult, TestResult]]] = defaultdict(deque)
    for suite in results.suites:
        for test in suite.tests:
            if test.outcome is not TestOutcome.PASSED:
                not_passed[suite.name, test.name].append((suite, test))
    failed_run = gate.run_outcome(results) is RunOutcome.FAILED
    out = []
    for became in changes.newly_failing(comparison):
        known = not_passed[became.suite, became.name]
        warned = warnings.of_test(became.suite, became.name)
        of, result = known.popleft() if known else (None, None)
        out.append(
            FailedTest(
                became.suite,
                became.name,
                result,
                became,
                file=test_words.file_of(of) if of else None,
                warnings=warned,
                of_other_tool=of is not None and of.of_other_tool,
                base=changes.base_name(results),
                in_failed_run=failed_run,
            )
        )
    return _critical_first(out)


def other_failed(
    results: Results, shown: Sequence[FailedTest], warnings: CriterionWarnings
) -> tuple[FailedTest, ...]:
    """The failed tests that are not among `shown`, critical ones first."""
    known = {id(failed.test) for failed in shown}
    return _critical_first(
        FailedTest(
            suite.name,
            test.name,
            test,
            file=test_words.file_of(suite),
            warnings=warnings.of_test(suite.name, test.name),
            of_other_tool=suite.of_other_tool,
            base=changes.base_name(results),
            in_failed_run=gate.run_outcome(results) is RunOutcome.FAILED,
        )
        for suite, test in test_words.tests_of(results, TestOutcome.FAILED)
        if id(test) not in known
    )


def _critical_first(tests: Iterable[FailedTest]) -> tuple[FailedTest, ...]:
    """The tests in an order that puts critical ones first: each fails the gate alone."""
    return tuple(sorted(tests, key=lambda failed: not (failed.test and failed.test.critical)))


class Became(Enum):
    """The change of a test's outcome since the baseline."""

    BROKE = "broke"
    """It passed in the baseline, and fails now."""
    UNJUDGED = "not judged"
    """It passed in the baseline, and nothing failed now; a trial broke off or could not be judged."""
    FIXED = "fixed"
    """It failed in the baseline, and passes now."""
    DROPPED = "dropped"
    """Its score fell far, without such a change of its outcome."""


def became(results: Results, news: "News") -> dict[tuple[str, str], Became]:
    """The tests whose outcome changed since the baseline, by suite and name."""
    comparison = results.comparison
    if comparison is None:
        return {}
    unjudged = {(test.suite, test.name) for test in news.unjudged}
    failing = {
        (test.suite, test.name): Became.UNJUDGED if (test.suite, test.name) in unjudged else Became.BROKE
        for test in comparison.regressed
    }
    dropped = {(test.suite, test.name): Became.DROPPED for test in comparison.suspects}
    fixed = {(test.suite, test.name): Became.FIXED for test in comparison.fixed}
    return dropped | fixed | failing


@dataclass(frozen=True)
class News:
    """The tests worth showing, each in one list. Those that only passed again are in none."""

    broke: tuple[FailedTest, ...] = ()
    """Passed in the baseline and fail now; critical ones first, then the worst."""
    unjudged: tuple[FailedTest, ...] = ()
    """Passed in the baseline; now a trial broke off or could not be judged."""
    failed: tuple[FailedTest, ...] = ()
    """Fail and have no counterpart in the baseline: all that fail if there is no baseline."""
    worse: tuple[FailedTest, ...] = ()
    """Failed in the baseline, fail now, and fell by 15 points or more."""
    failed_before: tuple[FailedTest, ...] = ()
    """Failed in the baseline and fail now, much as before."""
    fixed: tuple[TestChange, ...] = ()
    dropped: tuple[TestChange, ...] = ()
    """Fell by 15 points or more, and are in no other list."""

    @property
    def to_look_at(self) -> tuple[FailedTest, ...]:
        """The tests to look at first: those that fail, but for those that failed before."""
        return *self.broke, *self.worse, *self.failed


def news(results: Results, warnings: CriterionWarnings) -> News:
    """The tests worth showing; `warnings`: why criteria are less reliable."""
    comparison = results.comparison
    newly = newly_failing(results, warnings)
    others = other_failed(results, newly, warnings)
    if results.gate.reasons:  # tests that ended in an error are named with what kept the run from a verdict
        newly, others = (tuple(filter(_has_score, found)) for found in (newly, others))
    if comparison is None:
        return News(failed=others)
    uncompared = {(test.suite, test.name) for test in (*comparison.new, *comparison.changed)}
    if base := results.base_side:  # it may not have played some of the tests
        uncompared |= {
            (suite.name, test.name) for suite in base.suites for test in suite.tests if not test.trials
        }
    fell = {(test.suite, test.name): test for test in changes.suspects(comparison)}
    fresh, worse, before = [], [], []
    for test in others:
        name = (test.suite, test.name)
        if comparison.delta is None or name in uncompared:
            fresh.append(test)
        elif change := fell.get(name):
            worse.append(replace(test, change=change))
        else:
            before.append(test)
    named = {(test.suite, test.name) for test in worse}
    return News(
        broke=tuple(test for test in newly if test.outcome is TestOutcome.FAILED),
        unjudged=tuple(test for test in newly if test.outcome is not TestOutcome.FAILED),
        failed=tuple(fresh),
        worse=tuple(worse),
        failed_before=tuple(before),
        fixed=comparison.fixed,
        dropped=tuple(test for key, test in fell.items() if key not in named),
    )


def _has_score(failed: FailedTest) -> bool:
    return failed.test is None or failed.test.score is not None


@dataclass(frozen=True)
class TrialErrors:
    """Errors of trials, or undecided criteria, with one cause."""

    what: str
    """`24 trials failed`, `2 criteria undecided`."""
    reason: str
    outcome: TestOutcome
    """The outcome of an affected test, if nothing worse happens to it."""
    affected: tuple[tuple[SuiteResult, TestResult], ...]
    """In the order of the run."""
    number: int = 0
    """The number of trials or criteria, by `noun`."""
    noun: str = "trial"
    """`trial` or `criterion`."""
    at_fault: str = ""
    """Where to look first; empty if that is not known."""
    by_suite: str = ""
    """`Trials by suite: all 15 of Delivery; none of Refunds`; empty of a single suite."""

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the affected tests."""
        return tuple(test.name for _, test in self.affected)


def errors_by_cause(suites: Sequence[SuiteResult]) -> tuple[TrialErrors, ...]:
    """Errors and undecided criteria, each cause once; a missing judge is a note of its own."""
    errors: dict[_Error, _Tests] = {}
    tries: dict[_Error, list[int]] = {}
    undecided: dict[_Undecided, _Tests] = {}
    for suite in suites:
        for test in suite.tests:
            own_errors, own_undecided = _of_test(test)
            for error, number in own_errors:
                errors.setdefault(error, []).append((suite, test))
                tries.setdefault(error, []).append(number)
            for verdict in own_undecided:
                undecided.setdefault(verdict, []).append((suite, test))
    out = []
    for (status, cause, reason), tests in errors.items():
        what = _after_tries(ERRORS[status], tries[status, cause, reason])
        found = _grouped(tests, "trial", what, reason, TestOutcome.ERROR)
        at_fault = AT_FAULT.get(cause or status, "")
        out.append(replace(found, at_fault=at_fault, by_suite=_by_suite(tests, suites)))
    for (why, reason), tests in undecided.items():
        text = _why_undecided(why, reason)
        found = _grouped(tests, "criterion", "undecided", text, TestOutcome.UNDECIDED)
        out.append(replace(found, at_fault=AT_FAULT.get(why, "") if why else ""))
    not_run = [(suite, test) for suite in suites for test in suite.tests if test.not_run]
    return (*out, *_trials_not_run(not_run))


def _by_suite(tests: _Tests, suites: Sequence[SuiteResult]) -> str:
    """The part of each suite's trials, those first that are affected most; `tests` has one for each trial."""
    if len(suites) < 2:
        return ""
    counts = Counter(id(suite) for suite, _ in tests)
    parts = []
    for suite in suites:
        number, played = counts[id(suite)], suite.counts.played_trials
        if not number:
            part = "none"
        elif number == played:
            part = f"all {played:,}"
        else:
            part = f"{number:,} of {played:,}"
        if played:
            parts.append((number / played, f"{part} of {suite.name}"))
    parts.sort(key=lambda one: -one[0])
    return f"Trials by suite: {numbers.listed([text for _, text in parts], _MOST_SUITES, 'suite')}"


def _of_test(test: TestResult) -> tuple[list[tuple[_Error, int]], list[_Undecided]]:
    """Each error with the number of its tries, and each undecided verdict."""
    errors = [
        # An invalid user was retried as often as it could be: what is said of it implies that.
        (
            (trial.status, trial.cause, _shared_reason(trial)),
            1 if trial.status is EndState.INVALID_USER else max(1, len(trial.attempts)),
        )
        for trial in test.trials
        if trial.status is EndState.INVALID_USER or not trial.counts
    ]
    undecided: list[_Undecided] = [
        (finding.cause, finding.reason)
        for trial in test.trials
        # No verdict could be reached on a trial that was cut off: one line says so for all of them.
        for finding in (trial.findings if trial.complete else ())
        if finding.outcome is Outcome.UNDECIDED and not finding.fails and finding.cause not in NOT_WANTED
    ]
    return errors, undecided


def _after_tries(what: str, tries: Sequence[int]) -> str:
    """What became of trials, and after how many tries if they were retried: `errored after 2 tries each`."""
    least, most = min(tries), max(tries)
    if most == 1:
        return what
    return f"{what} after {numbers.extent(least, most, str)} tries{' each' if len(tries) > 1 else ''}"


def _why_undecided(cause: Cause | None, reason: str) -> str:
    # A judge's error says by itself that there was no usable answer.
    if cause is None or (cause is Cause.JUDGE_ERROR and reason):
        return reason
    return f"{CAUSES[cause]}: {reason}"


def _trials_not_run(tests: _Tests) -> Iterator[TrialErrors]:
    if tests:
        trials = numbers.count(sum(test.not_run for _, test in tests), "trial")
        yield TrialErrors(f"{trials} not run", "the run ended before", TestOutcome.NOT_RUN, tuple(tests))


def _grouped(tests: _Tests, noun: str, what: str, reason: str, outcome: TestOutcome) -> TrialErrors:
    affected = tuple({id(test): (suite, test) for suite, test in tests}.values())
    what = f"{_count(len(tests), noun)} {what}"
    return TrialErrors(what, reason, outcome, affected, len(tests), noun)


def _count(number: int, noun: str) -> str:
    return numbers.count(number, noun, "criteria" if noun == "criterion" else None)


def at_fault(errors: Iterable[TrialErrors]) -> str:
    """The likely culprits, each with the number of its trials or criteria; empty if none is known."""
    found: dict[str, Counter[str]] = {}
    for one in errors:
        if one.at_fault:
            found.setdefault(one.at_fault, Counter())[one.noun] += one.number
    return ", then at ".join(
        f"{what} ({' and '.join(_count(number, noun) for noun, number in many.items())})"
        for what, many in found.items()
    )


def trial_error(trial: TrialResult) -> str | None:
    """Return why a trial failed, or what the agent said of its error; None if nothing is known."""
    if trial.error or trial.status not in ERRORS:
        return trial.error
    if trial.status is EndState.INVALID_USER:
        found = trial.user_audit.violations if trial.user_audit else ()
        return "; ".join(f"{violation(one, trial)}: {one.reason}" for one in found) or None
    details = [turn.error_detail for turn in trial.turns.without_traces() if turn.error_detail]
    return details[-1] if details else None


def _shared_reason(trial: TrialResult) -> str:
    """The reason in words that trials share: of invalid users the broken rules."""
    if trial.status is EndState.INVALID_USER and trial.user_audit and trial.user_audit.violations:
        return ", ".join(dict.fromkeys(spaced(one.rule) for one in trial.user_audit.violations))
    return trial_error(trial) or "it gave no reason"


def violation(broken: Violation, trial: TrialResult) -> str:
    """The rule that a simulated user broke, and where: `repeats in turn 3`."""
    where = "on leaving" if broken.turn > len(trial.turns) else f"in turn {broken.turn}"
    return f"{spaced(broken.rule)} {where}"
