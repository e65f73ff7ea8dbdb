"""Shares of things that come in bundles, against seeded truth."""

import random

import pytest

from ci_evals.scoring.agreement.clustered import Bundle, share_of
from ci_evals.scoring.statistics import mean_interval


def test_interval_of_equal_size_bundles_equals_interval_of_mean_score():
    result = share_of(Bundle(yes, 4) for yes in (1, 4, 2, 3, 3))
    interval = mean_interval([25, 100, 50, 75, 75])
    assert result.value == pytest.approx(0.65)
    assert (100 * result.low, 100 * result.high) == pytest.approx((interval.low, interval.high))
    assert result.count == 20


def test_bundle_is_weighted_by_size_but_counts_as_one_observation():
    """And an empty one does not count at all."""
    assert share_of([Bundle(9, 9), Bundle(0, 1), Bundle(0, 0)]).value == pytest.approx(0.9)
    assert share_of([Bundle(0, 0)]) is None
    assert share_of([]) is None
    # Ten alike on one subject are no ten proofs.
    one, many = share_of([Bundle(0, 10)]), share_of([Bundle(0, 1)] * 10)
    assert (one.value, many.value) == (0, 0)
    assert one.high > 0.7 > 0.3 > many.high
    assert share_of([Bundle(0, 5)] * 10).high == pytest.approx(many.high)


@pytest.mark.parametrize(("bundles", "alike"), [(8, 2.0), (20, 2.0), (20, 50.0)])
def test_interval_of_a_clustered_share_covers_the_truth(bundles, alike):
    """Shares of bundles differ (Beta), sizes too: it holds the truth in some 95 of 100 runs."""
    rng = random.Random(7)
    held, runs, truth = 0, 600, 0.7

    def drawn():
        share, size = rng.betavariate(truth * alike, (1 - truth) * alike), rng.randint(1, 6)
        return Bundle(sum(rng.random() < share for _ in range(size)), size)

    for _ in range(runs):
        result = share_of(drawn() for _ in range(bundles))
        held += result.low <= truth <= result.high
    assert 0.92 <= held / runs <= 0.99
