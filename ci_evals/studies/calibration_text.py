"""What labels say of a judge, as tables on a terminal."""

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ci_evals.domain.trust import Calibration, Estimate, Rater
from ci_evals.reports import numbers, sanitize

_HEADS = ("", "labels", "accuracy", "sensitivity", "specificity", "kappa", "alpha", "pass rate", "corrected")
_WIDEST = 40
_MOST = 20
"""Rows of criteria; all stand in the file."""


def render(found: Calibration) -> str:
    """The numbers with their intervals, what was left out, and whether the judge may gate."""
    kinds = {"criterion": "Criteria", "category": "Categories"}
    tables = [_table([part for part in found.parts if part.kind == "all"])]
    for kind, head in kinds.items():
        parts = [part for part in found.parts if part.kind == kind]
        if parts:
            more = len(parts) - _MOST
            shown = sorted(parts, key=lambda part: (-part.items, part.name))[:_MOST]
            tables.append(f"{head}, those with most labels first:\n{_table(shown)}")
            tables += [f"and {more} more, which the file holds"] if more > 0 else []
    whole = found.parts[0] if found.parts else None
    lines = [_who(found), *tables, *_people(whole), *_left_out(found)]
    lines += [_may(whole), *_others(found)] if whole else []
    return sanitize.log("\n\n".join(lines))


def _who(found: Calibration) -> str:
    judge = ", ".join(found.judge.models)
    votes = f", {numbers.count(found.judge.votes, 'vote')} on each" if found.judge.votes > 1 else ""
    by = "1 person" if found.people == 1 else f"{found.people} people"
    return sanitize.one_line(f"{numbers.count(found.labels, 'label')} by {by}, against {judge}{votes}")


def _table(parts: Sequence[Rater]) -> str:
    rows = [
        (
            sanitize.one_line(part.name, _WIDEST),
            part.items,
            *map(_ranged, (part.accuracy, part.sensitivity, part.specificity, part.kappa, part.alpha)),
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


def _people(whole: Rater | None) -> Iterable[str]:
    if whole and whole.people:
        also = f", Cohen's kappa {_ranged(whole.people_kappa)}" if whole.people_kappa else ""
        yield f"The people among themselves: Krippendorff's alpha {_ranged(whole.people)}{also}"


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
    return f"May this judge gate? {whole.why}"


def _others(found: Calibration) -> Iterable[str]:
    """Criteria and categories of which it is known that they may not."""
    for part in found.parts[1:]:
        if part.may_gate is False:
            yield f"Not on {sanitize.one_line(part.name, 100)!r}. {part.why}"
