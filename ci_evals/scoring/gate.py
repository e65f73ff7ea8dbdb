"""The gate: a list of checks over the scorecard, each with what it asks and what was seen."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from ci_evals.domain.base import Interval
from ci_evals.domain.comparison import Change
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.results import Decision, GateCheck, SuiteResult, TestResult, points
from ci_evals.domain.trust import JudgeCheck
from ci_evals.scoring import share
from ci_evals.scoring.compare import Pairing, Part
from ci_evals.scoring.distrust import distrust
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.scoring.selectors import Selector, Threshold
from ci_evals.scoring.share import Choice, Counting
from ci_evals.scoring.soundness import all_passed, ended_well, left_out, lost_trials, scores_of_tests
from ci_evals.scoring.statistics import ALPHA, mean_interval

_TIE = 1e-9
"""Points: a drop of exactly what is allowed holds, however it is written in binary."""


class Regression(StrEnum):
    """Which change against the baseline fails the gate."""

    OFF = "off"
    ANY = "any"
    """A test that passed in the baseline does not pass now."""
    SIGNIFICANT = "significant"
    """The score fell, and chance does not explain it."""


@dataclass(frozen=True)
class Policy:
    """What is asked of a run.

    Raises:
        UsageError: a number is none, or has no end.
    """

    min_score: float = 80
    thresholds: tuple[Threshold, ...] = ()
    max_errors: int = 0
    max_invalid_users: int = 0
    """Trials left out since the simulated user broke its role."""
    max_drop: float | None = None
    """Most points that the score may fall below the baseline's."""
    max_drops: tuple[Threshold, ...] = ()
    """The same for parts of the run."""
    regression: Regression = Regression.OFF
    max_cost: float | None = None
    """US dollars."""
    max_p95_latency: float | None = None
    """Seconds."""
    enforced: bool = True
    """Whether a gate that does not hold fails the build (`--no-gate` says no)."""

    def __post_init__(self) -> None:
        for name in ("min_score", "max_drop", "max_cost", "max_p95_latency"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise UsageError(f"--{name.replace('_', '-')}: {number} is no limit; name a finite number")


@dataclass(frozen=True)
class Ending:
    """How the run as a whole ended."""

    interrupted: bool = False
    stopped_because: str | None = None
    failed_fast: bool = False
    """Whether it was stopped since a trial had failed: then no more were wanted."""
    bug: bool = False
    """Whether it was stopped by a bug of ours."""
    judge_checks: tuple[JudgeCheck, ...] = ()
    """Of each model that judges."""
    judge_only_warned: bool = False
    """Whether a judge that did not pass its check is a warning only (`--judge-check=warn`)."""
    incomplete: tuple[str, ...] = ()
    """Why results that were merged are not all that there should be."""


@dataclass(frozen=True)
class Case:
    """What the gate decides on."""

    card: Scorecard
    policy: Policy
    offline: bool = False
    pairing: Pairing | None = None
    """With the baseline, where there is one."""
    unpaired: str = "there is no baseline"
    """Why nothing is paired, where it is not."""
    lost: int | None = None
    """What each trial that broke off is supposed to have scored; left out if None."""


def decide(case: Case, ending: Ending) -> Decision:
    """The gate's checks and the exit code that follows from them."""
    reasons = tuple(distrust(case.card, case.policy, ending))
    if ending.failed_fast:
        checks = (_fail_fast(ending), *checks_of(_of_what_ran(case)))
    else:
        checks = checks_of(case)
        reasons = reasons or tuple(_lost_decides(case, checks_of))
    holds = all(check.holds for check in checks) and not reasons and not ending.interrupted
    if ending.bug:
        code = Exit.BUG
    elif ending.interrupted:
        code = Exit.INTERRUPTED
    elif reasons:
        code = Exit.INVALID
    else:
        code = Exit.HOLDS if holds or not case.policy.enforced else Exit.FAILED
    return Decision(passed=holds, exit_code=code, checks=checks, reasons=reasons)


def _fail_fast(ending: Ending) -> GateCheck:
    return GateCheck(
        name="fail-fast",
        required=None,
        seen=None,
        holds=False,
        note=ending.stopped_because or "a trial failed",
    )


def _of_what_ran(case: Case) -> Case:
    """The case without the tests and trials that were not begun, since no more were wanted."""
    suites = tuple(
        suite.model_copy(
            update={"tests": tuple(t.model_copy(update={"not_run": 0}) for t in suite.tests if t.trials)}
        )
        for suite in case.card.suites
    )
    return replace(case, card=replace(case.card, suites=tuple(suite for suite in suites if suite.tests)))


def checks_of(case: Case) -> tuple[GateCheck, ...]:
    """Every check of the gate."""
    return tuple(_Checks(case))


def _changes_of(case: Case) -> tuple[GateCheck, ...]:
    """The checks that hold a run against its baseline."""
    return tuple(_Checks(case).of_baseline())


def decide_change(case: Case) -> Decision:
    """What the checks that hold a run against its baseline say of it."""
    checks = _changes_of(case)
    lost = tuple(_lost_decides(case, _changes_of))
    reasons = lost if case.card.score is not None else ("nothing could be scored",)
    holds = all(check.holds for check in checks) and not reasons
    code = Exit.INVALID if checks and reasons else Exit.HOLDS if holds or not checks else Exit.FAILED
    return Decision(passed=holds, exit_code=code, checks=checks, reasons=reasons)


def _lost_decides(case: Case, checks: Callable[[Case], Iterable[GateCheck]]) -> Iterator[str]:
    """Whether the trials that say nothing of the agent would have decided these checks, played to the end."""
    lost = sum(map(lost_trials, case.card.tests))
    if not lost:
        return
    worst, best = (all(c.holds for c in checks(replace(case, lost=supposed))) for supposed in (0, 100))
    if worst != best:
        without = " or are left out" if case.card.counts.invalid_users else ""
        yield (
            f"trials that broke off{without} ({lost}) decide the gate: it would not hold if all of them had "
            "failed, and would if all had passed"
        )


class _Checks:
    """Every check of a policy. Scores are held against it with undecided verdicts counting as failed."""

    def __init__(self, case: Case) -> None:
        self.card, self.policy, self.pairing, self.lost = case.card, case.policy, case.pairing, case.lost
        self.unpaired = case.unpaired
        self.shown = Counting(offline=case.offline)
        self.strict = Counting(offline=case.offline, undecided_fails=True)

    def __iter__(self) -> Iterator[GateCheck]:
        yield self._floor("min-score", self.policy.min_score, self.card.tests)
        for threshold in self.policy.thresholds:
            yield self._threshold(threshold)
        yield from self._of_suites()
        yield from self.of_baseline()
        yield from self._budgets()
        errors, allowed = self.card.counts.errors, self.policy.max_errors
        yield GateCheck(name="max-errors", required=allowed, seen=errors, holds=errors <= allowed)
        if self.card.user_ledger:
            invalid, allowed = self.card.counts.invalid_users, self.policy.max_invalid_users
            yield GateCheck(
                name="max-invalid-users", required=allowed, seen=invalid, holds=invalid <= allowed
            )

    def of_baseline(self) -> Iterator[GateCheck]:
        """What must hold against the baseline."""
        if self.policy.max_drop is not None:
            yield self._drop("max-drop", self.policy.max_drop, None)
        for drop in self.policy.max_drops:
            yield self._drop(f"max-drop {drop}", drop.required, drop.selector)
        if self.policy.regression is not Regression.OFF:
            yield self._regression(self.policy.regression)

    def _floor(
        self,
        name: str,
        required: float,
        tests: Sequence[TestResult],
        choice: Choice = share.every,
    ) -> GateCheck:
        chosen = [f for test in tests for trial in test.trials for f in trial.findings if choice(f)]
        if chosen and all(self.shown.excused(finding) for finding in chosen):
            note = "not applied: nothing but judged criteria, and no judge (--provider=offline)"
            return GateCheck(name=name, required=required, seen=None, holds=True, note=note)
        scores = scores_of_tests(tests, self.strict, choice, self.lost)
        decisive = share.mean(scores)
        return GateCheck(
            name=name,
            required=required,
            seen=points(share.of_tests(tests, self.shown, choice)),
            seen_if_undecided_failed=points(decisive),
            # Of one test nothing is known but its trials: they say nothing of other tests.
            interval=mean_interval([float(score) for score in scores]) if len(tests) > 1 else None,
            holds=decisive is not None and decisive >= Fraction(repr(float(required))),
            note="nothing of it was scored" if decisive is None else None,
        )

    def _threshold(self, threshold: Threshold) -> GateCheck:
        selector = threshold.selector
        if tests := [test for _, test in self._selected(selector)]:
            return self._floor(str(threshold), threshold.required, tests, selector.choice)
        note = "nothing of it was selected for this run"
        return GateCheck(name=str(threshold), required=threshold.required, seen=None, holds=True, note=note)

    def _selected(self, selector: Selector) -> list[tuple[SuiteResult, TestResult]]:
        return [
            (suite, test)
            for suite in self.card.suites
            for test in suite.tests
            if selector.takes(suite.name, test)
        ]

    def _of_suites(self) -> Iterator[GateCheck]:
        """The floors and critical tests that the suites themselves ask for."""
        for suite in self.card.suites:
            if suite.min_score is not None:
                yield self._floor(f"suite:{suite.name}", suite.min_score, suite.tests)
            for test in suite.tests:
                if test.min_score is not None:
                    yield self._floor(f"test:{test.name}", test.min_score, [test])
                if test.critical:
                    yield self._critical(test)

    def _critical(self, test: TestResult) -> GateCheck:
        passed = sum(ended_well(trial) and all_passed(trial, self.shown) for trial in test.trials)
        if self.lost:
            passed += lost_trials(test)
        planned = len(test.trials) + test.not_run
        if self.lost is None:  # supposing something of them, those that are left out count too
            planned -= sum(map(left_out, test.trials))
        return GateCheck(
            name=f"critical:{test.name}",
            required=100,
            # A file may tell of a test without any trial: of that one nothing is known.
            seen=100 * passed / planned if planned else None,
            holds=0 < planned == passed,
            note=f"trials passed: {passed} of {planned}",
        )

    def _drop(self, name: str, required: float, selector: Selector | None) -> GateCheck:
        pairing = self.pairing
        if pairing is None or not pairing.pairs:
            return self._not_applied(name, required)
        pairs = pairing.pairs
        choice: Choice = share.every
        if selector:
            taken = {(suite.name, test.name) for suite, test in self._selected(selector)}
            pairs = tuple(pair for pair in pairs if (pair.suite, pair.head.name) in taken)
            choice = selector.choice
        shown = pairing.change(Part(pairs, choice), tested=False)
        strict = Part(pairs, choice, undecided_fails=True, lost=self.lost)
        change = pairing.change(strict, tested=False)
        if change.delta is None:
            note = "not applied: nothing of it can be compared with the baseline"
            return GateCheck(name=name, required=required, seen=None, holds=True, note=note)
        return GateCheck(
            name=name,
            required=required,
            seen=None if shown.delta is None else 0.0 - shown.delta,
            seen_if_undecided_failed=0.0 - change.delta,
            interval=Interval(low=-change.interval.high, high=-change.interval.low)
            if change.interval
            else None,
            holds=-change.delta <= required + _TIE,
            note=self._on(change),
        )

    def _regression(self, wanted: Regression) -> GateCheck:
        pairing = self.pairing
        if pairing is None or not pairing.pairs:
            return self._not_applied("regression", ALPHA if wanted is Regression.SIGNIFICANT else 0)
        if wanted is Regression.ANY:
            failing = pairing.newly_failing(self.lost)
            names = ", ".join(pair.head.name for pair in failing[:3])
            more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
            note = f"passed in the baseline, not now: {names}{more}" if failing else None
            return GateCheck(name="regression", required=0, seen=len(failing), holds=not failing, note=note)
        change = pairing.whole(undecided_fails=True, lost=self.lost)
        if change.delta is None or change.p is None:
            return self._not_applied("regression", ALPHA)
        fell = change.delta < -_TIE
        note = "the score fell; chance may explain it" if fell else "the score did not fall"
        if fell and change.p <= ALPHA:
            note = "the score fell, and chance does not explain it"
        elif fell and (change.smallest_p or 0) > ALPHA:
            note = "the score fell; so few trials cannot tell it from chance"
        return GateCheck(
            name="regression",
            required=ALPHA,
            seen=change.p,
            holds=not (fell and change.p <= ALPHA),
            note=f"{note}; {on}" if (on := self._on(change)) else note,
        )

    def _on(self, change: Change) -> str | None:
        """On how many tests a change rests, where it is not all."""
        tests = self.card.counts.tests
        return f"on {change.tests} of {tests} tests" if change.tests < tests else None

    def _not_applied(self, name: str, required: float) -> GateCheck:
        why, pairing = self.unpaired, self.pairing
        if pairing is not None:
            reasons = [*pairing.reasons, *(r for suite in pairing.suites for r in suite.reasons)]
            why = "; ".join(dict.fromkeys(reasons)) or pairing.nothing_in_common
        return GateCheck(name=name, required=required, seen=None, holds=True, note=f"not applied: {why}")

    def _budgets(self) -> Iterator[GateCheck]:
        cost, slow = self.card.usage.cost_usd, self.card.latency.p95
        budgets = (
            ("max-cost", self.policy.max_cost, cost, "the cost is not known"),
            ("max-p95-latency", self.policy.max_p95_latency, slow, "no reply came"),
        )
        for name, allowed, seen, unknown in budgets:
            if allowed is not None:
                holds, note = seen is not None and seen <= allowed, unknown if seen is None else None
                yield GateCheck(name=name, required=allowed, seen=seen, holds=holds, note=note)
