"""What answers on pairs of conversations come to."""

import random
from collections import Counter
from datetime import UTC, datetime
from itertools import product

import pytest
from each_row import each_row

from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Git
from ci_evals.extensions.preference.result import Preferred
from ci_evals.extensions.preference.tally import ComparedPair, Round, decided, preference, sign_test

JUDGE = JudgeUsed(provider="openai", models=("m",), prompt="p")
AT = datetime(2026, 11, 22, tzinfo=UTC)
WIN, LOSS, TIE = Round("first", "second", "better"), Round("second", "first", "worse"), Round("tie", "tie")
PLACE, GONE = Round("first", "first"), Round(None, "first")


def pair(*rounds: Round, test: str = "t", votes: int = 0) -> ComparedPair:
    votes = votes or len(rounds)
    return ComparedPair("S", test, rounds, votes, counted=(votes + 1) // 2)


def tally(*pairs: ComparedPair):
    return preference(pairs, JUDGE, AT, "other", Git(commit="c" * 40))


@each_row(("straight", "swapped"), [*product(["first", "second", "tie"], repeat=2)])
def test_only_conversation_preferred_in_both_orders_wins(straight, swapped):
    expected = {("first", "second"): "win", ("second", "first"): "loss"}.get((straight, swapped), "tie")
    result = Round(straight, swapped)
    assert result.result == expected
    assert result.followed_place is (straight == swapped != "tie")


def test_preference_sums_decided_pairs_by_test():
    assert GONE.result is None
    result = tally(pair(WIN), pair(GONE))
    assert (result.pairs, result.wins, result.ties, result.undecided) == (2, 1, 0, 1)
    assert result.share.value == 1
    result = tally(pair(WIN), pair(WIN), pair(PLACE), pair(LOSS, test="u"), pair(TIE, test="u"))
    assert (result.wins, result.losses, result.ties, result.swapped) == (2, 1, 2, 1)
    assert (result.share.value, result.share.count) == (pytest.approx(3 / 5), 5)
    assert (result.first.value, result.first.count) == (pytest.approx(5 / 8), 8)
    first, second = result.tests
    assert (first.wins, first.losses, first.ties) == (2, 0, 1)
    assert (first.reasons, second.reasons) == (("win: better", "win: better"), ("loss: worse",))
    assert (result.other, result.other_commit) == ("other", "c" * 40)


@each_row(
    ("rounds", "result"),
    [
        ((WIN, WIN), "win"),
        ((WIN, LOSS, WIN), "win"),
        ((WIN, LOSS, TIE), "tie"),
        ((WIN, TIE, TIE), "tie"),
        ((WIN, LOSS, GONE), None),
        ((WIN, GONE, WIN), "win"),
    ],
)
def test_majority_of_rounds_decides_pair(rounds, result):
    assert pair(*rounds, votes=3).result == result
    assert decided(rounds, 3)
    assert not decided(rounds[:1], 3)


def test_rounds_stop_once_majority_is_impossible():
    assert not decided((WIN, LOSS, TIE), 5)
    assert decided((WIN, LOSS, TIE, GONE), 5)


def test_position_bias_is_estimated_from_first_rounds_only():
    result = tally(*(pair(PLACE, test=str(number)) for number in range(12)))
    assert (result.wins, result.losses, result.ties, result.swapped) == (0, 0, 12, 12)
    assert result.first.value == 1
    assert result.place_sways
    assert result.p is None
    fair = tally(*(pair(WIN, test=str(number)) for number in range(12)))
    assert fair.first.value == 0.5
    assert not fair.place_sways
    result = tally(pair(WIN, LOSS, PLACE, votes=3))
    assert (result.first.value, result.swapped) == (0.5, 0)


@each_row(
    ("wins", "losses", "p"),
    [(5, 0, 2 / 32), (0, 5, 2 / 32), (4, 1, 12 / 32), (3, 3, 1.0), (0, 0, None), (1, 0, 1.0)],
)
def test_sign_test_is_exact_and_counts_tests_not_pairs(wins, losses, p):
    """Each test is one toss, however many pairs it has; one that is even says nothing."""

    def test(won, lost):
        return Preferred(suite="S", test="t", wins=won, losses=lost, ties=0)

    result = sign_test([*[test(3, 1)] * wins, *[test(0, 1)] * losses, test(2, 2)])
    assert result == (p if p is None else pytest.approx(p))


@pytest.mark.parametrize("place", [0.0, 0.2, 0.6])
def test_intervals_cover_true_share_and_position_bias(place):
    rng, runs, taste = random.Random(11), 250, 0.6
    covered = Counter()

    def answers(wins: float) -> Round:
        ours = rng.random() < wins
        straight, swapped = (rng.random() < place for _ in range(2))
        return Round("first" if straight or ours else "second", "first" if swapped or not ours else "second")

    for _ in range(runs):
        shares = [rng.betavariate(4 * taste, 4 * (1 - taste)) for _ in range(30)]
        numbered = [(str(n), share) for n, share in enumerate(shares) for _ in range(2)]
        result = tally(*(pair(answers(share), test=name) for name, share in numbered))
        covered["share"] += result.share.low <= taste * (1 - place) + place / 2 <= result.share.high
        covered["first"] += result.first.low <= (1 + place) / 2 <= result.first.high
    assert min(covered.values()) >= 0.92 * runs
