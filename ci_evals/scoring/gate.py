"""The gate: a list of checks over the scorecard, each with what it asks and what was seen."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.results import Decision, GateCheck, TestResult, points
from ci_evals.domain.suite import Suite, Test
from ci_evals.scoring import share
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.scoring.share import Choice, Counting
from ci_evals.scoring.soundness import all_passed, unsound


class Kind(StrEnum):
    """What a selector selects by."""

    SUITE = "suite"
    TEST = "test"
    CATEGORY = "category"
    TAG = "tag"
    LOGIC = "logic"
    DIFFICULTY = "difficulty"


@dataclass(frozen=True)
class Threshold:
    """A floor for a part of the run: `category:safety=100`."""

    kind: Kind
    name: str
    required: float

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class Policy:
    """What is asked of a run."""

    min_score: float = 80
    thresholds: tuple[Threshold, ...] = ()
    max_errors: int = 0
    enforced: bool = True
    """Whether a gate that does not hold fails the build (`--no-gate` says no)."""


@dataclass(frozen=True)
class Ending:
    """How the run as a whole ended."""

    interrupted: bool = False
    stopped_because: str | None = None
    bug: bool = False
    """Whether it was stopped by a bug of ours."""


_KINDS = "|".join(Kind)
_LINE = re.compile(rf"\s*({_KINDS}):(.+)=\s*([0-9]+(?:\.[0-9]+)?)\s*", re.DOTALL)


def read_thresholds(text: str | None) -> tuple[Threshold, ...]:
    """The floors in `--thresholds`, one per line or comma. A comma inside a name does no harm.

    Raises:
        UsageError: a line is not of the form `kind:NAME=SCORE`, or the score is not 0 to 100.
    """
    lines = re.split(rf"\n|,(?=\s*(?:{_KINDS}):)", text or "")
    return tuple(_threshold(line) for line in lines if line.strip())


def _threshold(line: str) -> Threshold:
    match = _LINE.fullmatch(line)
    if match is None or float(match[3]) > 100:
        raise UsageError(
            f"--thresholds: {line.strip()!r} is not of the form KIND:NAME=SCORE, with KIND one of "
            f"{', '.join(Kind)} and SCORE from 0 to 100"
        )
    return Threshold(Kind(match[1]), match[2].strip(), float(match[3]))


def check_names(thresholds: Iterable[Threshold], suites: Sequence[Suite]) -> None:
    """Refuses a threshold on a name that none of the suites has: it would guard nothing.

    Raises:
        UsageError: with the nearest name that exists.
    """
    known = _known((suite.name, test) for suite in suites for test in suite.tests)
    for threshold in thresholds:
        names = sorted(known[threshold.kind])
        if threshold.name not in names:
            close = difflib.get_close_matches(threshold.name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(names) or 'none'}"
            raise UsageError(f"--thresholds: there is no {threshold.kind} {threshold.name!r}; {hint}")


def _known(tests: Iterable[tuple[str, Test]]) -> dict[Kind, set[str]]:
    """The names that selectors can select by, from pairs of a suite's name and a test of it."""
    known: dict[Kind, set[str]] = {kind: set() for kind in Kind}
    for suite, test in tests:
        known[Kind.SUITE].add(suite)
        known[Kind.TEST].add(test.name)
        known[Kind.TAG].update(test.tags)
        known[Kind.DIFFICULTY].update(_there(test.difficulty))
        for evaluation in test.evaluations:
            known[Kind.CATEGORY].update(_there(evaluation.category))
            known[Kind.LOGIC].update(evaluation.aui_logic)
    return known


def _there(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def decide(plan: Plan, card: Scorecard, policy: Policy, ending: Ending, *, offline: bool) -> Decision:
    """The gate's checks and the exit code that follows from them."""
    floors = _Floors(card, offline=offline)
    checks = [floors.check("min-score", policy.min_score, card.tests)]
    checks += [floors.threshold(threshold, plan) for threshold in policy.thresholds]
    checks += floors.of_suites(plan)
    errors = card.counts.errors
    checks.append(
        GateCheck(
            name="max-errors", required=policy.max_errors, seen=errors, holds=errors <= policy.max_errors
        )
    )
    reasons = tuple(_distrust(card, policy, ending))
    holds = all(check.holds for check in checks) and not reasons and not ending.interrupted
    if ending.bug:
        code = Exit.BUG
    elif ending.interrupted:
        code = Exit.INTERRUPTED
    elif reasons:
        code = Exit.INVALID
    else:
        code = Exit.HOLDS if holds or not policy.enforced else Exit.FAILED
    return Decision(passed=holds, exit_code=code, checks=tuple(checks), reasons=reasons)


def _distrust(card: Scorecard, policy: Policy, ending: Ending) -> Iterator[str]:
    """Why the run cannot be trusted, whatever its score."""
    if ending.stopped_because:
        yield f"the run was stopped: {ending.stopped_because}"
    if card.counts.not_run:
        yield f"{card.counts.not_run} of {card.counts.trials + card.counts.not_run} trials were not run"
    if card.counts.errors > policy.max_errors:
        yield f"{card.counts.errors} unsound trials, at most {policy.max_errors} allowed (max-errors)"
    if card.score is None:
        yield "nothing could be scored"


class _Floors:
    """Checks of a score against a floor. The score that decides counts undecided verdicts as failed."""

    def __init__(self, card: Scorecard, *, offline: bool) -> None:
        self.card = card
        self.shown = Counting(offline=offline)
        self.strict = Counting(offline=offline, undecided_fails=True)

    def check(
        self, name: str, required: float, tests: Sequence[TestResult], choice: Choice = share.every
    ) -> GateCheck:
        chosen = [f for test in tests for trial in test.trials for f in trial.findings if choice(f)]
        if chosen and all(self.shown.excused(finding) for finding in chosen):
            note = "not applied: nothing but judged criteria, and no judge (--provider=offline)"
            return GateCheck(name=name, required=required, seen=None, holds=True, note=note)
        seen = share.of_tests(tests, self.shown, choice)
        decisive = share.of_tests(tests, self.strict, choice)
        return GateCheck(
            name=name,
            required=required,
            seen=points(seen),
            seen_if_undecided_failed=points(decisive),
            holds=decisive is not None and decisive >= Fraction(repr(float(required))),
            note="nothing of it was scored" if decisive is None else None,
        )

    def threshold(self, threshold: Threshold, plan: Plan) -> GateCheck:
        name, tests = threshold.name, self.card.tests
        choice: Choice = share.every
        match threshold.kind:
            case Kind.SUITE:
                tests = tuple(t for suite in self.card.suites if suite.name == name for t in suite.tests)
            case Kind.TEST:
                tests = tuple(test for test in tests if test.name == name)
            case Kind.TAG:
                tests = tuple(test for test in tests if name in test.tags)
            case Kind.DIFFICULTY:
                tests = tuple(test for test in tests if test.difficulty == name)
            case Kind.CATEGORY:
                choice = share.of_category(name)
            case Kind.LOGIC:
                choice = share.of_logic(name)
        planned = _known((suite.suite.name, test) for suite in plan.suites for test in suite.tests)
        if name in planned[threshold.kind]:
            return self.check(str(threshold), threshold.required, tests, choice)
        note = "nothing of it was selected for this run"
        return GateCheck(name=str(threshold), required=threshold.required, seen=None, holds=True, note=note)

    def of_suites(self, plan: Plan) -> Iterator[GateCheck]:
        """The floors and critical tests that the suites themselves ask for."""
        for planned, result in zip(plan.suites, self.card.suites, strict=True):
            if planned.suite.min_score is not None:
                yield self.check(f"suite:{result.name}", planned.suite.min_score, result.tests)
            for test, tested in zip(planned.tests, result.tests, strict=True):
                if test.min_score is not None:
                    yield self.check(f"test:{test.name}", test.min_score, [tested])
                if test.critical:
                    yield self._critical(tested)

    def _critical(self, test: TestResult) -> GateCheck:
        passed = [all_passed(t, self.shown) and not unsound(t, self.shown) for t in test.trials]
        planned = len(test.trials) + test.not_run
        return GateCheck(
            name=f"critical:{test.name}",
            required=100,
            seen=100 * sum(passed) / planned,
            holds=sum(passed) == planned,
            note=f"trials passed: {sum(passed)} of {planned}",
        )
