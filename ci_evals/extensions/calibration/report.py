"""The facts of a comparison of the judge with people."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import Estimate
from ci_evals.domain.results.run import Results
from ci_evals.extensions.calibration.result import Calibration, OldCalibration, Rater
from ci_evals.reports.story.judging import StudyReport, criterion_name, listed_criteria
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.phrases import capitalized, sentence
from ci_evals.reports.story.table import BLANK, Column, Table, table_of

RANK = 10
"""Its place among the reports of all extensions."""

_TOPIC = "Calibration"


def report(results: Results) -> StudyReport | None:
    """The judge compared with people, or why the calibration is of another judge."""
    if old := results.study(OldCalibration):
        remark = f"The one of {old.at:%Y-%m-%d} says nothing of this run: {sentence(old.why)}"
        return StudyReport(topic=_TOPIC, remark=remark)
    found = results.study(Calibration)
    if found is None:
        return None
    return StudyReport(
        topic=_TOPIC,
        remark=_remark(found),
        tables=(_table(found),),
        warnings=tuple(_warnings(found)),
    )


def _warnings(found: Calibration) -> Iterator[str]:
    barred = [part for part in found.parts if part.may_gate is False]
    if not barred:
        return
    if barred[0].kind == "all":
        yield f"Compared with people, this judge should not gate: {sentence(barred[0].why)}"
    else:
        named = listed_criteria([criterion_name(part.name) for part in barred])
        yield (
            f"Compared with people, this judge should not gate on {named}. Fix the wording, or "
            "decide by a strict check."
        )


def _remark(found: Calibration) -> str:
    people = numbers.count(found.people, "person", "people")
    labels = numbers.count(found.labels, "label")
    whole = next((part for part in found.parts if part.kind == "all"), None)
    said = f"Compared with {labels} by {people} ({found.at:%Y-%m-%d})."
    if whole is None:
        return said
    gates = {
        True: "The judge may gate:",
        False: "The judge should not gate:",
        None: "Not known yet whether the judge may gate:",
    }
    said += f" {gates[whole.may_gate]} {sentence(whole.why)}"
    measured = [
        f"{name} {shown}"
        for name, shown in (
            ("accuracy", whole.accuracy and numbers.estimated_share(whole.accuracy)),
            ("sensitivity", whole.sensitivity and numbers.estimated_share(whole.sensitivity)),
            ("specificity", whole.specificity and numbers.estimated_share(whole.specificity)),
            ("Cohen's kappa", whole.kappa and numbers.estimated_coefficient(whole.kappa)),
        )
        if shown
    ]
    if measured:
        said += f" {capitalized(', '.join(measured))}."
    if whole.pass_rate is not None and whole.corrected:
        said += (
            f" It passes {numbers.percent(whole.pass_rate)} of all verdicts; "
            f"corrected for its errors, {numbers.estimated_share(whole.corrected)}."
        )
    dropped = (
        (found.cannot_tell, "label that cannot tell", "labels that cannot tell"),
        (found.ties, "verdict on which people are even", "verdicts on which people are even"),
        (found.unknown, "label that matches nothing in the run", "labels that match nothing in the run"),
    )
    if left := [numbers.count(*one) for one in dropped if one[0]]:
        said += f" Left out: {', '.join(left)}."
    return said


_VERDICTS = {True: "may gate", False: "should not gate", None: "open"}


def _share(found: Estimate | None) -> str:
    return "" if found is None else numbers.estimated_share(found)


def _coefficient(found: Estimate | None) -> str:
    return "" if found is None else numbers.estimated_coefficient(found)


def _right_passes(part: Rater) -> str:
    """The number of the judge's labeled passes that people confirm."""
    found = part.counted
    return _of(found.passes_passed, found.passes_passed + found.passes_failed) if found else ""


def _right_fails(part: Rater) -> str:
    found = part.counted
    return _of(found.fails_failed, found.fails_failed + found.fails_passed) if found else ""


_COLUMNS: tuple[Column[Rater], ...] = (
    Column(
        "part",
        words=True,
        show=lambda part: "all" if part.kind == "all" else f"{part.kind} {part.name}",
    ),
    Column("verdict", words=True, show=lambda part: _VERDICTS[part.may_gate]),
    Column("items", show=lambda part: f"{part.items:,}"),
    Column("accuracy", says_nothing=BLANK, show=lambda part: _share(part.accuracy)),
    Column("sensitivity", says_nothing=BLANK, show=lambda part: _share(part.sensitivity)),
    Column("specificity", says_nothing=BLANK, show=lambda part: _share(part.specificity)),
    Column("kappa", says_nothing=BLANK, show=lambda part: _coefficient(part.kappa)),
    Column("alpha, all raters", says_nothing=BLANK, show=lambda part: _coefficient(part.alpha)),
    Column("alpha, people", says_nothing=BLANK, show=lambda part: _coefficient(part.people)),
    Column("kappa, people", says_nothing=BLANK, show=lambda part: _coefficient(part.people_kappa)),
    Column("passes that people pass", says_nothing=BLANK, show=_right_passes),
    Column("fails that people fail", says_nothing=BLANK, show=_right_fails),
    Column(
        "pass rate",
        says_nothing=BLANK,
        show=lambda part: "" if part.pass_rate is None else numbers.percent(part.pass_rate),
    ),
    Column("corrected", says_nothing=BLANK, show=lambda part: _share(part.corrected)),
    Column("why", words=True, show=lambda part: part.why),
)


def _table(found: Calibration) -> Table:
    return table_of(
        "The judge against people",
        _COLUMNS,
        found.parts,
        tone=lambda part: Tone.BAD if part.may_gate is False else None,
        long=True,
    )


def _of(some: int, of: int) -> str:
    return f"{some:,} of {of:,}" if of else ""
