"""The command `validate` with `--probe`, and its options."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.cli.settings.suite_commands import ValidateSettings
from ci_evals.domain.choices import Provider
from ci_evals.studies.settings import JudgeSettings


@dataclass(frozen=True)
class ProbeSettings(ValidateSettings):
    """The options of `validate`, with those of `--probe`."""

    probe: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULTS",
            help="Find criteria that pass in conversations of other tests.\n\n"
            "The judge checks each judged criterion against conversations of other tests in this run. One "
            "that passes there too measures nothing, and is named.",
        ),
    ] = None
    provider: Annotated[
        Provider | None, typer.Option(help="--probe: judge's provider. Default: the run's.")
    ] = None
    llm_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="--probe: API key of the model provider.")
    ] = field(default=None, repr=False)
    judge_model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="--probe: judge model. Default: the run's.")
    ] = None
    probe_with: Annotated[
        int, typer.Option(min=3, max=100, help="--probe: maximum conversations for each criterion.")
    ] = 5
    parallel: Annotated[
        int, typer.Option(min=1, max=10_000, help="--probe: concurrent questions to the judge.")
    ] = 10
    quiet: Annotated[bool, typer.Option("--quiet", help="--probe: show no progress.")] = False


@takes(ProbeSettings)
def validate(settings: ProbeSettings, context: RunContext) -> None:
    """Check suites: every problem with file, line and column.

    Exits with 2 if there is a problem. With --strict it also warns about weak suites: no strict check, a
    criterion that asks two things, only happy paths, a test without tags, guidelines that give the answer
    away. With --probe=RESULTS a judge finds criteria that pass in conversations of other tests too.
    """
    from ci_evals.cli.commands.validate import validate as read_suites

    suites = read_suites(settings, context)
    if settings.probe:
        from ci_evals.studies.probe.study import probe_suites

        judge = JudgeSettings(
            provider=settings.provider,
            llm_key=settings.llm_key,
            judge_model=settings.judge_model,
            parallel=settings.parallel,
            quiet=settings.quiet,
        )
        probe_suites(suites, settings.probe, settings.probe_with, judge, context)


COMMANDS = (validate,)
