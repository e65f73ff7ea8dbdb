"""Exact arithmetic of counts: the interval of a share, and the p of two settings on the same cases."""

import math
from collections.abc import Callable

_TAIL = 0.025
_STEPS = 60
"""Halvings of an interval of probabilities: more than a float can show."""


def exact_interval(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share by Clopper and Pearson, 0 to 1; it never covers the true share less often.

    `of` is above 0. Source: Clopper and Pearson (1934), Biometrika 26.
    """
    low = 0.0 if count == 0 else _root(lambda share: 1 - share_at_most(count - 1, of, share) - _TAIL)
    high = 1.0 if count == of else _root(lambda share: _TAIL - share_at_most(count, of, share))
    return low, high


def share_at_most(count: int, of: int, share: float) -> float:
    """The probability of at most so many successes of `of`, each of which has this probability."""
    if share <= 0:
        return 1.0
    if share >= 1:
        return 1.0 if count >= of else 0.0
    log, other = math.log(share), math.log1p(-share)
    terms = (math.exp(_log_choose(of, hits) + hits * log + (of - hits) * other) for hits in range(count + 1))
    return min(1.0, math.fsum(terms))


def sign_test(fewer: int, more: int) -> float:
    """The two-sided p of so many differences one way and so many the other (McNemar's exact test)."""
    differing = fewer + more
    if differing == 0:
        return 1.0
    return min(1.0, 2 * share_at_most(min(fewer, more), differing, 0.5))


def _log_choose(of: int, count: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function of a probability is zero."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
