"""Every number format, by a table."""

from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain import numbers
from ci_evals.domain.base import Interval


@each_row(
    ("written", "expected"),
    [
        (numbers.score(79.96), "79.9"),
        (numbers.score(29.3), "29.3"),
        (numbers.score(80), "80.0"),
        (numbers.score(66.66666666666667), "66.6"),
        (numbers.score(99.99999999999999), "99.9"),
        (numbers.score(0.0), "0.0"),
        (numbers.score(None), "n/a"),
        (numbers.score(79.9587, 79.955), "79.958"),
        (numbers.score(79.96, 80), "79.9"),
        (numbers.interval(Interval(low=70.19, high=88.0)), "70.1 to 88.0"),
        (numbers.interval(None), "n/a"),
        (numbers.percent(2 / 3), "66 %"),
        (numbers.percent(0.29), "29 %"),
        (numbers.percent(0.999), "99 %"),
        (numbers.percent(1), "100 %"),
        (numbers.percent(None), "n/a"),
        (numbers.fault(0.031), "4 %"),
        (numbers.fault(0.0), "0 %"),
        (numbers.fault(1 / 1000), "1 %"),
        (numbers.fault(0.07), "7 %"),
        (numbers.fault(1), "100 %"),
        (numbers.fault(None), "n/a"),
        (numbers.coefficient(0.789), "0.78"),
        (numbers.coefficient(0.29), "0.29"),
        (numbers.coefficient(-0.001), "-0.01"),
        (numbers.coefficient(1), "1.00"),
        (numbers.coefficient(None), "n/a"),
        (numbers.grade(2 / 3), "0.66"),
        (numbers.grade(0.7, 0.7), "0.70"),
        (numbers.grade(0.69999, 0.695), "0.699"),
        (numbers.grade(None), "n/a"),
        (numbers.excess(0.5), "+50 %"),
        (numbers.excess(-1), "-100 %"),
        (numbers.excess(0.004), "0 %"),
        (numbers.excess(-0.004), "0 %"),
        (numbers.excess(2), "+200 %"),
        (numbers.excess(None), "n/a"),
        (numbers.gain(0.55057), "0.5506"),
        (numbers.gain(1225.07), "1,225.1"),
        (numbers.gain(0), "0.0"),
        (numbers.gain(None), "n/a"),
        (numbers.average(2.7777), "2.8"),
        (numbers.average(0), "0.0"),
        (numbers.average(0.03), "below 0.1"),
        (numbers.average(None), "n/a"),
        (numbers.plain(80), "80"),
        (numbers.plain(80.0), "80"),
        (numbers.plain(0.1), "0.1"),
        (numbers.plain(1e21), "1000000000000000000000"),
        (numbers.plain(None), "n/a"),
        (numbers.least(5.04), "5.1"),
        (numbers.least(5), "5"),
        (numbers.least(None), "n/a"),
        (numbers.least(5.000000000000001), "5"),
        (numbers.least(-2.15), "-2.1"),
        (numbers.least(-0.04), "0"),
        (numbers.least(2.251, 2.25), "2.26"),
        (numbers.least(2.24, 2.25), "2.24"),
        (numbers.least(2.24, 2), "2.3"),
        (numbers.signed(-3.62), "−3.7"),
        (numbers.signed_for_programs(-3.62), "-3.7"),
        (numbers.signed(-3.7), "−3.7"),
        (numbers.signed(-0.01), "−0.1"),
        (numbers.signed(0.58), "+0.5"),
        (numbers.signed(0.04), "+0.0"),
        (numbers.signed(0), "0.0"),
        (numbers.signed(-1e-14), "0.0"),
        (numbers.signed(None), "n/a"),
        (numbers.change_interval(Interval(low=-7.85, high=0.5)), "−7.9 to +0.5"),
        (numbers.change_interval(None), "n/a"),
        (numbers.spread(57.735), "57.7"),
        (numbers.spread(None), "n/a"),
        (numbers.chance(0.062), "0.06"),
        (numbers.chance(0.05), "0.05"),
        (numbers.chance(0.0504), "0.051"),
        (numbers.chance(0.0499), "0.049"),
        (numbers.chance(0.046), "0.046"),
        (numbers.chance(0.0096), "0.01"),
        (numbers.chance(0.0024), "0.002"),
        (numbers.chance(0.0009), "below 0.001"),
        (numbers.chance(0.996), "above 0.99"),
        (numbers.chance(1), "above 0.99"),
        (numbers.chance(None), "n/a"),
        (numbers.p_value(0.062), "p = 0.06"),
        (numbers.p_value(0.0001), "p below 0.001"),
        (numbers.p_value(None), "p = n/a"),
        (numbers.decimal(0.00031), "0.0004"),
        (numbers.decimal(0.050001), "0.0501"),
        (numbers.decimal(0.05), "0.05"),
        (numbers.decimal(1), "1"),
        (numbers.decimal(None), "n/a"),
        (numbers.odds(0.112), "12 %"),
        (numbers.odds(0.11), "11 %"),
        (numbers.odds(0.05001), "6 %"),
        (numbers.odds(0), "less than 1 %"),
        (numbers.odds(0.999), "more than 99 %"),
        (numbers.odds(None), "n/a"),
        (numbers.duration(0), "0.0 s"),
        (numbers.duration(3.25), "3.2 s"),
        (numbers.duration(9.96), "10 s"),
        (numbers.duration(59.6), "1 m 0 s"),
        (numbers.duration(123), "2 m 3 s"),
        (numbers.duration(7325), "2 h 2 m"),
        (numbers.duration(None), "n/a"),
        (numbers.about(0), "0.0 s"),
        (numbers.about(59.4), "59 s"),
        (numbers.about(59.6), "1 m"),
        (numbers.about(123), "2 m"),
        (numbers.about(3569), "59 m"),
        (numbers.about(3571), "1 h 0 m"),
        (numbers.about(7325), "2 h 2 m"),
        (numbers.age(59), "less than a minute"),
        (numbers.age(60), "1 minute"),
        (numbers.age(7199), "1 hour"),
        (numbers.age(180_000), "2 days"),
        (numbers.latency(1.234), "1.23 s"),
        (numbers.latency(0.0042), "0.004 s"),
        (numbers.latency(0.0004), "below 0.001 s"),
        (numbers.latency(0), "0.000 s"),
        (numbers.latency(2.504, 2.5), "2.51 s"),
        (numbers.latency(2.499, 2.5), "2.50 s"),
        (numbers.latency(2.5, 2.5), "2.50 s"),
        (numbers.latency(0.0512, 0.05), "0.051 s"),
        (numbers.latency(0.00004, 0.0001), "0.0000 s"),
        (numbers.latency(0.1), "0.10 s"),
        (numbers.latency(None), "n/a"),
        (numbers.money(0), "$0.00"),
        (numbers.money(0.0312), "$0.0312"),
        (numbers.money(12.345), "$12.34"),
        (numbers.money(0.00004), "below $0.0001"),
        (numbers.money(0.0001), "$0.0001"),
        (numbers.money(None), "n/a"),
        (numbers.budget(0.5), "$0.50"),
        (numbers.budget(0.0312), "$0.0312"),
        (numbers.budget(0.50001), "$0.5001"),
        (numbers.budget(0.505), "$0.505"),
        (numbers.budget(12), "$12.00"),
        (numbers.budget(0.00004, 0.00005), "$0.00004"),
        (numbers.budget(0.00005, 0.00005), "$0.00005"),
        (numbers.budget(None), "n/a"),
        (numbers.tokens(0), "0"),
        (numbers.tokens(999.4), "999"),
        (numbers.tokens(1000), "1.0 k"),
        (numbers.tokens(9949), "9.9 k"),
        (numbers.tokens(9951), "10 k"),
        (numbers.tokens(184_321), "184 k"),
        (numbers.tokens(999_499), "999 k"),
        (numbers.tokens(999_500), "1.0 M"),
        (numbers.tokens(12_345_678), "12 M"),
        (numbers.tokens(2_000_000_000), "2,000 M"),
        (numbers.extent(20_500, 184_321, numbers.tokens), "20 k to 184 k"),
        (numbers.extent(184_321, 184_322, numbers.tokens), "184 k"),
        (numbers.extent(0, 0.5, numbers.money), "$0.00 to $0.50"),
        (numbers.count(1, "test"), "1 test"),
        (numbers.count(0, "test"), "0 tests"),
        (numbers.count(1200, "test"), "1,200 tests"),
        (numbers.count(2, "criterion", "criteria"), "2 criteria"),
    ],
)
def test_numbers_are_written_by_these_rules(written, expected):
    """What is written on the left reads as on the right."""
    assert written == expected


@given(st.floats(0, 100), st.integers(0, 1000))
def test_a_score_never_looks_better_than_it_is(points, tenths):
    """A score below a threshold of one decimal is shown below it."""
    threshold = tenths / 10
    if points < threshold:
        assert float(numbers.score(points)) < threshold


LIMITS = st.builds(lambda whole, places: whole / 10**places, st.integers(0, 10_000), st.integers(0, 4))


@given(st.floats(0, 100), LIMITS)
def test_what_was_seen_is_shown_on_its_side_of_what_is_asked(seen, limit):
    """However many decimals a limit or a floor has."""
    seen = round(seen, 8)
    assert (float(numbers.score(seen, limit)) < limit) == (seen < limit)
    assert (float(numbers.least(seen, limit)) > limit) == (seen > limit)
    assert (float(numbers.latency(seen, limit).removesuffix(" s")) > limit) == (seen > limit)
    assert (float(numbers.budget(seen, limit).removeprefix("$")) > limit) == (seen > limit)


@given(st.floats(-100, 100))
def test_a_drop_never_looks_smaller_than_it_is(change):
    """Nor a rise larger; the sign stays."""
    shown = float(numbers.signed_for_programs(change))
    assert change - 0.1 - 1e-8 < shown <= change + 1e-8
    assert (shown < 0) == (round(change, 9) < 0)


@given(st.floats(0.001, 0.99))
def test_a_p_is_shown_on_its_side_of_what_is_asked(p):
    """Above 0.05 a drop is not proven, and does not look as if it were."""
    assert (float(numbers.chance(p)) > 0.05) == (p > 0.05)


@given(st.floats(0, 1000), st.integers(0, 10_000_000))
def test_a_cost_beyond_its_budget_is_shown_beyond_it(dollars, limit):
    """And one that lies within, within, as far as four decimals go."""
    budget = limit / 10_000
    shown = float(numbers.budget(dollars).removeprefix("$"))
    assert (shown > budget) == (round(dollars, 9) > budget)


def test_a_change_beside_both_scores_is_their_difference_as_shown():
    """A reader subtracts: 96.0 and 94.1, or 96 and 94, whatever was cut of them."""
    assert (numbers.points(96.07), numbers.points(94.11)) == ("96", "94")
    assert numbers.points_changed(96.07, 94.11) == "−2"
    assert numbers.points_changed(80.04, 80.0) == "±0"
    assert numbers.points_changed(93.75, 78.25) == "−15"
    assert numbers.changed(96.07, 94.11) == "−1.9"
    assert numbers.changed(80.04, 80.0) == "0.0"
    assert numbers.changed(91.67, 100.0) == "+8.4"
    assert numbers.change_interval(Interval(low=4.0, high=8.33), 91.67, 100.0) == "+4.0 to +8.4"
