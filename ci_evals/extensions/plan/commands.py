"""The command `plan`."""

import gc
from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.cli.settings.plan_settings import PlanSettings

_FACTS = CommandFacts(after="validate", is_supervised=False)


@takes("ci_evals.cli.settings.plan_settings", "PlanSettings", _FACTS)
def plan(settings: "PlanSettings", context: RunContext) -> None:
    """Show what would run, and estimate tokens, cost and duration.

    Calls nothing and needs no key. Prices come from the bundled table, or from your own file alone.
    """
    gc.disable()  # as a run does; there is no garbage
    from ci_evals.extensions.plan.plan import plan as work

    work(settings, context)


COMMANDS = (plan,)
