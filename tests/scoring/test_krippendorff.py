"""Krippendorff's alpha against his published examples, and against the library that users would take."""

from fractions import Fraction

import krippendorff as library
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_evals.scoring.agreement.krippendorff import alpha, nominal, ordinal


def units_of(*raters: str) -> list[list[str]]:
    """Each rater is a line, with a sign for each unit; a point stands for an answer that is missing."""
    return [[value for value in unit if value != "."] for unit in zip(*raters, strict=True)]


TWO_WITH_YES_AND_NO = units_of("0100000000", "1110010010")
TWO_WITH_FIVE_VALUES = units_of("aabbdcccedda", "babbbccceddd")
FOUR_WITH_GAPS = units_of("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


@pytest.mark.parametrize(
    ("units", "of", "published"),
    [
        (TWO_WITH_YES_AND_NO, nominal, 0.095),
        (TWO_WITH_FIVE_VALUES, nominal, 0.692),
        (FOUR_WITH_GAPS, nominal, 0.743),
        (FOUR_WITH_GAPS, ordinal, 0.815),
    ],
)
def test_published_examples(units, of, published):
    """Those of Krippendorff (2011)."""
    assert float(alpha(units, of)) == pytest.approx(published, abs=0.0005)


def test_what_it_says_at_its_ends():
    """Full agreement is 1, exactly; to differ always is worse than chance."""
    assert alpha([[1, 1], [0, 0], [1, 1, 1]]) == 1
    assert alpha([[0, 1], [0, 1]]) == Fraction(-1, 2)
    assert alpha([[0, 1], [0, 1]], ordinal) == Fraction(-1, 2)


@pytest.mark.parametrize("units", [[], [[]], [[1], [0]], [[1, 1], [1, 1, 1]]])
def test_where_it_says_nothing(units):
    """Nothing was rated twice, or nothing was told apart."""
    assert alpha(units) is None


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=4, max_size=4), min_size=2, max_size=12
    )
)
def test_it_is_what_the_library_says(table):
    """For any number of values, and answers missing anywhere; whatever the order of units and raters."""
    units = [[value for value in unit if value is not None] for unit in table]
    data = np.array([[np.nan if value is None else value for value in unit] for unit in table], dtype=float).T
    for of, level in ((nominal, "nominal"), (ordinal, "ordinal")):
        found = alpha(units, of)
        assert found == alpha([unit[::-1] for unit in reversed(units)], of)
        if found is not None:
            expected = library.alpha(reliability_data=data, level_of_measurement=level)
            assert float(found) == pytest.approx(expected, abs=1e-9)
