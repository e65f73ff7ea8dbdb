"""The statistics against agents whose true scores are known: what docs/statistics.md shows.

`make simulate` computes every figure of its tables again. The other tests try part of them less often, and
allow three standard errors.
"""

from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from doc_pages import page, table
from logit_agents import KINDS, MEANS, Sessions
from simulated_agents import MEAN, agent, concentrated, spread, unchanged
from simulation import (
    Setting,
    alarms,
    claims,
    covers,
    covers_change,
    covers_if_trials_were_independent,
    covers_no_change,
    false_claims,
    fell,
    misses,
    missing_proposed_floors,
    newly_failing,
    odds_of_floors,
    odds_of_newly_failing,
    proven,
    score_intervals,
)

DOCS = page("statistics.md")
TEXT = " ".join(DOCS.split())
DAMAGES = {"none": unchanged, "spread": spread, "concentrated": concentrated}


def error(share, *times):
    """Three standard errors of a share that was found in so many trials, or of how two such differ."""
    share = min(max(share, 0.01), 0.99)
    return 3 * sqrt(share * (1 - share) * sum(1 / count for count in times))


def few_or_all(names, few, *all_of_them):
    """Few repetitions in the slow tier; all of them in `make simulate`."""
    full = (pytest.param(*row, marks=pytest.mark.simulate) for row in all_of_them)
    return pytest.mark.parametrize(names, [pytest.param(*few, marks=pytest.mark.slow), *full])


def shown(heading, *row):
    """The figures behind the first cells of a row of the docs, as shares."""
    (result,) = [cells for cells in table(heading, DOCS) if tuple(cells[: len(row)]) == row]
    return [float(cell.removesuffix("%")) / 100 for cell in result[len(row) :]]


@pytest.mark.parametrize(
    ("many", "of_kind"), [(10_000, 1_500), pytest.param(30_000, 3_000, marks=pytest.mark.simulate)]
)
def test_simulated_agents_have_the_documented_scores(many, of_kind):
    """Within three standard errors."""
    drawn = [("", agent(many, Random(1)), MEAN)]
    drawn += [(kind, KINDS[kind](of_kind, Random(1)), MEANS[kind]) for kind in KINDS]
    for kind, cases, mean in drawn:
        scores = [case.score for case in cases]
        assert abs(fmean(scores) - mean) <= 3 * stdev(scores) / sqrt(len(scores)), kind
        assert kind or stdev(scores) == pytest.approx(10.9, abs=0.3)
    assert f"Mean score {MEAN:.1f}." in TEXT


def _of_scores(times, size):
    setting = Setting(*_numbers(size), times=times)
    return covers(setting), covers_if_trials_were_independent(setting)


def _of_gates(times, size):
    tests, trials = _numbers(size)
    setting = Setting(tests, trials, trials, times=times)
    floors = [misses(setting, by) for by in (2, 5, 10)]
    return *floors, fell(setting, unchanged, 5), newly_failing(setting)


def _of_drops(times, damage, tests):
    setting, harm = Setting(int(tests), times=times), DAMAGES[damage]
    return fell(setting, harm), fell(setting, harm, 5), proven(setting, harm)


def _of_claims(times, trials, tests):
    head, base = map(int, trials.split(" against "))
    setting = Setting(int(tests), head, base, times=times)
    return claims(setting, unchanged).any_false, claims(setting, concentrated).found


def _of_odds(times, size):
    setting = Setting(*_numbers(size), times=times)
    texts = [one for each in odds_of_floors(setting, (70, 75, 80, 85, 90)) for one in each]
    shares = []
    for low, high in ((0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.4)):
        close = [one for one in texts if low <= one.odds < high]
        shares += [fmean(one.odds for one in close), fmean(one.missed for one in close)]
    return *shares, fmean(missing_proposed_floors(setting))


def _of_alarms(times, kind, tests):
    setting = Setting(int(tests), times=times, kind=kind)
    return [alarms(setting, Sessions(points)) for points in (0, 3, 5)]


def _of_levels(times, kind, tests):
    single = proven(Setting(int(tests), 1, 1, times=times, kind=kind), unchanged)
    return single, alarms(Setting(int(tests), times=times, kind=kind), Sessions())


def _of_intervals(times, kind, tests):
    setting = Setting(int(tests), times=times, kind=kind)
    score = score_intervals(setting)
    return (
        *(score.covers, score.above, score.below, score.covers_these),
        covers_no_change(setting, lambda _, rng: (3, 3)),
        covers_no_change(setting, lambda _, rng: (rng.randint(1, 5), rng.randint(1, 5))),
        covers_no_change(setting, lambda place, _: (1, 1) if place else (2, 2)),
    )


def _of_false_claims(times, kind, tests):
    setting = Setting(int(tests), 7, 3, times=times, kind=kind)
    return [false_claims(setting, each) for each in (Sessions(), Sessions(3), Sessions(3, 3))]


def _numbers(size):
    """Tests and trials of `8 × 3`."""
    return map(int, size.split(" × "))


TABLES = {
    "score of tests × trials": (_of_scores, 4_000),
    "gate on tests × trials": (_of_gates, 4_000),
    "damage": (_of_drops, 10_000),
    "trials": (_of_claims, 1_000),
    "odds from tests × trials": (_of_odds, 1_000),
    "called worse": (_of_alarms, 800),
    "level": (_of_levels, 1_000),
    "intervals": (_of_intervals, 1_500),
    "false claims": (_of_false_claims, 600),
}
KEYS = {"score of tests × trials": 1, "gate on tests × trials": 1, "odds from tests × trials": 1}
"""How many cells say what a row is about; else two."""


@pytest.mark.simulate
@pytest.mark.parametrize(
    ("heading", "cells"), [(heading, cells) for heading in TABLES for cells in table(heading, DOCS)]
)
def test_docs_tables_of_statistics_equal_the_simulation(heading, cells):
    """Figure by figure: the same dice come to the same, up to how a machine rounds."""
    figures, times = TABLES[heading]
    keys = cells[: KEYS.get(heading, 2)]
    promised = [float(part.removesuffix(" %")) for cell in cells[len(keys) :] for part in cell.split(" → ")]
    assert [100 * share for share in figures(times, *keys)] == pytest.approx(promised, abs=0.15)


@pytest.mark.simulate
def test_documented_power_of_more_tests_equals_the_simulation():
    result = [
        proven(Setting(tests, trials, trials, times=10_000), harm)
        for harm in (spread, concentrated)
        for tests, trials in ((20, 3), (60, 1))
    ]
    few, many, *concentrated_ones = (f"{100 * share:.0f}" for share in result)
    message = "(measured: {} and {} % of spread ones, {} and {} % of concentrated ones)"
    assert message.format(few, many, *concentrated_ones) in TEXT


@pytest.mark.simulate
def test_documented_coverage_of_change_intervals_equals_the_simulation():
    """For 5, 8 and 20 tests, whatever the damage."""
    ranges = []
    for trials in (3, 1):
        result = [
            100 * covers_change(Setting(tests, trials, trials, times=2_000), harm)
            for tests in (5, 8, 20)
            for harm in DAMAGES.values()
        ]
        ranges += [min(result), max(result)]
    low, high, single_low, single_high = (f"{share:.1f}" for share in ranges)
    assert f"in {low} to {high} % of 2,000 comparisons at 5, 8 and 20 tests × 3" in TEXT
    assert f"with single trials in {single_low} to {single_high} %" in TEXT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "trials"), [(5, 3), (8, 1), pytest.param(20, 3, marks=pytest.mark.simulate)]
)
def test_score_interval_covers_the_true_score(tests, trials):
    """In 95 % of runs; the textbook's, which takes trials for independent, in fewer: it would be noticed."""
    times = 750
    held = covers(Setting(tests, trials, times=times))
    textbook = covers_if_trials_were_independent(Setting(tests, trials, times=300))
    promised, promised_of_textbook = shown("score of tests × trials", f"{tests} × {trials}")
    assert 0.93 <= held <= 0.97
    assert abs(held - promised) <= error(promised, times, 4_000)
    assert textbook < 0.91
    assert abs(textbook - promised_of_textbook) <= error(promised_of_textbook, 300, 4_000)


@few_or_all(("tests", "times", "tosses"), (8, 400, 300), (8, 1_000, 500), (40, 1_000, 500))
def test_unchanged_agent_is_called_worse_in_at_most_one_comparison_of_twenty(tests, times, tosses):
    """That its score is lower is a coin toss."""
    share, most = proven(Setting(tests, times=times), unchanged), 0.05 + error(0.05, times)
    assert 0.05 - error(0.05, times) <= share <= most < (0.071 if times == 1_000 else 0.085)
    assert abs(fell(Setting(tests, times=tosses), unchanged) - 0.5) <= error(0.5, tosses)


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "tests"), [("spread", 8), ("concentrated", 20)])
def test_drops_are_found_as_often_as_documented(damage, tests):
    setting, harm, times = Setting(tests, times=100), DAMAGES[damage], 100
    lower, five, result = shown("damage", damage, str(tests))
    for share, promised in ((proven(setting, harm), result), (fell(setting, harm), lower)):
        assert abs(share - promised) <= error(promised, times, 10_000)
    assert abs(fell(setting, harm, 5) - five) <= error(five, times, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(("tests", "damage"), [(8, "none"), (8, "spread"), (20, "concentrated")])
def test_change_interval_covers_the_true_change(tests, damage):
    """The true change of these very tests, in 95 % of comparisons."""
    assert abs(covers_change(Setting(tests, times=200), DAMAGES[damage]) - 0.95) <= error(0.95, 200)


@pytest.mark.parametrize("times", [300, pytest.param(1_000, marks=pytest.mark.simulate)])
def test_change_interval_of_single_trials_is_wider(times):
    """It asks of other tests too, so it holds the true change of these in more."""
    assert covers_change(Setting(8, 1, 1, times=times), concentrated) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("head", "base", "tests", "times"), [(3, 3, 8, 150), (7, 3, 20, 80)])
def test_broken_test_claims_have_documented_false_and_detection_rates(head, base, tests, times):
    """Any false one in 5 % of comparisons at most."""
    setting = Setting(tests, head, base, times=times)
    false, result = shown("trials", f"{head} against {base}", str(tests))
    assert claims(setting, unchanged).any_false <= 0.05 + error(0.05, times)
    assert false <= 0.05
    # Tests of one agent are not independent of each other.
    assert abs(claims(setting, concentrated).found - result) <= error(result, times, 500)


@pytest.mark.slow
@pytest.mark.parametrize(("heading", "kind", "tests", "times"), [
    *[("called worse", "perfect", "20", 50), ("level", "binary", "30", 100)],
    *[("intervals", "perfect", "10", 80), ("intervals", "heavy", "10", 80)],
    ("false claims", "perfect", "10", 50),
])  # fmt: skip
def test_simulated_logit_agents_reproduce_documented_figures(heading, kind, tests, times):
    """Part of each table, tried less often."""
    figures, full = TABLES[heading]
    for share, promised in zip(figures(times, kind, tests), shown(heading, kind, tests), strict=True):
        assert abs(share - promised) <= error(promised, times, full)


def test_docs_tables_and_text_of_logit_agents_stay_within_promised_error_rates():
    # What is said of stale baselines, here and on the page of rounds.
    rows = [shown("called worse", "heavy", str(tests)) for tests in (8, 20, 40)]
    first = "{:.1f}, {:.1f} and {:.1f} %".format(*(100 * row[1] for row in rows))
    fragile = shown("called worse", "perfect", "20")
    assert f"in {first} of runs:" in TEXT
    assert f"it is {100 * fragile[1]:.1f} % with 20 tests" in TEXT
    assert f"of 8, 20 and 40 tests fails in {first}" in " ".join(page("rounds.md").split())

    def rows(heading):
        return [shown(heading, *cells[:2]) for cells in table(heading, DOCS)]

    for same, three, five in rows("called worse"):
        assert same <= 0.05 + error(0.05, 800)
        assert five > three > 0.05
    for single, several in rows("level"):
        assert max(single, several) <= 0.05 + error(0.05, 1_000)
    for _, above, _, these, _, unequal, one_with_two in rows("intervals"):
        assert above < 0.08
        assert these >= 0.97
        assert 0.90 <= unequal <= 0.96
        assert one_with_two >= 0.95 - error(0.95, 1_500)
    for same, *_ in rows("false claims"):
        assert same <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("tests", "trials"), [(8, 1), (20, 3)])
def test_unchanged_agent_fails_a_gate_as_often_as_documented(tests, trials):
    shares = _of_gates(200, f"{tests} × {trials}")
    for share, promised in zip(shares, shown("gate on tests × trials", f"{tests} × {trials}"), strict=True):
        assert abs(share - promised) <= error(promised, 200, 4_000)


@few_or_all(("agents", "most"), (60, 0.085), (150, 0.06))
def test_proposed_minimum_score_is_missed_in_few_further_runs(agents, most):
    """In fewer than 8 %: 5 %, and what the recorded run had of luck."""
    missed = missing_proposed_floors(Setting(8, 3, times=agents))
    assert abs(fmean(missed) - 0.06) <= 0.02 + 3 * stdev(missed) / sqrt(agents) < most


@few_or_all(("agents", "compared"), (30, 20), (80, 50))
def test_odds_of_minimum_scores_agree_with_further_runs(agents, compared):
    """Floors whose odds are 2 to 40 % are missed in as many runs, over all agents."""
    off = [
        fmean(one.odds - one.missed for one in close)
        for items in odds_of_floors(Setting(12, times=agents), (75, 80, 85))
        if (close := [one for one in items if 0.02 <= one.odds <= 0.4])
    ]
    assert len(off) > compared
    assert abs(fmean(off)) <= 0.02 + 3 * stdev(off) / sqrt(len(off))


@few_or_all(("agents", "times"), (25, 500), (60, 1_000))
def test_odds_of_newly_failing_tests_agree_with_further_runs(agents, times):
    """Nearly: they are a little lower than what happens."""
    odds, happens = odds_of_newly_failing(Setting(8, times=agents)), newly_failing(Setting(8, times=times))
    error_of_odds = 3 * stdev(odds) / sqrt(agents)
    assert fmean(odds) <= happens + error_of_odds
    assert abs(fmean(odds) - happens) <= 0.05 + error_of_odds
