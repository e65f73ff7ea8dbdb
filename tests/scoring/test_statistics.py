"""The arithmetic of noise, against sums done by hand, published tables, and brute force."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from random import Random
from statistics import NormalDist, fmean, variance

import builders as build
import pytest
from doc_pages import ROOT, blocks, table
from each_row import each_row
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plans import trial
from processor_time import at_most
from property_examples import examples

from ci_evals.reports.story.certainty import score_and_change
from ci_evals.scoring import statistics
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.statistics import (
    ALPHA,
    ScorePair,
    chance_of_drop,
    fewest_broken,
    mean_interval,
    noise_of,
    pass_at_k,
    pass_hat_k,
    proven_drops,
    spread_of,
    t_quantile,
    wilson,
)

Z = NormalDist().inv_cdf(0.975)
SCORES = st.integers(0, 4).map(lambda quarter: 25.0 * quarter)
POINTS = st.floats(0, 100)


def pairs_of(trials, *, most):
    scores = st.lists(SCORES, min_size=1, max_size=trials).map(tuple)
    return st.lists(st.builds(ScorePair, scores, scores), min_size=1, max_size=most)


def p_by_definition(pairs):
    """The permutation test by its definition: every arrangement of the whole run, in exact fractions."""

    def changes(pair):
        pool = [Fraction(score) for score in (*pair.head, *pair.base)]
        for chosen in combinations(range(len(pool)), len(pair.head)):
            head = [pool[place] for place in chosen]
            base = [pool[place] for place in range(len(pool)) if place not in chosen]
            yield sum(head) / len(head) - sum(base) / len(base)

    runs = [sum(one) for one in product(*(list(changes(pair)) for pair in pairs))]
    seen = sum(Fraction(pair.delta).limit_denominator(1000) for pair in pairs)
    return Fraction(sum(run <= seen for run in runs), len(runs))


def p_by_counting(pairs):
    """The same of many tests with whole scores and equal sides: how often each sum comes up."""
    sums, seen = Counter({0: 1}), 0
    for pair in pairs:
        pool, heads = (*pair.head, *pair.base), len(pair.head)
        # By how many trials were taken and what they add up to.
        ways = Counter({(0, 0): 1})
        for score in pool:
            for (taken, total), count in list(ways.items()):
                ways[taken + 1, total + score] += count
        changes = {2 * total - sum(pool): count for (taken, total), count in ways.items() if taken == heads}
        longer = Counter()
        for one, count in sums.items():
            for change, more in changes.items():
                longer[one + change] += count * more
        sums, seen = longer, seen + sum(pair.head) - sum(pair.base)
    return sum(count for total, count in sums.items() if total <= seen) / sums.total()


def noisy(tests, trials, *, seed=1, worse=0.0, step=0.0):
    """Tests whose scores take any value, or multiples of a step; those of the head may be worse."""
    rng = Random(seed)

    def scores_around(middle):
        scores = [min(100.0, max(0.0, rng.gauss(middle, 15))) for _ in range(trials)]
        return tuple(round(score / step) * step if step else score for score in scores)

    return [ScorePair(scores_around(70 - worse), scores_around(70)) for _ in range(tests)]


def p(*pairs, **options):
    return chance_of_drop([ScorePair(*pair) for pair in pairs], "seed", **options).p


LOST = ((0, 0, 0), (100, 100, 100))


@pytest.mark.parametrize(("pairs", "expected"), [
    # Of the 20 ways to call three of six trials head, one is as bad as what was seen.
    pytest.param([LOST], 1 / 20, id="one test lost all"),
    pytest.param([LOST, LOST], 1 / 400, id="two tests lost all"),
    # Two trials of five are called head: of ten ways, three take two of the three 50s.
    pytest.param([((50, 50), (100, 100, 50))], 3 / 10, id="sides of different size"),
    # 0 and 50 against 50 and 100: of six ways, two call 0 and a 50 head, and none is lower.
    pytest.param([((0, 50), (50, 100))], 2 / 6, id="ties count"),
    # Five changes, all down: of 32 ways to give them signs, one.
    pytest.param([((50 - drop,), (50,)) for drop in (1, 5, 10, 20, 3)], 1 / 32, id="sign-flip test"),
    # -10, -20, +5 are -25 together; of eight ways to give signs, only these and -35 are as low.
    pytest.param([((40,), (50,)), ((30,), (50,)), ((55,), (50,))], 2 / 8, id="one rise among drops"),
    # -0.3 + 0.2 + 0.1 ties with 0.3 - 0.2 - 0.1, and of the eight ways three are lower.
    pytest.param([((0,), (0.3,)), ((0.2,), (0,)), ((0.1,), (0,))], 5 / 8, id="tie of binary fractions"),
    pytest.param([((100, 100), (100, 100)), ((50,), (50,))], 1, id="no variation"),
    pytest.param([LOST[::-1]], 1, id="a rise: the test is one-sided"),
])  # fmt: skip
def test_p_value_of_small_runs_equals_hand_count(pairs, expected):
    assert p(*pairs) == expected


def test_statistics_without_pairs_are_none():
    assert (chance_of_drop([], "seed"), spread_of([], 5), mean_interval([])) == (None, None, None)
    assert proven_drops([], "seed") == ()


@settings(max_examples=examples(60))
@given(pairs_of(3, most=3))
def test_enumerated_p_value_equals_exact_permutation_test(pairs):
    chance = chance_of_drop(pairs, "seed")
    assert (chance.test, chance.p) == ("enumerated", pytest.approx(float(p_by_definition(pairs)), abs=1e-12))
    assert chance.p >= chance.smallest


def test_p_value_is_exact_for_many_tests_and_ties():
    """1 of 20, to the digit and whatever the run's id: what does not vary is not drawn."""
    steady = ScorePair((100,) * 3, (100,) * 3)
    for tests in (1, 5, 24, 300):
        for seed in "abc":
            result = chance_of_drop([ScorePair(*LOST), *[steady] * (tests - 1)], seed)
            assert (result.p, result.test) == (0.05, "enumerated")
    # Thirty changes by a third and thirty back are no change: p is that of a fair coin's 60 tosses.
    expected = sum(math.comb(60, ups) for ups in range(31)) / 2**60
    assert p(*[((100 / 3,), (200 / 3,)), ((200 / 3,), (100 / 3,))] * 30) == pytest.approx(expected, abs=1e-12)
    broke, fixed = ScorePair((0.0,), (100.0,)), ScorePair((100.0,), (0.0,))
    chance = chance_of_drop([broke] * 1_560 + [fixed] * 1_440, "seed")
    ways = sum(math.comb(3_000, fewer) for fewer in range(1_441))
    assert chance == statistics.Chance(ways / 2**3_000, "enumerated", 1 / 2**3_000)


THIRDS = st.sampled_from([Fraction(100 * part, whole) for whole in (1, 3, 7) for part in range(whole + 1)])


@settings(max_examples=examples(80))
@given(st.lists(st.tuples(*[st.lists(THIRDS, min_size=1, max_size=2)] * 2), min_size=1, max_size=4))
def test_p_value_treats_rounded_fractions_as_exact_ties(sides):
    """Binary numbers have neither, nor has the grid on which changes are summed."""
    exact = [ScorePair(tuple(head), tuple(base)) for head, base in sides]
    rounded = [ScorePair(tuple(map(float, pair.head)), tuple(map(float, pair.base))) for pair in exact]
    assert chance_of_drop(rounded, "seed").p == pytest.approx(float(p_by_definition(exact)), abs=1e-12)


@pytest.mark.parametrize("shuffles", [4_000, pytest.param(10_000, marks=pytest.mark.simulate)])
def test_enumerated_p_agrees_with_thousands_of_shuffles(shuffles):
    """24 tests of three trials have 1e31 arrangements."""
    pairs, rng = noisy(24, 3, worse=3, step=10), Random(7)
    result = chance_of_drop(pairs, "seed")
    seen, pools = sum(sum(pair.head) for pair in pairs), [(*pair.head, *pair.base) for pair in pairs]
    low = sum(sum(sum(rng.sample(pool, 3)) for pool in pools) <= seen for _ in range(shuffles))
    assert (result.test, result.p) == ("enumerated", pytest.approx(p_by_counting(pairs), abs=1e-12))
    assert abs(result.p - low / shuffles) <= 4 * math.sqrt(result.p * (1 - result.p) / shuffles)


@pytest.mark.parametrize(("tests", "trials", "worse"), [
    *[(30, 3, 2), (1, 10, 10), pytest.param(3, 17, 3, marks=pytest.mark.slow)],
    pytest.param(4, 25, 3, marks=pytest.mark.simulate),
])  # fmt: skip
def test_sampled_p_value_agrees_with_exact_p_value(tests, trials, worse):
    """Also of big pools, where one set of draws is dealt to all tests."""
    pairs = noisy(tests, trials, worse=worse, step=1)
    chance, exact = chance_of_drop(pairs, "seed"), p_by_counting(pairs)
    assert (chance.test, chance.smallest) == ("drawn", 1 / 10_000)
    assert 0.001 < exact < 0.6
    assert abs(chance.p - exact) <= 4 * math.sqrt(exact * (1 - exact) / 9_999)


@pytest.mark.parametrize(
    "times", [pytest.param(40, marks=pytest.mark.slow), pytest.param(1_000, marks=pytest.mark.simulate)]
)
def test_sampled_p_value_keeps_the_error_rate(times):
    """Ten trials a side of equal agents: a p of 0.05 or less comes in one comparison of twenty."""
    chances = [chance_of_drop(noisy(6, 10, seed=seed), str(seed), draws=199) for seed in range(times)]
    assert {chance.test for chance in chances} == {"drawn"}
    for level in (0.05, 0.25):
        result = fmean(chance.p <= level for chance in chances)
        assert abs(result - level) <= 3 * math.sqrt(level * (1 - level) / times)


def test_sampled_p_value_is_never_zero():
    """The observed arrangement is one of those counted: (1 + none) / (1 + draws)."""
    lost = [ScorePair((0,) * 10, (100,) * 10)] * 5
    assert chance_of_drop(lost, "seed") == statistics.Chance(1 / 10_000, "drawn", 1 / 10_000)
    assert chance_of_drop(lost, "seed", draws=99).p == 1 / 100
    # 40 trials against 40 have 1e23 arrangements: 9,999 are drawn, unless few different scores occur.
    head, base = zip(*((trial**1.5 / 10, 99 + trial / 77) for trial in range(40)), strict=True)
    fell = ScorePair(head, base)
    assert proven_drops([fell], "seed") == (1 / 10_000,)
    assert proven_drops([fell] * 3, "seed") == pytest.approx((3 / 10_000,) * 3)
    alike = ScorePair((0,) * 40, (100,) * 40)
    assert proven_drops([alike], "seed") == pytest.approx((1 / math.comb(80, 40),))


@pytest.mark.parametrize(("worse", "drawn"), [(4, 9_999), (5, 99_990), (6, 9_999)])
def test_p_value_near_limit_is_sampled_from_ten_times_as_many_draws(worse, drawn):
    """The error of drawing could decide a p between 0.03 and 0.07."""
    chance = chance_of_drop(noisy(12, 3, worse=worse), "seed")
    assert (0.03 < chance.p < 0.07) == (drawn == 99_990)
    assert chance.p * (drawn + 1) == pytest.approx(round(chance.p * (drawn + 1)), abs=1e-6)


@pytest.mark.parametrize(("draws", "seeds", "steps"), [
    *[(99, 8, 30), pytest.param(300, 8, 30, marks=pytest.mark.slow)],
    *(pytest.param(draws, 12, 40, marks=pytest.mark.simulate) for draws in (99, 300)),
])  # fmt: skip
def test_sampled_p_value_never_rises_while_scores_fall(draws, seeds, steps):
    """Through where ten times as many are drawn: and few draws err the most."""
    close = 0
    for seed in range(seeds):
        pairs, result = noisy(8, 3, seed=seed), []
        for step in range(steps):
            lower = [ScorePair(tuple(max(0.0, x - step / 2) for x in pair.head), pair.base) for pair in pairs]
            result.append(chance_of_drop(lower, "seed", draws).p)
        assert result == sorted(result, reverse=True)
        close += any(0.03 < p < 0.07 for p in result)
    assert close >= seeds / 2


DOZEN = noisy(12, 3, worse=3)


def test_sampled_p_value_varies_with_seed_and_order_within_its_error():
    """Arrangements are drawn by the tests' places; where all are enumerated, order matters not at all."""
    first = chance_of_drop(DOZEN, "one").p
    assert chance_of_drop(DOZEN, "one").p == first
    error = 6 * math.sqrt(first * (1 - first) / 9_999)
    assert 0 < abs(first - chance_of_drop(DOZEN, "two").p) < error
    assert abs(first - chance_of_drop(DOZEN[::-1], "one").p) < error
    assert chance_of_drop(DOZEN[:4], "seed") == chance_of_drop(DOZEN[3::-1], "other")


@settings(max_examples=examples(60))
@given(pairs_of(3, most=9), st.data())
def test_lower_trial_score_never_raises_p_value_and_p_is_never_below_the_smallest(pairs, data):
    """The law behind the gate's: nothing that counts as failed opens it. Drawn or not, to the last digit."""
    place = data.draw(st.integers(0, len(pairs) - 1))
    pair = pairs[place]
    trial = data.draw(st.integers(0, len(pair.head) - 1))
    head = list(pair.head)
    head[trial] = data.draw(st.floats(0, head[trial]))
    lower = [*pairs[:place], ScorePair(tuple(head), pair.base), *pairs[place + 1 :]]
    before, after = (chance_of_drop(run, "seed", draws=300) for run in (pairs, lower))
    # What is counted and what is drawn differ by what drawing errs.
    assert after.p <= before.p or after.test != before.test
    for chance in (before, after):
        assert 0 < chance.smallest <= chance.p <= 1


@settings(max_examples=examples(60))
@given(pairs_of(3, most=4), st.data())
def test_slightly_lower_scores_never_raise_an_enumerated_p(pairs, data):
    place = data.draw(st.integers(0, len(pairs) - 1))
    head, by = pairs[place].head, data.draw(st.floats(0, 0.00001))
    lower = [*pairs]
    lower[place] = ScorePair((max(0.0, head[0] - by), *head[1:]), pairs[place].base)
    before, after = chance_of_drop(pairs, "seed"), chance_of_drop(lower, "seed")
    assert (before.test, after.test) == ("enumerated", "enumerated")
    assert after.p <= before.p


@pytest.mark.parametrize("seeds", ["abcd", pytest.param("abcdefghij", marks=pytest.mark.simulate)])
def test_p_value_does_not_rise_above_the_limit_if_lower_score_makes_it_sampled(seeds):
    """Scores so fine that not all arrangements can be counted any more; 9,999 draws gave a p of 0.0502."""
    held, lowered = (ScorePair(head, (100.0,) * 3) for head in ((100.0,) * 3, (99.999, 99.998, 99.996)))
    few = noisy(4, 3, seed=41, worse=10)
    before, after = (chance_of_drop([one, *few], "seed") for one in (held, lowered))
    assert (before.test, after.test, before.p) == ("enumerated", "drawn", pytest.approx(0.04674, abs=0.00001))
    assert abs(after.p - before.p) <= 3 * math.sqrt(before.p * (1 - before.p) / 99_990) < 0.05 - before.p
    # Where nothing varies nothing is drawn; lowered by a hair it is, and p does not rise.
    held, lowered = ScorePair((100.0,) * 3, (100.0,) * 3), ScorePair((99.999, 100.0, 100.0), (100.0,) * 3)
    for seed in seeds:
        before, after = chance_of_drop([held, *DOZEN], seed), chance_of_drop([lowered, *DOZEN], seed)
        assert before.test == "drawn"
        assert after.p <= before.p


def test_p_of_single_tests_is_adjusted_by_holm_if_their_trials_suffice():
    """Seven trials of 0 against five of 100: 1 of 792. Tests that could never be proven cost it nothing."""
    fell, held = ScorePair((0,) * 7, (100,) * 5), ScorePair((100,) * 6 + (0,), (100,) * 4 + (0,))
    # Two lost trials of twelve are both the head's in 21 of 66 ways, at worst.
    assert proven_drops([held, fell, held, held], "seed") == (None, pytest.approx(1 / 792), None, None)
    # 1 of 20 is just enough where no other test could have shown anything, and not where one could.
    fell, held = ScorePair(*LOST), ScorePair((100, 100, 100), (100, 100, 100))
    assert proven_drops([fell, held, held], "seed") == (1 / 20, None, None)
    assert proven_drops([fell, fell], "seed") == (None, None)
    # Of two tests that could show something the smaller p is doubled; the other only stays no smaller.
    fell, further = ScorePair((0,) * 4, (100,) * 4), ScorePair((0,) * 5, (100,) * 5)
    assert proven_drops([fell, fell], "seed") == pytest.approx((2 / 70, 2 / 70))
    assert proven_drops([fell, further], "seed") == pytest.approx((1 / 70, 2 / 252))
    # Three lost trials of eight are all the head's in 5 of 70 ways: 1/14, so that test can never be proven.
    part = ScorePair((0, 0, 0, 100), (100,) * 4)
    assert proven_drops([fell, part], "seed") == (pytest.approx(1 / 70), None)


@settings(max_examples=examples(40))
@given(pairs_of(4, most=4))
def test_adjusted_p_value_is_never_below_unadjusted_one(pairs):
    for pair, result in zip(pairs, proven_drops(pairs, "seed"), strict=True):
        assert result is None or 1 >= result >= chance_of_drop([pair], "seed").p - 1e-12


@given(st.floats(0, 1), st.floats(1, 1000))
def test_wilson_bounds_satisfy_the_score_test(share, n):
    """The definition: from a bound, what was seen lies z standard errors of that bound away."""
    for z in (-Z, Z):
        bound = wilson(share, n, z)
        if 0 < bound < 1:
            assert (share - bound) ** 2 * n == pytest.approx(Z**2 * bound * (1 - bound), rel=1e-6, abs=1e-9)


def test_score_interval_equals_hand_computation():
    for means, low, high in (
        # All alike: Wilson's on n, by hand: z²/n = 0.38415, and 0 of 10 gives 0 to 0.38415 / 1.38415.
        *(([0] * 10, 0, 27.75), ([100] * 10, 72.25, 100)),
        # z² = 3.8415: 100 / 4.8415.
        *(([100], 20.65, 100), ([50], 5.46, 94.54)),
    ):
        bounds = mean_interval(means)
        assert (bounds.low, bounds.high) == pytest.approx((low, high), abs=0.005)
    # Means 60, 80, 100, 100: worked out step by step.
    z, share = 1.959964, 0.85
    squared_error = (0.25**2 + 0.05**2 + 0.15**2 + 0.15**2) / 3 / 4  # 0.009166...
    n_eff = share * (1 - share) / squared_error * (z / 3.182446) ** 2  # 5.275
    center = 100 * (share + z**2 / (2 * n_eff)) / (1 + z**2 / n_eff)
    half = 100 * z * math.sqrt(share * (1 - share) / n_eff + z**2 / (4 * n_eff**2)) / (1 + z**2 / n_eff)
    bounds = mean_interval([60, 80, 100, 100])
    assert (bounds.low, bounds.high) == pytest.approx((center - half, center + half), abs=1e-4)


@given(st.lists(POINTS, min_size=1, max_size=30))
@example([100.0, 99.99999999999999])
@example([0.0, 5e-324])
@example([100.0] * 29 + [0.0])
@example([0.0, 100.0])
def test_score_interval_contains_the_score_in_any_order_of_tests(means):
    result = mean_interval(means)
    assert 0 <= result.low <= fmean(means) + 1e-9
    assert fmean(means) - 1e-9 <= result.high <= 100
    assert result.low < result.high
    turned = mean_interval(means[::-1])
    assert (turned.low, turned.high) == pytest.approx((result.low, result.high), abs=1e-6)


T_QUANTILES = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 10: 2.228, 16: 2.120, 19: 2.093, 30: 2.042,
    39: 2.023, 60: 2.000, 99: 1.984, 100: 1.984, 120: 1.980, 1000: 1.962, 100_000: 1.960,
}  # fmt: skip


def test_wilson_interval_and_students_t_quantiles_equal_published_tables():
    """Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3."""
    for passed, of, *bounds in (
        *((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)),
        *((0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)),
    ):
        assert [wilson(passed / of, of, z) for z in (-Z, Z)] == pytest.approx(bounds, abs=0.00005)
    # The t of 0.975 one-sided; and no step between 99 and 100, where the formula changes.
    for freedom, quantile in T_QUANTILES.items():
        assert t_quantile(freedom) == pytest.approx(quantile, abs=0.0005)
    assert t_quantile(98) > t_quantile(99) > t_quantile(100) > t_quantile(101)
    assert t_quantile(99) - t_quantile(100) == pytest.approx(t_quantile(100) - t_quantile(101), rel=0.05)


COUNTS = [(n, passed, k) for n in range(1, 7) for passed in range(n + 1) for k in range(1, n + 1)]


@each_row(("trials", "passed", "k"), COUNTS)
def test_pass_at_k_and_pass_hat_k_equal_brute_force(trials, passed, k):
    """Over all ways to take k of the trials; pass@k also by the product of the Codex paper."""
    taken = list(combinations([place < passed for place in range(trials)], k))
    failed = trials - passed
    missed = math.prod(1 - k / i for i in range(failed + 1, trials + 1)) if failed >= k else 0
    assert pass_at_k(trials, passed, k) == pytest.approx(fmean(map(any, taken))) == pytest.approx(1 - missed)
    assert pass_hat_k(trials, passed, k) == pytest.approx(fmean(map(all, taken)))


def test_spread_is_estimated_as_computed_by_hand_and_positive_for_constant_scores():
    """Two tests of two trials: variances 200, 0, 50, 50, their mean 75, each drawn towards it."""
    pairs = [ScorePair((60, 80), (100, 100)), ScorePair((50, 60), (70, 80))]
    # (1 * own + 2 * 75) / 3, two trials each, over two tests squared.
    shrunk = [(own + 150) / 3 for own in (200, 0, 50, 50)]
    expected = sum(one / 2 for one in shrunk) / 4
    spread = spread_of(pairs, criteria=5)
    assert (spread.variance, spread.freedom, spread.trial_variance) == pytest.approx((expected, 4, 75))
    bounds = spread.interval(-22.5, 50)
    half = 2.776445 * math.sqrt(expected)
    assert (bounds.low, bounds.high) == pytest.approx((-22.5 - half, -22.5 + half), abs=1e-4)
    assert spread.interval(0, 95).high == 5
    assert spread.detectable == pytest.approx((1.644854 + 0.841621) * math.sqrt(expected), abs=1e-4)
    # The paired t of the textbook: changes -10, -20, 0 have variance 100, over three tests.
    spread = spread_of([ScorePair((score,), (50,)) for score in (40, 30, 50)], criteria=5)
    assert (spread.variance, spread.freedom, spread.trial_variance) == pytest.approx((100 / 3, 2, 50))
    # A change of one test has the variance of a trial times 1/3 + 1: of -10, -20 and 0 that is 75.
    changes = [ScorePair((40,) * 3, (50,)), ScorePair((30,) * 3, (50,)), ScorePair((50,) * 3, (50,))]
    spread = spread_of(changes, criteria=5)
    assert (spread.variance, spread.freedom, spread.trial_variance) == pytest.approx((100 / 3, 2, 75))
    # Nothing seen to vary: of 12 + 2 trials one lost one of five criteria, and three trials share it.
    alike = spread_of([ScorePair((50,) * 3, (50,))] * 3, criteria=5)
    assert alike.trial_variance == pytest.approx(10_000 * 1 / 14 * 13 / 14 / 5)
    assert alike.variance == pytest.approx(alike.trial_variance * (1 / 3 + 1) / 3)
    # Variances 200 and 0, their mean 100: (200 + 2 * 100) / 3 and 2 * 100 / 3; of single trials, theirs.
    assert noise_of([(60, 80), (100, 100)], 5) == pytest.approx((400 / 3, 200 / 3))
    assert noise_of([(60,), (80,)], 5) == pytest.approx((200, 200))
    assert noise_of([(50,)], 5)[0] > 0
    # Of constant scores as if of two more trials one had lost one criterion.
    for score, trials in product((0, 100), (1, 3)):
        spread = spread_of([ScorePair((score,) * trials, (score,) * trials)] * 5, criteria=5)
        share = 1 / (5 * 2 * trials + 2)
        assert spread.trial_variance == pytest.approx(10_000 * share * (1 - share) / 5)
        assert spread.detectable > 0
        assert noise_of([(score,) * trials] * 5, 5)[0] > 0


def test_trials_needed_equal_hand_computation_up_to_a_thousand():
    """2 * 400 * 2.4865² / (8 * 5²), rounded up; / 8 is 618.26 trials at one point, 1,000 at 0.7863."""
    spread = statistics.MeanSpread(variance=10, freedom=32, trial_variance=400, estimated_from="trials")
    for drop, trials in [(5, 25), (100, 1), (0.7864, 1_000), (0.7862, None), (1e-200, None)]:
        assert spread.trials_needed(drop=drop, tests=8) == trials
    # With so many the smallest drop that is seen is that drop.
    assert 2.4865 * math.sqrt(2 * 400 / 25 / 8) <= 5 < 2.4865 * math.sqrt(2 * 400 / 24 / 8)


def test_fewest_broken_tests_is_smallest_number_that_proves_a_drop():
    """With so many broken p is 0.05 or less, and with one fewer it is not."""
    for trials, tests, fewest in (
        *((1, 8, 5), (1, 5, 5), (1, 4, None)),  # 2 arrangements each: 32 are the first to be 20 or more
        *((2, 8, 2), (2, 1, None)),  # 6 each: 36
        *((3, 24, 1), (3, 1, 1), (1, 0, None)),  # 20
    ):
        held, broken = (((score,) * trials, (100,) * trials) for score in (100, 0))
        assert fewest_broken([ScorePair(*held)] * tests) == fewest, (trials, tests)
        if fewest:
            assert p(*[broken] * fewest, *[held] * (tests - fewest)) <= ALPHA
            assert fewest == 1 or p(*[broken] * (fewest - 1), *[held] * (tests - fewest + 1)) > ALPHA
    # A test of 3 against 3 among single trials; 600 can be arranged in more ways than a float can count.
    assert fewest_broken([ScorePair((1,), (1,))] * 3 + [ScorePair((1,) * 3, (1,) * 3)]) == 1
    assert fewest_broken([ScorePair((0,) * 600, (100,) * 600)]) == 1


def test_spread_is_estimated_from_trials_if_enough_else_from_tests():
    """Trials, where each side has half as many degrees of freedom as there are tests; else tests."""
    one, several = ScorePair((50,), (60,)), ScorePair((50, 60), (60, 80))
    uneven, many = ScorePair((50, 60), (60,)), ScorePair((50, 60, 70), (60, 80, 70))
    for pairs in ([one, several], [one, one, one, many]):
        assert spread_of(pairs, 5).estimated_from == "trials"
    for pairs in ([one, one, several], [one, one], [uneven, one], [one, one, one, one, many]):
        assert spread_of(pairs, 5).estimated_from == "tests"
    assert spread_of([ScorePair((50,), (100,))], 5) is None
    assert spread_of([ScorePair((50, 50, 50), (100,))], 5) is None
    assert spread_of([ScorePair((50, 60), (100, 100))], 5).freedom == 2
    # It happens not to vary, and the others fell by 0 to 56 points: their mean is not sure.
    fell = [ScorePair((100.0 - 2 * place,), (100.0,)) for place in range(29)]
    spread = spread_of([ScorePair((100, 100), (100, 100)), *fell], criteria=5)
    changes = [0.0, *(-2.0 * place for place in range(29))]
    # The variance of a change is 1 + 1 times that of a trial in 29 tests, and 1/2 + 1/2 times in one.
    assert (spread.variance, spread.freedom) == (pytest.approx(variance(changes) / 30), 29)
    assert spread.trial_variance == pytest.approx(variance(changes) / ((29 * 2 + 1) / 30))


SIDE = st.lists(POINTS, min_size=1, max_size=4).map(tuple)


@settings(max_examples=examples(100))
@given(st.lists(st.builds(ScorePair, SIDE, SIDE), min_size=2, max_size=8))
@example([ScorePair((0.0, 0.0), (0.0,)), ScorePair((1.0,), (0.0, 1e-38))])
def test_interval_of_a_change_contains_the_change(pairs):
    """Whatever the numbers of trials; and it has room."""
    spread = spread_of(pairs, criteria=4)
    delta = fmean(pair.delta for pair in pairs)
    base = fmean(fmean(pair.base) for pair in pairs)
    bounds = spread.interval(delta, base)
    assert -base - 1e-9 <= bounds.low <= delta <= bounds.high <= 100 - base + 1e-9
    assert bounds.high - bounds.low > 0
    assert 0 < spread.detectable <= 100


def test_statistics_of_fifteen_hundred_tests_show_a_drop_of_two_points():
    base = [tuple(float((13 * place + 41 * trial) % 6 * 20) for trial in range(3)) for place in range(1_500)]
    head = [tuple(max(0.0, score - 2) for score in scores) for scores in base]
    pairs = [ScorePair(one, other) for one, other in zip(head, base, strict=True)]
    assert variance(pair.delta for pair in pairs) > 0
    assert chance_of_drop(pairs, "seed").p < ALPHA
    assert set(proven_drops(pairs, "seed")) == {None}
    assert spread_of(pairs, 5).detectable < 3
    assert mean_interval([fmean(scores) for scores in head]).low > 40


BIG_RUNS = [(1_500, 3), pytest.param(40, 50, marks=pytest.mark.slow)]
BIG_RUNS += [pytest.param(200, 10, marks=pytest.mark.simulate)]


@pytest.mark.parametrize(("tests", "trials"), BIG_RUNS)
def test_p_value_of_big_run_is_computed_in_bounded_time(tests, trials):
    """All scores differ."""
    pairs = noisy(tests, trials)
    with at_most(loops=4500):
        chance_of_drop(pairs, "seed")


DOCS = (ROOT / "docs" / "statistics.md").read_text()
EXAMPLE = [(name, *map(str.split, sides)) for name, *sides in table("test", DOCS)]


def example_run(day, column):
    """The docs' example as results: ten criteria in each trial."""
    tests = []
    for row in EXAMPLE:
        passed = [int(score) // 10 for score in row[column]]
        played = (trial(*["passed"] * n, *["failed"] * (10 - n), index=i) for i, n in enumerate(passed, 1))
        tests.append(build.test_result(row[0], trials=tuple(played)))
    bounds = mean_interval([fmean(map(int, row[column])) for row in EXAMPLE])
    return build.results(build.suite_result("S", *tests), run=build.run_info(id=day), interval=bounds)


def test_docs_example_shows_the_numbers_of_each_step_and_the_text_of_a_report():
    head, base = example_run("tuesday", 2), example_run("monday", 1)
    comparison = RunComparer(head, base).comparison()
    (message,) = blocks("text", DOCS)
    assert score_and_change(replace(head, comparison=comparison)) == message.strip()
    scores = [[tuple(map(float, side)) for side in sides] for _, *sides in EXAMPLE]
    pairs = [ScorePair(head, base) for base, head in scores]
    means, deltas = [fmean(pair.head) for pair in pairs], [pair.delta for pair in pairs]
    bounds, spread = mean_interval(means), spread_of(pairs, criteria=10)
    squared_error, share = variance(means) / len(means), fmean(means) / 100
    interval = spread.interval(fmean(deltas), fmean(fmean(pair.base) for pair in pairs))
    n_eff = share * (1 - share) / (squared_error / 10_000) * (Z / t_quantile(7)) ** 2
    chance = chance_of_drop(pairs, "tuesday")
    assert {name: shown for name, _, shown in table("number", DOCS)} == {
        "score": f"{fmean(means):.2f}",
        "standard error": f"{math.sqrt(squared_error):.2f}",
        "effective tests": f"{n_eff:.1f}",
        "its interval": f"{bounds.low:.2f} to {bounds.high:.2f}",
        "change": f"{fmean(deltas):.2f}",
        "noise of a trial": f"{spread.trial_variance:.2f}",
        "error of the change": f"{math.sqrt(spread.variance):.2f}",
        "interval of the change": f"{interval.low:.2f} to {interval.high:.2f}",
        "p": f"{chance.p:.2f}",
        "smallest detectable drop": f"{spread.detectable:.2f}",
        "trials needed": str(spread.trials_needed(-fmean(deltas), len(pairs))),
    }
    fields = {name: words for name, words, _ in table("number", DOCS)}
    assert f"{math.sqrt(variance(means)):.2f}" in fields["standard error"]
    assert f"{t_quantile(7):.3f}" in fields["effective tests"]
    assert f"{t_quantile(spread.freedom):.3f}" in fields["interval of the change"]
    assert f"{spread.freedom} degrees" in fields["interval of the change"]
    assert f"{spread.detectable / math.sqrt(spread.variance):.3f}" in fields["smallest detectable drop"]
