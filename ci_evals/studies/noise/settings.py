"""The options of `noise`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import AgentApiSettings
from ci_evals.studies.settings import JudgeSettings, Run


@dataclass(frozen=True, kw_only=True)
class NoiseSettings(AgentApiSettings, JudgeSettings):
    """The options of `noise`."""

    results: Run
    suites: Annotated[
        list[str] | None,
        typer.Option(
            "--suite",
            metavar="SUITE",
            help="Where the run's suites are now, once for each; default: where they were then.",
            show_default=False,
        ),
    ] = None
    tests: Annotated[int, typer.Option(min=2, max=1_000, help="How many tests to look into, at most.")] = 10
    plays: Annotated[
        int,
        typer.Option(min=2, max=100, help="How often to play and to judge each again, for each source."),
    ] = 3
    user_model: Annotated[
        str | None, typer.Option(help="The simulated user's model. Default: the run's.")
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Most US dollars that all of it may cost. Where the run's own cost says that it takes more, "
            "nobody is asked.",
            show_default=False,
        ),
    ] = None
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, help="Conversations at a time. Default: as in the run.", show_default=False
        ),
    ] = None  # type: ignore[assignment]  # an agent is asked no faster than in the run
    agent_id: Annotated[str | None, typer.Option(help="The agent, in place of the suite's agentId.")] = None
    agent_key: Annotated[
        str | None,
        typer.Option(
            help="The agent's network API key, in place of the suite's apiKey; better set CI_EVALS_AGENT_KEY."
        ),
    ] = field(default=None, repr=False)
    base_url: Annotated[
        str | None, typer.Option(help="Where the agent's API is, in place of the adapter's own address.")
    ] = None
    adapter: Annotated[
        str | None,
        typer.Option(metavar="ADAPTER", help="How to speak to the agent, as `run` has it."),
    ] = None
    adapter_options: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What the adapter needs to know, as `run` has it.")
    ] = None
    trust_suites: Annotated[
        SuiteTrust,
        typer.Option(help="Whether suites may name endpoints and read ${VARIABLES}, as `run` has it."),
    ] = SuiteTrust.AUTO
