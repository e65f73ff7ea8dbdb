"""Shares of yes among things that come in bundles, as answers on one test do: what they are, and how sure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from ci_evals.domain.results.judge import Estimate
from ci_evals.scoring.statistics import t_quantile, wilson

_Z = NormalDist().inv_cdf(0.975)
_ROUNDING = 1e-18
"""The rounding of a squared error: what is less comes from binary numbers."""


@dataclass(frozen=True)
class Bundle:
    """Things that are alike, since they are about one test, or one verdict."""

    yes: float
    of: int


def share_of(bundles: Iterable[Bundle]) -> Estimate | None:
    """The share of yes among all things, with its 95 % interval, in which the bundle is the unit.

    The error is that of a ratio of sums over bundles (Miller, 2024), the interval Wilson's (1927)
    on the number of independent things that would err as much. Where all bundles have one share, or there is
    but one, nothing is known of their spread, and each counts as a single thing.

    Returns:
        None where there is nothing.
    """
    filled = [bundle for bundle in bundles if bundle.of]
    count, n = sum(bundle.of for bundle in filled), len(filled)
    if not count:
        return None
    share = min(1.0, max(0.0, math.fsum(bundle.yes for bundle in filled) / count))
    squares = math.fsum((bundle.yes - share * bundle.of) ** 2 for bundle in filled)
    squared_error = squares / count**2 * n / (n - 1) if n > 1 else 0.0
    effective = float(n)
    if squared_error > _ROUNDING:
        effective = share * (1 - share) / squared_error * (_Z / t_quantile(n - 1)) ** 2
    low, high = wilson(share, effective, -_Z), wilson(share, effective, _Z)
    return Estimate(value=share, low=min(low, share), high=max(high, share), count=count)


def wilson_share(yes: int, of: int) -> Estimate | None:
    """The share of yes among things that have nothing to do with one another, with Wilson's 95 % interval.

    None where there are none.
    """
    if not of:
        return None
    share = yes / of
    low, high = wilson(share, of, -_Z), wilson(share, of, _Z)
    return Estimate(value=share, low=min(low, share), high=max(high, share), count=of)
