"""The gate: a list of checks over the scorecard, each with what it asks and what was seen."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ci_evals.domain.base import Interval
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import points
from ci_evals.scoring import scores
from ci_evals.scoring.comparison.compare import ComparedPart, Pairing
from ci_evals.scoring.gate.invalid_run import (
    InvalidRunReason,
    NotChecked,
    NotCompared,
    NothingScored,
    UncountedDecide,
    invalid_run_reasons,
)
from ci_evals.scoring.gate.policy import Policy, Regression, RunEnding
from ci_evals.scoring.gate.selectors import Selector, SelectorKind
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.scoring.scores import Choice, Counting
from ci_evals.scoring.statistics import ALPHA, mean_interval
from ci_evals.scoring.validity import all_passed, scores_of_tests, uncounted_trials

_OF_BASELINE = frozenset({CheckKind.MAX_DROP, CheckKind.REGRESSION})
_NO_JUDGE = "all of its criteria are judged, and there is no judge (--provider=offline)"
_TIE = 1e-9
"""Points: a drop of exactly what is allowed holds, however it is written in binary."""


@dataclass(frozen=True)
class GateInput:
    """What the gate decides on."""

    card: Scorecard
    policy: Policy
    offline: bool = False
    pairing: Pairing | None = None
    """With the baseline, where there is one."""
    unpaired: str = "there is no baseline"
    """Why nothing is paired, where it is not."""
    assumed: int | None = None
    """The score that each uncounted trial is given; None for no score at all."""
    only_played: bool = False
    """Whether tests without a trial are left out, since no more were wanted."""


@dataclass(frozen=True)
class Ruling:
    """The decision of the gate, with its reasons as values."""

    passed: bool
    exit_code: Exit
    checks: tuple[GateCheck, ...]
    reasons: tuple[InvalidRunReason, ...] = ()


def decide(case: GateInput, ending: RunEnding) -> Ruling:
    """The gate's checks and the exit code that follows from them."""
    reasons = tuple(invalid_run_reasons(case.card, case.policy, ending))
    if ending.failed_fast:
        checks = (_fail_fast(ending), *checks_of(_of_what_ran(case)))
    else:
        checks = checks_of(case)
        reasons = reasons or tuple(_uncounted_decide(case, checks_of))
        if case.policy.baseline_required:
            why = _unpaired(case)
            checks = checks if why else _blocking(checks)
            reasons = (*reasons, *([NotCompared(why)] if why else _not_checked(checks)))
    passed = _none_fails(checks) and not reasons and not ending.interrupted
    if ending.bug:
        code = Exit.BUG
    elif ending.interrupted:
        code = Exit.INTERRUPTED
    elif reasons:
        code = Exit.INVALID
    else:
        code = Exit.HOLDS if passed or not case.policy.enforced else Exit.FAILED
    return Ruling(passed, code, checks, reasons)


def _fail_fast(ending: RunEnding) -> GateCheck:
    return GateCheck(
        name="fail-fast",
        kind=CheckKind.FAIL_FAST,
        required=None,
        seen=None,
        holds=False,
        note=ending.stopped_because or "a trial failed",
    )


def _of_what_ran(case: GateInput) -> GateInput:
    """The case without the tests and trials that were not begun, since no more were wanted."""
    suites = tuple(
        suite.model_copy(update={"tests": tuple(t.model_copy(update={"not_run": 0}) for t in suite.tests)})
        for suite in case.card.suites
    )
    return replace(case, card=replace(case.card, suites=suites), only_played=True)


def _none_fails(checks: Iterable[GateCheck]) -> bool:
    return all(check.holds is not False for check in checks)


def _blocking(checks: Iterable[GateCheck]) -> tuple[GateCheck, ...]:
    """The checks, those against the baseline that could not be made marked as needed for a verdict."""
    return tuple(
        check.model_copy(update={"blocks_verdict": True})
        if check.holds is None and check.kind in _OF_BASELINE
        else check
        for check in checks
    )


def _not_checked(checks: Iterable[GateCheck]) -> tuple[NotChecked, ...]:
    return tuple(NotChecked(check) for check in checks if check.blocks_verdict)


def _unpaired(case: GateInput) -> str | None:
    """The reason why nothing can be compared with the baseline; None if something can."""
    pairing = case.pairing
    if pairing is None:
        return case.unpaired
    if pairing.pairs and pairing.whole().tests:
        return None
    reasons = [*pairing.reasons, *(reason for suite in pairing.suites for reason in suite.reasons)]
    return "; ".join(dict.fromkeys(reasons)) or pairing.nothing_in_common


def checks_of(case: GateInput) -> tuple[GateCheck, ...]:
    """Every check of the gate."""
    return tuple(_Checks(case))


def _changes_of(case: GateInput) -> tuple[GateCheck, ...]:
    """The checks that hold a run against its baseline."""
    return tuple(_Checks(case).of_baseline())


def decide_change(case: GateInput) -> Ruling:
    """Decide by the checks against the baseline alone. One that cannot be made leaves no verdict."""
    checks = _blocking(_changes_of(case))
    undecided = tuple(_uncounted_decide(case, _changes_of))
    reasons = (*(undecided if case.card.score is not None else (NothingScored(),)), *_not_checked(checks))
    passed = _none_fails(checks) and not reasons
    code = Exit.INVALID if checks and reasons else Exit.HOLDS if passed or not checks else Exit.FAILED
    return Ruling(passed, code, checks, reasons)


def _uncounted_decide(
    case: GateInput, checks: Callable[[GateInput], Iterable[GateCheck]]
) -> Iterator[UncountedDecide]:
    """Whether the trials that say nothing about the agent would have decided these checks."""
    uncounted = sum(map(uncounted_trials, case.card.tests))
    if not uncounted:
        return
    worst, best = (_none_fails(checks(replace(case, assumed=score))) for score in (0, 100))
    if worst != best:
        yield UncountedDecide(uncounted, some_excluded=case.card.counts.invalid_users > 0)


@dataclass(frozen=True)
class _Subject:
    """The part of the run that a check is about."""

    suites: tuple[tuple[int, SuiteResult], ...]
    """Every suite with its number."""
    suite_number: int | None = None
    test_number: int | None = None
    selector: Selector | None = None

    @property
    def suite(self) -> SuiteResult | None:
        """The suite, if the check is about one suite or one of its tests."""
        return dict(self.suites).get(self.suite_number or 0)

    @property
    def test(self) -> TestResult | None:
        """The test, if the check is about one."""
        return self.suite.tests[self.test_number - 1] if self.suite and self.test_number else None

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of a check that say what it is about."""
        return {
            "suite": self.suite.name if self.suite else None,
            "suite_number": self.suite_number,
            "test": self.test.name if self.test else None,
            "test_number": self.test_number,
            "selector": str(self.selector) if self.selector else None,
        }

    @property
    def words(self) -> str:
        """The part in a word or two, such as `suite:Refunds`; a name that two share says whose it is."""
        if self.test:
            tests = [test.name for _, suite in self.suites for test in suite.tests]
            shared = tests.count(self.test.name) > 1
            return f"{SelectorKind.TEST}:{self.label}" if shared else f"{SelectorKind.TEST}:{self.test.name}"
        if self.suite:
            return f"{SelectorKind.SUITE}:{self._suite_label}"
        return str(self.selector) if self.selector else ""

    @property
    def label(self) -> str:
        """The test's name, with that of its suite where two tests share it."""
        name = self.test.name if self.test else ""
        shared = sum(test.name == name for _, suite in self.suites for test in suite.tests) > 1
        return f"{self._suite_label} › {name}" if shared else name

    @property
    def _suite_label(self) -> str:
        name, file = (self.suite.name, self.suite.file) if self.suite else ("", "")
        shared = sum(suite.name == name for _, suite in self.suites) > 1
        return f"{name} ({file})" if shared else name


class _Checks:
    """Every check of a policy. Scores are held against it with undecided verdicts counting as failed."""

    def __init__(self, case: GateInput) -> None:
        self.case = case
        self.card, self.policy, self.pairing, self.assumed = (
            case.card,
            case.policy,
            case.pairing,
            case.assumed,
        )
        self.shown = Counting(offline=case.offline)
        self.strict = Counting(offline=case.offline, undecided_fails=True)
        self.whole = _Subject(tuple(enumerate(case.card.suites, start=1)))
        self.tests = [
            (replace(self.whole, suite_number=number, test_number=index), suite, test)
            for number, suite in self.whole.suites
            for index, test in enumerate(suite.tests, start=1)
            if test.trials or not case.only_played
        ]

    def __iter__(self) -> Iterator[GateCheck]:
        yield self._floor(CheckKind.MIN_SCORE, self.policy.min_score, self.whole)
        for threshold in self.policy.thresholds:
            for about in self._parts(threshold.selector):
                yield self._floor(CheckKind.THRESHOLD, threshold.required, about)
        yield from self._of_suites()
        yield from self.of_baseline()
        yield from self._budgets()
        errors, allowed = self.card.counts.errors, self.policy.max_errors
        yield GateCheck(
            name="max-errors",
            kind=CheckKind.MAX_ERRORS,
            required=allowed,
            seen=errors,
            holds=errors <= allowed,
        )
        if self.card.user_checks:
            invalid, allowed = self.card.counts.invalid_users, self.policy.max_invalid_users
            yield GateCheck(
                name="max-invalid-users",
                kind=CheckKind.MAX_INVALID_USERS,
                required=allowed,
                seen=invalid,
                holds=invalid <= allowed,
            )

    def of_baseline(self) -> Iterator[GateCheck]:
        """What must hold against the baseline."""
        if self.policy.max_drop is not None:
            yield self._drop(self.policy.max_drop, self.whole)
        for drop in self.policy.max_drops:
            for about in self._parts(drop.selector):
                yield self._drop(drop.required, about)
        if self.policy.regression is not Regression.OFF:
            yield self._regression(self.policy.regression)

    def _parts(self, selector: Selector) -> Iterator[_Subject]:
        """Yield what a selector is about: each suite, and each test, of that name by itself."""
        about = replace(self.whole, selector=selector)
        taken = [where for where, suite, test in self.tests if selector.takes(suite.name, test)]
        match selector.kind:
            case SelectorKind.TEST if taken:
                yield from (replace(where, selector=selector) for where in taken)
            case SelectorKind.SUITE if taken:
                numbers = dict.fromkeys(where.suite_number for where in taken)
                yield from (replace(about, suite_number=number) for number in numbers)
            case _:
                yield about

    def _tests(self, about: _Subject) -> list[tuple[_Subject, TestResult]]:
        return [
            (where, test)
            for where, suite, test in self.tests
            if about.suite_number in {None, where.suite_number}
            and about.test_number in {None, where.test_number}
            and (about.selector is None or about.selector.takes(suite.name, test))
        ]

    def _floor(self, kind: CheckKind, required: float, about: _Subject) -> GateCheck:
        tests = [test for _, test in self._tests(about)]
        choice = about.selector.choice if about.selector else scores.every

        def made(**fields: Any) -> GateCheck:
            return GateCheck(
                **{"name": about.words or kind, "kind": kind, "required": required} | about.keys | fields
            )

        if not tests and about.selector:
            return made(seen=None, holds=None, note="nothing of it was selected for this run")
        if self._nothing_to_decide(tests, choice):
            return made(seen=None, holds=None, note=_NO_JUDGE)
        of_each = scores_of_tests(tests, self.strict, choice, self.assumed)
        decisive = scores.mean(of_each)
        note = f"on {len(of_each)} of {len(tests)} tests" if len(of_each) < len(tests) else None
        return made(
            seen=points(scores.of_tests(tests, self.shown, choice)),
            seen_if_undecided_failed=points(decisive),
            # Of one test nothing is known but its trials: they say nothing of other tests.
            interval=mean_interval([float(score) for score in of_each]) if len(tests) > 1 else None,
            holds=decisive is not None and decisive >= Fraction(repr(float(required))),
            note="nothing of it was scored" if decisive is None else note,
        )

    def _nothing_to_decide(self, tests: Sequence[TestResult], choice: Choice = scores.every) -> bool:
        """Whether all that these tests want is judged, and no judge was wanted."""
        chosen = [f for test in tests for trial in test.trials for f in trial.findings if choice(f)]
        return bool(chosen) and all(self.shown.excused(finding) for finding in chosen)

    def _of_suites(self) -> Iterator[GateCheck]:
        """The floors and critical tests that the suites themselves ask for."""
        for number, suite in self.whole.suites:
            tests = [(where, test) for where, _, test in self.tests if where.suite_number == number]
            if suite.min_score is not None and tests:
                about = replace(self.whole, suite_number=number)
                yield self._floor(CheckKind.MIN_SCORE, suite.min_score, about)
            for where, test in tests:
                if test.min_score is not None:
                    yield self._floor(CheckKind.MIN_SCORE, test.min_score, where)
                if test.critical:
                    yield self._critical(test, where)

    def _critical(self, test: TestResult, about: _Subject) -> GateCheck:
        passed = sum(trial.counts and all_passed(trial, self.shown) for trial in test.trials)
        if self.assumed:
            passed += uncounted_trials(test)
        planned = len(test.trials) + test.not_run
        if self.assumed is None:  # excluded trials count too where a score is assumed
            planned -= sum(trial.excluded for trial in test.trials)
        seen: float | None = 100 * passed / planned if planned else None
        holds: bool | None = 0 < planned == passed
        note = f"trials passed: {passed} of {planned}"
        if self._nothing_to_decide([test]) and not uncounted_trials(test):
            seen, holds, note = None, None, _NO_JUDGE
        return GateCheck(
            name=f"critical:{about.label}",
            kind=CheckKind.CRITICAL,
            **about.keys,
            required=100,
            # A file may tell of a test without any trial: of that one nothing is known.
            seen=seen,
            holds=holds,
            note=note,
        )

    def _drop(self, required: float, about: _Subject) -> GateCheck:
        name = f"max-drop {about.words}".strip()

        def made(**fields: Any) -> GateCheck:
            return GateCheck(
                **{"name": name, "kind": CheckKind.MAX_DROP, "required": required} | about.keys | fields
            )

        if why := _unpaired(self.case):
            return made(seen=None, holds=None, note=why)
        assert self.pairing is not None  # noqa: S101  # else there was a reason
        tests = self._tests(about)
        taken = {(where.suite_number, where.test_number) for where, _ in tests}
        pairs = tuple(pair for pair in self.pairing.pairs if pair.numbers in taken)
        choice = about.selector.choice if about.selector else scores.every
        shown = self.pairing.change(ComparedPart(pairs, choice), tested=False)
        strict = ComparedPart(pairs, choice, undecided_fails=True, assumed=self.assumed)
        change = self.pairing.change(strict, tested=False)
        if change.delta is None:
            return made(seen=None, holds=None, note="nothing of it can be compared with the baseline")
        return made(
            seen=None if shown.delta is None else 0.0 - shown.delta,
            seen_if_undecided_failed=0.0 - change.delta,
            interval=Interval(low=-change.interval.high, high=-change.interval.low)
            if change.interval
            else None,
            holds=-change.delta <= required + _TIE,
            note=_on(change.tests, len(tests)),
        )

    def _regression(self, wanted: Regression) -> GateCheck:
        def made(**fields: Any) -> GateCheck:
            required = ALPHA if wanted is Regression.SIGNIFICANT else 0
            return GateCheck(
                **{"name": "regression", "kind": CheckKind.REGRESSION, "required": required} | fields
            )

        if why := _unpaired(self.case):
            return made(seen=None, holds=None, note=why)
        assert self.pairing is not None  # noqa: S101  # else there was a reason
        tests = self.card.counts.tests
        if wanted is Regression.ANY:
            failing = self.pairing.newly_failing(self.assumed)
            names = ", ".join(pair.head.name for pair in failing[:3])
            more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
            said = f"passed in the baseline, not now: {names}{more}" if failing else None
            notes = [note for note in (said, _on(len(self.pairing.pairs), tests)) if note]
            return made(seen=len(failing), holds=not failing, note="; ".join(notes) or None)
        change = self.pairing.whole(undecided_fails=True, assumed=self.assumed)
        if change.delta is None or change.p is None:
            return made(seen=None, holds=None, note="nothing of it can be compared with the baseline")
        fell = change.delta < -_TIE
        holds: bool | None = not (fell and change.p <= ALPHA)
        note = "the score fell; chance may explain it" if fell else "the score did not fall"
        if fell and change.p <= ALPHA:
            note = "the score fell, and chance does not explain it"
        elif fell and (change.smallest_p or 0) > ALPHA:
            holds, note = None, "the score fell; so few trials cannot tell it from chance"
        notes = [one for one in (note, _on(change.tests, tests)) if one]
        return made(seen=change.p, holds=holds, note="; ".join(notes))

    def _budgets(self) -> Iterator[GateCheck]:
        cost, slow = self.card.usage.cost_usd, self.card.latency.p95
        budgets = (
            (CheckKind.MAX_COST, self.policy.max_cost, cost, "the cost is not known"),
            (CheckKind.MAX_P95_LATENCY, self.policy.max_p95_latency, slow, "no reply came"),
        )
        for kind, allowed, seen, unknown in budgets:
            if allowed is not None:
                holds, note = seen is not None and seen <= allowed, unknown if seen is None else None
                yield GateCheck(name=kind, kind=kind, required=allowed, seen=seen, holds=holds, note=note)


def _on(compared: int, tests: int) -> str | None:
    """On how many tests a comparison rests, unless it is on all."""
    return f"on {compared} of {tests} tests" if compared < tests else None
