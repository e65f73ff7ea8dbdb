"""The options of `noise`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ci_evals.cli.settings.shared import AgentApiSettings, Run, SuiteSettings
from ci_evals.domain.options import Names
from ci_evals.extension_support.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class NoiseSettings(AgentApiSettings, SuiteSettings, JudgeSettings):
    """The options of `noise`."""

    results: Run
    suites: Annotated[
        list[str] | None,
        Names.SUITES,
        typer.Option(
            "--suite",
            metavar="SUITE",
            help="A suite of the run, if it has moved.\n\nGive the option once for each of the run's suites.",
        ),
    ] = None  # type: ignore[assignment]  # the run knows them
    tests: Annotated[int, typer.Option(min=2, max=1_000, help="Maximum number of tests to sample.")] = 10
    plays: Annotated[
        int, typer.Option(min=2, max=100, help="Repetitions of each test, for each source of noise.")
    ] = 3
    user_model: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(metavar="MODEL", help="Model of the simulated user. Default: the run's."),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="Maximum cost in US dollars.\n\n"
            "If the estimate from the run's own cost is higher, nothing is played.",
        ),
    ] = None
    parallel: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Concurrent conversations. Default: the run's."),
    ] = None  # type: ignore[assignment]  # an agent is asked no faster than in the run
