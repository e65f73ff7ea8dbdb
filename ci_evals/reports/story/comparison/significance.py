"""The significance of a change of the score, and the change that could have been detected, in words."""

from math import comb

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Change, Comparison
from ci_evals.scoring.statistics import ALPHA


def of(change: Change, *, flawless: bool) -> str:
    """The significance: `no change`, `a drop that may be chance`.

    `flawless`: nothing in the run failed or is missing.
    """
    delta, of_it = change.delta or 0, " of this one test" if change.tests == 1 else ""
    if rose(change):
        return "a rise larger than chance explains"
    if delta < 0 and too_few(change):
        return f"too few trials to tell it from chance ({_enough(change)})"
    if delta < 0:
        is_proven = proven(change)
        # An interval without zero beside an unproven drop, or the other way around, looks like a mistake.
        at_odds = change.interval is not None and is_proven != (change.interval.high < 0)
        text = f"a drop{of_it} {'larger than chance explains' if is_proven else 'that may be chance'}"
        if not is_proven and change.p is not None and change.p <= ALPHA:
            return f"{text} (after so few trials p must be lower)"
        return f"{text}; p decides, not the interval" if at_odds else text
    if delta > 0:
        return "no drop"
    return "no change" + (
        ", nothing failed in this run" if flawless and change.head == change.base == 100 else ""
    )


def detectable_drop(change: Change | None) -> tuple[str, ...]:
    """The drop that could have been detected, in clauses; none if nothing was compared or more is known."""
    if change is None or change.delta is None or rose(change) or proven(change):
        return ()
    if too_few(change):
        text = f"with so few trials any drop can be chance ({_enough(change)})"
        return () if change.delta < 0 else (text,)
    most = (change.fewest_broken or 1) - 1
    caught = _caught(change)
    few = "with so few trials, " if not caught or change.estimated_from != "tests" else ""
    broken = f"{few}up to {numbers.count(most, 'newly failing test')} can be chance"
    return (*caught, *([broken] if most else []))


def too_few(change: Change) -> bool:
    """Return whether there are too few trials to prove any drop."""
    return change.smallest_p is not None and change.smallest_p > ALPHA


def rose(change: Change) -> bool:
    """Return whether the score rose more than chance explains."""
    bounds = change.interval
    return (change.delta or 0) > 0 and bounds is not None and bounds.low > 0


def proven(change: Change) -> bool:
    """Return whether the score fell more than chance explains."""
    return (
        (change.delta or 0) < 0 and not too_few(change) and change.p is not None and _is_low(change, change.p)
    )


def _is_low(change: Change, p: float) -> bool:
    """Return whether p proves a drop. In rounds the last look says so, since each is a chance to err."""
    if isinstance(change, Comparison) and change.looks:
        return change.looks[-1].decision == "fail"
    return p <= ALPHA


def _caught(change: Change) -> tuple[str, ...]:
    if change.detectable is None or change.detectable <= -(change.delta or 0):
        return ()
    if change.detectable >= 100:
        return ("the scores vary too much to notice any drop reliably",)
    if change.base is not None and change.detectable > change.base:
        # No score falls so far.
        return ()
    drop = numbers.least(change.detectable)
    noticed = f"this run would detect a drop of {drop} points or more 80 % of the time"
    return (f"with so few trials per test, {noticed}" if change.estimated_from == "tests" else noticed,)


def _enough(change: Change) -> str:
    """The number of trials that it takes to prove a drop."""
    able = next(k for k in (1, 2, 3) if comb(2 * k, k) ** -min(max(1, change.tests), 100) <= ALPHA)
    trials = numbers.count(max(able, change.trials_needed or 1), "trial")
    return f"at least {trials} {'' if change.tests == 1 else 'per test '}on each side are required"
