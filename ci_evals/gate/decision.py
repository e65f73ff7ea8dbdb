"""The decision of the gate: from its checks and the way the run ended to passed, failed or no verdict.

And which checks are so near their threshold that more trials may decide them otherwise.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import CheckKind, Decision, GateCheck, GateLook, LookDecision
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.checks import (
    changes_of,
    checks_of,
    compares,
    is_floor,
    needs_baseline,
    requirements_of,
)
from ci_evals.gate.gate_input import GateInput, why_not_compared
from ci_evals.gate.invalid_run import (
    InvalidRunReason,
    NotChecked,
    NotCompared,
    NothingScored,
    Stopped,
    UncountedDecide,
    invalid_run_reasons,
    unread_attempts,
)
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules import rule_of
from ci_evals.gate.rules.fail_fast import FailFast
from ci_evals.scoring.scores import deciding, uncounted_trials


@dataclass(frozen=True)
class GateDecision:
    """The decision of the gate, with its reasons as values."""

    passed: bool
    exit_code: Exit
    checks: tuple[GateCheck, ...]
    reasons: tuple[InvalidRunReason, ...] = ()


def decide(given: GateInput, policy: Policy, ending: RunEnding) -> GateDecision:
    """Make all checks, and derive the exit code from them."""
    reasons = tuple(invalid_run_reasons(given.results, policy, ending))
    if ending.failed_fast:
        checks = (FailFast.ended(ending), *checks_of(_only_played(given), policy))
    else:
        checks = _settled_in_any_case(given, policy, checks_of(given, policy))
        reasons = reasons or tuple(_uncounted_decide(given, policy, checks_of))
        why_not = why_not_compared(given) if policy.baseline_required else ""
        if why_not:
            reasons = (*reasons, NotCompared(why_not))
        else:
            if policy.baseline_required or policy.baseline_named:
                checks = _blocking(checks)
            reasons = (*reasons, *_not_checked(checks))
        if given.results.score is None and _none_fails(checks):
            reasons = reasons or (NothingScored(),)
    if _none_fails(checks):
        reasons = (*reasons, *unread_attempts(given.results))
    passed = _none_fails(checks) and not reasons and not ending.interrupted
    if ending.bug:
        code = Exit.BUG
    elif ending.interrupted:
        code = Exit.INTERRUPTED
    elif reasons:
        code = Exit.INVALID
    elif passed or not policy.enforced:
        code = Exit.PASSED
    else:
        code = Exit.FAILED
    return GateDecision(passed, code, checks, reasons)


def decide_skipped(given: GateInput, policy: Policy, ending: RunEnding) -> GateDecision:
    """Decide a run that played nothing: it may fail by what suites and gate require, and never passes."""
    checks = requirements_of(given, policy)
    if policy.baseline_required or policy.baseline_named:
        checks = _blocking(checks)
    reasons = _not_checked(checks)
    code = Exit.PASSED
    if ending.bug:
        code = Exit.BUG
    elif reasons:
        code = Exit.INVALID
    elif policy.enforced and not _none_fails(checks):
        code = Exit.FAILED
    return GateDecision(passed=False, exit_code=code, checks=checks, reasons=reasons)


def decide_change(given: GateInput, policy: Policy) -> GateDecision:
    """Decide by the checks against the baseline alone. One that cannot be made leaves no verdict."""
    checks = _blocking(changes_of(given, policy))
    run = given.results.run
    reasons: list[InvalidRunReason] = []
    if run.status != "completed":
        reasons.append(Stopped(run.stopped_because or run.status))
    if given.results.score is None:
        reasons.append(NothingScored())
    else:
        reasons += _uncounted_decide(given, policy, changes_of)
    reasons += _not_checked(checks)
    if checks and _none_fails(checks):
        reasons += unread_attempts(given.results)
    passed = _none_fails(checks) and not reasons
    if not checks:
        code = Exit.PASSED
    elif reasons:
        code = Exit.INVALID
    elif passed:
        code = Exit.PASSED
    else:
        code = Exit.FAILED
    return GateDecision(passed, code, checks, tuple(reasons))


def open_checks(decision: Decision) -> tuple[GateCheck, ...]:
    """The checks that another round may still change; none if the run has no verdict or fails already."""
    unchecked = sum(check.blocks_verdict for check in decision.checks)
    failed = any(check.passed is False and check.settled for check in decision.checks)
    if failed or len(decision.reasons) > unchecked:
        return ()
    return tuple(check for check in decision.checks if not check.settled)


def gate_looks(checks: Iterable[GateCheck], trials: int) -> Iterator[GateLook]:
    """Yield what a look after so many trials came to, by the checks of a score or of its drop."""
    for check in checks:
        by_score = is_floor(check) or check.kind is CheckKind.MAX_DROP
        if by_score and check.passed is not None:
            decided: LookDecision = "pass" if check.passed else "fail"
            yield GateLook(
                trials=trials,
                check=check.name,
                seen=check.seen,
                decision=decided if check.settled else "continue",
            )


def leaves_drop_possible(check: GateCheck) -> bool:
    """Return whether a check against the baseline fails, could not be made, or is near its threshold."""
    return compares(check) and (check.passed is not True or rule_of(check).is_near(check))


def _only_played(given: GateInput) -> GateInput:
    """Leave out the tests and trials that never started, since no more were wanted."""
    suites = tuple(
        replace(suite, tests=tuple(replace(t, not_run=0) for t in suite.tests))
        for suite in given.results.suites
    )
    return replace(given, results=replace(given.results, suites=suites), only_played=True)


def _none_fails(checks: Iterable[GateCheck]) -> bool:
    return all(check.passed is not False for check in checks)


def _blocking(checks: Iterable[GateCheck]) -> tuple[GateCheck, ...]:
    """Mark the checks against the baseline that could not be made: without them there is no verdict."""
    return tuple(
        replace(check, blocks_verdict=True) if check.passed is None and needs_baseline(check) else check
        for check in checks
    )


def _not_checked(checks: Iterable[GateCheck]) -> tuple[NotChecked, ...]:
    return tuple(NotChecked(check) for check in checks if check.blocks_verdict)


def _uncounted_decide(
    given: GateInput, policy: Policy, checks: Callable[[GateInput, Policy], Iterable[GateCheck]]
) -> Iterator[UncountedDecide]:
    """Yield a reason if these checks depend on how the uncounted trials would have scored."""
    uncounted = sum(map(uncounted_trials, deciding(given.results.tests)))
    if not uncounted:
        return
    worst, best = (_none_fails(checks(replace(given, assumed_score=score), policy)) for score in (0, 100))
    if worst != best:
        yield UncountedDecide(uncounted)


def _settled_in_any_case(
    given: GateInput, policy: Policy, checks: tuple[GateCheck, ...]
) -> tuple[GateCheck, ...]:
    """Mark the checks of a round that are settled only because trials without a score were left out."""
    if given.look is None or not any(map(uncounted_trials, deciding(given.results.tests))):
        return checks
    worst, best = (checks_of(replace(given, assumed_score=score), policy) for score in (0, 100))
    return tuple(
        replace(check, settled=check.settled and low.settled and high.settled)
        for check, low, high in zip(checks, worst, best, strict=True)
    )
