"""Agents that were played side by side: their names, and the table that compares them."""

from collections.abc import Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.plan import BASE
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.run import Results
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.table import BLANK, Column, Table, table_of
from ci_evals.scoring.statistics import ALPHA

_SAME = 1e-6
"""Points: what differs by less is equal, but for the arithmetic."""


def other_arms(results: Results) -> tuple[Arm, ...]:
    """The agents that were compared with the first one."""
    others = results.arms[1:]
    return () if others and others[0].name == BASE else others


def base_agent(results: Results) -> str:
    """The agent that a run compares with, if it played that one too, in a sentence."""
    return f"“{results.arms[0].name}”" if other_arms(results) else "the base agent"


def gated_arm(results: Results) -> str:
    """The name of the agent that the gate is about; empty if only one was played."""
    return next((arm.name for arm in results.arms if arm.gated), "")


def number(results: Results) -> int:
    """The number of agents that such a run plays, with a base agent even if it was spared in this one."""
    return max(len(results.arms), 2 if results.run.config.get("against") is True else 1)


def table(results: Results) -> Table | None:
    """The agents, if there were several; of a base agent the comparison says all."""
    compared = other_arms(results)
    if not compared:
        return None
    first = results.arms[0]
    corrected = ", corrected" if len(compared) > 1 else ""
    columns: tuple[Column[Arm], ...] = (
        Column("agent", words=True, show=_arm_name),
        Column("score", show=lambda arm: numbers.score(arm.score)),
        Column("95 % interval", unbroken=True, says_nothing=BLANK, show=_arm_interval),
        Column(
            f"change from “{first.name}”",
            says_nothing=BLANK,
            show=lambda arm: "" if arm is first else _arm_change(arm, first),
        ),
        Column("95 % interval of the change", unbroken=True, says_nothing=BLANK, show=_arm_change_interval),
        Column(
            f"p (two-sided{corrected})",
            says_nothing=BLANK,
            show=lambda arm: "" if arm.p_adjusted is None else numbers.chance(arm.p_adjusted),
        ),
        Column(
            "cost",
            says_nothing=BLANK,
            show=lambda arm: numbers.money(arm.usage.cost_usd) if arm.usage.cost_usd else "",
        ),
        Column(
            "median reply",
            says_nothing=BLANK,
            show=lambda arm: "" if arm.latency.median is None else numbers.duration(arm.latency.median),
        ),
    )
    return table_of(
        "Agents",
        columns,
        (first, *compared),
        tone=lambda arm: Tone.BAD if arm is not first and _is_worse(arm) else None,
        remark=" ".join(_of_agents(first, compared)),
    )


def _of_agents(first: Arm, compared: Sequence[Arm]) -> Iterator[str]:
    """Yield which agent decides, what the others show, and what their p is."""
    for arm in (first, *compared):
        if arm.gated:
            beside = "" if arm is first else f", compared with “{first.name}”, played in the same run"
            yield f"“{arm.name}” decides this check{beside}."
    for arm in compared:
        if not arm.gated:
            yield f"“{arm.name}” does not count for this check: {_shown_change(arm, first)}."
    many = f" and is corrected for {len(compared)} comparisons" if len(compared) > 1 else ""
    yield f"p counts changes in both directions here{many}; the check's own p is that of a drop alone."


def _shown_change(arm: Arm, first: Arm) -> str:
    if arm.p_adjusted is None:
        return f"not compared with “{first.name}”"
    if arm.p_adjusted > ALPHA:
        return f"no change from “{first.name}” is proven"
    direction = "lower" if (arm.delta or 0) < 0 else "higher"
    return f"it scores {direction} than “{first.name}”, which is proven"


def _arm_name(arm: Arm) -> str:
    return f"{arm.name} (decides this check)" if arm.gated else arm.name


def _arm_interval(arm: Arm) -> str:
    return numbers.interval(arm.interval) if arm.interval else ""


def _arm_change(arm: Arm, first: Arm) -> str:
    """The change: of scores that stand beside it their difference, as far as these are all."""
    if arm.delta is None or arm.score is None or first.score is None:
        return "not compared"
    if abs(arm.score - first.score - arm.delta) < _SAME:
        return numbers.changed(first.score, arm.score)
    return numbers.signed(arm.delta)


def _arm_change_interval(arm: Arm) -> str:
    return numbers.change_interval(arm.delta_interval) if arm.delta_interval else ""


def _is_worse(arm: Arm) -> bool:
    """Return whether an agent scores lower than the first one, by more than chance explains."""
    return (arm.delta or 0) < 0 and arm.p_adjusted is not None and arm.p_adjusted <= ALPHA
