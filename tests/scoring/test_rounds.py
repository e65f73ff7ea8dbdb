"""Rounds, both sides and history: limits by themselves, and simulated pull requests of agents that are known.

The figures are those of docs/rounds.md. In CI few pull requests are simulated; `make simulate` has the whole.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import fmean

import pytest
from doc_pages import ROOT, table
from hypothesis import given
from hypothesis import strategies as st
from rounds_simulation import (
    MOVES,
    STILL,
    Outcome,
    both_sides,
    both_sides_in_rounds,
    by_history,
    moderated,
    repeated,
    rounds,
    screened,
    share_failed,
)

from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS, looks_at
from ci_evals.scoring.statistics import ScorePair

DOCS = (ROOT / "docs" / "rounds.md").read_text()
FEW, MANY = 30, 1_000


def test_round_looks_have_documented_limits_per_trial_count():
    """The last look always decides. If both sides are run, a pass after three trials needs a higher p."""
    looks = [(look.trials, look.fails_at, look.passes_above, look.is_last) for look in looks_at(LOOKS)]
    last = [(5, 0.018, 0.18, False), (7, 0.045, 0.045, True)]
    assert (looks, looks_at(())) == ([(2, 0.0025, 0.50, False), (3, 0.007, 0.28, False), *last], ())
    both = looks_at(BOTH_SIDES_LOOKS, both_sides=True)
    looks = [(look.trials, look.fails_at, look.passes_above, look.is_last) for look in both]
    assert looks == [(3, 0.007, 0.50, False), *last]


@given(st.sets(st.sampled_from(LOOKS), min_size=1).map(sorted))
def test_subset_of_looks_keeps_limits_and_last_look_gets_final_limit(trials):
    """So that no more unchanged agents fail than with all looks."""
    limits = {look.trials: look for look in looks_at(LOOKS)}
    *earlier, last = looks_at(trials)
    assert earlier == [limits[look.trials] for look in earlier]
    assert (last.is_last, last.fails_at, last.passes_above) == (True, 0.045, 0.045)


@given(st.lists(st.integers(1, 10**9), max_size=6, unique=True).map(sorted))
def test_round_looks_are_built_for_arbitrary_trial_counts(trials):
    """No earlier version wrote such numbers; a file of somebody else's may hold them."""
    assert [look.trials for look in looks_at(trials)] == trials


@given(st.data(), st.floats(0, 1), st.floats(0, 1))
def test_lower_p_never_gives_a_better_look_decision(data, one, other):
    look = data.draw(st.sampled_from(looks_at(LOOKS) + looks_at(BOTH_SIDES_LOOKS, both_sides=True)))
    low, high = sorted((one, other))
    worst_first = ("fail", "continue", "pass")
    assert worst_first.index(look.decision(low)) <= worst_first.index(look.decision(high))


def test_score_is_settled_only_beyond_computed_distance_or_safety_margin():
    """Two tests of two trials each, 0 and 100: the variance is 5,000, that of a test's mean 2,500."""
    first, *_, last = looks_at(LOOKS)
    tests = [[0.0, 100.0], [0.0, 100.0]]
    limit = 2.5 * 4.302653 / 1.96 * sqrt(2 * 5_000 / 2) / 2
    settled = [first.settles_score(distance, tests) for distance in (limit - 0.1, limit + 0.1, -limit - 0.1)]
    assert settled == [False, True, True]
    # They show no noise.
    assert not first.settles_score(50, [[100.0], [0.0]])
    assert not first.settles_drop(50, [ScorePair((100.0,), (0.0,))])
    assert looks_at((2,))[0].settles_score(0, [[100.0], [0.0]])
    # As if of two more one had failed. Below its threshold any distance is more than their noise.
    for tests, doubt in (
        ([[100.0, 100.0]], 2.5 * sqrt(1_875 / 2)),  # three of four: a variance of 1,875
        ([[100.0, 100.0], [100.0, 100.0]], 2.5 * sqrt(12_500 / 9) / 2),  # five of six: 12,500 / 9
    ):
        settled = [first.settles_score(distance, tests) for distance in (doubt - 0.1, doubt + 0.1, -0.1, 0.0)]
        assert settled == [False, True, True, False]
        assert last.settles_score(0.1, tests)


METHODS = {
    "rounds against 3 recorded trials": rounds,
    "both sides, 4 + 4 trials": both_sides,
    "both sides in rounds": both_sides_in_rounds,
    "ten earlier runs, by whole runs": moderated,
    "ten earlier runs, by trials and whole runs": by_history,
    "screen of ten runs, then both sides in rounds": screened,
}
ROWS = table("method", DOCS)


@dataclass(frozen=True)
class Expected:
    """What statistics has computed of a method by other code, and how far a simulation may be from it."""

    fails: float
    found: float | None = None
    conversations: float | None = None
    at_drop: float | None = None
    """Conversations where there is a drop."""


EXPECTED = {
    ("rounds against 3 recorded trials", "8", "0"): Expected(4.7, conversations=3.3),
    ("rounds against 3 recorded trials", "20", "0"): Expected(4.8, 80, 3.3, 4.4),
    ("rounds against 3 recorded trials", "40", "0"): Expected(5.2, conversations=3.3),
    ("both sides, 4 + 4 trials", "20", "3"): Expected(4.7, 80),
    ("ten earlier runs, by whole runs", "20", "0"): Expected(1.7, 77),
    ("ten earlier runs, by whole runs", "20", "3"): Expected(3.5, 57),
    ("ten earlier runs, by whole runs", "20", "5"): Expected(5.1),
}


def simulated(method, tests, conditions, main, times, **drop) -> list[Outcome]:
    """Pull requests of an unchanged agent, or of one that lost `points`."""
    given = {"session": float(conditions)} if float(conditions) else {}
    given |= {"main": main} if main != STILL else {}
    return repeated(METHODS[method], times, int(tests), **drop, **given)


def check_unchanged(expected: Expected, outcomes: list[Outcome]) -> None:
    """Within two points of the level, 0.15 of the conversations, and what so few repetitions vary by."""
    chance = (len(outcomes) < MANY) * 3 / sqrt(len(outcomes))
    assert share_failed(outcomes) == pytest.approx(expected.fails, abs=2 + 22 * chance)
    if expected.conversations:
        assert conversations(outcomes) == pytest.approx(expected.conversations, abs=0.15 + 1.5 * chance)


def check_worse(expected: Expected, outcomes: list[Outcome]) -> None:
    """Within four or five points of the power, 0.25 of the conversations, and what so few vary by."""
    chance = (len(outcomes) < MANY) * 3 / sqrt(len(outcomes))
    within = 4 if expected.found == 80 else 5
    assert share_failed(outcomes) == pytest.approx(expected.found, abs=within + 50 * chance)
    if expected.at_drop:
        assert conversations(outcomes) == pytest.approx(expected.at_drop, abs=0.25 + 2 * chance)


def conversations(outcomes: list[Outcome]) -> float:
    return fmean(outcome.conversations for outcome in outcomes)


def check_row(outcomes: list[Outcome], fails: str, played: str) -> None:
    """The same dice come to the same figures, up to how a machine rounds."""
    assert share_failed(outcomes) == pytest.approx(float(fails.removesuffix(" %")), abs=0.25)
    assert conversations(outcomes) == pytest.approx(float(played), abs=0.1)


@pytest.mark.simulate
@pytest.mark.parametrize("cells", ROWS, ids="-".join)
def test_docs_table_of_methods_equals_the_simulation(cells):
    *row, fails, result, played, at_drop = cells
    expected = EXPECTED.get(tuple(row[:3]))
    unchanged = simulated(*row, MANY)
    check_row(unchanged, fails, played)
    if expected:
        check_unchanged(expected, unchanged)
    if result:
        worse = simulated(*row, MANY, points=10)
        check_row(worse, result, at_drop)
        if expected and expected.found:
            check_worse(expected, worse)


DROPS = ({"broken": "a fifth of the tests"}, {"broken": "one test"})


@pytest.mark.simulate
@pytest.mark.parametrize(("drop", "found"), [(DROPS[0], 85.9), (DROPS[1], 26.6)], ids=str)
def test_history_screen_finds_broken_tests_as_often_as_documented(drop, found):
    assert share_failed(repeated(screened, MANY, 20, session=3.0, **drop)) == pytest.approx(found, abs=0.25)
    assert f"{found} %" in DOCS


def test_docs_list_the_round_limits_and_all_expected_methods():
    """And the screen at 8, 20 and 40 tests, however runs differ or main moved: it fails 6.5 % at most."""
    rows = [tuple(row) for row in ROWS]
    assert EXPECTED.keys() <= {row[:3] for row in rows}
    screens = {row[1:4] for row in rows if METHODS[row[0]] is screened}
    assert screens == {(str(tests), points, STILL) for tests in (8, 20, 40) for points in "035"} | {
        ("20", "3", main) for main in MOVES
    }
    assert all(float(row[4].removesuffix(" %")) <= 6.5 for row in rows)
    beside = {look.trials: look for look in looks_at(BOTH_SIDES_LOOKS, both_sides=True)}
    for look in looks_at(LOOKS):
        passes = f"{beside[look.trials].passes_above:g}" if look.trials in beside else "no look"
        assert f"| {look.trials} | {look.fails_at:g} | {look.passes_above:g} | {passes} |" in DOCS
    assert all(look.fails_at == beside[look.trials].fails_at for look in looks_at(LOOKS)[1:])


QUICK_ROWS = [
    ("rounds against 3 recorded trials", "8", "0"),
    ("both sides, 4 + 4 trials", "20", "3"),
    ("ten earlier runs, by whole runs", "20", "0"),
]


@pytest.mark.slow
@pytest.mark.parametrize("row", QUICK_ROWS, ids="-".join)
def test_simulated_comparison_methods_fail_as_often_as_documented(row):
    """A row of each method; `make simulate` tries all of them often."""
    check_unchanged(EXPECTED[row], simulated(*row, STILL, FEW))
    if EXPECTED[row].found:
        check_worse(EXPECTED[row], simulated(*row, STILL, FEW, points=10))


@pytest.mark.slow
@pytest.mark.parametrize("main", [STILL, "fell by 6 before the newest run"])
def test_history_screen_fails_few_unchanged_pull_requests(main):
    """Not more than chance allows at 6.5 %."""
    fails = share_failed(repeated(screened, 20, 8, session=3.0, main=main))
    assert fails <= 6.5 + 300 * sqrt(0.065 * 0.935 / 20)
