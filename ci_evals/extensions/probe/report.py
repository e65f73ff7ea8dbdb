"""The facts of a probe for criteria that measure nothing."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.probe.result import Probe, Probed
from ci_evals.reports.facts.judging.parts import (
    CriterionWarning,
    PlainTable,
    StudyReport,
    criterion,
    listed,
    other_judge,
)

RANK = 50
"""Its place among the reports of all extensions."""


def report(results: Results) -> StudyReport | None:
    """The report on criteria that passed on every conversation of other tests."""
    found = results.study(Probe)
    if found is None:
        return None
    return StudyReport(
        topic="Criteria",
        remark=_remark(found) + other_judge(results, found.judge),
        tables=(_table(found),),
        warnings=tuple(_warnings(found)),
        criterion_warnings=tuple(_criterion_warning(one) for one in found.vacuous),
    )


def _warnings(found: Probe) -> Iterator[str]:
    if empty := found.vacuous:
        named = [criterion(one.criterion, one.test) for one in empty]
        criteria = numbers.count(len(empty), "criterion measures", "criteria measure")
        yield (
            f"{criteria} nothing, since conversations of other tests pass too: {listed(named)}. Word "
            f"{'it' if len(empty) == 1 else 'them'} so that the situation must arise, or add a strict check."
        )


def _criterion_warning(one: Probed) -> CriterionWarning:
    others = f"{numbers.count(one.tried, 'conversation')} of other tests"
    text = f"it measures nothing: it passed before {others} as well"
    return CriterionWarning(one.criterion, one.suite, one.test, text)


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
