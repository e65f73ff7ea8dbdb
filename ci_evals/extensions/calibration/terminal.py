"""A calibration as text for a terminal."""

from collections.abc import Iterable, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.calibration.result import Calibration, Rater
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table

_HEADS = ("", "labels", "sensitivity", "specificity", "kappa", "pass rate", "corrected")
_WORDS = {
    "accuracy": "share of verdicts that people agree with",
    "sensitivity": "of people's passes, the judge's passes",
    "specificity": "of people's fails, the judge's fails",
    "kappa": "Cohen's, agreement beyond chance",
    "alpha": "Krippendorff's, among people and judge",
    "people": "Krippendorff's, among people",
    "people_kappa": "Cohen's, of one person against the other",
    "pass_rate": "of all verdicts of the run, by the judge",
    "corrected": "corrected for the judge's errors",
}
_ANSWERS = {True: "Yes", False: "No", None: "Not known yet"}
_WIDEST = 40
_MOST = 20
"""Rows of criteria; all stand in the file."""


def render(found: Calibration, width: int | None = None) -> str:
    """The numbers with their intervals, what was left out, and whether the judge may gate."""
    kinds = {"criterion": "Criteria", "category": "Categories"}
    tables = [_whole(part, width) for part in found.parts if part.kind == "all"]
    for kind, head in kinds.items():
        parts = [part for part in found.parts if part.kind == kind]
        if parts:
            more = len(parts) - _MOST
            shown = sorted(parts, key=lambda part: (-part.items, part.name))[:_MOST]
            tables.append(f"{head}, those with most labels first:\n{_table(shown, width)}")
            tables += [f"and {more} more, which the file holds"] if more > 0 else []
    whole = found.parts[0] if found.parts else None
    lines = [_who(found), *tables, *_left_out(found)]
    if whole:
        lines.append(f"May this judge gate? {_ANSWERS[whole.may_gate]}: {whole.why}.")
    barred = [part for part in found.parts[1:] if part.may_gate is False]
    lines += [f"Not on {sanitize.one_line(part.name, 100)!r}: {part.why}." for part in barred]
    return sanitize.log("\n\n".join(lines))


def _who(found: Calibration) -> str:
    judge = ", ".join(found.judge.models)
    votes = f", {numbers.count(found.judge.votes, 'vote')} on each" if found.judge.votes > 1 else ""
    by = "1 person" if found.people == 1 else f"{found.people} people"
    return sanitize.one_line(f"{numbers.count(found.labels, 'label')} by {by}, against {judge}{votes}")


def _whole(part: Rater, width: int | None) -> str:
    rows = [
        (name.replace("_", " "), _ranged(value), words)
        for name, words in _WORDS.items()
        for value in [getattr(part, name)]
        if value is not None
    ]
    return table(("", "of all", ""), rows, width, names=(2,))


def _table(parts: Sequence[Rater], width: int | None) -> str:
    rows = [
        (
            sanitize.one_line(part.name, _WIDEST),
            str(part.items),
            *map(_ranged, (part.sensitivity, part.specificity, part.kappa)),
            numbers.coefficient(part.pass_rate),
            _ranged(part.corrected),
        )
        for part in parts
    ]
    return table(_HEADS, rows, width)


def _ranged(found: Estimate | float | None) -> str:
    if not isinstance(found, Estimate):
        return numbers.coefficient(found)
    if found.low is None or found.high is None:
        return numbers.coefficient(found.value)
    low, high = numbers.coefficient(found.low), numbers.coefficient(found.high)
    return f"{numbers.coefficient(found.value)} ({low} to {high})"


def _left_out(found: Calibration) -> Iterable[str]:
    words = (
        (found.cannot_tell, "label", "cannot tell", "cannot tell"),
        (found.ties, "verdict", "has as many labels for as against", "have as many labels for as against"),
        (found.unknown, "label", "matches nothing in this run", "match nothing in this run"),
    )
    left_out = []
    for number, noun, singular, plural in words:
        if number:
            verb = singular if number == 1 else plural
            left_out.append(f"{numbers.count(number, noun)} {verb}")
    if left_out:
        yield f"Left out: {'; '.join(left_out)}"
