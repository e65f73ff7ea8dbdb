"""Every number format, by a table."""

from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain import numbers
from ci_evals.domain.base import Interval


@each_row(("number_format", "examples"), [
    (numbers.score, {79.96: "79.9", 29.3: "29.3", 80: "80.0", 66.66666666666667: "66.6", None: "n/a"}),
    (numbers.score, {99.99999999999999: "99.9", 0.0: "0.0"}),
    (numbers.interval, {Interval(low=70.19, high=88.0): "70.1 to 88.0", None: "n/a"}),
    (numbers.percent, {2 / 3: "66 %", 0.29: "29 %", 0.999: "99 %", 1: "100 %", None: "n/a"}),
    (numbers.fault, {0.031: "4 %", 0.0: "0 %", 1 / 1000: "1 %", 0.07: "7 %", 1: "100 %", None: "n/a"}),
    (numbers.coefficient, {0.789: "0.78", 0.29: "0.29", -0.001: "-0.01", 1: "1.00", None: "n/a"}),
    (numbers.grade, {2 / 3: "0.66", None: "n/a"}),
    (numbers.excess, {0.5: "+50 %", -1: "-100 %", 0.004: "0 %", -0.004: "0 %", 2: "+200 %", None: "n/a"}),
    (numbers.gain, {0.55057: "0.5506", 1225.07: "1,225.1", 0: "0.0", None: "n/a"}),
    (numbers.average, {2.7777: "2.8", 0: "0.0", 0.03: "below 0.1", None: "n/a"}),
    (numbers.plain, {80: "80", 0.1: "0.1", 1e21: "1000000000000000000000", None: "n/a"}),
    (numbers.plain, {80.0: "80"}),
    (numbers.least, {5.04: "5.1", 5: "5", None: "n/a", 5.000000000000001: "5", -2.15: "-2.1", -0.04: "0"}),
    (numbers.signed, {-3.62: "−3.7", -3.7: "−3.7", -0.01: "−0.1", 0.58: "+0.5", 0.04: "+0.0", 0: "0.0"}),
    (numbers.signed, {-1e-14: "0.0", None: "n/a"}),
    (numbers.signed_for_programs, {-3.62: "-3.7"}),
    (numbers.change_interval, {Interval(low=-7.85, high=0.5): "−7.9 to +0.5", None: "n/a"}),
    (numbers.spread, {57.735: "57.7", None: "n/a"}),
    (numbers.chance, {0.062: "0.06", 0.05: "0.05", 0.0504: "0.051", 0.0499: "0.049", 0.046: "0.046"}),
    (numbers.chance, {0.0096: "0.01", 0.0024: "0.002", 0.0009: "below 0.001", 0.996: "above 0.99"}),
    (numbers.chance, {1: "above 0.99", None: "n/a"}),
    (numbers.p_value, {0.062: "p = 0.06", 0.0001: "p below 0.001", None: "p = n/a"}),
    (numbers.decimal, {0.00031: "0.0004", 0.050001: "0.0501", 0.05: "0.05", 1: "1", None: "n/a"}),
    (numbers.odds, {0.112: "12 %", 0.11: "11 %", 0.05001: "6 %", 0: "less than 1 %", None: "n/a"}),
    (numbers.odds, {0.999: "more than 99 %"}),
    (numbers.duration, {0: "0.0 s", 3.25: "3.2 s", 9.96: "10 s", 59.6: "1 m 0 s", 123: "2 m 3 s"}),
    (numbers.duration, {7325: "2 h 2 m", None: "n/a"}),
    (numbers.about, {0: "0.0 s", 59.4: "59 s", 59.6: "1 m", 123: "2 m", 3569: "59 m", 3571: "1 h 0 m"}),
    (numbers.about, {7325: "2 h 2 m"}),
    (numbers.age, {59: "less than a minute", 60: "1 minute", 7199: "1 hour", 180_000: "2 days"}),
    (numbers.latency, {1.234: "1.23 s", 0.0042: "0.004 s", 0.0004: "below 0.001 s", 0: "0.000 s"}),
    (numbers.latency, {0.1: "0.10 s", None: "n/a"}),
    (numbers.money, {0: "$0.00", 0.0312: "$0.0312", 12.345: "$12.34", 0.00004: "below $0.0001"}),
    (numbers.money, {0.0001: "$0.0001", None: "n/a"}),
    (numbers.budget, {0.5: "$0.50", 0.0312: "$0.0312", 0.50001: "$0.5001", 0.505: "$0.505"}),
    (numbers.budget, {12: "$12.00", None: "n/a"}),
    (numbers.tokens, {0: "0", 999.4: "999", 1000: "1.0 k", 9949: "9.9 k", 9951: "10 k", 184_321: "184 k"}),
    (numbers.tokens, {999_499: "999 k", 999_500: "1.0 M", 12_345_678: "12 M", 2_000_000_000: "2,000 M"}),
])  # fmt: skip
def test_numbers_are_rounded_down_and_missing_ones_shown_as_n_a(number_format, examples):
    assert {number: number_format(number) for number in examples} == examples


@each_row(("formatted", "expected"), [
    (numbers.score(79.9587, 79.955), "79.958"),
    (numbers.score(79.96, 80), "79.9"),
    (numbers.grade(0.7, 0.7), "0.70"),
    (numbers.grade(0.69999, 0.695), "0.699"),
    (numbers.least(2.251, 2.25), "2.26"),
    (numbers.least(2.24, 2.25), "2.24"),
    (numbers.least(2.24, 2), "2.3"),
    (numbers.latency(2.504, 2.5), "2.51 s"),
    (numbers.latency(2.499, 2.5), "2.50 s"),
    (numbers.latency(2.5, 2.5), "2.50 s"),
    (numbers.latency(0.0512, 0.05), "0.051 s"),
    (numbers.latency(0.00004, 0.0001), "0.0000 s"),
    (numbers.budget(0.00004, 0.00005), "$0.00004"),
    (numbers.budget(0.00005, 0.00005), "$0.00005"),
    (numbers.extent(20_500, 184_321, numbers.tokens), "20 k to 184 k"),
    (numbers.extent(184_321, 184_322, numbers.tokens), "184 k"),
    (numbers.extent(0, 0.5, numbers.money), "$0.00 to $0.50"),
    (numbers.count(1, "test"), "1 test"),
    (numbers.count(0, "test"), "0 tests"),
    (numbers.count(1200, "test"), "1,200 tests"),
    (numbers.count(2, "criterion", "criteria"), "2 criteria"),
])  # fmt: skip
def test_numbers_are_formatted_by_limit_range_and_noun(formatted, expected):
    assert formatted == expected


LIMITS = st.builds(lambda whole, places: whole / 10**places, st.integers(0, 10_000), st.integers(0, 4))


@given(st.floats(0, 100), st.integers(0, 1000), LIMITS)
def test_rounding_never_moves_score_or_number_across_threshold_or_limit(number, tenths, limit):
    threshold = tenths / 10
    if number < threshold:
        assert float(numbers.score(number)) < threshold
    number = round(number, 8)
    assert (float(numbers.score(number, limit)) < limit) == (number < limit)
    assert (float(numbers.least(number, limit)) > limit) == (number > limit)
    assert (float(numbers.latency(number, limit).removesuffix(" s")) > limit) == (number > limit)
    assert (float(numbers.budget(number, limit).removeprefix("$")) > limit) == (number > limit)


@given(st.floats(-100, 100))
def test_change_keeps_its_sign_and_drops_are_rounded_away_from_zero(change):
    shown = float(numbers.signed_for_programs(change))
    assert change - 0.1 - 1e-8 < shown <= change + 1e-8
    assert (shown < 0) == (round(change, 9) < 0)


@given(st.floats(0.001, 0.99), st.floats(0, 1000), st.integers(0, 10_000_000))
def test_rounding_never_moves_p_across_significance_level_or_cost_across_budget(p, dollars, limit):
    assert (float(numbers.chance(p)) > 0.05) == (p > 0.05)
    budget = limit / 10_000
    shown = float(numbers.budget(dollars).removeprefix("$"))
    assert (shown > budget) == (round(dollars, 9) > budget)


def test_change_is_the_difference_of_the_shown_scores():
    assert (numbers.points(96.07), numbers.points(94.11)) == ("96", "94")
    assert numbers.points_changed(96.07, 94.11) == "−2"
    assert numbers.points_changed(80.04, 80.0) == "±0"
    assert numbers.points_changed(93.75, 78.25) == "−15"
    assert numbers.changed(96.07, 94.11) == "−1.9"
    assert numbers.changed(80.04, 80.0) == "0.0"
    assert numbers.changed(91.67, 100.0) == "+8.4"
    assert numbers.change_interval(Interval(low=4.0, high=8.33), 91.67, 100.0) == "+4.0 to +8.4"
