"""A judge held against people: how often it is right, and what a pass rate is worth that it gave.

People label a sample in which the judge's fails, which are rare, are as many as its passes. So whatever is
told of the run is weighted back: what people say of the judge's passes counts as much as the judge passes,
and of its fails likewise. docs/judge-statistics.md has the formulas and where they are from.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.calibration.items import Kind
from ci_evals.extensions.calibration.judge_reliability import may_gate
from ci_evals.extensions.calibration.labeled_verdicts import (
    DRAWS,
    UNSEEN,
    LabeledVerdict,
    LabelSource,
    RaterAgreement,
    estimate,
)
from ci_evals.extensions.calibration.result import Counted, Rater
from ci_evals.scoring.agreement.beyond_chance import AgreementTable, Number


@dataclass(frozen=True)
class LabeledGroup:
    """The labeled verdicts of all the run, of a criterion or of a category."""

    name: str
    kind: Kind
    labeled: Sequence[LabeledVerdict]
    passes: int
    """Passing verdicts of the judge that labels were drawn from."""
    fails: int
    pass_rate: float | None
    """Share of all verdicts of the run."""


def rater(group: LabeledGroup, *, seed: int = 0, draws: int = DRAWS) -> Rater:
    """Compare the judge with people. The same labels give the same numbers, in any order."""
    labeled = [one for one in group.labeled if one.is_labeled]
    decided = [one for one in labeled if one.by_people is not None]
    counted = _counted(decided, group)
    source = LabelSource(f"{seed} {group.kind} {group.name}", draws)
    rates = _rates(counted, source)
    agreement = RaterAgreement(labeled, counted, source) if counted else None
    compared = Rater(
        name=group.name,
        kind=group.kind,
        items=len(decided),
        counted=counted,
        accuracy=rates.get("accuracy"),
        sensitivity=rates.get("sensitivity"),
        specificity=rates.get("specificity"),
        kappa=rates.get("kappa"),
        alpha=agreement.with_judge() if agreement else None,
        people=agreement.of_people() if agreement else None,
        people_kappa=agreement.of_two_people() if agreement else None,
        pass_rate=group.pass_rate,
        corrected=corrected(counted, group.pass_rate, own=True, seed=seed, draws=draws),
        why="",
    )
    reliability = may_gate(compared)
    return replace(
        compared,
        may_gate=reliability.may_gate,
        missing=reliability.missing,
        why=reliability.why,
    )


def corrected(
    counted: Counted | None, pass_rate: float | None, *, own: bool, seed: int = 0, draws: int = DRAWS
) -> Estimate | None:
    """The pass rate freed from the judge's errors (Rogan and Gladen, 1978), 0 to 1.

    The interval is that of the judge's errors alone, not that of the run's noise.

    Args:
        counted: What judge and people said.
        pass_rate: Of the verdicts of a run, as the judge has it.
        own: Whether it is the run that people labeled: how much the judge passes in it is known.
        seed: What the interval is drawn by.
        draws: How often.

    Returns:
        None if the judge's errors are not known, or it is no better than chance.
    """
    joint = _joint(counted) if counted else None
    if not counted or not joint or pass_rate is None:
        return None
    rate = _freed(joint, Fraction(pass_rate))
    if rate is None:
        return None
    source = LabelSource(f"{seed} corrected", draws)
    drawn = [_freed(table, pass_rate) for table in _drawn(counted, source, fixed=own)]
    # Where the errors that were drawn leave no better judge than chance, nothing is known of the rate.
    lows = [0.0 if one is None else one for one in drawn]
    highs = [1.0 if one is None else one for one in drawn]
    labels = counted.passes_passed + counted.passes_failed + counted.fails_passed + counted.fails_failed
    return estimate(float(rate), lows, labels, highs)


def _counted(decided: Sequence[LabeledVerdict], group: LabeledGroup) -> Counted | None:
    """The table of what judge and people said; None if nothing was labeled."""
    if not decided:
        return None
    table = Counter((one.passed, one.by_people) for one in decided)
    passes, fails = (sum(table[passed, other] for other in (True, False)) for passed in (True, False))
    return Counted(
        passes_passed=table[True, True],
        passes_failed=table[True, False],
        fails_passed=table[False, True],
        fails_failed=table[False, False],
        passes=max(passes, group.passes),
        fails=max(fails, group.fails),
        design=_design(decided),
    )


def _design(decided: Sequence[LabeledVerdict]) -> float:
    """The design effect (Rao and Scott, 1992): labels of one conversation make errors wider."""
    clustered = plain = Fraction(0)
    for passed in (True, False):
        part = [one for one in decided if one.passed is passed]
        if not part:
            continue
        share = Fraction(sum(bool(one.by_people) for one in part), len(part))
        sums: dict[str, Fraction] = {}
        for one in part:
            sums[one.conversation] = sums.get(one.conversation, Fraction(0)) + bool(one.by_people) - share
        if len(sums) < 2:
            continue
        squares = sum((total**2 for total in sums.values()), Fraction(0))
        clustered += Fraction(len(sums), len(sums) - 1) * squares / len(part) ** 2
        plain += share * (1 - share) / len(part)
    return min(1_000.0, max(1.0, float(clustered / plain))) if plain else 1.0


def _joint(counted: Counted) -> AgreementTable[Fraction] | None:
    """The verdicts of judge (first) and people (second) as shares of all; None if unknown."""
    passes, fails = counted.passes_passed + counted.passes_failed, counted.fails_passed + counted.fails_failed
    total = counted.passes + counted.fails
    if not total or (counted.passes and not passes) or (counted.fails and not fails):
        return None
    share = Fraction(counted.passes, total)
    right = Fraction(counted.passes_passed, passes) if passes else Fraction(0)
    wrong = Fraction(counted.fails_passed, fails) if fails else Fraction(0)
    return AgreementTable(share * right, share * (1 - right), (1 - share) * wrong, (1 - share) * (1 - wrong))


def _drawn(counted: Counted, source: LabelSource, *, fixed: bool = False) -> Iterable[AgreementTable[float]]:
    """Draw possible true tables: shares as likely as the labels make them.

    With `fixed` the judge's own passes and fails are as they were counted.
    """
    rng, design = source.rng("table"), counted.design

    def share(yes: float, no: float) -> float:
        return rng.betavariate(yes + UNSEEN, no + UNSEEN)

    known = counted.passes / max(1, counted.passes + counted.fails)
    for _ in range(source.draws):
        passes = known if fixed else share(counted.passes, counted.fails)
        right = share(counted.passes_passed / design, counted.passes_failed / design)
        wrong = share(counted.fails_passed / design, counted.fails_failed / design)
        yield AgreementTable(
            passes * right, passes * (1 - right), (1 - passes) * wrong, (1 - passes) * (1 - wrong)
        )


def _freed(table: AgreementTable[Number], rate: Number) -> Number | None:
    """The true pass rate for an observed one; None if the judge is no better than chance."""
    sensitivity, specificity = table.sensitivity(), table.specificity()
    if sensitivity is None or specificity is None or sensitivity + specificity <= 1:
        return None
    found = (rate + specificity - 1) / (sensitivity + specificity - 1)
    return min(max(found, 0 * rate), 0 * rate + 1)


def _rates(counted: Counted | None, source: LabelSource) -> dict[str, Estimate]:
    """Accuracy, sensitivity, specificity and kappa, as far as they are known."""
    joint = _joint(counted) if counted else None
    if not counted or not joint:
        return {}
    of_passes = counted.passes_passed + counted.fails_passed
    of_fails = counted.passes_failed + counted.fails_failed
    drawn = list(_drawn(counted, source))
    rates: dict[str, tuple[Callable[[AgreementTable[Any]], Any], int]] = {
        "accuracy": (lambda table: table.agreed, of_passes + of_fails),
        "sensitivity": (AgreementTable.sensitivity, of_passes),
        "specificity": (AgreementTable.specificity, of_fails),
        "kappa": (AgreementTable.kappa, of_passes + of_fails),
    }
    return {
        name: estimate(float(value), map(rate, drawn), labels)
        for name, (rate, labels) in rates.items()
        if (value := rate(joint)) is not None
    }
