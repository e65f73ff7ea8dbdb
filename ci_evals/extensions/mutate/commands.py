"""The command `mutate`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.mutate.settings import MutateSettings


@takes("ci_evals.extensions.mutate.settings", "MutateSettings")
def mutate(settings: "MutateSettings", context: RunContext) -> None:
    """Find out what would turn the gate red.

    Plants faults of agents in the conversations of a run that passed, grades these again by strict checks,
    and lets the gate decide. Asks nobody, or with --judge the judge about what these checks do not notice.
    Writes what stays unnoticed, and checks that would notice it, next to the results: mutations.md,
    _mutations.json, suggestions.yaml.

    \b
    ci-evals mutate results/
    ci-evals mutate results/ --apply=evals/refunds.yaml
    ci-evals mutate results/ --judge --max-cost=1

    Exit codes: 0 done, 1 below --min-noticed, 2 wrong usage, 3 no fault could be planted.
    """
    from ci_evals.extensions.mutate.command import mutate_run

    mutate_run(settings, context)


COMMANDS = (mutate,)
