"""The level of attempts at one commit, against agents with known scores: tables of docs/statistics.md."""

from math import pi, sqrt

import numpy as np
import pytest
from doc_pages import page, table
from each_row import each_row
from reruns_simulation import MANY, POOL, REPLACE, SQUARES, Attempts, Commits, called_worse_by, green_after

from ci_evals.scoring.comparison.reruns import level, share_of_level, with_share
from ci_evals.scoring.comparison.rounds import LOOKS, looks_at
from ci_evals.scoring.statistics import ALPHA, ScorePair, chance_of_drop

DOCS = page("statistics.md")
TIMES = 2_000
GATES = {
    "each attempt alone": {"policy": REPLACE},
    "all trials, level 6 / (π² k²)": {"policy": SQUARES},
    "all trials": {"policy": POOL},
    "all trials, `--rounds=auto`": {"rounds": True},
    "all trials, `--against`": {"both_sides": True},
    "all trials, both options": {"rounds": True, "both_sides": True},
}
DAMAGES = {
    "5 points, spread": {"points": 5.0},
    "10 points, spread": {"points": 10.0},
    "a fifth of the tests": {"broken": "a fifth of the tests"},
    "one test": {"broken": "one test"},
}
RERUNS = (0, 1, 2, 5, 20)
UNTIL_GREEN = (0, 1, 2, 5, 10)


def test_attempt_levels_sum_to_one_reset_after_a_drop_and_scale_fail_limits():
    """The chance of any false alarm is at most that; no rerun makes a found drop harder to find."""
    shares = [share_of_level([False] * earlier) for earlier in range(10_000)]
    assert 0.9999 < sum(shares) <= 1
    assert shares == sorted(shares, reverse=True)
    for drops in ([True], [True] * 20, [False, True], [True, False, False], [False] * 9 + [True]):
        assert share_of_level(drops) == share_of_level([])
        assert level(share_of_level(drops)) == pytest.approx(0.045)
    for earlier in range(8):
        for index in range(earlier):
            drops = [False] * earlier
            without = share_of_level(drops)
            drops[index] = True
            assert share_of_level(drops) >= without
    # A rerun's share scales the fail limits of rounds; they pass as before.
    for look in looks_at(LOOKS):
        part = with_share(look, 0.9)
        assert part.fails_at == pytest.approx(0.9 * look.fails_at)
        same = [(one.passes_above, one.margin, one.is_last) for one in (part, look)]
        assert same[0] == same[1]


def _percent(shares) -> list[float]:
    return [100 * share for share in shares]


def _of_unchanged(times, name, points):
    return called_worse_by(Commits(times=times, drift=float(points), **GATES[name]), RERUNS)


def _of_other_kinds(times, kind, tests):
    return called_worse_by(Commits(kind, int(tests), times=times), RERUNS)


def _of_broken(times, damage, name):
    return green_after(Commits(times=times, **GATES[name], **DAMAGES[damage]), UNTIL_GREEN)


def _of_cleared(times, name):
    return green_after(Commits(times=times, **GATES[name]), UNTIL_GREEN)


def _of_single_looks(times, damage):
    result = []
    for share in (1.0, share_of_level([]), 6 / pi**2):
        commits = Commits(policy=REPLACE, level=share, times=times, **DAMAGES[damage])
        result += called_worse_by(commits, (0,))
    return result


TABLES = {
    "unchanged agent": (_of_unchanged, 2, TIMES),
    "unchanged agent of the kind": (_of_other_kinds, 2, TIMES),
    "broken agent": (_of_broken, 2, TIMES // 4),
    "unchanged agent, rerun until green": (_of_cleared, 1, TIMES),
    "drop found by one run": (_of_single_looks, 1, TIMES),
}
"""The figures of a row, the cells that name it, and how many commits it is of."""
ROWS = [(heading, cells) for heading in TABLES for cells in table(heading, DOCS)]


@pytest.mark.simulate
@pytest.mark.parametrize(("heading", "cells"), ROWS)
def test_docs_tables_of_reruns_equal_the_simulation(heading, cells):
    """The same dice come to the same figures, but for the last digit."""
    figures, keys, times = TABLES[heading]
    promised = [float(cell.removesuffix(" %")) for cell in cells[keys:]]
    assert _percent(figures(times, *cells[:keys])) == pytest.approx(promised, abs=0.25)


def _figures(cells) -> list[float]:
    return [float(cell.removesuffix(" %")) for cell in cells[2:]]


UNCHANGED = table("unchanged agent", DOCS)
ALONE = {cells[1]: _figures(cells) for cells in UNCHANGED if cells[0] == "each attempt alone"}


@each_row("cells", [cells for cells in UNCHANGED if cells[0].startswith("all trials")])
def test_docs_tables_show_few_false_alarms_of_reruns(cells):
    """At most 5 % if both sides have the same conditions; else a tenth of what attempts alone add."""
    first, *later = _figures(cells)
    error = 100 * sqrt(ALPHA * (1 - ALPHA) / TIMES)
    if cells[1] == "0" or cells[0].endswith(("`--against`", "both options")):
        assert later[-1] <= 100 * ALPHA + 2 * error
    alone = ALONE[cells[1]]
    assert later[-1] - first <= (alone[-1] - alone[0]) / 10


@pytest.mark.slow
@pytest.mark.parametrize("gate", [{}, {"rounds": True}, {"rounds": True, "both_sides": True}])
def test_simulated_permutation_test_equals_that_of_a_run(gate):
    """The p of arrays and of `chance_of_drop`, of pooled trials too; the approximation errs by little."""
    attempts = Attempts(Commits(times=2, points=5.0, **gate))
    everyone = np.ones(2, dtype=bool)
    for _ in range(2):
        attempts.attempt(everyone)
        rough = attempts.approximate_p()
        for commit in range(2):
            head, base = attempts.of_head.of(commit), attempts.other.of(commit)
            pairs = [ScorePair(tuple(own), tuple(other)) for own, other in zip(head, base, strict=True)]
            p = chance_of_drop(pairs, "seed").p
            error = sqrt(p * (1 - p) / MANY)
            assert attempts.p(commit) == pytest.approx(p, abs=6 * error + 0.001)
            assert rough[commit] == pytest.approx(p, abs=6 * error + 0.01)


def test_reruns_add_few_false_alarms_and_hide_no_broken_agent():
    """Each attempt alone adds one after the other; all of them together hardly any."""
    times = 100
    alone = called_worse_by(Commits(policy=REPLACE, times=times), (0, 5))
    together = called_worse_by(Commits(times=times), (0, 5))
    assert together[1] <= ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / times)
    assert alone[1] > together[1]
    # By each attempt alone a broken agent is nearly always green after ten reruns.
    damage = DAMAGES["a fifth of the tests"]
    alone = green_after(Commits(policy=REPLACE, times=50, **damage), (0, 10))
    together = green_after(Commits(times=50, **damage), (0, 10))
    assert alone[1] > 0.5
    assert together[1] <= together[0] + 0.2
