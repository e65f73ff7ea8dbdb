"""The significance of a change of the score, and the change that could have been detected, in words."""

from math import comb

from ci_evals.domain.results.comparison import Change
from ci_evals.reports import numbers
from ci_evals.scoring.statistics import ALPHA


def of(change: Change, *, flawless: bool) -> str:
    """The significance: `no change`, `a proven drop`. `flawless`: nothing in the run failed or is missing."""
    delta, of_it = change.delta or 0, " of this one test" if change.tests == 1 else ""
    if _rose(change):
        return "a rise, and more than chance explains"
    if delta < 0 and too_few(change):
        return f"cannot conclude with so few trials ({_enough(change)})"
    if delta < 0:
        proven = _proven(change)
        # An interval without zero beside an unproven drop, or the other way around, looks like a mistake.
        at_odds = change.interval is not None and proven != (change.interval.high < 0)
        text = f"{'a' if proven else 'not a'} proven drop{of_it}"
        return f"{text}; p decides, not the interval" if at_odds else text
    if delta > 0:
        return "no drop"
    return "no change" + (
        ", nothing failed in this run" if flawless and change.head == change.base == 100 else ""
    )


def detectable_drop(change: Change | None) -> tuple[str, ...]:
    """The drop that could have been detected, in clauses; none if nothing was compared or more is known."""
    if change is None or change.delta is None or _rose(change) or _proven(change):
        return ()
    if too_few(change):
        text = f"so few trials could not have proven a drop ({_enough(change)})"
        return () if change.delta < 0 else (text,)
    fewest = change.fewest_broken or 1
    broken = f"with so few trials fewer than {fewest} broken tests prove nothing"
    return (*_caught(change), *([broken] if fewest > 1 else []))


def too_few(change: Change) -> bool:
    """Return whether there are too few trials to prove any drop."""
    return change.smallest_p is not None and change.smallest_p > ALPHA


def _rose(change: Change) -> bool:
    bounds = change.interval
    return (change.delta or 0) > 0 and bounds is not None and bounds.low > 0


def _proven(change: Change) -> bool:
    return (change.delta or 0) < 0 and not too_few(change) and change.p is not None and change.p <= ALPHA


def _caught(change: Change) -> tuple[str, ...]:
    if change.detectable is None or change.detectable <= -(change.delta or 0):
        return ()
    if change.detectable >= 100:
        return ("the scores vary so much that no drop would have been caught for sure",)
    if change.base is not None and change.detectable > change.base:
        # No score falls so far.
        return ()
    caught = f"would have caught a drop of {numbers.least(change.detectable)} or more in four of five cases"
    if change.estimated_from == "tests":
        return (f"single trials do not show how a test varies by itself, and {caught}",)
    return (f"this run {caught}",)


def _enough(change: Change) -> str:
    """The number of trials that it takes to prove a drop."""
    able = next(k for k in (1, 2, 3) if comb(2 * k, k) ** -min(max(1, change.tests), 100) <= ALPHA)
    trials = numbers.count(max(able, change.trials_needed or 1), "trial")
    return f"at least {trials} {'' if change.tests == 1 else 'of each test '}on each side are needed"
