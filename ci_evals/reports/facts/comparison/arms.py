"""The agents that were played side by side, as a table; not yet sanitized."""

from collections.abc import Iterator

from ci_evals.domain.plan import BASE
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.judging.parts import PlainTable
from ci_evals.scoring.statistics import ALPHA


def tables(results: Results) -> Iterator[PlainTable]:
    """The table of the agents, if there were several; of `--against` the comparison says all."""
    if len(results.arms) < 2 or results.arms[1].name == BASE:
        return
    first, *others = results.arms
    yield PlainTable(
        title="Agents",
        headers=(
            "agent",
            "score",
            "95 % interval",
            f"change from {first.name}",
            "95 % interval of it",
            "p",
            "cost",
            "median reply",
        ),
        rows=tuple(_row(arm) for arm in results.arms),
        bad=(False, *(is_worse(arm) for arm in others)),
    )


def is_worse(arm: Arm) -> bool:
    """Return whether an agent scores lower than the first one, by more than chance explains."""
    fell = arm.change is not None and (arm.change.delta or 0) < 0
    return fell and arm.p_adjusted is not None and arm.p_adjusted <= ALPHA


def _row(arm: Arm) -> tuple[str, ...]:
    change = arm.change
    known = change is not None and change.delta is not None
    return (
        arm.name,
        numbers.score(arm.score),
        numbers.interval(arm.interval) if arm.interval else "",
        numbers.signed(change.delta) if change and known else "" if change is None else "not compared",
        numbers.change_interval(change.interval) if change and change.interval else "",
        numbers.chance(arm.p_adjusted) if arm.p_adjusted is not None else "",
        numbers.money(arm.usage.cost_usd) if arm.usage.cost_usd else "",
        numbers.duration(arm.latency.median) if arm.latency.median is not None else "",
    )
