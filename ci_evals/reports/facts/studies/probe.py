"""The facts of a probe for criteria that measure nothing."""

from collections.abc import Iterator

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Probe
from ci_evals.reports import numbers
from ci_evals.reports.facts.parts import CriterionWarning, PlainTable, criterion, listed, other_judge

TOPIC = "Criteria"


def remarks(results: Results) -> Iterator[str]:
    """How many criteria passed before every conversation."""
    if found := results.studies.probe:
        yield _remark(found) + other_judge(results, found.judge)


def tables(results: Results) -> Iterator[PlainTable]:
    """Each criterion in numbers."""
    if found := results.studies.probe:
        yield _table(found)


def warnings(results: Results) -> Iterator[str]:
    """That criteria measure nothing."""
    found = results.studies.probe
    if found and (empty := found.vacuous):
        named = [criterion(one.criterion, one.test) for one in empty]
        criteria = numbers.count(len(empty), "criterion measures", "criteria measure")
        yield (
            f"{criteria} nothing, since conversations of other tests pass too: {listed(named)}. Word "
            f"{'it' if len(empty) == 1 else 'them'} so that the situation must arise, or add a strict check."
        )


def criterion_warnings(results: Results) -> Iterator[CriterionWarning]:
    """Each criterion that measures nothing."""
    for one in results.studies.probe.vacuous if results.studies.probe else ():
        talks = f"{numbers.count(one.tried, 'conversation')} of other tests"
        told = f"it measures nothing: it passed before {talks} as well"
        yield CriterionWarning(one.criterion, one.suite, one.test, told)


def _remark(found: Probe) -> str:
    empty = len(found.vacuous)
    of = numbers.count(len(found.criteria), "criterion", "criteria")
    if not empty:
        return f"Tried before conversations of other tests, none of {of} passed before all of them."
    return f"Tried before conversations of other tests, {empty:,} of {of} passed before all of them."


def _table(found: Probe) -> PlainTable:
    ordered = sorted(
        found.criteria, key=lambda one: (not one.vacuous, -(one.share.value if one.share else 0))
    )
    return PlainTable(
        "Criteria before conversations of other tests",
        ("criterion", "said of it", "test", "tried", "passed", "undecided", "share"),
        tuple(
            (
                one.criterion,
                "measures nothing" if one.vacuous else "",
                one.test,
                f"{one.tried:,}",
                f"{one.passed:,}",
                f"{one.undecided:,}" if one.undecided else "",
                numbers.estimated_share(one.share),
            )
            for one in ordered
        ),
        ("test", "said of it"),
        tuple(one.vacuous for one in ordered),
        long=True,
    )
