"""The options of the commands that look into the judge and the simulated user of a saved run."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import LlmKey, LlmTimeout, Prices, Quiet, TrustSuites
from ci_evals.domain.options import Names
from ci_evals.domain.providers import Provider


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """The options for the judge. Defaults are those of the saved run."""

    provider: Annotated[Provider | None, typer.Option(help="Judge's provider. Default: the run's.")] = None
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(metavar="MODEL", help="Judge model. Default: the run's or the provider's."),
    ] = None
    judge_votes: Annotated[
        int | None,
        typer.Option(min=1, max=99, help="Votes on each criterion. Default: the run's."),
    ] = None
    judge_panel: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(metavar="MODEL,...", help="Models that vote in turn. Default: the run's."),
    ] = None
    llm_timeout: LlmTimeout = 120
    parallel: Annotated[int, typer.Option(min=1, max=10_000, help="Concurrent questions to the judge.")] = 10
    prices: Prices = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    seed: Annotated[int, typer.Option(help="Seed of the sample: the same seed, the same sample.")] = 0
    quiet: Quiet = False
