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


def of(*pairs: ComparedPair):
    return preference(pairs, JUDGE, AT, "other", Git(commit="c" * 40))


@each_row(("straight", "swapped"), [*product(["first", "second", "tie"], repeat=2)])
def test_only_a_conversation_that_is_named_both_times_wins(straight, swapped):
    """Everything else is a tie."""
    expected = {("first", "second"): "win", ("second", "first"): "loss"}.get((straight, swapped), "tie")
    found = Round(straight, swapped)
    assert found.result == expected
    assert found.followed_place is (straight == swapped != "tie")


def test_an_answer_that_is_missing_decides_nothing():
    """Neither a tie nor half a win."""
    assert GONE.result is None
    result = of(pair(WIN), pair(GONE))
    assert (result.pairs, result.wins, result.ties, result.undecided) == (2, 1, 0, 1)
    assert result.share.value == 1


@pytest.mark.parametrize(
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
def test_of_several_rounds_most_decide(rounds, result):
    """Without a majority it is a tie, unless what is missing could have made one."""
    assert pair(*rounds, votes=3).result == result
    assert decided(rounds, 3)
    assert not decided(rounds[:1], 3)


def test_no_more_is_asked_where_nobody_can_get_a_majority_any_more():
    """Of five rounds one may be left that can change nothing."""
    assert not decided((WIN, LOSS, TIE), 5)
    assert decided((WIN, LOSS, TIE, GONE), 5)


def test_the_sums():
    """Test by test, with some of the judge's reasons."""
    result = of(pair(WIN), pair(WIN), pair(PLACE), pair(LOSS, test="u"), pair(TIE, test="u"))
    assert (result.wins, result.losses, result.ties, result.swapped) == (2, 1, 2, 1)
    assert result.share.value == pytest.approx(3 / 5)
    assert result.share.count == 5
    assert result.first.value == pytest.approx(5 / 8)
    assert result.first.count == 8
    first, second = result.tests
    assert (first.wins, first.losses, first.ties) == (2, 0, 1)
    assert first.reasons == ("win: better", "win: better")
    assert second.reasons == ("loss: worse",)
    assert (result.other, result.other_commit) == ("other", "c" * 40)


def test_a_judge_that_goes_by_the_place_prefers_nobody():
    """All ties; that is found, and named."""
    result = of(*(pair(PLACE, test=str(number)) for number in range(12)))
    assert (result.wins, result.losses, result.ties, result.swapped) == (0, 0, 12, 12)
    assert result.first.value == 1
    assert result.place_sways
    assert result.p is None
    fair = of(*(pair(WIN, test=str(number)) for number in range(12)))
    assert fair.first.value == 0.5
    assert not fair.place_sways


def test_later_rounds_say_nothing_of_the_place():
    """They were asked for since the first ones did not agree: they are no sample of all answers."""
    result = of(pair(WIN, LOSS, PLACE, votes=3))
    assert (result.first.value, result.swapped) == (0.5, 0)


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(5, 0, 2 / 32), (0, 5, 2 / 32), (4, 1, 12 / 32), (3, 3, 1.0), (0, 0, None), (1, 0, 1.0)],
)
def test_the_sign_test_is_exact(wins, losses, p):
    """Each test is one toss, however many pairs it has; one that is even says nothing."""

    def test(won, lost):
        return Preferred(suite="S", test="t", wins=won, losses=lost, ties=0)

    found = sign_test([*[test(3, 1)] * wins, *[test(0, 1)] * losses, test(2, 2)])
    assert found == (p if p is None else pytest.approx(p))


@pytest.mark.parametrize("place", [0.0, 0.2, 0.6])
def test_the_intervals_cover_the_truth(place):
    """Tests differ in how often they are won; the judge goes by the place with a known chance."""
    rng, runs, taste = random.Random(11), 250, 0.6
    held = Counter()

    def answers(wins: float) -> Round:
        ours = rng.random() < wins
        straight, swapped = (rng.random() < place for _ in range(2))
        return Round("first" if straight or ours else "second", "first" if swapped or not ours else "second")

    for _ in range(runs):
        shares = [rng.betavariate(4 * taste, 4 * (1 - taste)) for _ in range(30)]
        result = of(*(pair(answers(share), test=str(n)) for n, share in enumerate(shares) for _ in range(2)))
        held["share"] += result.share.low <= taste * (1 - place) + place / 2 <= result.share.high
        held["first"] += result.first.low <= (1 + place) / 2 <= result.first.high
    assert min(held.values()) >= 0.92 * runs
