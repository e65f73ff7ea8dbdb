"""The checks of the gate: what each requires of the scorecard, and what was seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from ci_evals.domain.base import Interval
from ci_evals.domain.choices import Regression
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import points
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import Selector, SelectorKind
from ci_evals.scoring import scores
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.earlier_runs import EarlierRuns
from ci_evals.scoring.comparison.pairing import TestPair
from ci_evals.scoring.comparison.rounds import Look
from ci_evals.scoring.scores import FindingFilter, ScoreRule
from ci_evals.scoring.statistics import ALPHA, ScorePair, mean_interval

_NO_JUDGE = "all of its criteria need a judge, and there is none (--provider=offline)"
_NOT_COMPARABLE = "none of its tests can be compared with the baseline"
IF_UNDECIDED_FAILED = "if undecided counts as failed"
"""The words for a score that decides and is not the one that is shown."""
_TIE = 1e-9
"""Points: a drop of exactly what is allowed holds, however it is written in binary."""


@dataclass(frozen=True)
class GateInput:
    """The results of a run, the policy to check them by, and their comparison with the baseline."""

    results: Results
    policy: Policy
    comparer: RunComparer | None = None
    """With the baseline, where there is one."""
    unpaired: str = "there is no baseline"
    """The reason if there is no comparer: nothing to compare with."""
    assumed: int | None = None
    """The score that each uncounted trial is given; None for no score at all."""
    only_played: bool = False
    """True to leave out tests without a trial, since no more were wanted."""
    earlier: EarlierRuns | None = None
    """Earlier runs of the base branch, where these decide whether the score fell."""
    look: Look | None = None
    """The limits by which a run in rounds is looked at; None for a run that is looked at once."""

    @property
    def alpha(self) -> float:
        """The highest p of a drop that fails."""
        return self.look.fails_at if self.look else ALPHA


def checks_of(given: GateInput) -> tuple[GateCheck, ...]:
    """Every check of the gate."""
    return tuple(_Checks(given).all())


def changes_of(given: GateInput) -> tuple[GateCheck, ...]:
    """The checks that compare a run with its baseline."""
    return tuple(_Checks(given).of_baseline())


def why_not_compared(given: GateInput) -> str | None:
    """The reason why nothing can be compared with the baseline; None if something can."""
    comparer = given.comparer
    if comparer is None:
        return given.unpaired
    if comparer.pairs and comparer.overall_change().tests:
        return None
    reasons = [*comparer.reasons, *(reason for suite in comparer.suites for reason in suite.reasons)]
    return "; ".join(dict.fromkeys(reasons)) or comparer.nothing_in_common


class _Subject(NamedTuple):
    """The part of the run that a check is about."""

    results: Results
    suite_number: int | None = None
    test_number: int | None = None
    selector: Selector | None = None

    @property
    def suite(self) -> SuiteResult | None:
        """The suite, if the check is about one suite or one of its tests."""
        return self.results.suites[self.suite_number - 1] if self.suite_number else None

    @property
    def test(self) -> TestResult | None:
        """The test, if the check is about one."""
        return self.suite.tests[self.test_number - 1] if self.suite and self.test_number else None

    @property
    def finding_filter(self) -> FindingFilter:
        """The findings that the check is about."""
        return self.selector.finding_filter if self.selector else scores.all_findings

    @property
    def label(self) -> str:
        """A name for people that no other suite or test has, such as `suite:Refunds`; empty for the run."""
        if not self.suite:
            return str(self.selector or "")
        name = self.suite.name
        if sum(suite.name == name for suite in self.results.suites) > 1:
            name = f"{name} ({self.suite.file})"
        if not self.test:
            return f"{SelectorKind.SUITE}:{name}"
        shared = sum(test.name == self.test.name for test in self.results.tests) > 1
        return f"{SelectorKind.TEST}:{f'{name} › ' if shared else ''}{self.test.name}"

    def check(self, kind: CheckKind, required: float | None, **fields: Any) -> GateCheck:
        """A check of this subject, with a name such as `suite:Refunds` or `max-drop test:Late refund`."""
        name = f"{kind} {self.label}".strip()
        if kind is CheckKind.CRITICAL:
            name = f"{kind}:{self.label.removeprefix(f'{SelectorKind.TEST}:')}"
        elif self.label and kind in {CheckKind.MIN_SCORE, CheckKind.THRESHOLD}:
            name = self.label
        own = {
            "name": name,
            "kind": kind,
            "required": required,
            "suite": self.suite.name if self.suite else None,
            "suite_number": self.suite_number,
            "test": self.test.name if self.test else None,
            "test_number": self.test_number,
            "selector": str(self.selector) if self.selector else None,
        }
        return GateCheck(**own | {"seen": None, "passed": None} | fields)


class _Checks:
    """Every check of a policy. It decides by scores in which undecided verdicts count as failed."""

    def __init__(self, given: GateInput) -> None:
        self.given = given
        self.results, self.policy = given.results, given.policy
        self.comparer, self.assumed, self.offline = given.comparer, given.assumed, given.results.run.offline
        self.shown = ScoreRule(self.offline)
        self.run = _Subject(given.results)
        self.tests = [
            (_Subject(given.results, number, index), suite, test)
            for number, suite in enumerate(given.results.suites, start=1)
            for index, test in enumerate(suite.tests, start=1)
            if test.quarantine is None and (test.trials or not given.only_played)
        ]

    def all(self) -> Iterator[GateCheck]:
        """All checks, in the order of the reports."""
        yield self._floor(CheckKind.MIN_SCORE, self.policy.min_score, self.run)
        for threshold in self.policy.thresholds:
            for subject in self._subjects(threshold.selector):
                yield self._floor(CheckKind.THRESHOLD, threshold.limit, subject)
        yield from self._of_suites()
        yield from self.of_baseline()
        yield from self._limits()

    def of_baseline(self) -> Iterator[GateCheck]:
        """The checks that compare with the baseline."""
        if self.policy.max_drop is not None:
            yield self._drop(self.policy.max_drop, self.run)
        for drop in self.policy.max_drops:
            for subject in self._subjects(drop.selector):
                yield self._drop(drop.limit, subject)
        if self.policy.regression is not Regression.OFF:
            yield self._regression(self.policy.regression)

    def _subjects(self, selector: Selector) -> Iterator[_Subject]:
        """Yield the subjects of a selector: each suite, and each test, of that name by itself."""
        selected = [subject for subject, suite, test in self.tests if selector.takes(suite.name, test)]
        whole = self.run._replace(selector=selector)
        match selector.kind:
            case SelectorKind.TEST if selected:
                yield from (subject._replace(selector=selector) for subject in selected)
            case SelectorKind.SUITE if selected:
                numbers = dict.fromkeys(subject.suite_number for subject in selected)
                yield from (whole._replace(suite_number=number) for number in numbers)
            case _:
                yield whole

    def _tests(self, subject: _Subject) -> list[tuple[_Subject, TestResult]]:
        return [
            (own, test)
            for own, suite, test in self.tests
            if subject.suite_number in {None, own.suite_number}
            and subject.test_number in {None, own.test_number}
            and (subject.selector is None or subject.selector.takes(suite.name, test))
        ]

    def _floor(self, kind: CheckKind, required: float, subject: _Subject) -> GateCheck:
        tests = [test for _, test in self._tests(subject)]
        if not tests and subject.selector:
            return subject.check(kind, required, note=self._why_none(subject.selector))
        if self._nothing_to_decide(tests, subject.finding_filter):
            return subject.check(kind, required, note=_NO_JUDGE)
        shown = ScoreRule(self.offline, finding_filter=subject.finding_filter)
        strict = replace(shown, undecided_fails=True, assumed=self.assumed)
        alike = scores.alike(tests)
        of_each = scores.means_of(alike, strict)
        decisive = of_each.mean
        look = self.given.look
        distance = float(decisive) - required if decisive is not None else 0.0
        return subject.check(
            kind,
            required,
            seen=points(scores.means_of(alike, shown).mean),
            seen_if_undecided_failed=points(decisive),
            # Of one test nothing is known but its trials: they say nothing of other tests.
            interval=mean_interval(of_each.floats) if len(tests) > 1 else None,
            passed=decisive is not None and decisive >= Fraction(repr(float(required))),
            settled=not look
            or decisive is None
            or required <= 0  # which no score is below
            or look.settles_score(distance, self._trial_scores(tests, strict)),
            note="nothing was scored" if decisive is None else _on(len(of_each), len(tests)),
        )

    def _why_none(self, selector: Selector) -> str:
        """The reason why a selector takes no test that decides."""
        every = ((suite, test) for suite in self.results.suites for test in suite.tests)
        if any(selector.takes(suite.name, test) for suite, test in every):
            return "all of its tests are in quarantine"
        return "none of its tests was selected for this run"

    def _trial_scores(self, tests: Sequence[TestResult], rule: ScoreRule) -> list[list[float]]:
        """The scores of each test's trials, of those that have any."""
        return [[float(score) for score in of] for test in tests if (of := scores.of_trials(test, rule))]

    def _pairs(self, pairs: Sequence[TestPair], rule: ScoreRule) -> list[ScorePair]:
        assert self.comparer is not None  # noqa: S101  # its caller has looked
        return [own for _, own in self.comparer.scored_pairs(pairs, rule)]

    def _nothing_to_decide(
        self, tests: Sequence[TestResult], finding_filter: FindingFilter = scores.all_findings
    ) -> bool:
        """Return whether all that these tests want is judged, and no judge was wanted."""
        chosen = [f for trial, _ in scores.kinds(tests) for f in trial.findings if finding_filter(f)]
        return bool(chosen) and all(self.shown.not_judged(finding) for finding in chosen)

    def _of_suites(self) -> Iterator[GateCheck]:
        """The floors and critical tests that the suites themselves ask for."""
        for number, suite in enumerate(self.results.suites, start=1):
            tests = [(subject, test) for subject, _, test in self.tests if subject.suite_number == number]
            if suite.min_score is not None and tests:
                subject = self.run._replace(suite_number=number)
                yield self._floor(CheckKind.MIN_SCORE, suite.min_score, subject)
            for subject, test in tests:
                if test.min_score is not None:
                    yield self._floor(CheckKind.MIN_SCORE, test.min_score, subject)
                if test.critical:
                    yield self._critical(test, subject)

    def _critical(self, test: TestResult, subject: _Subject) -> GateCheck:
        if self._nothing_to_decide([test]) and not scores.uncounted_trials(test):
            return subject.check(CheckKind.CRITICAL, 100, note=_NO_JUDGE)
        passed = sum(trial.counts and scores.all_passed(trial, self.shown) for trial in test.trials)
        if self.assumed:
            passed += scores.uncounted_trials(test)
        planned = len(test.trials) + test.not_run
        if self.assumed is None:  # excluded trials count too where a score is assumed
            planned -= sum(trial.excluded for trial in test.trials)
        return subject.check(
            CheckKind.CRITICAL,
            100,
            # A file may tell of a test without any trial: of that one nothing is known.
            seen=100 * passed / planned if planned else None,
            passed=0 < planned == passed,
            note=f"{passed} of {planned} passed",
        )

    def _drop(self, required: float, subject: _Subject) -> GateCheck:
        kind = CheckKind.MAX_DROP
        if why := why_not_compared(self.given):
            return subject.check(kind, required, note=why)
        assert self.comparer is not None  # noqa: S101  # else there was a reason
        tests = self._tests(subject)
        numbers = {(own.suite_number, own.test_number) for own, _ in tests}
        pairs = tuple(pair for pair in self.comparer.pairs if pair.numbers in numbers)
        rule = ScoreRule(self.offline, finding_filter=subject.finding_filter)
        shown = self.comparer.change(pairs, rule, tested=False)
        strict = replace(rule, undecided_fails=True, assumed=self.assumed)
        change = self.comparer.change(pairs, strict, tested=False)
        if change.delta is None:
            return subject.check(kind, required, note=_NOT_COMPARABLE)
        interval, look, distance = change.interval, self.given.look, required + change.delta
        return subject.check(
            kind,
            required,
            seen=None if shown.delta is None else 0.0 - shown.delta,
            seen_if_undecided_failed=0.0 - change.delta,
            interval=Interval(low=-interval.high, high=-interval.low) if interval else None,
            passed=-change.delta <= required + _TIE,
            settled=not look
            or required >= 100  # more than which no score falls
            or look.settles_drop(distance, self._pairs(pairs, strict)),
            note=_on(change.tests, len(tests)),
        )

    def _regression(self, mode: Regression) -> GateCheck:
        alpha, look = self.given.alpha, self.given.look
        kind, required = CheckKind.REGRESSION, alpha if mode is Regression.SIGNIFICANT else 0
        if why := why_not_compared(self.given):
            return self.run.check(kind, required, note=why)
        assert self.comparer is not None  # noqa: S101  # else there was a reason
        tests = len(scores.deciding(self.results.tests))
        if mode is Regression.ANY:
            failing = self.comparer.newly_failing(self.assumed)
            names = ", ".join(pair.head.name for pair in failing[:3])
            more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
            note = f"passed in the baseline, not now: {names}{more}" if failing else None
            note = _joined(note, _on(len(self.comparer.pairs), tests))
            return self.run.check(kind, required, seen=len(failing), passed=not failing, note=note)
        change = self.comparer.overall_change(undecided_fails=True, assumed=self.assumed)
        if (earlier := self.given.earlier) and earlier.decide:
            change = earlier.change(replace(self.shown, undecided_fails=True, assumed=self.assumed))
        if change.delta is None or change.p is None:
            return self.run.check(kind, required, note=_NOT_COMPARABLE)
        passed: bool | None = True
        if change.delta >= -_TIE:
            note = "the score did not fall"
        elif change.p <= alpha:
            passed, note = False, "the score fell, and chance does not explain it"
        elif (change.smallest_p or 0) > alpha and (look is None or look.is_last):
            passed, note = None, "the score fell, but there are too few trials to tell a drop from chance"
        else:
            note = "the drop may be chance"
        if change.delta < -_TIE <= (self.comparer.overall_change().delta or 0):
            note = f"{IF_UNDECIDED_FAILED}: {note}"
        note = _joined(note, _on(change.tests, tests))
        settled = not look or look.decision(change.p) != "continue"
        return self.run.check(kind, required, seen=change.p, passed=passed, note=note, settled=settled)

    def _limits(self) -> Iterator[GateCheck]:
        """The limits of cost, time and errored trials."""
        policy, counts = self.policy, self.results.counts
        cost, slow = self.results.usage.cost_usd, self.results.latency.p95
        limits = [
            (CheckKind.MAX_COST, policy.max_cost, cost, "the cost is not known"),
            (CheckKind.MAX_P95_LATENCY, policy.max_p95_latency, slow, "no reply came"),
            (CheckKind.MAX_ERRORS, policy.max_errors, counts.errors, None),
        ]
        if self.results.user_checks:
            limits.append((CheckKind.MAX_INVALID_USERS, policy.max_invalid_users, counts.invalid_users, None))
        for kind, allowed, seen, unknown in limits:
            if allowed is not None:
                passed, note = seen is not None and seen <= allowed, unknown if seen is None else None
                yield self.run.check(kind, allowed, seen=seen, passed=passed, note=note)


def _on(compared: int, tests: int) -> str | None:
    """The number of tests that a check rests on, unless it is all of them."""
    return f"on {compared} of {tests} tests" if compared < tests else None


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None
