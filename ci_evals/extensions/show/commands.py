"""The command `show`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.show.settings import ShowSettings

_FACTS = CommandFacts(after="report")


@takes("ci_evals.extensions.show.settings", "ShowSettings", _FACTS)
def show(settings: "ShowSettings", context: RunContext) -> None:
    """Print saved conversations, with findings at their turns.

    \b
    ci-evals show --failed
    ci-evals show results --test="Refund after 30 days" --trial=2
    """
    from ci_evals.extensions.show.show import show as work

    work(settings, context)


COMMANDS = (show,)
