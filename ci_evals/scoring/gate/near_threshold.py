"""Checks of the gate near their threshold: more trials may decide them otherwise."""

from ci_evals.domain.results.gate import CheckKind, Decision, GateCheck
from ci_evals.scoring.statistics import ALPHA
from ci_evals.support.p_values import named

CLOSE = 0.25
"""The p up to which a drop is looked at again where `--confirm` is given."""


def close_calls(decision: Decision) -> tuple[str, ...]:
    """The checks that are near their threshold, in words.

    Nothing, where the run is not to be trusted, or where the gate fails on something that is not close.
    """
    calls = [(check, _close(check)) for check in decision.checks]
    # More trials may yet make a check that so few could not; each of these is one of the reasons.
    unchecked = sum(check.blocks_verdict for check in decision.checks)
    clear = any((check.holds is False or check.blocks_verdict) and not why for check, why in calls)
    return () if len(decision.reasons) > unchecked or clear else tuple(why for _, why in calls if why)


def _close(check: GateCheck) -> str | None:
    if check.kind is CheckKind.REGRESSION and check.required == ALPHA:
        if check.seen is None or check.seen > CLOSE:
            return None
        return f"regression: chance alone shows such a drop with {named(check.seen)}"
    if check.holds is False and check.seen != check.seen_if_undecided_failed:
        # More trials must not open a gate that undecided verdicts have closed.
        return None
    bounds = check.interval
    if not bounds or check.required is None:
        return None
    # A drop ends where scores do, so that its interval may begin at just what is allowed.
    least = bounds.low <= check.required if check.kind is CheckKind.MAX_DROP else bounds.low < check.required
    if least and check.required <= bounds.high:
        return f"{check.name}: {check.required:g} lies within {bounds.low:.1f} to {bounds.high:.1f}"
    return None
