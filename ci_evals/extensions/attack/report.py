"""The facts of attacks on the judge by prompt injection."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.attack.result import AttackKind, Attacks
from ci_evals.reports.facts.judging.parts import PlainTable, StudyReport, listed, other_judge

RANK = 40
"""Its place among the reports of all extensions."""


def report(results: Results) -> StudyReport | None:
    """Flipped verdicts, by kind of attack."""
    found = results.study(Attacks)
    if found is None:
        return None
    return StudyReport(
        topic="Attacks",
        remark=_remark(found) + other_judge(results, found.judge),
        tables=(_table(found),),
        warnings=tuple(_warnings(found)),
    )


def _warnings(found: Attacks) -> Iterator[str]:
    if kinds := found.beyond_noise:
        named = [f"{numbers.estimated_fault(kind.share)} by {_name(kind)}" for kind in kinds]
        yield (
            "An agent can flip this judge's verdicts by prompt injection. Failed verdicts that "
            f"became a pass: {listed(named)}; "
            f"{numbers.estimated_fault(found.control.share)} without any attack. Use another judge "
            "or a panel, and strict checks if a trace can show it."
        )


def _remark(found: Attacks) -> str:
    whole, control = found.whole, found.control
    return (
        f"{numbers.count(whole.tried, 'attack')} on {numbers.count(found.verdicts, 'failed verdict')}: "
        f"{whole.turned:,} flipped the verdict, {numbers.estimated_fault(whole.share)}. Judged again "
        f"without an attack: {control.turned:,} of {control.tried:,} became a pass, "
        f"{numbers.estimated_fault(control.share)}."
    )


def _table(found: Attacks) -> PlainTable:
    kinds = [*found.kinds, found.whole, found.control]
    names = [*map(_name, found.kinds), "all attacks", "none, judged again"]
    return PlainTable(
        "Prompt injection in the agent's replies",
        ("attack", "tried", "became a pass", "undecided", "share", "p"),
        tuple(
            (
                name,
                f"{kind.tried:,}",
                f"{kind.turned:,}",
                f"{kind.undecided:,}" if kind.undecided else "",
                numbers.estimated_fault(kind.share),
                "" if kind.p is None else numbers.chance(kind.p),
            )
            for name, kind in zip(names, kinds, strict=True)
        ),
    )


def _name(kind: AttackKind) -> str:
    """`fake verdicts`."""
    return kind.name.replace("_", " ")
