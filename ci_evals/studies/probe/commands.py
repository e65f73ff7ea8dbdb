"""The command `validate`, with `--probe`."""

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.studies.probe.settings import ProbeSettings


def register(app: typer.Typer) -> None:
    """Let `validate` take the options of this study too."""
    app.command()(validate)


@takes(ProbeSettings)
def validate(settings: ProbeSettings, context: RunContext) -> None:
    """Check suites: every problem with file, line and column; exit 2 if there is any.

    With --strict also what makes a suite weak though it runs, as warnings: no strict check, a criterion that
    asks two things, only happy paths, a test that no tag reaches, guidelines that give the answer away.
    With --probe=RESULTS a judge is asked which criteria pass before conversations of other tests too.
    """
    from ci_evals.cli.commands.validate import validate as work

    suites = work(settings, context)
    if settings.probe:
        from ci_evals.studies.probe.command import probe_suites

        probe_suites(settings, settings.probe, suites, context)
