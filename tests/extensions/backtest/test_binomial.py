"""Exact intervals and p of counts, against published values and their own definition."""

import pytest

from ci_evals.extensions.backtest.binomial import exact_interval, share_at_most, sign_test


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.3084971),
        (1, 10, 0.0025286, 0.4450161),
        (5, 10, 0.1870860, 0.8129140),
        (10, 10, 0.6915029, 1.0),
        (2, 50, 0.0048814, 0.1371376),
    ],
)
def test_exact_interval_matches_r_binom_test(count, of, low, high):
    assert exact_interval(count, of) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("of", [1, 3, 20, pytest.param(200, marks=pytest.mark.slow)])
def test_exact_interval_covers_every_share_with_95_percent_probability(of):
    bounds = [exact_interval(count, of) for count in range(of + 1)]
    for hundredth in range(1, 100):
        share = hundredth / 100
        covered = 0.0
        for count, (low, high) in enumerate(bounds):
            if low <= share <= high:
                covered += share_at_most(count, of, share) - (
                    share_at_most(count - 1, of, share) if count else 0.0
                )
        assert covered >= 0.95 - 1e-9


@pytest.mark.parametrize(
    ("fewer", "more", "p"), [(0, 0, 1.0), (3, 3, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 7, 0.0703125)]
)
def test_sign_test_is_exact_and_symmetric(fewer, more, p):
    assert sign_test(fewer, more) == pytest.approx(p)
    assert sign_test(more, fewer) == pytest.approx(p)
