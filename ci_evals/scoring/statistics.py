"""The arithmetic of noise: what a score is worth, and whether a change of it is more than chance.

Scores are in points, 0 to 100. The methods and the reasons for them stand in docs/statistics.md.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from statistics import NormalDist, fmean, variance
from typing import Literal

from ci_evals.domain.base import Interval

ALPHA = 0.05
"""The chance of an error that a claim may have."""
DRAWS = 9_999
_COUNTED_PER_DRAW = 100
"""Steps that counting all arrangements may take for each draw that it saves."""
_CLOSE = (0.03, 0.07)
"""Between these, more arrangements are drawn: so near 0.05 the error of drawing could decide."""
_FURTHER = 9
"""How many times as many again, for up to 33 tests; of more tests fewer, since these take as long."""
_FURTHER_TESTS = 300
_GRID = 1_000_000
"""Parts of a point: sums that differ by less are one."""
_LISTED = 20_000
"""Arrangements of one test up to which all of them are known before they are drawn from."""
_DIFFERENT = 2_000
"""The same for those that differ, where others have the same sum of scores."""
_ROUNDING = 3 * 2.0**18
"""Added and taken away again, it rounds a sum of scores to 1e-10 points: sums that differ by less are one."""
_ORDERS = 16
"""Orders in which draws are mixed: more than one, so that tests seldom meet as others do."""
_AT_ONCE = 100
"""Tests whose draws are added at once."""
_MOST_TRIALS = 1_000
_TIE = 1e-9
"""Points: differences below it come from binary numbers."""
_Z = NormalDist().inv_cdf(0.975)
Z_SEEN = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.80)
"""2.49: how many standard errors a drop must have to be seen at level 0.05 with a chance of 80 %."""


@dataclass(frozen=True)
class ScorePair:
    """The scores of one test's trials on both sides; neither is empty."""

    head: tuple[float, ...]
    base: tuple[float, ...]

    @property
    def delta(self) -> float:
        """The change of the test's mean."""
        return fmean(self.head) - fmean(self.base)


@dataclass(frozen=True)
class Chance:
    """The p of a drop: how often chance alone shows one as large."""

    p: float
    test: Literal["enumerated", "drawn"]
    """The way p was found: all arrangements counted, or some of them drawn."""
    smallest: float
    """The smallest p that this number of trials can give."""


@dataclass(frozen=True)
class MeanSpread:
    """The noise of a mean difference."""

    variance: float
    freedom: int
    trial_variance: float
    """The variance of a single trial's score around its test's mean."""
    estimated_from: Literal["trials", "tests"]

    def interval(self, delta: float, base: float) -> Interval:
        """Return the 95 % interval around the difference that was seen, from a mean of `base`.

        No score falls below 0 or rises above 100, so a change lies from `-base` to `100 - base`.
        """
        half = t_quantile(self.freedom) * math.sqrt(self.variance)
        low, high = max(-base, delta - half), min(100 - base, delta + half)
        return Interval(low=min(low, delta), high=max(high, delta))

    @property
    def detectable(self) -> float:
        """The smallest drop that is seen with a chance of 80 %."""
        return min(100.0, Z_SEEN * math.sqrt(self.variance))

    def trials_needed(self, drop: float, tests: int) -> int | None:
        """Trials of each test, on each side, with which a drop of this size is seen with a chance of 80 %.

        None where it takes more than anybody plays.
        """
        trials = 2 * self.trial_variance * Z_SEEN**2 / (tests * max(drop, _TIE) ** 2)
        return max(1, math.ceil(trials)) if trials <= _MOST_TRIALS else None


def pass_at_k(trials: int, passed: int, k: int) -> float:
    """The chance that some of k trials pass, from `passed` of `trials`; unbiased. k is at most `trials`."""
    return 1 - math.comb(trials - passed, k) / math.comb(trials, k)


def pass_hat_k(trials: int, passed: int, k: int) -> float:
    """The chance that all of k trials pass (pass^k of tau-bench), from `passed` of `trials`; unbiased."""
    return math.comb(passed, k) / math.comb(trials, k)


def mean_interval(means: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Interval | None:
    """The 95 % interval of the mean of tests' scores: Wilson's, on the effective number of tests.

    Tests of a suite are one sample of all that users may ask, so the test is the unit. Where all tests have
    one score, or there is but one, nothing is known of their spread and every test counts as a yes or no.
    Of tests that come in `clusters`, named in the order of the means, the cluster is the unit (Miller, 2024).
    """
    if not means:
        return None
    n, share = len(means), min(1.0, max(0.0, fmean(means) / 100))
    squared_error = variance(means) / 10_000 / n if n > 1 else 0.0
    if clusters is not None:
        squared_error, n = _clustered_error(means, clusters)
    # Where all means are one number, what is left of their spread is binary rounding.
    if squared_error > (_TIE / 100) ** 2:
        n_eff = share * (1 - share) / squared_error * (_Z / t_quantile(n - 1)) ** 2
    else:
        n_eff = float(n)
    low, high = wilson(share, n_eff, -_Z), wilson(share, n_eff, _Z)
    return Interval(low=100 * min(low, share), high=100 * max(high, share))


def _clustered_error(means: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, int]:
    """The squared error of the mean share, with the cluster as the unit, and the number of clusters."""
    mean, deviations = fmean(means), dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(means, clusters, strict=True):
        deviations[cluster] += value - mean
    n = len(deviations)
    squares = math.fsum(deviation**2 for deviation in deviations.values())
    return (squares / len(means) ** 2 / 10_000 * n / (n - 1) if n > 1 else 0.0), n


def wilson(share: float, n: float, z: float) -> float:
    """Wilson's bound: the true share, 0 to 1, of which what was seen in n lies z standard errors off.

    It knows that near 0 and 1 there is little room on one side, unlike a share to which errors are added.
    """
    ratio = z**2 / n
    half = math.sqrt(ratio * share * (1 - share) + ratio**2 / 4)
    return min(1.0, max(0.0, (share + ratio / 2 + math.copysign(half, z)) / (1 + ratio)))


def chance_of_drop(pairs: Sequence[ScorePair], seed: str, draws: int = DRAWS) -> Chance | None:
    """The stratified permutation test, one-sided: is the mean change lower than chance makes it?

    If nothing changed, the trials of a test might as well have been played on the other side. So within each
    test it is shuffled which trials are called head, their number kept, and counted how often the mean change
    is then as low as the one seen. All arrangements are counted where scores take few values; else they are
    drawn, by `seed` and the places of trials alone, and more of them where p is near 0.05: the same results
    give the same p. No lower score of the head gives a higher one, as long as both are counted or both are
    drawn; from one to the other p may rise by the error of drawing.

    Returns:
        None where there is no pair.
    """
    if not pairs:
        return None
    sizes = Counter(map(_arrangements, pairs))
    smallest = 1 / math.prod(size**many for size, many in sizes.items())
    # Where all trials of a test have one score, shuffling changes nothing.
    varied = [(index, pair) for index, pair in enumerate(pairs) if len({*pair.head, *pair.base}) > 1]
    if counted := _counted([pair for _, pair in varied], draws * _COUNTED_PER_DRAW, len(pairs)):
        return Chance(counted, "enumerated", smallest)
    p = (1 + (low := _low_sums(varied, seed, draws))) / (1 + draws)
    if _CLOSE[0] < p < _CLOSE[1]:
        # Their number depends on that of the tests, not on scores, and p stays between the two limits: else
        # a lower score could raise it.
        further = min(_FURTHER, _FURTHER_TESTS // len(pairs))
        low += sum(_low_sums(varied, f"{seed} {block}", draws) for block in range(further))
        p = min(max((1 + low) / (1 + draws * (1 + further)), _CLOSE[0]), _CLOSE[1])
    return Chance(p, "drawn", max(smallest, 1 / (1 + draws)))


def _low_sums(pairs: Sequence[tuple[int, ScorePair]], seed: str, draws: int) -> int:
    """The number of arrangements drawn in which the change is as low as seen."""
    sums = [0.0] * draws
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        columns = (_drawn(pair, seed, index, draws) for index, pair in some)
        sums = [*map(sum, zip(sums, *columns, strict=True))]
    return _count_below(sums, 0.0)


_Shape = tuple[tuple[int, int], ...]
"""How much higher than its lowest change a test's change is, in how many arrangements."""


def _counted(pairs: Sequence[ScorePair], most: int, tests: int) -> float | None:
    """The share of all arrangements in which the change is as low as seen; None where it takes more steps."""
    lowest, shapes = 0, Counter[_Shape]()
    for pair, many in Counter(pairs).items():
        if _arrangements(pair) > _LISTED:
            return None
        above = _above(pair)
        lowest += many * min(above)
        shapes[tuple(sorted((change - min(above), ways) for change, ways in above.items()))] += many
    arrangements: int = math.prod(_size(shape) ** many for shape, many in shapes.items())
    # Of tests with the same two values a binomial coefficient says in how many arrangements so many rise.
    alike = max((shape for shape in shapes if len(shape) == 2), key=lambda shape: shapes[shape], default=None)
    number = shapes.pop(alike) if alike else 0
    sums = _sums(sorted(shapes.elements(), key=_size), most)
    if sums is None or min(number, len(sums)) * number > most:
        return None
    # Rounding moves each test by half a part at most.
    limit = tests // 2 - lowest
    if alike is None:
        return sum(ways for total, ways in sums.items() if total <= limit) / arrangements
    (_, stay), (step, rise) = alike
    within: dict[int, int] = {}
    for total, ways in sums.items():
        if total <= limit:
            reach = min(number, (limit - total) // step)
            within[reach] = within.get(reach, 0) + ways
    count, risen, some = 0, 0, stay**number
    for rises in range(max(within, default=-1) + 1):
        risen += some
        count += within.get(rises, 0) * risen
        some = some * (number - rises) * rise // ((rises + 1) * stay)
    return count / arrangements


def _size(shape: _Shape) -> int:
    """The number of arrangements."""
    return sum(ways for _, ways in shape)


def _sums(shapes: Sequence[_Shape], most: int) -> Mapping[int, int] | None:
    """Each sum of the tests' changes, in how many arrangements; None where it takes more steps."""
    # Sums of two sets take at least as many values as both have together, less one.
    least, width = 0, 1
    for shape in shapes:
        least += width * len(shape)
        width += len(shape) - 1
    if least > most:
        return None
    sums, steps = {0: 1}, 0
    for shape in shapes:
        steps += len(sums) * len(shape)
        if steps > most:
            return None
        longer: dict[int, int] = {}
        for total, ways in sums.items():
            for change, more in shape:
                longer[total + change] = longer.get(total + change, 0) + ways * more
        sums = longer
    return sums


@lru_cache(_LISTED)
def _above(pair: ScorePair) -> Mapping[int, int]:
    """How much higher than seen a test's change is, in how many arrangements.

    A lower score of the head makes none of these lower.
    """
    above: Counter[int] = Counter()
    for change, ways in _arranged(pair) or ():
        above[round(change * _GRID)] += ways
    return above


def fewest_broken(pairs: Sequence[ScorePair]) -> int | None:
    """The number of tests that must fail wholly to prove a drop; None if all are too few."""
    arrangements = 1
    for count, each in enumerate(sorted(map(_arrangements, pairs), reverse=True), start=1):
        arrangements *= each
        if arrangements >= 1 / ALPHA:  # not multiplied: of many trials there are more than a float holds
            return count
    return None


def proven_drops(pairs: Sequence[ScorePair], seed: str) -> tuple[float | None, ...]:
    """For each pair the p of a drop of that one test, adjusted for all of them being looked at.

    Each is a permutation test within its test. Tests whose trials could not have shown anything are left out
    (Tarone), the others are adjusted by Holm's method: the chance of calling any unchanged test worse is 5 %
    at most, whichever of them one looks at afterwards. None where so few trials cannot prove anything.
    """
    raw, least = [], []
    for p, smallest in _chances(pairs, seed):
        raw.append(p)
        least.append(smallest)
    count = next(k for k in range(1, len(pairs) + 2) if sum(p <= ALPHA / k for p in least) <= k)
    testable = [index for index, p in enumerate(least) if p <= ALPHA / count]
    adjusted: list[float | None] = [None] * len(pairs)
    highest = 0.0
    for rank, index in enumerate(sorted(testable, key=lambda index: raw[index])):
        highest = max(highest, min(1.0, raw[index] * (len(testable) - rank)))
        adjusted[index] = highest
    return tuple(adjusted)


def p_of_tests(pairs: Sequence[ScorePair], seed: str) -> list[float]:
    """For each pair the p of a drop of that one test by itself."""
    return [p for p, _ in _chances(pairs, seed)]


def _chances(pairs: Sequence[ScorePair], seed: str) -> Iterator[tuple[float, float]]:
    """Yield the p of a drop of each test, and the smallest it could have."""
    known: dict[ScorePair, tuple[float, float]] = {}
    for index, pair in enumerate(pairs):
        chances = known.get(pair)
        if chances is None:
            changes = _changes_of(pair, seed, index)
            arrangements = sum(ways for _, ways in changes)
            least = _ways_below(changes, changes[0][0]) / arrangements
            chances = _ways_below(changes, 0.0) / arrangements, least
            if _arranged(pair) is not None:  # else they are drawn by the position
                known[pair] = chances
        yield chances


def spread_of(pairs: Sequence[ScorePair], criteria: float) -> MeanSpread | None:
    """The noise of the mean change of these tests.

    With several trials of most tests on both sides it is told from how a test's trials differ: the question
    is whether these tests got worse. With single trials it is told from how the changes of the tests differ,
    which asks of other tests too and is wider. So it is where few tests have several trials: these may happen
    not to vary.

    Args:
        pairs: The tests.
        criteria: The effective number of criteria in a trial, one of which a trial might have lost.

    Returns:
        None where one single pair tells nothing.
    """
    sides = [side for pair in pairs for side in (pair.head, pair.base)]
    freedom = [sum(len(side) - 1 for side in one) for one in (sides[::2], sides[1::2])]
    n, trials = len(pairs), sum(map(len, sides))
    if n and min(freedom) >= n / 2:
        pool = _seen(pooled_variance(sides)) or _unseen_variance(trials, criteria)
        total = math.fsum(shrunk_variance(side, pool) / len(side) for side in sides)
        return MeanSpread(total / n**2, sum(freedom), pool, "trials")
    if n < 2:
        return None
    # The variance of a change where that of a trial is 1: 2 with single trials.
    of_change = math.fsum(1 / len(side) for side in sides) / n
    pool = _seen(variance([pair.delta for pair in pairs]) / of_change) or _unseen_variance(trials, criteria)
    return MeanSpread(pool * of_change / n, n - 1, pool, "tests")


def noise_of(tests: Sequence[Sequence[float]], criteria: float) -> tuple[float, ...]:
    """For each test the variance of its trials' scores, each holding at least one.

    Where no test has several trials, noise cannot be told from how the tests differ, so that is taken: it is
    more rather than less.
    """
    pool = pooled_variance(tests)
    if pool is None:
        pool = variance([scores[0] for scores in tests]) if len(tests) > 1 else 0.0
    pool = _seen(pool) or _unseen_variance(sum(map(len, tests)), criteria)
    return tuple(shrunk_variance(scores, pool) for scores in tests)


@cache
def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution.

    By the closed forms for whole degrees of freedom and, from 100 on, the expansion at infinity
    (Abramowitz and Stegun 26.7.3 to 26.7.5).
    """
    if freedom >= 100:
        z, v = _Z, freedom
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / v + second / v**2 + third / v**3
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 0.95 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def t_share_below(value: float, freedom: int) -> float:
    """Student's distribution function: the share of t that is lower."""
    within = _within(math.atan(abs(value) / math.sqrt(freedom)), freedom)
    return 0.5 + math.copysign(within / 2, value)


def _within(angle: float, freedom: int) -> float:
    """The chance that |t| is less than sqrt(freedom) * tan(angle)."""
    cosine, sine = math.cos(angle), math.sin(angle)
    term = total = cosine if freedom % 2 else 1.0
    for step in range(3 if freedom % 2 else 2, freedom, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    if freedom % 2 == 0:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))


def pooled_variance(samples: Sequence[Sequence[float]]) -> float | None:
    """The mean variance within tests; None where no test has several trials."""
    several = [variance(scores) for scores in samples if len(scores) > 1]
    return fmean(several) if several else None


def _seen(pool: float | None) -> float:
    """Return a variance, or 0 where scores differ by less than rounding does."""
    return pool if pool and pool > _TIE**2 else 0.0


def _unseen_variance(trials: int, criteria: float) -> float:
    """The variance of a trial where none was seen: as if of two more trials one had lost one criterion."""
    share = 1 / (trials + 2)
    return 10_000 * share * (1 - share) / max(1.0, criteria)


def shrunk_variance(scores: Sequence[float], pool: float) -> float:
    """The variance of a test's trials, drawn towards that of all tests: few trials tell little of it."""
    own = variance(scores) if len(scores) > 1 else 0.0
    return ((len(scores) - 1) * own + 2 * pool) / (len(scores) + 1)


def _arrangements(pair: ScorePair) -> int:
    return math.comb(len(pair.head) + len(pair.base), len(pair.head))


@lru_cache(maxsize=1_024)
def _arranged(pair: ScorePair) -> list[tuple[float, int]] | None:
    """How much higher than seen the change is in all arrangements of a test, ascending, with their numbers.

    Trials of one score are alike, and sums of other scores too, so that arrangements are counted rather than
    listed. None if there are many, and many of them differ.
    """
    heads, left = len(pair.head), len(pair.head) + len(pair.base)
    few = _arrangements(pair) <= _LISTED
    rounding = 0.0 if few else _ROUNDING
    sums = {(0, 0.0): 1}  # the ways to take so many trials as the head's, with that sum of scores
    # Rare scores first, so that few sums are kept until the last one, of which the rest is taken.
    for score, number in sorted(Counter((*pair.head, *pair.base)).items(), key=lambda item: item[::-1]):
        left -= number
        ways = [math.comb(number, some) for some in range(number + 1)]
        longer: dict[tuple[int, float], int] = {}
        for (taken, total), count in sums.items():
            for some in range(max(0, heads - taken - left), min(number, heads - taken) + 1):
                key = (taken + some, total + some * score + rounding - rounding)
                longer[key] = longer.get(key, 0) + count * ways[some]
        if not few and len(longer) > _DIFFERENT:
            return None
        sums = longer
    higher = _higher(pair)
    return sorted((higher(total), count) for (_, total), count in sums.items())


def _higher(pair: ScorePair) -> Callable[[float], float]:
    """Return what a change is higher by than the one seen, by the sum of the scores that are the head's."""
    heads, bases = len(pair.head), len(pair.base)
    total, seen = math.fsum((*pair.head, *pair.base)), pair.delta
    return lambda head: head / heads - (total - head) / bases - seen


def _changes_of(pair: ScorePair, seed: str, index: int, draws: int = DRAWS) -> list[tuple[float, int]]:
    """The same of all arrangements or, where very many differ, of what was seen and some that are drawn."""
    if (changes := _arranged(pair)) is not None:
        return changes
    rng = random.Random(f"{seed} {index}")  # noqa: S311  # a simulation, not a secret
    # Drawn once for all tests of this size, and dealt to each at random.
    pool, higher = rng.sample((*pair.head, *pair.base), len(pair.head) + len(pair.base)), _higher(pair)
    subsets = _subsets(len(pool), len(pair.head), draws, seed)
    return sorted([(0.0, 1), *((higher(sum(map(pool.__getitem__, subset))), 1) for subset in subsets)])


def _drawn(pair: ScorePair, seed: str, index: int, draws: int) -> list[float]:
    """The same in arrangements drawn at random: each as often as it comes up, in an order of the test's own.

    So that what is drawn of one test errs in nothing, and only how the tests meet is random. It depends on
    the position of the test and not on its scores: if one of the head is lower, no change drawn is.
    """
    rng = random.Random(f"{seed} {index}")  # noqa: S311  # a simulation, not a secret
    offset, turn = rng.random(), rng.randrange(draws)
    changes = _changes_of(pair, seed, index, draws)
    total, counted = sum(ways for _, ways in changes), 0
    even: list[float] = []
    for change, ways in changes:
        counted += ways
        until = draws if counted == total else math.ceil(counted * draws / total - offset)
        even += [change] * (until - len(even))
    mixed = _order(index % _ORDERS, draws)(even)
    return [*mixed[turn:], *mixed[:turn]]


@lru_cache(maxsize=64)
def _order(number: int, draws: int) -> Callable[[list[float]], tuple[float, ...]]:
    """One of several orders at random, as a function that brings a list into it."""
    rng = random.Random(f"order {number}")  # noqa: S311  # a simulation, not a secret
    keys = [rng.random() for _ in range(draws)]
    return itemgetter(*sorted(range(draws), key=keys.__getitem__))


@lru_cache(maxsize=4)
def _subsets(size: int, count: int, draws: int, seed: str) -> list[list[int]]:
    rng = random.Random(f"{seed} {size} {count}")  # noqa: S311  # a simulation, not a secret
    return [rng.sample(range(size), count) for _ in range(draws)]


def _ways_below(changes: Iterable[tuple[float, int]], limit: float) -> int:
    return sum(ways for change, ways in changes if change <= limit + _TIE)


def _count_below(values: Sequence[float], seen: float) -> int:
    limit = seen + _TIE
    return sum(value <= limit for value in values)
