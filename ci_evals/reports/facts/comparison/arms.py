"""The agents that were played side by side, as a table; not yet sanitized."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.plan import BASE
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.run import Results
from ci_evals.reports.facts.judging.parts import PlainTable
from ci_evals.scoring.statistics import ALPHA


def tables(results: Results) -> Iterator[PlainTable]:
    """The table of the agents, if there were several; of `--against` the comparison says all."""
    if not (compared := others(results)):
        return
    first = results.arms[0]
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
        rows=(_row(first, ""), *(_row(arm, "not compared") for arm in compared)),
        bad=(False, *map(is_worse, compared)),
    )


def others(results: Results) -> tuple[Arm, ...]:
    """The agents that were compared with the first one."""
    found = results.arms[1:]
    return () if found and found[0].name == BASE else found


def base_agent(results: Results) -> str:
    """The agent that a run compares with, if it played that one too, in a sentence."""
    return f"“{results.arms[0].name}”" if others(results) else "the base agent"


def is_worse(arm: Arm) -> bool:
    """Return whether an agent scores lower than the first one, by more than chance explains."""
    return (arm.delta or 0) < 0 and arm.p_adjusted is not None and arm.p_adjusted <= ALPHA


def _row(arm: Arm, no_change: str) -> tuple[str, ...]:
    return (
        arm.name,
        numbers.score(arm.score),
        numbers.interval(arm.interval) if arm.interval else "",
        no_change if arm.delta is None else numbers.signed(arm.delta),
        numbers.change_interval(arm.delta_interval) if arm.delta_interval else "",
        numbers.chance(arm.p_adjusted) if arm.p_adjusted is not None else "",
        numbers.money(arm.usage.cost_usd) if arm.usage.cost_usd else "",
        numbers.duration(arm.latency.median) if arm.latency.median is not None else "",
    )
