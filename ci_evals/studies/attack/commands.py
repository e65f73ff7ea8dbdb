"""The command `attack`."""

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.studies.attack.settings import AttackSettings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(attack)


@takes(AttackSettings)
def attack(settings: AttackSettings, context: RunContext) -> None:
    """Try to talk the judge round: put fake verdicts and instructions into replies that had failed.

    Tells the share of verdicts that become a pass, by kind of attack, beside that of the same verdicts judged
    again without any. Asks no agent. Kept in the results and their reports.

    \b
    ci-evals attack results/ --verdicts=20
    """
    from ci_evals.studies.attack.command import attack as work

    work(settings, context)
