"""The facts of a probe for criteria that measure nothing."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.validate.result import Probe, Probed
from ci_evals.reports.story.judging import (
    CriterionWarning,
    StudyReport,
    criterion_name,
    listed_criteria,
    other_judge,
)
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.table import BLANK, NO_COUNT, Column, Table, table_of

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
        named = listed_criteria([criterion_name(one.criterion, one.test) for one in empty])
        criteria = numbers.count(len(empty), "criterion measures", "criteria measure")
        them = "it" if len(empty) == 1 else "them"
        yield (
            f"{criteria} nothing, since conversations of other tests pass too: {named}. "
            f"Word {them} so that the situation must arise, or add a strict check."
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


_COLUMNS: tuple[Column[Probed], ...] = (
    Column("criterion", words=True, show=lambda one: one.criterion),
    Column(
        "said of it",
        words=True,
        says_nothing=BLANK,
        show=lambda one: "measures nothing" if one.vacuous else "",
    ),
    Column("test", words=True, show=lambda one: one.test),
    Column("tried", show=lambda one: f"{one.tried:,}"),
    Column("passed", show=lambda one: f"{one.passed:,}"),
    Column("undecided", says_nothing=NO_COUNT, show=lambda one: f"{one.undecided:,}"),
    Column("share", show=lambda one: numbers.estimated_share(one.share)),
)


def _table(found: Probe) -> Table:
    ordered = sorted(
        found.criteria, key=lambda one: (not one.vacuous, -(one.share.value if one.share else 0))
    )
    return table_of(
        "Criteria before conversations of other tests",
        _COLUMNS,
        ordered,
        tone=lambda one: Tone.BAD if one.vacuous else None,
        long=True,
    )
