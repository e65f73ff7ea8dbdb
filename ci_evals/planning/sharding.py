"""Shards of a plan, for runs that share its tests; a shard depends on plan and baseline alone.

The unit is a test with all its trials, weighted by its time in a baseline. The longest goes first, each to
the shard with the least to do, so that all shards end at about the same time.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from pathlib import PurePath
from statistics import fmean
from typing import TypeVar

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.run import Results, Shard
from ci_evals.domain.results.suite import TestResult
from ci_evals.planning.selection import with_tests
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor

T = TypeVar("T")

MAX_SHARDS = 1000

_SHARD = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)


@dataclass(frozen=True)
class ShardNumber:
    """The number of a shard, from 1, and of all shards."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(frozen=True)
class PlannedShard:
    """The part of a plan that one run plays, and what its results say of it."""

    plan: Plan
    shard: Shard


def read(text: str) -> ShardNumber:
    """Read the shard that the option `shard` asks for, such as `2/5`.

    Raises:
        UsageError: it has another form, or does not exist.
    """
    match = _SHARD.fullmatch(text)
    number = ShardNumber(*map(int, match.groups())) if match else None
    if number is None or not number.index <= number.of <= MAX_SHARDS:
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise UsageError(
            f"`shard=`: {shown!r} is not a shard; write I/N, such as 2/5, with I from 1 to N and N up to "
            f"{MAX_SHARDS}"
        )
    return number


def check(plan: Plan, number: ShardNumber) -> None:
    """Check that each shard has a test.

    Raises:
        UsageError: there are more shards than tests.
    """
    tests = sum(len(suite.tests) for suite in plan.arm(0).suites)
    if number.of > tests:
        has, most = ("1 test", "1 part") if tests == 1 else (f"{tests} tests", f"{tests} parts")
        raise UsageError(f"`shard={number}`: the plan has {has}; ask for at most {most}")


def take(
    plan: Plan, number: ShardNumber, redactor: Redactor, baseline: Results | None = None
) -> PlannedShard:
    """Return one shard of a plan, in the plan's order. Each test is in one shard, and no shard is empty.

    Args:
        plan: The whole plan. It has at least as many tests as there are shards.
        number: Which shard.
        redactor: Redacts names, as they were in the baseline.
        baseline: An earlier run, which knows how long a trial of a test takes. A test that it does not know
            counts as the mean of those that it knows; if it knows none, each counts by its turns.
    """
    head = plan.arm(0)
    owners = _owners(_weights(head, _seconds(head, redactor, baseline)), number.of)
    own_tests, own_numbers, start = [], [], 0
    for suite in head.suites:
        own = [i for i in range(len(suite.tests)) if owners[start + i] == number.index]
        own_numbers += [start + i + 1 for i in own]
        own_tests.append(own)
        start += len(suite.tests)
    suites = [
        with_tests(suite, own)
        for arm in range(len(plan.arms))
        for suite, own in zip(plan.arm(arm).suites, own_tests, strict=True)
        if own
    ]
    whole = _digest(head, redactor)
    shard = Shard(
        index=number.index,
        of=number.of,
        plan=whole,
        split=digest([whole, owners]),
        suites=tuple(suite.file for suite in head.suites),
        tests=tuple(own_numbers),
    )
    return PlannedShard(replace(plan, suites=tuple(suites)), shard)


def _seconds(plan: Plan, redactor: Redactor, baseline: Results | None) -> list[float | None]:
    """Return the time that a trial of each test took; None if it is not known.

    Tests are identified as in a comparison: by suite, name and definition.
    """
    recorded = {
        (suite_key, test_key): test
        for suite_key, suite in _keyed(baseline.suites if baseline else (), lambda suite: suite.name)
        for test_key, test in _keyed(suite.tests, lambda test: test.name)
    }
    seconds: list[float | None] = []
    for suite_key, planned in _keyed(plan.suites, lambda planned: redactor.text(planned.suite.name)):
        tests = zip(planned.tests, planned.test_digests, strict=True)
        for test_key, (_, definition) in _keyed(tests, lambda test: redactor.text(test[0].name)):
            before = recorded.get((suite_key, test_key))
            seconds.append(_mean_seconds(before) if before and before.digest == definition else None)
    return seconds


def _keyed(items: Iterable[T], name: Callable[[T], str]) -> Iterator[tuple[tuple[str, int], T]]:
    """Yield each item with its name and its number among those of that name."""
    counts: Counter[str] = Counter()
    for item in items:
        yield (name(item), counts[name(item)]), item
        counts[name(item)] += 1


def _mean_seconds(test: TestResult) -> float | None:
    seconds = [trial.duration_seconds for trial in test.trials if trial.counts]
    return fmean(seconds) if seconds else None


def _weights(plan: Plan, seconds: Sequence[float | None]) -> list[float]:
    """Return the work of each test: in seconds, or, if no test is known, in turns."""
    known = [duration for duration in seconds if duration is not None]
    mean = fmean(known) if known else None
    tests = ((suite, test) for suite in plan.suites for test in suite.tests)
    weights = []
    for (suite, test), duration in zip(tests, seconds, strict=True):
        usual = len(suite.suite.turns_of(test)) if mean is None else mean
        weights.append(plan.played_of(suite, test) * (usual if duration is None else duration))
    return weights


def _owners(weights: Sequence[float], shards: int) -> list[int]:
    """Return the shard of each test. Ties are broken by the order of tests and shards."""
    owners = [0] * len(weights)
    loads = [(0.0, 0, shard) for shard in range(1, shards + 1)]
    heapify(loads)
    for index in sorted(range(len(weights)), key=lambda index: (-weights[index], index)):
        load, tests, owners[index] = loads[0]
        # The number of tests keeps shards from staying empty if tests took no time at all.
        heapreplace(loads, (load + weights[index], tests + 1, owners[index]))
    return owners


def _digest(plan: Plan, redactor: Redactor) -> str:
    suites = []
    for planned in plan.suites:
        trials = (plan.played_of(planned, test) for test in planned.tests)
        tests = [list(pair) for pair in zip(planned.test_digests, trials, strict=True)]
        suites.append([PurePath(planned.file).as_posix(), planned.suite.name, tests])
    return digest(redactor.json(suites))
