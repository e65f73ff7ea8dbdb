"""How often intervals of false alarms cover the true rate: figures of docs/statistics.md.

A run's score is the agent's true score and normal noise. The agent never changes; *drift* moves its scores
slowly up and down, as a provider may.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from math import sqrt
from random import Random

from ci_evals.extensions.backtest.binomial import exact_interval

NOISE = 3.0
"""The standard deviation of a run's score, in points: some 20 tests × 3 trials."""
_MEMORY = 0.9
"""The share of the drift that is left in the next run."""
_WINDOW = 10
_LONG = 200_000


def scores(runs: int, drift: float, rng: Random) -> list[float]:
    """The scores of consecutive runs, as distances from the agent's mean score."""
    moved = rng.gauss(0, drift)
    result = []
    for _ in range(runs):
        result.append(moved + rng.gauss(0, NOISE))
        moved = _MEMORY * moved + sqrt(1 - _MEMORY**2) * rng.gauss(0, drift)
    return result


def fails(gate: str, head: float, before: Sequence[float]) -> bool:
    """Return whether a gate fails a run with these runs before it."""
    floor, drop = head < -4, head - before[-1] < -5
    window = before[-_WINDOW:]
    match gate:
        case "floor":
            return floor
        case "drop":
            return drop
        case "floor and drop":
            return floor or drop
        case "drop, ten earlier runs":
            return head - sum(window) / len(window) < -5
    raise ValueError(gate)


def one_pair_each(gate: str, found: Sequence[float]) -> Iterator[bool]:
    """Alarms of pairs that share no run."""
    for place in range(1, len(found), 2):
        yield fails(gate, found[place], found[:place])


def all_pairs(gate: str, found: Sequence[float]) -> Iterator[bool]:
    """Alarms of every run against the one before it."""
    for place in range(1, len(found)):
        yield fails(gate, found[place], found[max(0, place - _WINDOW) : place])


@cache
def true_rate(gate: str, drift: float) -> float:
    """The share of false alarms in the long run."""
    alarms = list(all_pairs(gate, scores(_LONG, drift, Random(f"long {gate} {drift}"))))
    return sum(alarms[_WINDOW:]) / len(alarms[_WINDOW:])


def coverage(times: int, gate: str, drift: str, runs: str) -> list[float]:
    """The true rate, and the share of intervals that cover it: one pair for each run, and all pairs."""
    moves = 0.0 if drift == "none" else float(drift.split(maxsplit=1)[0])
    rate = true_rate(gate, moves)
    covered = [0, 0]
    for time in range(times):
        result = scores(int(runs), moves, Random(f"{gate} {drift} {runs} {time}"))
        for way, pairs in enumerate((one_pair_each, all_pairs)):
            alarms = list(pairs(gate, result))
            low, high = exact_interval(sum(alarms), len(alarms))
            covered[way] += low <= rate <= high
    return [rate, *(count / times for count in covered)]
