"""The facts of a comparison of the judge with people."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.calibration.result import Calibration, Counted, OldCalibration
from ci_evals.reports.facts.judging.parts import (
    PlainTable,
    StudyReport,
    capitalized,
    criterion,
    listed,
    sentence,
)

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
        named = [criterion(part.name) for part in barred]
        yield (
            f"Compared with people, this judge should not gate on {listed(named)}. Fix the wording, or "
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


def _table(found: Calibration) -> PlainTable:
    words = {True: "may gate", False: "should not gate", None: "open"}
    return PlainTable(
        "The judge against people",
        (
            "part",
            "verdict",
            "items",
            "accuracy",
            "sensitivity",
            "specificity",
            "kappa",
            "alpha, all raters",
            "alpha, people",
            "kappa, people",
            "passes that people pass",
            "fails that people fail",
            "pass rate",
            "corrected",
            "why",
        ),
        tuple(
            (
                "all" if part.kind == "all" else f"{part.kind} {part.name}",
                words[part.may_gate],
                f"{part.items:,}",
                *(
                    "" if one is None else numbers.estimated_share(one)
                    for one in (part.accuracy, part.sensitivity, part.specificity)
                ),
                *(
                    "" if one is None else numbers.estimated_coefficient(one)
                    for one in (part.kappa, part.alpha, part.people, part.people_kappa)
                ),
                *_counted(part.counted),
                "" if part.pass_rate is None else numbers.percent(part.pass_rate),
                "" if part.corrected is None else numbers.estimated_share(part.corrected),
                part.why,
            )
            for part in found.parts
        ),
        ("verdict", "why"),
        tuple(part.may_gate is False for part in found.parts),
        long=True,
    )


def _counted(found: Counted | None) -> tuple[str, str]:
    """The numbers of confirmed and labeled passes of the judge, and of its fails."""
    if found is None:
        return "", ""
    return (
        _of(found.passes_passed, found.passes_passed + found.passes_failed),
        _of(found.fails_failed, found.fails_failed + found.fails_passed),
    )


def _of(some: int, of: int) -> str:
    return f"{some:,} of {of:,}" if of else ""
