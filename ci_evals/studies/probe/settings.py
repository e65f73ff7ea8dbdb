"""The options of `validate --probe`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import Provider
from ci_evals.cli.settings.suite_commands import ValidateSettings


@dataclass(frozen=True)
class ProbeSettings(ValidateSettings):
    """The options of `validate`, with those of `--probe`."""

    probe: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULTS",
            help="Let the judge hold each judged criterion against conversations of other tests in this run: "
            "one that passes there too measures nothing, and is named.",
        ),
    ] = None
    provider: Annotated[
        Provider | None, typer.Option(help="--probe: the LLM that judges. Default: the run's.")
    ] = None
    llm_key: Annotated[
        str | None,
        typer.Option(help="--probe: its key; better set LLM_API_KEY or the provider's own variable."),
    ] = field(default=None, repr=False)
    judge_model: Annotated[
        str | None, typer.Option(help="--probe: the judge's model. Default: the run's.")
    ] = None
    probe_with: Annotated[
        int,
        typer.Option(
            min=3, max=100, help="--probe: conversations of other tests for each criterion, at most."
        ),
    ] = 5
    parallel: Annotated[int, typer.Option(min=1, max=10_000, help="--probe: judgements at a time.")] = 10
    quiet: Annotated[bool, typer.Option("--quiet", help="--probe: no progress, only the results.")] = False
