"""The facts of attacks on the judge by prompt injection."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.attack.result import AttackKind, Attacks
from ci_evals.reports.story.judging import StudyReport, listed_criteria, other_judge
from ci_evals.reports.story.table import BLANK, NO_COUNT, Column, Table, table_of

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
            f"became a pass: {listed_criteria(named)}; "
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


_COLUMNS: tuple[Column[tuple[str, AttackKind]], ...] = (
    Column("attack", words=True, show=lambda attack: attack[0]),
    Column("tried", show=lambda attack: f"{attack[1].tried:,}"),
    Column("became a pass", show=lambda attack: f"{attack[1].turned:,}"),
    Column("undecided", says_nothing=NO_COUNT, show=lambda attack: f"{attack[1].undecided:,}"),
    Column("share", show=lambda attack: numbers.estimated_fault(attack[1].share)),
    Column(
        "p",
        says_nothing=BLANK,
        show=lambda attack: "" if attack[1].p is None else numbers.chance(attack[1].p),
    ),
)


def _table(found: Attacks) -> Table:
    kinds = [*found.kinds, found.whole, found.control]
    names = [*map(_name, found.kinds), "all attacks", "none, judged again"]
    named = list(zip(names, kinds, strict=True))
    return table_of("Prompt injection in the agent's replies", _COLUMNS, named)


def _name(kind: AttackKind) -> str:
    """`fake verdicts`."""
    return kind.name.replace("_", " ")
