"""What suites require less than those of the baseline, by their definitions.

Which tests a run selects, plays or takes from an earlier run makes no difference.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.definition import CriterionDefinition, SuiteDefinition, TestDefinition
from ci_evals.domain.results.weakened import Weakening, WeakeningKind

_Position = tuple[int, int]
"""The positions of a suite, and of a test in it."""


class _Located(NamedTuple):
    """A test and its suite."""

    suite: SuiteDefinition
    test: TestDefinition


def weakenings(
    base: Sequence[SuiteDefinition], head: Sequence[SuiteDefinition], guarded: Collection[str] = ()
) -> Iterator[Weakening]:
    """Yield everything that the suites of the baseline require and those of this run do not.

    Suites belong together by name and file, then by name, then by file. A test belongs to one with its turns
    and evaluations, in any suite: first to one of its name too. If there is none, it belongs to the one of
    its suite and name.
    `guarded` are the parts of the baseline's run that have limits of their own, such as `tag:safety`.
    """
    suites = _suite_pairs(base, head)
    tests = _test_pairs(base, head, suites)
    joined = _joined_clusters(base, tests)
    for index, suite in enumerate(base):
        counterparts = [tests.get((index, number)) for number in range(len(suite.tests))]
        partner = head[suites[index]] if index in suites else None
        yield from _of_suite(suite, partner, counterparts)
        for test, located in zip(suite.tests, counterparts, strict=True):
            lost = _parts(suite, test) - _parts(*located) if located else set()
            for part in sorted(lost.intersection(guarded)):
                kind = WeakeningKind.TEST_LEFT_PART
                yield Weakening(kind=kind, suite=suite.name, test=test.name, option=part)
        for number in sorted(number for place, number in joined if place == index):
            kind = WeakeningKind.TEST_JOINED_CLUSTER
            yield Weakening(kind=kind, suite=suite.name, test=suite.tests[number].name)


def _joined_clusters(base: Sequence[SuiteDefinition], tests: Mapping[_Position, _Located]) -> set[_Position]:
    """Return the tests of the baseline that share a cluster now and did not before."""
    before: defaultdict[str, set[object]] = defaultdict(set)
    members: defaultdict[str, list[_Position]] = defaultdict(list)
    for position, located in tests.items():
        cluster = located.test.cluster
        if cluster is not None:
            index, number = position
            before[cluster].add(base[index].tests[number].cluster or position)
            members[cluster].append(position)
    return {position for cluster, group in members.items() if len(before[cluster]) > 1 for position in group}


def _parts(suite: SuiteDefinition, test: TestDefinition) -> set[str]:
    """The parts of a run that a test belongs to, as selectors name them, but those of its criteria."""
    parts = {f"suite:{suite.name}", f"test:{test.name}", *(f"tag:{tag}" for tag in test.tags)}
    if test.difficulty is not None:
        parts.add(f"difficulty:{test.difficulty}")
    return parts


def _of_suite(
    suite: SuiteDefinition, partner: SuiteDefinition | None, counterparts: Sequence[_Located | None]
) -> Iterator[Weakening]:
    found = [located for located in counterparts if located]
    if partner is None and not found:
        yield Weakening(kind=WeakeningKind.SUITE_REMOVED, suite=suite.name)
        return
    holders = [located.suite for located in found] + ([partner] if partner else [])
    now = min(holder.min_score or 0 for holder in holders)
    if (suite.min_score or 0) > now:
        yield Weakening(
            kind=WeakeningKind.MIN_SCORE_LOWERED,
            suite=suite.name,
            before=numbers.plain(suite.min_score or 0),
            now=numbers.plain(now) if now else None,
        )
    for test, located in zip(suite.tests, counterparts, strict=True):
        if located is None:
            yield Weakening(kind=WeakeningKind.TEST_REMOVED, suite=suite.name, test=test.name)
        else:
            yield from _of_test(suite.name, test, located.test)


def _of_test(suite: str, base: TestDefinition, head: TestDefinition) -> Iterator[Weakening]:
    if head.quarantined and not base.quarantined:
        yield Weakening(kind=WeakeningKind.TEST_QUARANTINED, suite=suite, test=base.name)
    if base.critical and not head.critical:
        yield Weakening(kind=WeakeningKind.TEST_NOT_CRITICAL, suite=suite, test=base.name)
    if head.may_escalate and not base.may_escalate:
        yield Weakening(kind=WeakeningKind.TEST_MAY_ESCALATE, suite=suite, test=base.name)
    if head.when is not None and (base.when is None or set(base.when) - set(head.when)):
        yield Weakening(kind=WeakeningKind.TEST_WHEN_NARROWED, suite=suite, test=base.name)
    if set(base.user) - set(head.user):
        yield Weakening(
            kind=WeakeningKind.TEST_LOST_TRAIT,
            suite=suite,
            test=base.name,
            before=", ".join(base.user),
            now=", ".join(head.user) or None,
        )
    if (base.min_score or 0) > (head.min_score or 0):
        yield Weakening(
            kind=WeakeningKind.MIN_SCORE_LOWERED,
            suite=suite,
            test=base.name,
            before=numbers.plain(base.min_score or 0),
            now=numbers.plain(head.min_score) if head.min_score else None,
        )
    yield from _of_criteria(suite, base, head)


def _of_criteria(suite: str, base: TestDefinition, head: TestDefinition) -> Iterator[Weakening]:
    left: defaultdict[str, deque[CriterionDefinition]] = defaultdict(deque)
    for criterion in _heaviest_first(head.criteria):
        left[criterion.digest].append(criterion)
    for criterion in _heaviest_first(base.criteria):
        alike = left[criterion.digest]
        if not alike:
            yield Weakening(
                kind=WeakeningKind.CRITERION_REMOVED,
                suite=suite,
                test=base.name,
                criterion=criterion.criterion,
            )
            continue
        counterpart = alike.popleft()
        if counterpart.weight < criterion.weight:
            yield Weakening(
                kind=WeakeningKind.WEIGHT_LOWERED,
                suite=suite,
                test=base.name,
                criterion=criterion.criterion,
                before=numbers.plain(criterion.weight),
                now=numbers.plain(counterpart.weight),
            )


def _heaviest_first(criteria: Iterable[CriterionDefinition]) -> list[CriterionDefinition]:
    return sorted(criteria, key=lambda criterion: -criterion.weight)


def _suite_pairs(base: Sequence[SuiteDefinition], head: Sequence[SuiteDefinition]) -> dict[int, int]:
    """Return the position of the suite of this run for suites of the baseline, by theirs.

    Several of one name or file belong together in their order, but only if both sides have as many.
    """
    pairs: dict[int, int] = {}
    for key in (_name_and_file, _name, _file):
        here = _positions(head, key, set(pairs.values()))
        for value, ours in _positions(base, key, pairs.keys()).items():
            theirs = here.get(value, [])
            if len(ours) == len(theirs):
                pairs.update(zip(ours, theirs, strict=True))
    return pairs


def _name_and_file(suite: SuiteDefinition) -> object:
    return suite.name, _file(suite)


def _name(suite: SuiteDefinition) -> object:
    return suite.name


def _file(suite: SuiteDefinition) -> object:
    return PurePath(suite.file)


def _positions(
    suites: Sequence[SuiteDefinition],
    key: Callable[[SuiteDefinition], object],
    taken: Collection[int],
) -> dict[object, list[int]]:
    """Return the positions of the suites that are not taken, by their keys."""
    positions: defaultdict[object, list[int]] = defaultdict(list)
    for index, suite in enumerate(suites):
        if index not in taken:
            positions[key(suite)].append(index)
    return positions


def _test_pairs(
    base: Sequence[SuiteDefinition], head: Sequence[SuiteDefinition], suites: Mapping[int, int]
) -> dict[_Position, _Located]:
    """Return the test of this run for tests of the baseline, by suite and position there."""
    pairs: dict[_Position, _Located] = {}
    left = {
        (number, index): _Located(suite, test)
        for number, suite in enumerate(head)
        for index, test in enumerate(suite.tests)
    }

    def pair_by(key: Callable[[int | None, TestDefinition], object]) -> None:
        queues: defaultdict[object, deque[_Position]] = defaultdict(deque)
        for position, located in left.items():
            queues[key(position[0], located.test)].append(position)
        for number, suite in enumerate(base):
            for index, test in enumerate(suite.tests):
                queue = queues[key(suites.get(number), test)]
                if (number, index) not in pairs and queue:
                    pairs[number, index] = left.pop(queue.popleft())

    pair_by(lambda suite, test: (suite, test.name, test.content))
    pair_by(lambda _, test: (test.name, test.content))
    pair_by(lambda _, test: test.content)
    pair_by(lambda suite, test: (suite, test.name))
    return pairs
