"""Rounds, both sides and history: limits by themselves, and simulated pull requests of agents that are known.

The figures are those of docs/rounds.md. In CI few pull requests are simulated; `make simulate` has the whole.
"""

from math import sqrt
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers import ROOT
from rounds_simulation import (
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
FEW, MANY = 120, 1_000
SIZES = [FEW, pytest.param(MANY, marks=pytest.mark.simulate)]


def near(seen: float, expected: float, times: int, besides: float = 2.0) -> bool:
    """Whether a share in percent is within three standard errors, and what populations differ by."""
    share = min(max(expected, 2), 98) / 100
    return abs(seen - expected) <= besides + 300 * sqrt(share * (1 - share) / times)


# -- limits


def test_the_limits_are_those_of_the_search():
    """After 2, 3, 5 and 7 trials; the last look always decides."""
    assert [(look.trials, look.fails_at, look.passes_above) for look in looks_at(LOOKS)] == [
        (2, 0.0025, 0.50),
        (3, 0.007, 0.28),
        (5, 0.018, 0.18),
        (7, 0.045, 0.045),
    ]
    assert [look.is_last for look in looks_at(LOOKS)] == [False, False, False, True]
    assert looks_at(()) == ()


def test_both_sides_have_looks_of_their_own():
    """A pass after three trials needs a higher p: the base has no more trials than the head."""
    looks = looks_at(BOTH_SIDES_LOOKS, both_sides=True)
    assert [(look.trials, look.fails_at, look.passes_above, look.is_last) for look in looks] == [
        (3, 0.007, 0.50, False),
        (5, 0.018, 0.18, False),
        (7, 0.045, 0.045, True),
    ]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6, unique=True).map(sorted))
def test_other_looks_have_limits_between_those(trials):
    """The nearer the end, the easier to decide."""
    looks = looks_at(trials)
    assert looks[-1].fails_at == looks[-1].passes_above == 0.045
    assert [look.fails_at for look in looks] == sorted(look.fails_at for look in looks)
    assert [look.passes_above for look in looks] == sorted(
        (look.passes_above for look in looks), reverse=True
    )
    assert all(0.0025 <= look.fails_at <= look.passes_above <= 0.5 for look in looks)


@given(
    st.sampled_from(looks_at(LOOKS) + looks_at(BOTH_SIDES_LOOKS, both_sides=True)),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_lower_p_passes_no_look_that_a_higher_fails(look, one, other):
    """What fails fails for every lower p."""
    low, high = sorted((one, other))
    if look.settles(high) and high <= look.fails_at:
        assert look.settles(low)
        assert low <= look.fails_at


def test_a_score_by_hand():
    """Two tests of two trials each, 0 and 100: the variance is 5,000, that of a test's mean 2,500."""
    first = looks_at(LOOKS)[0]
    tests = [[0.0, 100.0], [0.0, 100.0]]
    error = sqrt(2 * 5_000 / 2) / 2
    limit = 2.5 * 4.302653 / 1.96 * error
    assert not first.settles_score(limit - 0.1, tests)
    assert first.settles_score(limit + 0.1, tests)
    assert first.settles_score(-limit - 0.1, tests)


@pytest.mark.parametrize("scores", [[[100.0, 100.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_trials_that_agree_settle_a_score(scores):
    """Any distance is more than their noise; none is not."""
    assert looks_at(LOOKS)[0].settles_score(0.1, scores)
    assert not looks_at(LOOKS)[0].settles_score(0.0, scores)


def test_single_trials_settle_nothing():
    """They show no noise."""
    first = looks_at((1, 2))[0]
    assert not first.settles_score(50, [[100.0], [0.0]])
    assert not first.settles_drop(50, [ScorePair((100.0,), (0.0,))])
    assert looks_at((1, 2))[1].settles_score(0, [[100.0], [0.0]])


# -- simulated pull requests


@pytest.mark.parametrize("times", SIZES)
@pytest.mark.parametrize(("tests", "level"), [(8, 4.7), (20, 4.8), (40, 5.2)])
def test_an_unchanged_agent_fails_rounds_in_one_run_of_twenty(tests, level, times):
    """After 3.3 of 7 trials in the mean."""
    if times == FEW and tests == 40:
        pytest.skip("takes long; the whole has it")
    outcomes = repeated(rounds, times, tests)
    assert near(share_failed(outcomes), level, times)
    spread = 1.5 / sqrt(times)
    assert fmean(outcome.conversations for outcome in outcomes) == pytest.approx(3.3, abs=0.15 + 3 * spread)


@pytest.mark.parametrize("times", SIZES)
def test_rounds_find_a_drop(times):
    """Of ten points at 20 tests, in four of five runs, after 4.4 trials."""
    outcomes = repeated(rounds, times, 20, points=10)
    assert near(share_failed(outcomes), 80, times, besides=4)
    spread = 2 / sqrt(times)
    assert fmean(outcome.conversations for outcome in outcomes) == pytest.approx(4.4, abs=0.25 + 3 * spread)


@pytest.mark.parametrize("times", SIZES)
def test_both_sides_hold_the_level_under_drift(times):
    """Sessions of three points move both alike."""
    assert near(share_failed(repeated(both_sides, times, 20, session=3.0)), 4.7, times)
    assert near(share_failed(repeated(both_sides, times, 20, session=3.0, points=10)), 80, times, besides=4)


@pytest.mark.parametrize("times", SIZES)
@pytest.mark.parametrize(("session", "level"), [(0.0, 1.7), (3.0, 3.5), (5.0, 5.1)])
def test_the_moderated_test_knows_what_runs_differ_by(session, level, times):
    """Ten runs of 20 tests."""
    assert near(share_failed(repeated(moderated, times, 20, session=session)), level, times)


@pytest.mark.parametrize("times", SIZES)
@pytest.mark.parametrize(("session", "power"), [(0.0, 77), (3.0, 57)])
def test_the_moderated_test_finds_a_drop(session, power, times):
    """Of ten points."""
    found = share_failed(repeated(moderated, times, 20, session=session, points=10))
    assert near(found, power, times, besides=5)


@pytest.mark.parametrize("session", [0.0, 3.0, 5.0])
@pytest.mark.simulate
def test_the_screen_and_both_sides_hold_the_level(session):
    """At most 6.5 %, however runs differ."""
    assert share_failed(repeated(screened, MANY, 20, session=session)) <= 6.5


def test_few_screened_pull_requests():
    """The small form: not more than chance allows at 6.5 %."""
    assert share_failed(repeated(screened, 40, 8, session=3.0)) <= 6.5 + 300 * sqrt(0.065 * 0.935 / 40)


@pytest.mark.simulate
def test_both_sides_in_rounds_hold_the_level_and_find_a_drop():
    """After 8.5 conversations of at most 14 if nothing changed."""
    outcomes = repeated(both_sides_in_rounds, MANY, 20, session=3.0)
    assert share_failed(outcomes) <= 6.5
    spread = 3 / sqrt(MANY)
    assert fmean(outcome.conversations for outcome in outcomes) == pytest.approx(8.5, abs=0.4 + 3 * spread)
    found = repeated(both_sides_in_rounds, MANY, 20, session=3.0, points=10)
    assert near(share_failed(found), 92, MANY, besides=4)


@pytest.mark.simulate
def test_trials_and_runs_together_are_no_more_eager_than_either():
    """The larger of two p."""
    assert share_failed(repeated(by_history, MANY, 20, session=3.0)) <= 6.5


def test_the_page_has_the_limits():
    """As the code has them."""
    beside = {look.trials: look for look in looks_at(BOTH_SIDES_LOOKS, both_sides=True)}
    for look in looks_at(LOOKS):
        passes = f"{beside[look.trials].passes_above:g}" if look.trials in beside else "no look"
        assert f"| {look.trials} | {look.fails_at:g} | {look.passes_above:g} | {passes} |" in DOCS
    assert all(look.fails_at == beside[look.trials].fails_at for look in looks_at(LOOKS)[1:])
