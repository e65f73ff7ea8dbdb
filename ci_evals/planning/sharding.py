"""One part of a plan, for runs that share its tests: which it is hangs on plan and baseline alone.

The unit is a test with all its trials. Each weighs the time that it took in a baseline; the longest goes
first, each to the part that has the least to do, so that all parts end at about the same time.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from pathlib import PurePath
from statistics import fmean

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.results.run import Results, Shard
from ci_evals.domain.results.suite import TestResult
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor

MOST = 1000
"""Parts of one plan."""

_PART = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)


@dataclass(frozen=True)
class Part:
    """Which part, counted from 1, of how many."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(frozen=True)
class Taken:
    """What one run plays, and what it says of that in its results."""

    plan: Plan
    shard: Shard


def read(text: str) -> Part:
    """The part that `--shard` asks for, as `2/5`.

    Raises:
        UsageError: it is written in another way, or is none.
    """
    found = _PART.fullmatch(text)
    part = Part(*map(int, found.groups())) if found else None
    if part is None or not part.index <= part.of <= MOST:
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise UsageError(
            f"--shard: {shown!r} is no part; write I/N, as 2/5, with I from 1 to N and N up to {MOST}"
        )
    return part


def check(plan: Plan, part: Part) -> None:
    """Sees that each part has a test.

    Raises:
        UsageError: there are more parts than tests.
    """
    tests = sum(len(suite.tests) for suite in plan.suites)
    if part.of > tests:
        has, most = ("1 test", "1 part") if tests == 1 else (f"{tests} tests", f"{tests} parts")
        raise UsageError(f"--shard={part}: the plan has {has}; ask for at most {most}")


def take(plan: Plan, part: Part, redactor: Redactor, baseline: Results | None = None) -> Taken:
    """One part of a plan, with its tests in the plan's order. Each test is in one part, and no part is empty.

    Args:
        plan: The whole. It has at least as many tests as there are parts.
        part: Which.
        redactor: Takes secrets out of names, as they were in the baseline.
        baseline: An earlier run. It tells how long a trial of a test takes. A test that it does not know
            counts as the mean of those that it knows; where it knows none, each counts by its turns.
    """
    owners = _owners(_weights(plan, _seconds(plan, redactor, baseline)), part.of)
    suites, mine, place = [], [], 0
    for suite in plan.suites:
        own = [at for at in range(len(suite.tests)) if owners[place + at] == part.index]
        mine += [place + at + 1 for at in own]
        suites += [_with_tests(suite, own)] if own else []
        place += len(suite.tests)
    whole = _digest(plan, redactor)
    shard = Shard(
        index=part.index,
        of=part.of,
        plan=whole,
        split=digest([whole, owners]),
        suites=tuple(suite.file for suite in plan.suites),
        tests=tuple(mine),
    )
    return Taken(replace(plan, suites=tuple(suites)), shard)


def _seconds(plan: Plan, redactor: Redactor, baseline: Results | None) -> list[float | None]:
    """How long a trial of each test took; None where it is not known.

    Tests are the same where the comparison finds them to be: by suite and name, and what they ask.
    """
    known = dict(_recorded(baseline)) if baseline else {}
    suites: Counter[str] = Counter()
    found = []
    for planned in plan.suites:
        suite, tests = redactor.text(planned.suite.name), Counter[str]()
        for test, asked in zip(planned.tests, planned.test_digests, strict=True):
            name = redactor.text(test.name)
            before = known.get((suite, suites[suite], name, tests[name]))
            found.append(_mean_seconds(before) if before and before.digest == asked else None)
            tests[name] += 1
        suites[suite] += 1
    return found


def _recorded(baseline: Results) -> Iterator[tuple[tuple[str, int, str, int], TestResult]]:
    """The tests by the names of suite and test. Those of one name are told apart by their order."""
    suites: Counter[str] = Counter()
    for suite in baseline.suites:
        tests: Counter[str] = Counter()
        for test in suite.tests:
            yield (suite.name, suites[suite.name], test.name, tests[test.name]), test
            tests[test.name] += 1
        suites[suite.name] += 1


def _mean_seconds(test: TestResult) -> float | None:
    """Of its trials that came to an end."""
    seconds = [trial.duration_seconds for trial in test.trials if trial.counts]
    return fmean(seconds) if seconds else None


def _weights(plan: Plan, seconds: Sequence[float | None]) -> list[float]:
    """What playing each test takes: in seconds, or, where no test is known, in turns."""
    known = [one for one in seconds if one is not None]
    usual = fmean(known) if known else None
    tests = ((suite, test) for suite in plan.suites for test in suite.tests)
    return [
        plan.loops_of(test)
        * (one if one is not None else len(suite.suite.turns_of(test)) if usual is None else usual)
        for (suite, test), one in zip(tests, seconds, strict=True)
    ]


def _owners(weights: Sequence[float], parts: int) -> list[int]:
    """For each test the part that plays it. What ties is told apart by the order of tests, and of parts."""
    owners = [0] * len(weights)
    loads = [(0.0, 0, part) for part in range(1, parts + 1)]
    heapify(loads)
    for place in sorted(range(len(weights)), key=lambda place: (-weights[place], place)):
        load, tests, owners[place] = loads[0]
        # The number of tests keeps parts from staying empty where tests took no time at all.
        heapreplace(loads, (load + weights[place], tests + 1, owners[place]))
    return owners


def _with_tests(suite: PlannedSuite, places: Sequence[int]) -> PlannedSuite:
    return replace(
        suite,
        tests=tuple(suite.tests[at] for at in places),
        test_digests=tuple(suite.test_digests[at] for at in places),
        test_lines=tuple(suite.test_lines[at] for at in places),
    )


def _digest(plan: Plan, redactor: Redactor) -> str:
    """Of what is played, in its order; secrets are taken out first."""
    suites = []
    for planned in plan.suites:
        loops = map(plan.loops_of, planned.tests)
        tests = [list(pair) for pair in zip(planned.test_digests, loops, strict=True)]
        suites.append([PurePath(planned.file).as_posix(), planned.suite.name, tests])
    return digest(redactor.json(suites))
