"""From values to places in a drawing, and the round numbers that an axis names."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on a line from `start` to `end`; what lies beyond stands at its ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    """True if equal steps are equal factors; then `low` is above 0."""

    def __call__(self, value: float) -> float:
        """The place of a value; the middle if there is only one."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = map(math.log10, (low, high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def step(extent: float, most: int) -> float:
    """The least of …, 0.5, 1, 2, 5, 10, 20, … of which `most` reach over `extent`, which is above 0."""
    rough = extent / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def ticks(low: float, high: float, most: int = 5) -> tuple[float, ...]:
    """Round numbers from `low` to `high`, a step apart; at most one more than `most`."""
    if not high > low:
        return (low,)
    size = step(high - low, most)
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return tuple(_round(number * size, size) for number in range(first, last + 1))


def above(value: float, most: int = 5) -> float:
    """The first tick that is not below `value`, of an axis that begins at 0; 1 for 0."""
    if value <= 0:
        return 1
    size = step(value, most)
    return _round(math.ceil(value / size - 1e-9) * size, size)


def decades(low: float, high: float, most: int = 7) -> tuple[float, ...]:
    """Round numbers for a scale of equal factors, the first at or below `low`, the last at or above `high`.

    1, 2, 5, 10, …; where that were more than `most` 1, 10, 100, …, or fewer of them.
    """
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    fine = [float(f"{factor}e{power}") for power in range(first, last + 1) for factor in (1, 2, 5)]
    edges = tuple(edge for edge in fine if edge <= 10.0**last)
    while len(edges) > 2 and edges[1] <= low:
        edges = edges[1:]
    while len(edges) > 2 and edges[-2] >= high:
        edges = edges[:-1]
    if len(edges) <= most:
        return edges
    stride = max(1, math.ceil((last - first) / most))
    return tuple(float(f"1e{power}") for power in range(first, last + stride, stride))


def _round(value: float, size: float) -> float:
    """The multiple of `size` that binary arithmetic missed by a little."""
    return round(value, max(0, 2 - math.floor(math.log10(size)))) + 0.0
