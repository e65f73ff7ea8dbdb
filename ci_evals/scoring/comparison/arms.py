"""The agents of one run, each against the first."""

from collections.abc import Iterator
from dataclasses import replace

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
    reference = results.of_arm(first.name) or results
    runs = [results.of_arm(arm.name) or results for arm in others]
    changes = [RunComparer(run, reference, "both-sides").overall_change() for run in runs]
    p_of_each = [_two_sided(run, reference, change) for run, change in zip(runs, changes, strict=True)]
    yield first
    for arm, change, p, p_adjusted in zip(others, changes, p_of_each, adjusted(p_of_each), strict=True):
        changed = replace(arm, delta=change.delta, delta_interval=change.interval)
        yield replace(changed, p=p, p_adjusted=p_adjusted) if change.tests else changed


def _two_sided(run: Results, reference: Results, change: Change) -> float:
    """The chance of a change as large in either direction; 1 if there is nothing to compare."""
    if change.p is None:
        return 1.0
    risen = RunComparer(reference, run, "both-sides").overall_change()
    return min(1.0, 2 * min(change.p, 1.0 if risen.p is None else risen.p))
