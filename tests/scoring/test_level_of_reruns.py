"""The level of attempts at one commit, against agents whose scores are known: tables of docs/reruns.md."""

from math import sqrt

import pytest
from doc_pages import page, table
from reruns_simulation import POOL, REPLACE, SQUARES, Commits, called_worse_by, green_after

from ci_evals.scoring.comparison.reruns import level, share_of_level, with_share
from ci_evals.scoring.comparison.rounds import LOOKS, looks_at
from ci_evals.scoring.statistics import ALPHA

DOCS = page("reruns.md")
POLICIES = {
    "each attempt alone": {"policy": REPLACE},
    "all trials, level 6 / (π² k²)": {"policy": SQUARES},
    "all trials": {"policy": POOL},
    "all trials, `--rounds=auto`": {"rounds": True},
    "all trials, `--against`": {"both_sides": True},
    "all trials, both options": {"rounds": True, "both_sides": True},
}
TIMES = 200


def test_levels_of_attempts_that_find_nothing_add_up_to_the_level():
    """However many there are: so the chance of any false alarm is at most that."""
    shares = [share_of_level([False] * earlier) for earlier in range(10_000)]
    assert 0.9999 < sum(shares) <= 1
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    "drops", [[True], [True] * 20, [False, True], [True, False, False], [False] * 9 + [True]]
)
def test_an_attempt_after_one_that_found_a_drop_has_the_level_of_the_first(drops):
    """No rerun of a red commit makes a drop harder to find."""
    assert share_of_level(drops) == share_of_level([])
    assert level(share_of_level(drops)) == pytest.approx(0.045)


def test_no_verdict_that_gets_worse_makes_a_later_attempt_laxer():
    """An attempt that found a drop leaves later ones at least the level that one without leaves them."""
    for earlier in range(8):
        for place in range(earlier):
            drops = [False] * earlier
            without = share_of_level(drops)
            drops[place] = True
            assert share_of_level(drops) >= without


def test_looks_of_rounds_use_the_same_part_of_their_levels():
    """And pass as before."""
    for look in looks_at(LOOKS):
        part = with_share(look, 0.9)
        assert part.fails_at == pytest.approx(0.9 * look.fails_at)
        assert (part.passes_above, part.margin, part.is_last) == (
            look.passes_above,
            look.margin,
            look.is_last,
        )


# -- the tables of the docs


def _commits(name: str, times: int, **fields) -> Commits:
    return Commits("heavy", 20, times=times, **POLICIES[name], **fields)


def _of_unchanged(times, name, points):
    return called_worse_by(_commits(name, times, session_points=float(points)), (0, 1, 2, 5, 20))


def _of_broken(times, name):
    return green_after(_commits(name, times, broken="a fifth of the tests"), (0, 1, 2, 5, 10))


def _of_cleared(times, name):
    return green_after(_commits(name, times), (0, 1, 2, 5, 10))


TABLES = {
    "unchanged agent": (_of_unchanged, 2),
    "broken agent": (_of_broken, 1),
    "unchanged agent, rerun until green": (_of_cleared, 1),
}
ROWS = [(heading, cells) for heading in TABLES for cells in table(heading, DOCS)]


@pytest.mark.simulate
@pytest.mark.parametrize(("heading", "cells"), ROWS)
def test_every_table_of_reruns(heading, cells):
    """The same dice come to the same figures."""
    figures, keys = TABLES[heading]
    promised = [float(cell.removesuffix(" %")) for cell in cells[keys:]]
    assert [100 * share for share in figures(TIMES, *cells[:keys])] == pytest.approx(promised, abs=0.6)


@pytest.mark.slow
@pytest.mark.parametrize("points", [0])
def test_reruns_add_few_false_alarms(points):
    """Each attempt alone adds one after the other; all of them together hardly any."""
    times = 60
    alone = called_worse_by(_commits("each attempt alone", times, session_points=points), (0, 5))
    together = called_worse_by(_commits("all trials", times, session_points=points), (0, 5))
    assert together[1] <= ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / times)
    assert alone[1] > together[1]


@pytest.mark.slow
def test_a_broken_agent_is_rerun_to_green_alone_and_not_by_all_trials():
    """By each attempt alone it nearly always is, after ten reruns."""
    alone = green_after(Commits("heavy", 20, REPLACE, broken="a fifth of the tests", times=30), (0, 10))
    together = green_after(Commits("heavy", 20, POOL, broken="a fifth of the tests", times=30), (0, 10))
    assert alone[1] > 0.5
    assert together[1] <= together[0] + 0.2
