"""A calibration as text for a terminal."""

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ci_evals.domain.results.judge import Estimate
from ci_evals.reports import numbers, sanitize
from ci_evals.studies.calibration.result import Calibration, Rater

_HEADS = ("", "labels", "sensitivity", "specificity", "kappa", "pass rate", "corrected")
_WORDS = {
    "accuracy": "of the verdicts, those that people give too",
    "sensitivity": "of what people pass, what the judge passes",
    "specificity": "of what people fail, what the judge fails",
    "kappa": "Cohen's, agreement beyond chance",
    "alpha": "Krippendorff's, of people and judge together",
    "people": "Krippendorff's, of the people alone",
    "people_kappa": "Cohen's, of one person against the other",
    "pass_rate": "of all verdicts of the run, as the judge has it",
    "corrected": "the same without the judge's errors",
}
_ANSWERS = {True: "Yes", False: "No", None: "Nobody knows yet"}
_WIDEST = 40
_MOST = 20
"""Rows of criteria; all stand in the file."""


def render(found: Calibration) -> str:
    """The numbers with their intervals, what was left out, and whether the judge may gate."""
    kinds = {"criterion": "Criteria", "category": "Categories"}
    tables = [_whole(part) for part in found.parts if part.kind == "all"]
    for kind, head in kinds.items():
        parts = [part for part in found.parts if part.kind == kind]
        if parts:
            more = len(parts) - _MOST
            shown = sorted(parts, key=lambda part: (-part.items, part.name))[:_MOST]
            tables.append(f"{head}, those with most labels first:\n{_table(shown)}")
            tables += [f"and {more} more, which the file holds"] if more > 0 else []
    whole = found.parts[0] if found.parts else None
    lines = [_who(found), *tables, *_left_out(found)]
    lines += [_may(whole), *_others(found)] if whole else []
    return sanitize.log("\n\n".join(lines))


def _who(found: Calibration) -> str:
    judge = ", ".join(found.judge.models)
    votes = f", {numbers.count(found.judge.votes, 'vote')} on each" if found.judge.votes > 1 else ""
    by = "1 person" if found.people == 1 else f"{found.people} people"
    return sanitize.one_line(f"{numbers.count(found.labels, 'label')} by {by}, against {judge}{votes}")


def _whole(part: Rater) -> str:
    """A line for each number that there is."""
    rows = [
        (name.replace("_", " "), _number(value) if isinstance(value, float) else _ranged(value), words)
        for name, words in _WORDS.items()
        for value in [getattr(part, name)]
        if value is not None
    ]
    return tabulate(rows, ("", "of all", ""), tablefmt="simple", disable_numparse=True)


def _table(parts: Sequence[Rater]) -> str:
    rows = [
        (
            sanitize.one_line(part.name, _WIDEST),
            part.items,
            *map(_ranged, (part.sensitivity, part.specificity, part.kappa)),
            _number(part.pass_rate),
            _ranged(part.corrected),
        )
        for part in parts
    ]
    return tabulate(rows, _HEADS, tablefmt="simple", disable_numparse=True)


def _ranged(found: Estimate | None) -> str:
    if found is None:
        return numbers.NONE
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{_number(found.value)} ({_number(found.low)} to {_number(found.high)})"


def _number(found: float | None) -> str:
    return numbers.coefficient(found)


def _left_out(found: Calibration) -> Iterable[str]:
    words = (
        (found.cannot_tell, "label", "says that it cannot be told", "say that it cannot be told"),
        (found.ties, "verdict", "has as many labels for as against", "have as many labels for as against"),
        (found.unknown, "label", "is of nothing in this run", "are of nothing in this run"),
    )
    told = [f"{numbers.count(n, noun)} {one if n == 1 else many}" for n, noun, one, many in words if n]
    if told:
        yield f"Left out: {'; '.join(told)}"


def _may(whole: Rater) -> str:
    return f"May this judge gate? {_ANSWERS[whole.may_gate]}: {whole.why}."


def _others(found: Calibration) -> Iterable[str]:
    """Criteria and categories of which it is known that they may not."""
    for part in found.parts[1:]:
        if part.may_gate is False:
            yield f"Not on {sanitize.one_line(part.name, 100)!r}: {part.why}."
