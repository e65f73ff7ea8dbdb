"""The options of the commands that look into the judge and the simulated user of a saved run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import Provider, Trust
from ci_evals.cli.settings.suite_commands import LlmTimeout, WireSettings

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="The run: its _results.json, or the folder of it.", show_default=False
    ),
]


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """Who judges. What is not said is as in the run that is looked into."""

    provider: Annotated[
        Provider | None, typer.Option(help="The LLM that judges. Default: the run's.", show_default=False)
    ] = None
    llm_key: Annotated[
        str | None,
        typer.Option(help="Key of the LLM; better set LLM_API_KEY or the provider's own variable."),
    ] = field(default=None, repr=False)
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
    prices: Annotated[
        Path | None,
        typer.Option(help="A YAML or JSON file of prices, in place of the bundled table."),
    ] = None
    seed: Annotated[int, typer.Option(help="What samples are drawn by: the same seed, the same sample.")] = 0
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the results.")] = False


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """What `label` depends on."""

    results: Run
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the sheet (sheet.csv) and its page (sheet.html).")
    ] = Path("labels")
    items: Annotated[int, typer.Option(min=1, max=10_000, help="How many verdicts to label, at most.")] = 100
    seed: Annotated[
        int, typer.Option(help="What the sample and its order are drawn by: the same seed, the same sheet.")
    ] = 0


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """What `calibrate` depends on."""

    labels: Annotated[
        list[Path],
        typer.Argument(metavar="LABELS", help="Filled sheets, one of each person.", show_default=False),
    ]
    results: Annotated[
        Path,
        typer.Option(metavar="RESULTS", help="The run whose verdicts they are held against."),
    ] = Path("results")
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to keep what was found, for `run --calibration`.")
    ] = Path("calibration.json")
    seed: Annotated[int, typer.Option(help="What intervals are drawn by.")] = 0


@dataclass(frozen=True, kw_only=True)
class PreferSettings(JudgeSettings):
    """What `prefer` depends on."""

    head: Annotated[Path, typer.Argument(metavar="A", help="The run to look at.", show_default=False)]
    base: Annotated[Path, typer.Argument(metavar="B", help="The run that it is held against.")]
    pairs: Annotated[
        int, typer.Option(min=1, max=10_000, help="How many pairs of conversations to compare, at most.")
    ] = 100


@dataclass(frozen=True, kw_only=True)
class AttackSettings(JudgeSettings):
    """What `attack` depends on."""

    results: Run
    verdicts: Annotated[
        int,
        typer.Option(min=1, max=1_000, help="How many failed verdicts to attack, at most, by each attack."),
    ] = 10


@dataclass(frozen=True, kw_only=True)
class NoiseSettings(WireSettings, JudgeSettings):
    """What `noise` depends on."""

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
        Trust, typer.Option(help="Whether suites may name endpoints and read ${VARIABLES}, as `run` has it.")
    ] = Trust.AUTO
