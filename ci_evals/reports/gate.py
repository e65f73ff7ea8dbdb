"""The gate's checks in words: what each asks and what it found. Not yet sanitised."""

import re
from collections.abc import Sequence

from ci_evals.domain.results import GateCheck, Results
from ci_evals.reports import numbers
from ci_evals.scoring.selectors import Kind

_KINDS = {kind.value: f"the {kind}" for kind in Kind} | {"logic": "the AUI Logic"}
_SPOILT = {
    "max-errors": "broke off or could not be judged",
    "max-invalid-users": "left out, since the simulated user broke its role twice",
}
_PARTS = re.compile("[: ]")
"""Between the name of a check and the part of the run that it is about."""


def in_order(results: Results) -> tuple[GateCheck, ...]:
    """The gate's checks, those first that do not hold."""
    return tuple(sorted(results.gate.checks, key=lambda check: check.holds))


def in_words(check: GateCheck) -> str:
    """Why a check does not hold, in a sentence for somebody who does not know its name."""
    if check.seen is None or check.required is None:
        return f"{check.name} does not hold: {check.note or 'nothing was seen'}."
    found, asked = seen(check), required(check)
    match _PARTS.split(check.name, maxsplit=1):
        case ["critical", name]:
            said = f"The critical test “{name}” must pass in every trial; {check.note}"
        case ["max-drop", *part]:
            said = f"The score{_of(part)} fell by {found}; {asked} is allowed"
        case ["regression"] if is_chance(check):
            said = f"The score fell, and chance does not explain it ({found})"
        case ["regression"]:
            said = f"{numbers.count(int(check.seen), 'test')} passed in the baseline and no longer"
        case ["max-errors" | "max-invalid-users" as limit]:
            trials = numbers.count(int(check.seen), "trial")
            said = f"{trials} {_SPOILT[limit]}; {asked} is allowed"
        case ["max-cost"]:
            said = f"The run cost {found}; {asked} is allowed"
        case ["max-p95-latency"]:
            said = f"95 % of the replies came within {found}; {asked} is allowed"
        case [_, *rest]:
            said = f"The score{_of([check.name] if rest else [])} is {found}; {asked} is asked"
    return f"{said}."


def _of(selector: Sequence[str]) -> str:
    """`suite:Refunds` in words; empty where there is none."""
    if not selector:
        return ""
    kind, _, name = selector[0].partition(":")
    return f" of {_KINDS.get(kind, kind)} “{name}”"


def required(check: GateCheck) -> str:
    """What a gate check asks, in words and its own unit."""
    if check.required is None:
        return ""
    if is_chance(check):
        return f"p above {numbers.plain(check.required)}"
    match check.name:
        case "max-cost":
            limit = numbers.budget(check.required, check.required)
        case "max-p95-latency":
            limit = f"{numbers.plain(check.required)} s"
        case _:
            limit = numbers.plain(check.required)
    return f"{'at most' if _is_limit(check) else 'at least'} {limit}"


def seen(check: GateCheck) -> str:
    """What a gate check found; of a floor with its interval, and with both scores where they differ."""
    if check.seen is None:
        return numbers.NONE if check.required is not None else ""
    if is_chance(check):
        return numbers.p_value(check.seen)
    match check.name:
        case "max-cost":
            return numbers.budget(check.seen, check.required)
        case "max-p95-latency":
            return numbers.latency(check.seen, check.required)
    write = numbers.least if _is_limit(check) else numbers.score
    decisive = check.seen_if_undecided_failed
    interval = [numbers.interval(check.interval)] if check.interval and not _is_limit(check) else []
    if wanting(check):
        remarks = [", ".join([write(decisive, check.required), *interval]) + " if undecided counts as failed"]
    else:
        remarks = interval or ["rose"] * (_is_drop(check) and check.seen < 0)
    return " ".join([write(check.seen, check.required), *(f"({remark})" for remark in remarks)])


def is_chance(check: GateCheck) -> bool:
    """Whether the check holds a p against its limit: `regression`, unless it counts newly failing tests."""
    return check.name == "regression" and bool(check.required)


def wanting(check: GateCheck) -> bool:
    """Whether undecided verdicts make a difference to the check."""
    return check.seen_if_undecided_failed is not None and check.seen_if_undecided_failed != check.seen


def _is_limit(check: GateCheck) -> bool:
    return check.name == "regression" or check.name.startswith("max-")


def _is_drop(check: GateCheck) -> bool:
    return check.name == "max-drop" or check.name.startswith("max-drop ")
