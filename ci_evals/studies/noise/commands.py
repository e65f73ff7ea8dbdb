"""The command `noise`."""

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.studies.noise.settings import NoiseSettings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(noise)


@takes(NoiseSettings)
def noise(settings: NoiseSettings, context: RunContext) -> None:
    """Find out where the noise of scores comes from: the agent, the simulated user or the judge.

    Judges a sample of the run again, plays it again with the user's words held, and plays it anew. Tells each
    one's share of the variance, and whether the next dollar belongs in loops, votes or tests. Kept in the
    results and their reports.

    \b
    ci-evals noise results/ --tests=10 --plays=3
    """
    from ci_evals.studies.noise.command import noise as work

    work(settings, context)
