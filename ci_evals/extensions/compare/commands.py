"""The command `compare`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.compare.settings import CompareSettings

_FACTS = CommandFacts(after="show")


@takes("ci_evals.extensions.compare.settings", "CompareSettings", _FACTS)
def compare(settings: "CompareSettings", context: RunContext) -> None:
    """Compare two runs test by test: is a change more than noise?

    Exits with 1 if the score dropped more than --max-drop or --regression allows, and with 3 if one of
    them is set but the run has no verdict. Otherwise with 0, even if the runs cannot be
    compared, which it says.

    \b
    ci-evals compare results/ baseline/_results.json --regression=significant
    """
    from ci_evals.extensions.compare.compare import compare as work

    work(settings, context)


COMMANDS = (compare,)
