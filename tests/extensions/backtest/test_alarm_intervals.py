"""The interval of false alarms against histories with a known rate: what docs/statistics.md shows."""

from random import Random
from statistics import NormalDist

import pytest
from alarm_simulation import NOISE, all_pairs, coverage, one_pair_each, scores
from doc_pages import page, table

from ci_evals.extensions.backtest.binomial import exact_interval

DOCS = page("statistics.md")
HEADING = "gate of stored runs"
RATES = {"floor": NormalDist(0, NOISE).cdf(-4), "drop": NormalDist(0, NOISE * 2**0.5).cdf(-5)}
TIMES = 400


@pytest.mark.parametrize("gate", RATES)
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
