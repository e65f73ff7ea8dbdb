"""Agreement of judges and votes, against hand computation, published examples and a library."""

import random
from collections import Counter
from fractions import Fraction

import builders as build
import krippendorff as library
import numpy as np
import pytest
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.verdict import Outcome
from ci_evals.scoring.agreement.beyond_chance import AgreementTable, Split, alpha, coincidences, ordinal_alpha
from ci_evals.scoring.agreement.clustered import Bundle, share_of
from ci_evals.scoring.agreement.judges import Agreement, Twice, agreement, changes, in_words
from ci_evals.scoring.statistics import mean_interval

WORDS = {"p": Outcome.PASSED, "f": Outcome.FAILED, "u": Outcome.UNDECIDED}


def pairs(*drawn: str) -> list[Twice]:
    """`"pf"` is a verdict that was passed and is failed; `"pf*3"` three of them."""
    result = []
    for text in drawn:
        both, _, times = text.partition("*")
        before, after = (build.finding(WORDS[letter], kind="judged") for letter in both)
        result += [Twice("S", "t", 1, before, after)] * int(times or 1)
    return result


def test_kappa_equals_hand_computation_and_undecided_verdicts_are_only_changes():
    """20 and 15 of 50 alike: p_o = 0.7, p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa = 0.4."""
    result = agreement(pairs("pp*20", "pf*5", "fp*10", "ff*15"))
    assert (result, result.share) == (Agreement(decided=50, agreed=35, kappa=Fraction(2, 5)), Fraction(7, 10))
    # An undecided verdict is a change, and no disagreement.
    some = pairs("pp", "ff", "up*3", "pu", "uu")
    assert agreement(some) == agreement(pairs("pp", "ff"))
    assert changes(some) == {(Outcome.UNDECIDED, Outcome.PASSED): 3, (Outcome.PASSED, Outcome.UNDECIDED): 1}
    # Another reason or cause is no change.
    before = build.finding("undecided", kind="judged", cause="no_judge")
    after = build.finding("undecided", kind="judged", cause="judge_error", reason="no answer")
    assert not Twice("S", "t", 1, before, after).changed


def test_kappa_is_corrected_for_chance_and_named_by_its_category():
    """If nearly all passes, agreeing on 98 of 100 says nothing; one verdict throughout has no kappa."""
    for drawn, kappa in (
        *[(["pp", "ff"], 1), (["pf", "fp"], -1), (["pp", "pf", "fp", "ff"], 0), (["pp*9", "pf"], 0)],
        *[(["pp*98", "pf", "fp"], Fraction(-1, 99)), ([], None), (["pp*7"], None), (["ff"], None)],
        (["uu", "up", "fu"], None),
    ):
        assert agreement(pairs(*drawn)).kappa == kappa
    # On a boundary it gets the lower category, so that no judge looks better than it is.
    for kappa, word in (
        *[(Fraction(1), "almost perfect"), (Fraction(4, 5), "substantial"), (Fraction(59, 100), "moderate")],
        *[(Fraction(1, 100), "slight"), (Fraction(0), "none beyond chance")],
        (Fraction(-1), "none beyond chance"),
    ):
        assert in_words(kappa) == word


@given(st.lists(st.sampled_from(["pp", "pf", "fp", "ff", "up", "fu", "uu"])))
def test_kappa_stays_within_its_bounds_for_any_verdicts(drawn):
    """Between -1 and 1 and below the share that agrees, whichever judge was first; 1 means all."""
    result, turned = agreement(pairs(*drawn)), agreement(pairs(*(text[::-1] for text in drawn)))
    assert result == turned
    if result.kappa is not None:
        assert -1 <= result.kappa <= result.share
        assert (result.kappa == 1) == (result.agreed == result.decided)


def test_bundles_are_weighted_by_size_and_have_the_interval_of_a_mean_score():
    result = share_of(Bundle(yes, 4) for yes in (1, 4, 2, 3, 3))
    interval = mean_interval([25, 100, 50, 75, 75])
    assert result.value == pytest.approx(0.65)
    assert (100 * result.low, 100 * result.high) == pytest.approx((interval.low, interval.high))
    assert result.count == 20
    # An empty bundle does not count at all.
    assert share_of([Bundle(9, 9), Bundle(0, 1), Bundle(0, 0)]).value == pytest.approx(0.9)
    assert share_of([Bundle(0, 0)]) is None
    assert share_of([]) is None
    # Ten alike on one subject are no ten proofs.
    one, many = share_of([Bundle(0, 10)]), share_of([Bundle(0, 1)] * 10)
    assert (one.value, many.value) == (0, 0)
    assert one.high > 0.7 > 0.3 > many.high
    assert share_of([Bundle(0, 5)] * 10).high == pytest.approx(many.high)


@pytest.mark.parametrize(("bundles", "alike"), [(8, 2.0), (20, 2.0), (20, 50.0)])
def test_interval_of_a_clustered_share_covers_the_truth(bundles, alike):
    """Shares of bundles differ (Beta), sizes too: it holds the truth in some 95 of 100 runs."""
    rng = random.Random(7)
    held, runs, truth = 0, 600, 0.7

    def drawn():
        share, size = rng.betavariate(truth * alike, (1 - truth) * alike), rng.randint(1, 6)
        return Bundle(sum(rng.random() < share for _ in range(size)), size)

    for _ in range(runs):
        result = share_of(drawn() for _ in range(bundles))
        held += result.low <= truth <= result.high
    assert 0.92 <= held / runs <= 0.99


TWO_WITH_YES_AND_NO = ("0100000000", "1110010010")
FOUR_WITH_GAPS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
"""Each rater is a line, with a sign for each unit; a point stands for an answer that is missing."""


def units_of(raters) -> list[list[int]]:
    return [[int(value) for value in unit if value != "."] for unit in zip(*raters, strict=True)]


def exact_alpha(units) -> Fraction | None:
    """The alpha of units that all weigh the same."""
    splits = [(Split(unit.count(1), unit.count(0)), Fraction(1)) for unit in units]
    return alpha(splits, sum(len(unit) for unit in units if len(unit) > 1))


def test_alpha_and_kappa_equal_published_examples_and_their_definition():
    """Examples of Krippendorff (2011); kappa of 0.8 agreed, 0.58 by chance."""
    assert float(exact_alpha(units_of(TWO_WITH_YES_AND_NO))) == pytest.approx(0.095, abs=0.0005)
    assert float(ordinal_alpha(coincidences(units_of(FOUR_WITH_GAPS)))) == pytest.approx(0.815, abs=0.0005)
    assert exact_alpha([[1, 1], [0, 0], [1, 1, 1]]) == 1
    assert exact_alpha([[0, 1], [0, 1]]) == ordinal_alpha(coincidences([[0, 1], [0, 1]])) == Fraction(-1, 2)
    for units in ([], [[]], [[1], [0]], [[1, 1], [1, 1, 1]]):
        assert (exact_alpha(units), ordinal_alpha(coincidences(units))) == (None, None)
    # But for the small sample's sake.
    weighed = {Split(2, 0): Fraction(3), Split(1, 1): Fraction(1), Split(0, 2): Fraction(2)}
    repeated = [[True, True]] * 3 + [[True, False]] + [[False, False]] * 2
    assert alpha(weighed.items(), 12) == exact_alpha(repeated)
    result = AgreementTable(Fraction(6, 10), Fraction(1, 10), Fraction(1, 10), Fraction(2, 10))
    assert result.kappa() == (Fraction(8, 10) - Fraction(58, 100)) / (1 - Fraction(58, 100))
    assert (result.sensitivity(), result.specificity()) == (Fraction(6, 7), Fraction(2, 3))
    alike = AgreementTable(Fraction(1), Fraction(0), Fraction(0), Fraction(0))
    assert (alike.kappa(), alike.specificity()) == (None, None)
    assert alpha([(Split(2, 0), 1.0)], 2) is None
    assert alpha([(Split(1, 0), 1.0)], 0) is None


ANSWERS = st.lists(st.none() | st.integers(0, 4), min_size=4, max_size=4)


@settings(max_examples=examples(60))
@given(st.lists(ANSWERS, min_size=2, max_size=12))
def test_ordinal_alpha_equals_that_of_the_krippendorff_library(table):
    """For any number of values, and answers missing anywhere; whatever the order of units and raters."""
    units = [[value for value in unit if value is not None] for unit in table]
    data = np.array([[np.nan if value is None else value for value in unit] for unit in table], dtype=float).T
    result = ordinal_alpha(coincidences(units))
    assert result == ordinal_alpha(coincidences([unit[::-1] for unit in reversed(units)]))
    if result is not None:
        expected = library.alpha(reliability_data=data, level_of_measurement="ordinal")
        assert float(result) == pytest.approx(expected, abs=1e-9)


def ratings(seed: int) -> list[list[bool | None]]:
    """Ratings of some things, by person; some give none."""
    rng = random.Random(seed)
    things = [rng.random() < 0.7 for _ in range(rng.randint(2, 30))]
    people = rng.randint(2, 5)
    return [[rng.choices([good, not good, None], [7, 2, 2])[0] for good in things] for _ in range(people)]


@each_row("seed", range(40))
def test_nominal_alpha_equals_that_of_the_krippendorff_library(seed):
    """With equal weights, whatever these are."""
    people = ratings(seed)
    units = [[outcome for outcome in unit if outcome is not None] for unit in zip(*people, strict=True)]
    splits = Counter(Split(unit.count(True), unit.count(False)) for unit in units)
    values = sum(len(unit) for unit in units if len(unit) > 1)
    result = alpha([(split, Fraction(times, 7)) for split, times in splits.items()], values)
    assert result == exact_alpha(units)
    if result is not None:
        data = [[np.nan if outcome is None else outcome for outcome in person] for person in people]
        expected = library.alpha(np.array(data, dtype=float), level_of_measurement="nominal")
        assert float(result) == pytest.approx(expected)
