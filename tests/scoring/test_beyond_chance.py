"""Agreement beyond chance, held against published examples and the library that people know."""

import random
from collections import Counter
from fractions import Fraction

import krippendorff as library
import numpy as np
import pytest
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.scoring.agreement.beyond_chance import AgreementTable, Split, alpha, coincidences, ordinal_alpha

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
    """What some people say of some things, by person; some say nothing."""
    rng = random.Random(seed)
    things = [rng.random() < 0.7 for _ in range(rng.randint(2, 30))]
    return [
        [rng.choices([good, not good, None], [7, 2, 2])[0] for good in things]
        for _ in range(rng.randint(2, 5))
    ]


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
