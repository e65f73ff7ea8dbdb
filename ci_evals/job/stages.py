"""The stages of a run: what is played until a look, and whether more follows."""

from dataclasses import dataclass, replace

from ci_evals.domain.choices import BothSides
from ci_evals.domain.plan import BASE, Plan
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import compares
from ci_evals.gate.decision import leaves_drop_possible, open_checks
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.job.job import Job
from ci_evals.reports.story.gate import near_threshold
from ci_evals.scoring.scores import deciding, uncounted_trials


@dataclass(frozen=True)
class Stage:
    """All that is played until the next look at a run, with what was played before."""

    plan: Plan
    because: tuple[str, ...] = ()
    """The reasons why more is played than before, in words."""


def first_stage(job: Job) -> Stage:
    """The stage that a run begins with.

    An earlier attempt that played the base agent had reason to: its trials are compared, not screened again.
    """
    both_sides = BothSides.ALWAYS if job.pool and job.pool.of_other_arms else job.both_sides
    return Stage(first_plan(job.plan, both_sides, compares=job.baseline.results is not None))


def first_plan(plan: Plan, both_sides: BothSides, *, compares: bool) -> Plan:
    """The part of a plan that is played first; `compares` is true if earlier runs are compared with."""
    screened = BASE in plan.arms and both_sides is not BothSides.ALWAYS and compares
    loops = plan.looks[0] if plan.looks else plan.loops
    return replace(plan, loops=loops, first_arm_only=screened)


def next_stage(stage: Stage, results: Results) -> Stage | None:
    """The stage that follows one; None if its results are those of the run."""
    plan, gate = stage.plan, results.gate
    if plan.first_arm_only and (why := _drop_reasons(results)):
        return Stage(replace(plan, first_arm_only=False), why)
    unsettled = [check for check in open_checks(gate) if not (plan.first_arm_only and compares(check))]
    following = next((look for look in plan.looks if look > plan.loops), None)
    if not unsettled or following is None:
        return None
    return Stage(
        replace(plan, loops=following), tuple(f"{check.name} is not decided yet" for check in unsettled)
    )


def _drop_reasons(results: Results) -> tuple[str, ...]:
    """The reasons to play the base agent, after earlier runs were compared with this one."""
    gate = results.gate
    unchecked = sum(check.blocks_verdict for check in gate.checks)
    fails_anyway = any(
        check.passed is False and check.settled and not compares(check) for check in gate.checks
    )
    if fails_anyway or len(gate.reasons) > unchecked:
        return ()
    if uncounted := sum(map(uncounted_trials, deciding(results.tests))):
        return (f"trials without a score: {uncounted}",)
    if checks := [check for check in gate.checks if leaves_drop_possible(check)]:
        return tuple(
            f"{check.name}: {check.note}" if check.passed is None else near_threshold(check)
            for check in checks
        )
    comparison = results.comparison
    if comparison and comparison.history and comparison.history.p_of_trials <= CLOSE:
        return (f"the score looks lower than in the last {comparison.history.together} runs",)
    if not any(map(compares, gate.checks)) and comparison and (comparison.p is None or comparison.p <= CLOSE):
        return ("the score looks lower than in the baseline",)
    return ()
