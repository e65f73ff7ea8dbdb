"""The options of `noise`."""

from dataclasses import dataclass
from typing import Annotated

from ci_evals.cli.settings.shared import AgentApiSettings, Run, SuiteSettings
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.extension_support.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class NoiseSettings(AgentApiSettings, SuiteSettings, JudgeSettings):
    """The options of `noise`."""

    results: Run
    suites: Annotated[
        list[str] | None,
        OptionSpec(
            "A suite of the run, if it has moved.\n\nGive the option once for each of the run's suites.",
            group=Group.SUITES,
            names=Names.SUITES,
            metavar="SUITE",
            flag="--suite",
        ),
    ] = None  # type: ignore[assignment]  # the run knows them
    tests: Annotated[int, OptionSpec("Maximum number of tests to sample.", minimum=2, maximum=1_000)] = 10
    plays: Annotated[
        int, OptionSpec("Repetitions of each test, for each source of noise.", minimum=2, maximum=100)
    ] = 3
    user_model: Annotated[
        str | None,
        OptionSpec(
            "Model of the simulated user. Default: the run's.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        OptionSpec(
            "Maximum cost in US dollars.\n\n"
            "If the estimate from the run's own cost is higher, nothing is played.",
            metavar="USD",
            minimum=0,
        ),
    ] = None
    parallel: Annotated[
        int | None,
        OptionSpec(
            "Concurrent conversations. Default: the run's.", group=Group.LIMITS, minimum=1, maximum=10_000
        ),
    ] = None  # type: ignore[assignment]  # an agent is asked no faster than in the run
