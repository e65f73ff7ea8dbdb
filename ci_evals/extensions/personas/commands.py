"""The command `personas`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.personas.settings import PersonasSettings


@takes("ci_evals.extensions.personas.settings", "PersonasSettings", CommandFacts(after="import"))
def personas(settings: "PersonasSettings", context: RunContext) -> None:
    """Translate the fixed lines of suites into their languages.

    Writes the lock file of each suite that has `languages`: SUITE.lock.yaml next to it, for review. Only
    lines without a translation are translated; corrections by hand stay.

    \b
    ci-evals personas translate evals/shop.yaml
    """
    from ci_evals.extensions.personas.translating import translate_suites

    translate_suites(settings, context)


COMMANDS = (personas,)
