"""Places in a drawing, and round numbers."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ci_evals.reports.page.charts.scale import Scale, above, decades, ticks


def test_scale_maps_values_and_clips_them_at_its_ends():
    up = Scale(0, 100, 200, 0)
    assert (up(0), up(50), up(100), up(-3), up(1e9)) == (200, 100, 0, 200, 0)
    logarithmic = Scale(1, 100, 0, 10, log=True)
    assert (logarithmic(1), logarithmic(10), logarithmic(1000)) == (0, 5, 10)
    assert Scale(7, 7, 0, 10)(7) == 5


def test_ticks_are_round_numbers():
    assert ticks(0, 100) == (0, 20, 40, 60, 80, 100)
    assert ticks(0, 1) == (0, 0.2, 0.4, 0.6, 0.8, 1)
    assert ticks(70, 100) == (70, 80, 90, 100)
    assert ticks(0, 3e-7) == (0, 1e-7, 2e-7, 3e-7)
    assert ticks(5, 5) == (5,)
    assert decades(0.03, 1.2) == (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
    assert decades(1e-3, 1e3) == (1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)
    assert decades(5, 5) == (5, 10)


@given(st.floats(1e-12, 1e12))
def test_axis_ends_at_a_round_number_close_above_the_value(value):
    high = above(value)
    assert value * (1 - 1e-6) <= high <= 2.01 * value
    assert 2 <= len(ticks(0, high)) <= 7


@given(st.floats(1e-12, 1e12), st.floats(1, 1e9))
def test_decades_cover_the_range_in_few_ordered_steps(low, factor):
    high = low * factor
    found = decades(low, high)
    assert 2 <= len(found) <= 9
    assert found[0] <= low * (1 + 1e-6)
    assert found[-1] >= high * (1 - 1e-6)
    assert all(math.log10(b / a) > 0.2 for a, b in pairwise(found))
