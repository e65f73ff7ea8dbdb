"""The options of the commands that look into the judge and the simulated user of a saved run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import Provider
from ci_evals.cli.settings.shared import LlmKey, LlmTimeout, Prices, Quiet

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="The run: its _results.json, or the folder of it.", show_default=False
    ),
]


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """The options for the judge. Defaults are those of the saved run."""

    provider: Annotated[
        Provider | None, typer.Option(help="The LLM that judges. Default: the run's.", show_default=False)
    ] = None
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None, typer.Option(help="The judge's model. Default: the run's, else the provider's default.")
    ] = None
    judge_votes: Annotated[
        int | None,
        typer.Option(min=1, max=99, help="Votes on each criterion. Default: the run's.", show_default=False),
    ] = None
    judge_panel: Annotated[
        str | None, typer.Option(metavar="MODEL,...", help="Models that vote in turn. Default: the run's.")
    ] = None
    llm_timeout: LlmTimeout = 120
    parallel: Annotated[int, typer.Option(min=1, max=10_000, help="Judgements at a time.")] = 10
    prices: Prices = None
    seed: Annotated[int, typer.Option(help="What samples are drawn by: the same seed, the same sample.")] = 0
    quiet: Quiet = False
