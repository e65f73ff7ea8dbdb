"""The command `prefer`."""

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.studies.preference.settings import PreferSettings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(prefer)


@takes(PreferSettings)
def prefer(settings: PreferSettings, context: RunContext) -> None:
    """Let a judge say which of two runs' conversations are better, test by test. Asks no agent.

    Each pair is shown twice, with places swapped; an answer that follows the place is a tie. Tells wins,
    losses and ties with an interval, and how far the place sways the judge. Kept in A's results and reports.

    \b
    ci-evals prefer results/ main/
    """
    from ci_evals.studies.preference.command import prefer as work

    work(settings, context)
