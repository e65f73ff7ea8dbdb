"""The command `odds`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.odds.settings import OddsSettings

_FACTS = CommandFacts(after="comment")


@takes("ci_evals.extensions.odds.settings", "OddsSettings", _FACTS)
def odds(settings: "OddsSettings", context: RunContext) -> None:
    """Estimate how often an unchanged agent would fail the gate.

    Computed from the noise of a saved run. Uses the run's own gate, changed by these options, and proposes
    the highest --min-score that an unchanged agent misses in fewer than 5 % of runs.
    """
    from ci_evals.extensions.odds.odds import odds as work

    work(settings, context)


COMMANDS = (odds,)
