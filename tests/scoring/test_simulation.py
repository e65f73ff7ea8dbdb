"""The statistics against agents whose true scores are known: what docs/statistics.md shows, part of it anew.

How far a figure may lie from what is promised follows from how often it was tried: three standard errors.
"""

import re
from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from papers import ROOT, table
from population import MEAN, agent, concentrated, spread, unchanged
from simulation import (
    Setting,
    claims,
    confirmed,
    covers,
    covers_change,
    covers_if_trials_were_independent,
    fell,
    misses,
    missing_proposed_floors,
    newly_failing,
    proven,
    proven_in_spite_of_sessions,
    told_of_floors,
    told_of_newly_failing,
)

DOCS = (ROOT / "docs" / "statistics.md").read_text()
DAMAGES = {"none": unchanged, "spread": spread, "concentrated": concentrated}


def error(share, *times):
    """Three standard errors of a share that was found in so many trials, or of how two such differ."""
    share = min(max(share, 0.01), 0.99)
    return 3 * sqrt(share * (1 - share) * sum(1 / count for count in times))


def shown(heading, *row):
    """The figures behind the first cells of a row of the docs, as shares."""
    (found,) = [cells for cells in table(heading, DOCS) if tuple(cells[: len(row)]) == row]
    return [float(cell.removesuffix("%")) / 100 for cell in found[len(row) :]]


def test_the_agents_are_those_that_the_docs_describe():
    """Their mean is what the true score of all tests is taken to be."""
    scores = [case.score for case in agent(30_000, Random(1))]
    assert abs(fmean(scores) - MEAN) <= 3 * stdev(scores) / sqrt(len(scores))
    assert f"Mean score {MEAN:.1f}." in DOCS
    assert stdev(scores) == pytest.approx(10.9, abs=0.3)


@pytest.mark.parametrize(("tests", "trials"), [(5, 3), (8, 1), (8, 3), (20, 3), (40, 3)])
def test_the_interval_of_a_score_holds_the_true_one(tests, trials):
    """In 95 % of runs; the textbook's, which takes trials for independent, in fewer: it would be noticed."""
    held = covers(Setting(tests, trials, times=1_500))
    textbook = covers_if_trials_were_independent(Setting(tests, trials, times=500))
    promised, promised_of_textbook = shown("score of tests × trials", f"{tests} × {trials}")
    assert 0.93 <= held <= 0.97
    assert abs(held - promised) <= error(promised, 1_500, 4_000)
    assert textbook < 0.91
    assert abs(textbook - promised_of_textbook) <= error(promised_of_textbook, 500, 4_000)


@pytest.mark.parametrize("tests", [8, 40])
def test_an_unchanged_agent_is_called_worse_in_one_comparison_of_twenty(tests):
    """At most, whatever the number of tests; that its score is lower is a coin toss."""
    setting = Setting(tests, times=2_000)
    alarms = proven(setting, unchanged)
    assert 0.03 <= alarms <= 0.05 + error(0.05, 2_000) < 0.065
    assert abs(fell(Setting(tests, times=500), unchanged) - 0.5) <= error(0.5, 500)


@pytest.mark.parametrize("tests", [8, 20])
@pytest.mark.parametrize("damage", ["spread", "concentrated"])
def test_drops_are_found_as_often_as_the_docs_say(damage, tests):
    """And the score is lower, and lower by five points, as often."""
    setting = Setting(tests, times=400)
    lower, five, found, _, _ = shown("damage", damage, str(tests))
    assert abs(proven(setting, DAMAGES[damage]) - found) <= error(found, 400, 10_000)
    assert abs(fell(setting, DAMAGES[damage]) - lower) <= error(lower, 400, 10_000)
    assert abs(fell(setting, DAMAGES[damage], 5) - five) <= error(five, 400, 10_000)


@pytest.mark.parametrize(("tests", "more"), [(8, (4, 4)), (8, (4, 0)), (20, (4, 0))])
def test_a_second_look_raises_no_more_alarms(tests, more):
    """Also where the head alone is played again, as the baseline cannot. One of four is looked at twice."""
    found = confirmed(Setting(tests, times=600), unchanged, more)
    assert found.proven < 0.06
    assert abs(found.looked_again - 0.25) <= error(0.25, 600)


@pytest.mark.parametrize("damage", ["spread", "concentrated"])
def test_a_second_look_finds_more(damage):
    """As many of the drops as the docs say, of the head alone and of both sides."""
    _, _, first, alone, both = shown("damage", damage, "8")
    assert first < alone < both
    for share, more in ((alone, (4, 0)), (both, (4, 4))):
        found = confirmed(Setting(8, times=100), DAMAGES[damage], more)
        assert abs(found.proven - share) <= error(share, 100, 2_000)


@pytest.mark.parametrize(
    ("tests", "damage", "times"),
    [(8, "none", 600), (8, "spread", 600), (8, "concentrated", 600), (20, "concentrated", 400)],
)
def test_the_interval_of_a_change_holds_the_true_one(tests, damage, times):
    """Of these very tests, in 95 % of comparisons."""
    assert abs(covers_change(Setting(tests, times=times), DAMAGES[damage]) - 0.95) <= error(0.95, times)


def test_with_single_trials_the_interval_of_a_change_is_wider():
    """It asks of other tests too, so it holds the true change of these in more."""
    assert covers_change(Setting(8, 1, 1, times=1_000), concentrated) > 0.97


@pytest.mark.parametrize(
    ("head", "base", "tests", "times"),
    [(3, 3, 8, 500), (7, 3, 8, 500), (5, 5, 8, 500), (7, 3, 20, 300), (7, 7, 8, 100)],
)
def test_claims_of_single_tests(head, base, tests, times):
    """Any false one in 5 % of comparisons at most; and they find what the docs say."""
    setting = Setting(tests, head, base, times=times)
    false, found = shown("trials", f"{head} against {base}", str(tests))
    assert claims(setting, unchanged).any_false <= 0.05 + error(0.05, times)
    assert false <= 0.05
    # Tests of one agent are not independent of each other.
    assert abs(claims(setting, concentrated).found - found) <= error(found, times, 500)


def test_a_stale_baseline_raises_alarms():
    """Where only the day is another, which moves all scores."""
    promised = float(re.search(r"in [\d.]+ %, ([\d.]+) % and [\d.]+ % of comparisons", DOCS)[1]) / 100
    found = proven_in_spite_of_sessions(Setting(20, times=700), 3)
    assert found > 0.05 + error(0.05, 700)
    assert abs(found - promised) <= error(promised, 700, 4_000)


@pytest.mark.parametrize(("tests", "trials"), [(8, 1), (8, 3), (20, 3)])
def test_how_often_an_unchanged_agent_fails_a_gate(tests, trials):
    """The table by which one chooses."""
    setting = Setting(tests, trials, trials, times=500)
    two, five, ten, drop, newly = shown("gate on tests × trials", f"{tests} × {trials}")
    for by, promised in ((2, two), (5, five), (10, ten)):
        assert abs(misses(setting, by) - promised) <= error(promised, 500, 4_000)
    assert abs(fell(setting, unchanged, 5) - drop) <= error(drop, 500, 4_000)
    assert abs(newly_failing(setting) - newly) <= error(newly, 500, 4_000)


@pytest.mark.parametrize(("tests", "trials", "agents"), [(8, 3, 150), (20, 3, 80)])
def test_the_proposed_floor_is_seldom_missed(tests, trials, agents):
    """In fewer than 8 % of further runs: 5 %, and what the recorded run had of luck."""
    missed = missing_proposed_floors(Setting(tests, trials, times=agents))
    assert abs(fmean(missed) - 0.06) <= 0.02 + 3 * stdev(missed) / sqrt(agents) < 0.06


def test_odds_come_true():
    """Of floors that are told to be missed in 2 to 40 % of runs, so many are, over all agents."""
    off = [
        fmean(one.odds - one.missed for one in close)
        for told in told_of_floors(Setting(12, times=80), (75, 80, 85))
        if (close := [one for one in told if 0.02 <= one.odds <= 0.4])
    ]
    assert len(off) > 50
    assert abs(fmean(off)) <= 0.02 + 3 * stdev(off) / sqrt(len(off))


def test_odds_of_newly_failing_tests_come_true():
    """Nearly: they are told a little lower than what happens."""
    told, happens = told_of_newly_failing(Setting(8, times=60)), newly_failing(Setting(8, times=1_000))
    assert fmean(told) <= happens + 3 * stdev(told) / 8
    assert abs(fmean(told) - happens) <= 0.05 + 3 * stdev(told) / 8
