"""Intervals of false alarms: exact, and against histories with a known rate, as docs/statistics.md shows."""

from random import Random
from statistics import NormalDist

import pytest
from alarm_simulation import NOISE, all_pairs, coverage, one_pair_each, scores
from doc_pages import page, table
from each_row import each_row

from ci_evals.extensions.backtest.binomial import exact_interval, share_at_most, sign_test

DOCS = page("statistics.md")
HEADING = "gate of stored runs"
RATES = {"floor": NormalDist(0, NOISE).cdf(-4), "drop": NormalDist(0, NOISE * 2**0.5).cdf(-5)}
TIMES = 400


@each_row("gate", [*RATES])
def test_interval_covers_the_true_false_alarm_rate_without_drift(gate):
    covered = 0
    for time in range(TIMES):
        alarms = list(one_pair_each(gate, scores(40, 0, Random(f"{gate} {time}"))))
        low, high = exact_interval(sum(alarms), len(alarms))
        covered += low <= RATES[gate] <= high
    assert covered / TIMES >= 0.95 - 3 * (0.95 * 0.05 / TIMES) ** 0.5


@pytest.mark.parametrize("gate", RATES)
def test_simulated_false_alarm_rate_equals_the_known_rate(gate):
    alarms = list(all_pairs(gate, scores(20_000, 0, Random(f"long {gate}"))))
    assert sum(alarms) / len(alarms) == pytest.approx(RATES[gate], abs=0.01)


@pytest.mark.simulate
@pytest.mark.parametrize("cells", table(HEADING, DOCS))
def test_simulated_coverage_matches_every_row_of_the_docs(cells):
    promised = [float(cell.removesuffix(" %")) for cell in cells[3:]]
    result = [100 * share for share in coverage(2_000, *cells[:3])]
    assert result == pytest.approx(promised, abs=0.15)


def test_docs_text_states_worst_coverage_of_its_table():
    rows = table(HEADING, DOCS)
    steady = [float(cells[4].removesuffix(" %")) for cells in rows if cells[1] == "none"]
    text = " ".join(DOCS.split())
    assert f"covers the true rate in {min(steady)} % or more" in text
    worst = min(rows, key=lambda cells: float(cells[4].removesuffix(" %")))
    assert f"it covers {worst[4]} of {worst[2]} runs at worst" in text
    assert f"With all pairs it would cover {worst[5]}." in text


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


@pytest.mark.parametrize("of", [1, 3, 20, 60, pytest.param(200, marks=pytest.mark.simulate)])
def test_exact_interval_covers_every_share_with_95_percent_probability(of):
    bounds = [exact_interval(count, of) for count in range(of + 1)]
    for hundredth in range(1, 100):
        share = hundredth / 100
        covered = 0.0
        for count, (low, high) in enumerate(bounds):
            if low <= share <= high:
                below = share_at_most(count - 1, of, share) if count else 0.0
                covered += share_at_most(count, of, share) - below
        assert covered >= 0.95 - 1e-9


@pytest.mark.parametrize(
    ("fewer", "more", "p"), [(0, 0, 1.0), (3, 3, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 7, 0.0703125)]
)
def test_sign_test_is_exact_and_symmetric(fewer, more, p):
    assert sign_test(fewer, more) == pytest.approx(p)
    assert sign_test(more, fewer) == pytest.approx(p)
