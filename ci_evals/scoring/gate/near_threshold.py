"""Checks of the gate near their threshold: more trials may decide them otherwise."""

from ci_evals.domain.results.gate import CheckKind, Decision, GateCheck
from ci_evals.scoring.statistics import ALPHA

CLOSE = 0.25
"""The p up to which a drop counts as near the threshold."""


def checks_near_threshold(decision: Decision) -> tuple[GateCheck, ...]:
    """The checks near their threshold; none if the run has no verdict or clearly fails another check."""
    near = tuple(check for check in decision.checks if _is_near(check))
    # More trials may yet make a check that so few could not; each of these is one of the reasons.
    unchecked = sum(check.blocks_verdict for check in decision.checks)
    clear = any(
        check not in near for check in decision.checks if check.holds is False or check.blocks_verdict
    )
    return () if len(decision.reasons) > unchecked or clear else near


def _is_near(check: GateCheck) -> bool:
    if check.kind is CheckKind.REGRESSION and check.required == ALPHA:
        return check.seen is not None and check.seen <= CLOSE
    if check.holds is False and check.seen != check.seen_if_undecided_failed:
        # More trials must not open a gate that undecided verdicts have closed.
        return False
    bounds = check.interval
    if not bounds or check.required is None:
        return False
    # A drop ends where scores do, so that its interval may begin at just what is allowed.
    at_low = check.kind is CheckKind.MAX_DROP and bounds.low == check.required
    return (bounds.low < check.required or at_low) and check.required <= bounds.high
