"""How far two judges agree: against sums done by hand, and what must hold of any verdicts."""

from fractions import Fraction

import builders as build
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.verdict import Outcome
from ci_evals.scoring.agreement.judges import Agreement, Twice, agreement, changes, in_words

WORDS = {"p": Outcome.PASSED, "f": Outcome.FAILED, "u": Outcome.UNDECIDED}


def pairs(*drawn: str) -> list[Twice]:
    """`"pf"` is a verdict that was passed and is failed; `"pf*3"` three of them."""
    result = []
    for text in drawn:
        both, _, times = text.partition("*")
        before, after = (build.finding(WORDS[letter], kind="judged") for letter in both)
        result += [Twice("S", "t", 1, before, after)] * int(times or 1)
    return result


def test_kappa_equals_hand_computation_without_undecided_verdicts():
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
