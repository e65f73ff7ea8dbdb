"""The agents that were played side by side; not yet sanitized."""

from ci_evals.domain.plan import BASE
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.run import Results
from ci_evals.scoring.statistics import ALPHA


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
