"""The level of a comparison of a commit that was compared before: reruns must not add false alarms.

A commit is called worse if any of its attempts shows a significant drop. The first attempt may use most of
the level. Each attempt after others that found no drop uses a part of the rest, and the parts add up to all
of it, so that an unchanged agent is called worse in at most 5 % of commits whatever the number of attempts.
Once an attempt has found a drop, the level is spent: later ones cannot add a false alarm, and decide whether
the drop stands by the level of the first. So no number of reruns makes a drop harder to find. docs/reruns.md
has the tables.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import pi

from ci_evals.domain.results.run import RunInfo
from ci_evals.scoring.comparison.rounds import Look
from ci_evals.scoring.statistics import ALPHA

_FIRST = 0.9
"""The part of the level that the first attempt uses."""
_DIGITS = 12
"""Decimals of a level, so that it reads as written: 0.045."""


def share_of_level(drops: Iterable[bool]) -> float:
    """Return the part of the level that an attempt may use.

    Args:
        drops: For each earlier attempt whose score was compared, in order, whether it showed a drop.
    """
    found = tuple(drops)
    if any(found) or not found:
        return _FIRST
    return (1 - _FIRST) * 6 / (pi * len(found)) ** 2


def level(share: float) -> float:
    """Return the highest p of a drop that fails, of a run that is looked at once."""
    return round(ALPHA * share, _DIGITS)


def level_of(run: RunInfo) -> float:
    """Return the highest p of a drop that fails this run: lower than usual if it pools reruns."""
    return run.reruns.level if run.reruns else ALPHA


def with_share(look: Look, share: float) -> Look:
    """Return a look of a run in rounds that uses this part of its level."""
    return replace(look, fails_at=round(look.fails_at * share, _DIGITS))
