"""The options of `validate` with `--probe`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.suite_commands import ValidateSettings
from ci_evals.domain.options import Names
from ci_evals.domain.providers import Provider


@dataclass(frozen=True)
class ProbeSettings(ValidateSettings):
    """The options of `validate`, with those of `--probe`."""

    probe: Annotated[
        Path | None,
        Names.SUBJECT,
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
        str | None, Names.TEXT, typer.Option(metavar="KEY", help="--probe: API key of the model provider.")
    ] = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(metavar="MODEL", help="--probe: judge model. Default: the run's."),
    ] = None
    probe_with: Annotated[
        int, typer.Option(min=3, max=100, help="--probe: maximum conversations for each criterion.")
    ] = 5
    parallel: Annotated[
        int, typer.Option(min=1, max=10_000, help="--probe: concurrent questions to the judge.")
    ] = 10
    quiet: Annotated[bool, typer.Option("--quiet", help="--probe: show no progress.")] = False
