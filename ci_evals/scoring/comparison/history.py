"""A run against several earlier runs of an unchanged agent: the change, and how runs differ by themselves.

Scores are in points, 0 to 100. Each run is a list of tests, the same ones in the same order in all of them,
and each test a list of its trials' scores, none empty. Runs are given oldest first. docs/rounds.md has the
formulas and what was measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, harmonic_mean, variance

from ci_evals.scoring.statistics import (
    ALPHA,
    Z_SEEN,
    ScorePair,
    chance_of_drop,
    p_of_tests,
    t_share_below,
)

Run = Sequence[Sequence[float]]

FEWEST_RUNS = 3
"""With fewer, what is assumed of the spread of runs would decide."""
_PRIOR_FREEDOM = 4
_PRIOR_SPREAD = 3.0
"""Points: the standard deviation between runs that is assumed, as strongly as `_PRIOR_FREEDOM` runs."""
_MOVED = 0.1
"""A run whose two-sided p against those after it is no higher ends the runs that belong together."""
_FELL = 15.0
"""Points that a test must have fallen by to be named."""
_FALSE_SHARE = 0.10
"""The share of false names that is allowed among those that are probably broken."""
_TIE = 1e-9


@dataclass(frozen=True)
class RunSpread:
    """The spread of runs of an unchanged agent, on the logit, estimated from earlier ones."""

    center: float
    """The mean logit of the earlier runs."""
    error: float
    """The standard error of a further run's logit, as a difference from that mean."""
    freedom: int

    @classmethod
    def of(cls, head: Run, runs: Sequence[Run]) -> "RunSpread":
        """Estimate it from `runs`, for a run with as many trials as `head`.

        Runs differ by more than their trials explain, since providers and their load change. How much, is
        estimated from the runs together with an assumption of `_PRIOR_SPREAD` points. The logit knows that
        near 100 scores have room on one side only.
        """
        earlier, logits = len(runs), [_logit(run) for run in runs]
        share = fmean(map(_share, runs))
        per_point = 1 / (100 * share * (1 - share))
        noise = per_point**2 * _trial_variance(runs) / len(head)
        # The noise of runs' scores is the mean of theirs: a run of few trials has more of it.
        trials, freedom = harmonic_mean(map(_trials_of, runs)), earlier - 1 + _PRIOR_FREEDOM
        seen = variance(logits) * (earlier - 1) if earlier > 1 else 0.0
        prior = _logits_of(_PRIOR_SPREAD, share) ** 2 + noise / trials
        between = max(0.0, (seen + _PRIOR_FREEDOM * prior) / freedom - noise / trials)
        squared = between * (1 + 1 / earlier) + noise * (1 / _trials_of(head) + 1 / (earlier * trials))
        return cls(fmean(logits), math.sqrt(squared), freedom)

    @property
    def smallest_drop(self) -> float:
        """The smallest drop, in points, that stands out with a chance of 80 %."""
        usual, low = (1 / (1 + math.exp(-by)) for by in (self.center, self.center - Z_SEEN * self.error))
        return 100 * (usual - low)


def moderated_p(head: Run, runs: Sequence[Run]) -> float:
    """How often a run of an unchanged agent scores as low as `head`: a moderated t test, one-sided."""
    spread = RunSpread.of(head, runs)
    return t_share_below((_logit(head) - spread.center) / spread.error, spread.freedom)


def pooled_p(head: Run, runs: Sequence[Run], seed: str) -> float:
    """The permutation p of a drop against the trials of all runs together, test by test."""
    chance = chance_of_drop(_pooled_pairs(head, runs), seed)
    return chance.p if chance else 1.0


def window(runs: Sequence[Run]) -> int:
    """The number of newest runs that belong together: going back, the first that differs ends them."""
    count = 1
    while count < len(runs):
        p = moderated_p(runs[-count - 1], runs[-count:])
        if 2 * min(p, 1 - p) <= _MOVED:
            break
        count += 1
    return count


def spread_between(runs: Sequence[Run]) -> float | None:
    """The standard deviation of the runs' scores, in points; None of a single run."""
    scores = [_score(run) for run in runs]
    return math.sqrt(variance(scores)) if len(scores) > 1 else None


@dataclass(frozen=True)
class Broken:
    """The tests that are named, by their positions."""

    broken: tuple[int, ...]
    """With all tests looked at, a false one is among them in at most 5 % of runs."""
    probably: tuple[int, ...]
    """Further ones; of all named, one in ten is false in the mean."""


def broken_tests(head: Run, runs: Sequence[Run], seed: str) -> Broken:
    """Name the tests that fell by `_FELL` points or more, where their own earlier runs do not explain it."""
    means = [[fmean(run[index]) for run in runs] for index in range(len(head))]
    pool = fmean(map(variance, means)) if len(runs) > 1 else 0.0
    ratio = fmean(map(_trials_of, runs)) / _trials_of(head)
    pairs = _pooled_pairs(head, runs)
    lower = [index for index, pair in enumerate(pairs) if pair.delta < 0]
    p_of_each = [1.0] * len(pairs)  # of those that did not fall: they are looked at, and never named
    for index, p in zip(lower, p_of_tests([pairs[index] for index in lower], seed), strict=True):
        p_of_each[index] = max(p, _p_by_runs(head[index], means[index], pool, ratio))
    fell = {index for index in lower if pairs[index].delta <= -_FELL + _TIE}
    surely = fell & {index for index, p in enumerate(adjusted(p_of_each)) if p <= ALPHA}
    # Small true falls are never named: ranked too, they would let more innocent tests be.
    ranked = [p if index in fell else 1.0 for index, p in enumerate(p_of_each)]
    named = fell & {index for index, p in enumerate(_false_shares(ranked)) if p <= _FALSE_SHARE}
    return Broken(tuple(sorted(surely)), tuple(sorted(named - surely)))


def adjusted(p_of_each: Sequence[float]) -> list[float]:
    """Return each p adjusted by Holm's method for the number of claims."""
    result, highest = [1.0] * len(p_of_each), 0.0
    for rank, index in enumerate(sorted(range(len(p_of_each)), key=p_of_each.__getitem__)):
        highest = max(highest, min(1.0, p_of_each[index] * (len(p_of_each) - rank)))
        result[index] = highest
    return result


def _false_shares(p_of_each: Sequence[float]) -> list[float]:
    """Return each p adjusted by Benjamini and Hochberg's method."""
    count, result, lowest = len(p_of_each), [1.0] * len(p_of_each), 1.0
    ranked = sorted(range(count), key=p_of_each.__getitem__)
    for rank, index in reversed([*enumerate(ranked, start=1)]):
        lowest = min(lowest, p_of_each[index] * count / rank)
        result[index] = lowest
    return result


def _p_by_runs(scores: Sequence[float], means: Sequence[float], pool: float, ratio: float) -> float:
    """The p of a test's drop by the means of its earlier runs: it knows conditions that move single tests.

    `ratio` is how many trials an earlier run has for each of the head's.
    """
    earlier = len(means)
    if earlier < 2:
        return 0.0
    freedom = earlier - 1 + _PRIOR_FREEDOM
    squared = ((earlier - 1) * variance(means) + _PRIOR_FREEDOM * pool) / freedom
    error = math.sqrt(squared * (max(ratio, 0.5) + 1 / earlier))
    drop = fmean(scores) - fmean(means)
    if error < _TIE:
        return 0.0 if drop < 0 else 1.0
    return t_share_below(drop / error, freedom)


def _pooled_pairs(head: Run, runs: Sequence[Run]) -> list[ScorePair]:
    return [
        ScorePair(tuple(scores), tuple(score for run in runs for score in run[index]))
        for index, scores in enumerate(head)
    ]


def _score(run: Run) -> float:
    return fmean(map(fmean, run))


def _share(run: Run) -> float:
    """The run's score as a share that is neither 0 nor 1."""
    trials = sum(map(len, run))
    return (min(100.0, max(0.0, _score(run))) / 100 * trials + 0.5) / (trials + 1)


def _logit(run: Run) -> float:
    share = _share(run)
    return math.log(share / (1 - share))


def _logits_of(points: float, share: float) -> float:
    """The logits of so many points from a share towards the middle: the other way there may be no room."""
    moved = share + math.copysign(points / 100, 0.5 - share)
    return abs(math.log(moved / (1 - moved)) - math.log(share / (1 - share)))


def _trials_of(run: Run) -> float:
    """The trials of each test, in the harmonic mean: the noise of a score is that of as many."""
    return len(run) / math.fsum(1 / len(scores) for scores in run)


def _squares(scores: Sequence[float]) -> float:
    center = fmean(scores)
    return math.fsum((score - center) ** 2 for score in scores)


def _trial_variance(runs: Sequence[Run]) -> float:
    """The variance of single trials within test and run, in squared points.

    Of single trials it is that of a test between runs, less what moves the runs as a whole. The head has no
    part in it: else a worse verdict could make its score look noisier, and so less bad.
    """
    several = [scores for run in runs for scores in run if len(scores) > 1]
    if several:
        freedom = sum(len(scores) - 1 for scores in several)
        return math.fsum(map(_squares, several)) / freedom
    tests = len(runs[0])
    if len(runs) < 2 or tests < 2:
        return 0.0
    whole = [_score(run) for run in runs]
    center = fmean(whole)
    squares = [
        (run[index][0] - fmean(each[index][0] for each in runs) - whole[number] + center) ** 2
        for number, run in enumerate(runs)
        for index in range(tests)
    ]
    return math.fsum(squares) / ((len(runs) - 1) * (tests - 1))
