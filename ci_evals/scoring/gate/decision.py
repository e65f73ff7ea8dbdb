"""The decision of the gate: from its checks and the way the run ended to passed, failed or no verdict."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.scoring.gate.checks import GateInput, changes_of, checks_of, why_not_compared
from ci_evals.scoring.gate.invalid_run import (
    InvalidRunReason,
    NotChecked,
    NotCompared,
    NothingScored,
    UncountedDecide,
    invalid_run_reasons,
)
from ci_evals.scoring.gate.policy import RunEnding
from ci_evals.scoring.validity import uncounted_trials

_OF_BASELINE = frozenset({CheckKind.MAX_DROP, CheckKind.REGRESSION})


@dataclass(frozen=True)
class GateDecision:
    """The decision of the gate, with its reasons as values."""

    passed: bool
    exit_code: Exit
    checks: tuple[GateCheck, ...]
    reasons: tuple[InvalidRunReason, ...] = ()


def decide(given: GateInput, ending: RunEnding) -> GateDecision:
    """Make all checks, and derive the exit code from them."""
    reasons = tuple(invalid_run_reasons(given.card, given.policy, ending))
    if ending.failed_fast:
        checks = (_fail_fast(ending), *checks_of(_only_played(given)))
    else:
        checks = checks_of(given)
        reasons = reasons or tuple(_uncounted_decide(given, checks_of))
        if given.policy.baseline_required:
            why = why_not_compared(given)
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
        code = Exit.HOLDS if passed or not given.policy.enforced else Exit.FAILED
    return GateDecision(passed, code, checks, reasons)


def decide_change(given: GateInput) -> GateDecision:
    """Decide by the checks against the baseline alone. One that cannot be made leaves no verdict."""
    checks = _blocking(changes_of(given))
    undecided: tuple[InvalidRunReason, ...] = tuple(_uncounted_decide(given, changes_of))
    reasons = (*(undecided if given.card.score is not None else (NothingScored(),)), *_not_checked(checks))
    passed = _none_fails(checks) and not reasons
    code = Exit.INVALID if checks and reasons else Exit.HOLDS if passed or not checks else Exit.FAILED
    return GateDecision(passed, code, checks, reasons)


def _fail_fast(ending: RunEnding) -> GateCheck:
    kind, note = CheckKind.FAIL_FAST, ending.stopped_because or "a trial failed"
    return GateCheck(name=kind, kind=kind, required=None, seen=None, holds=False, note=note)


def _only_played(given: GateInput) -> GateInput:
    """Leave out the tests and trials that never started, since no more were wanted."""
    suites = tuple(
        suite.model_copy(update={"tests": tuple(t.model_copy(update={"not_run": 0}) for t in suite.tests)})
        for suite in given.card.suites
    )
    return replace(given, card=replace(given.card, suites=suites), only_played=True)


def _none_fails(checks: Iterable[GateCheck]) -> bool:
    return all(check.holds is not False for check in checks)


def _blocking(checks: Iterable[GateCheck]) -> tuple[GateCheck, ...]:
    """Mark the checks against the baseline that could not be made: without them there is no verdict."""
    return tuple(
        check.model_copy(update={"blocks_verdict": True})
        if check.holds is None and check.kind in _OF_BASELINE
        else check
        for check in checks
    )


def _not_checked(checks: Iterable[GateCheck]) -> tuple[NotChecked, ...]:
    return tuple(NotChecked(check) for check in checks if check.blocks_verdict)


def _uncounted_decide(
    given: GateInput, checks: Callable[[GateInput], Iterable[GateCheck]]
) -> Iterator[UncountedDecide]:
    """Yield a reason if these checks depend on how the uncounted trials would have scored."""
    uncounted = sum(map(uncounted_trials, given.card.tests))
    if not uncounted:
        return
    worst, best = (_none_fails(checks(replace(given, assumed=score))) for score in (0, 100))
    if worst != best:
        yield UncountedDecide(uncounted, some_excluded=given.card.counts.invalid_users > 0)
