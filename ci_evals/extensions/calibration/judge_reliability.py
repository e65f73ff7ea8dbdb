"""The decision whether a judge may gate, by people's labels; docs/judge-statistics.md explains the bounds."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.calibration.result import Counted, Rater

LABELS = 30
OF_EACH = 10
"""Labels, and of what people pass and of what they fail, that it takes to say whether a judge may gate."""
RIGHT = 0.8
"""The least sensitivity and specificity of a judge that may gate."""
KAPPA, KAPPA_LOW = 0.6, 0.4
"""The least kappa, and lower end of its interval: substantial, and moderate (Landis and Koch, 1977)."""
PEOPLE = 0.667
"""The least alpha of labels from which one may draw conclusions (Krippendorff, 2004)."""


class Reliability(NamedTuple):
    """The fields of a `Rater` that say whether its judge may gate."""

    may_gate: bool | None
    why: str
    missing: int = 0


def may_gate(found: Rater) -> Reliability:
    """Return whether the judge may gate, and why, by the other fields of a `Rater`."""
    if lacking := _lacking(found, found.counted):
        missing, why = lacking
        return Reliability(None, why, missing)
    faults = [*_below(found)]
    kappa, sensitivity, specificity = found.kappa, found.sensitivity, found.specificity
    if faults or not (kappa and sensitivity and specificity):
        return Reliability(may_gate=False, why="; ".join(faults) or "kappa is not known")
    why = (
        f"kappa is {_ranged(kappa)}, sensitivity {_cut(sensitivity.value)}, "
        f"specificity {_cut(specificity.value)}"
    )
    return Reliability(may_gate=True, why=why)


def _lacking(found: Rater, counted: Counted | None) -> tuple[int, str] | None:
    """The least number of missing labels, and in words; None if there are enough."""
    if not counted:
        return LABELS, f"too few labels to say: none yet, and it takes {LABELS}"
    passed = counted.passes_passed + counted.fails_passed
    failed = counted.passes_failed + counted.fails_failed
    more = max(0, LABELS - passed - failed)
    by_kind = max(0, OF_EACH - passed) + max(0, OF_EACH - failed)
    unknown = found.accuracy is None
    if not (more or by_kind or unknown):
        return None
    side = "passes" if counted.passes and not counted.passes_passed + counted.passes_failed else "fails"
    words = [
        f"{passed + failed} of {LABELS}" if more else "",
        f"{passed} of {OF_EACH} that people pass" if passed < OF_EACH else "",
        f"{failed} of {OF_EACH} that people fail" if failed < OF_EACH else "",
        f"none of the judge's {side}" if unknown else "",
    ]
    missing = max(more, by_kind, int(unknown))
    said = ", ".join(word for word in words if word)
    return missing, f"too few labels to say: {said}; it takes {missing} more at least"


def _below(found: Rater) -> Iterable[str]:
    """The reasons against the judge, or against the labels."""
    if found.people and found.people.value < PEOPLE:
        yield f"the people agree too little with each other, alpha is {_ranged(found.people)}, below {PEOPLE}"
    if (kappa := found.kappa) and (kappa.value < KAPPA or (kappa.low or 0) < KAPPA_LOW):
        below = f"below {KAPPA}" if kappa.value < KAPPA else f"which may be below {KAPPA_LOW}"
        yield f"kappa is {_ranged(kappa)}, {below}"
    for name, rate in (("sensitivity", found.sensitivity), ("specificity", found.specificity)):
        if rate and rate.value < RIGHT:
            yield f"{name} is {_cut(rate.value)}, below {RIGHT}"


def _ranged(number: Estimate) -> str:
    if number.low is None or number.high is None:
        return _cut(number.value)
    return f"{_cut(number.value)} ({_cut(number.low)} to {_cut(number.high)})"


def _cut(number: float) -> str:
    """Two decimals, never rounded up: what is shown reaches no bound that was missed."""
    return f"{math.floor(number * 100 + 1e-9) / 100:.2f}"
