"""Tests that depend on each other, counted as one: docs/statistics.md has the reasons."""

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

from ci_evals.domain.base import Interval
from ci_evals.domain.results.suite import TestResult
from ci_evals.scoring import scores
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.statistics import ScorePair, mean_interval


def clusters_of(tests: Sequence[TestResult]) -> list[Hashable]:
    """Return the cluster of each test: its own, or the test alone by its place."""
    return [test.cluster or place for place, test in enumerate(tests)]


def clusters_of_pairs(pairs: Iterable[tuple[TestResult, TestResult]]) -> list[Hashable]:
    """Return the cluster of each test that is compared: one that both sides have, or the test alone.

    A change that puts independent tests into one cluster does not make its own drop harder to prove.
    """
    clusters: list[Hashable] = []
    for place, (head, base) in enumerate(pairs):
        is_shared = head.cluster is not None and head.cluster == base.cluster
        clusters.append(head.cluster if is_shared else place)
    return clusters


def interval_of_mean(
    tests: Sequence[TestResult], test_scores: Sequence[Fraction], rule: ScoreRule
) -> Interval | None:
    """Return the 95 % interval of the mean of the scores that these tests have by this rule."""
    means = [*map(float, test_scores)]
    if all(test.cluster is None for test in tests):
        return mean_interval(means)
    return mean_interval(means, clusters_of([test for test in tests if scores.of_trials(test, rule)]))


def merged(tests: Sequence[Sequence[float]], clusters: Sequence[Hashable]) -> list[tuple[float, ...]]:
    """Return the scores of trials with each cluster as one test.

    The k-th trial of a cluster is the sum of the k-th trials of its tests, scaled so that the mean over
    clusters of their mean trials is the mean over tests. So tests weigh the same as before, and whatever the
    trials of one cluster have in common counts once. If tests of a cluster have different numbers of trials,
    it has as many as the test with the fewest, and those of the others are dealt to them in turn.

    Args:
        tests: The scores of each test's trials, none empty.
        clusters: The cluster of each test, in the same order.
    """
    members: dict[Hashable, list[Sequence[float]]] = {}
    for own, cluster in zip(tests, clusters, strict=True):
        members.setdefault(cluster, []).append(own)
    if len(members) == len(tests):
        return [tuple(own) for own in tests]
    weight = len(members) / len(tests)
    return [_as_one(some, weight) for some in members.values()]


def merged_pairs(pairs: Sequence[ScorePair], clusters: Sequence[Hashable]) -> list[ScorePair]:
    """Return the pairs of both sides' scores with each cluster as one test."""
    if len(set(clusters)) == len(pairs):
        return [*pairs]
    heads = merged([pair.head for pair in pairs], clusters)
    bases = merged([pair.base for pair in pairs], clusters)
    return [ScorePair(head, base) for head, base in zip(heads, bases, strict=True)]


def _as_one(tests: Sequence[Sequence[float]], weight: float) -> tuple[float, ...]:
    if len(tests) == 1:
        return tuple(weight * score for score in tests[0])
    trials = min(map(len, tests))
    sums = [0.0] * trials
    for own in tests:
        own_weight = weight * trials / len(own)
        for place, score in enumerate(own):
            sums[place % trials] += own_weight * score
    return tuple(sums)
