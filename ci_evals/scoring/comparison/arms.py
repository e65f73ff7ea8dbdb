"""The agents of one run, each against the first."""

from collections.abc import Iterator

from ci_evals.domain.plan import BASE
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.comparison import Change
from ci_evals.domain.results.run import Results
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.history import adjusted


def compared_arms(results: Results) -> Iterator[Arm]:
    """Yield the arms of a run, each with its change against the first one.

    A base agent is left as it is: the comparison of the run is with that one.
    """
    if not results.arms or results.arms[1].name == BASE:
        yield from results.arms
        return
    first, *others = results.arms
    changes = [_change(results, arm.name) for arm in others]
    p_of_each = adjusted(
        [_two_sided(results, arm.name, change) for arm, change in zip(others, changes, strict=True)]
    )
    yield first
    for arm, change, p in zip(others, changes, p_of_each, strict=True):
        yield arm.model_copy(update={"change": change, "p_adjusted": p if change.tests else None})


def _change(results: Results, name: str) -> Change:
    arm = results.of_arm(name)
    return RunComparer(arm, results, "both-sides").overall_change() if arm else Change()


def _two_sided(results: Results, name: str, change: Change) -> float:
    """The chance of a change as large in either direction; 1 if there is nothing to compare."""
    arm = results.of_arm(name)
    if change.p is None or arm is None:
        return 1.0
    risen = RunComparer(results, arm, "both-sides").overall_change()
    return min(1.0, 2 * min(change.p, 1.0 if risen.p is None else risen.p))
