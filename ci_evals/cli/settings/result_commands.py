"""The options of commands that write a suite, or begin with saved results."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import ComparisonFormat, ImportFormat, Provider
from ci_evals.cli.settings.shared import (
    BaselineSettings,
    ChangeSettings,
    GateSettings,
    JudgeCheckMode,
    JudgePanel,
    JunitFile,
    LlmKey,
    LlmTimeout,
    OutputDir,
    Prices,
    PullRequestSettings,
    Quiet,
)
from ci_evals.domain.choices import CheckMode, Regression


@dataclass(frozen=True, kw_only=True)
class ImportSettings:
    """Options of `import`."""

    format: Annotated[ImportFormat, typer.Argument(help="Whose file it is.")]
    file: Annotated[Path, typer.Argument(help="The file.", show_default=False)]
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="SUITE",
            help="Where to write the suite: a .yaml or .json that is not there yet. Else it is printed.",
        ),
    ] = None


@dataclass(frozen=True)
class InitSettings:
    """Options of `init`."""

    folder: Annotated[Path, typer.Argument(help="The repository, or a folder in it.")] = Path()
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="ADAPTER",
            help="How your agent is spoken to: aui, openai, http, python, command, or demo to look around "
            "first. Default: as the suites that are there have it, else aui.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Options of `report`."""

    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS",
            help="First the run to show: its _results.json, or the folder of it; of a folder of such folders "
            "the newest. Then any others, likewise, to stand beside it on the page.",
            show_default=False,
        ),
    ]
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|PATH",
            help="The run that this one was compared with, to show its conversations beside; nothing is "
            "compared anew, and another run is refused. Default: auto, the one among the others.",
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT,...",
            help="What to write: html (report.html), markdown (summary.md, and the files of suites and "
            "tests), junit (junit.xml), json (each suite's own _results.json), badge (badge.svg, "
            "badge.json). Default: all but the badge.",
            show_default=False,
        ),
    ] = None
    open: Annotated[
        bool, typer.Option("--open", help="Open report.html in the browser; in CI its path is printed.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CompareSettings(ChangeSettings):
    """Options of `compare`."""

    head: Annotated[Path, typer.Argument(help="The run to look at: its _results.json, or the folder of it.")]
    base: Annotated[Path, typer.Argument(help="The earlier run that it is held against.")]
    format: Annotated[ComparisonFormat, typer.Option(help="What to print.")] = ComparisonFormat.TEXT


@dataclass(frozen=True)
class OddsSettings:
    """Options of `odds`."""

    results: Annotated[Path, typer.Argument(help="The run: its _results.json, or the folder of it.")]
    min_score: Annotated[
        float | None, typer.Option(min=0, max=100, help="Another least run score.", show_default=False)
    ] = None
    thresholds: Annotated[
        str | None, typer.Option(metavar="SELECTOR=SCORE,...", help="Other floors, as `run` has them.")
    ] = None
    max_drop: Annotated[
        str | None, typer.Option(metavar="POINTS,...", help="Another most drop, as `run` has it.")
    ] = None
    regression: Annotated[
        Regression | None, typer.Option(help="Another rule of regression.", show_default=False)
    ] = None


@dataclass(frozen=True, kw_only=True)
class MergeSettings(BaselineSettings, GateSettings):
    """Options of `merge`."""

    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS",
            help="Results files, folders that hold one, or folders of such folders, as "
            "actions/download-artifact leaves them.",
            show_default=False,
        ),
    ]
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many results there must be: fewer mean that one is missing. Shards tell it of "
            "themselves.",
            show_default=False,
        ),
    ] = None
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None


@dataclass(frozen=True, kw_only=True)
class RejudgeSettings(BaselineSettings, GateSettings):
    """Options of `rejudge`."""

    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="The run: its _results.json, or the folder of it; also one of its suites' own.",
            show_default=False,
        ),
    ]
    provider: Annotated[Provider, typer.Option(help="The LLM that judges.")] = Provider.OPENAI
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        typer.Option(
            help="The judge's model. Else the one that judged the run, where its provider is the same, else "
            "the provider's default."
        ),
    ] = None
    judge_votes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=99,
            help="Votes on each judged criterion, an odd number. Default: as many as the run had; with "
            "--judge-panel as many as it takes for each model to have a say.",
            show_default=False,
        ),
    ] = None
    judge_panel: JudgePanel = None
    prices: Prices = None
    parallel: Annotated[int, typer.Option(min=1, max=10_000, help="Trials judged at a time.")] = 10
    judge_check: JudgeCheckMode = CheckMode.AUTO
    llm_timeout: LlmTimeout = 120
    judge_cache: Annotated[
        str,
        typer.Option(
            metavar="auto|off|DIR",
            help="Keep these judges' answers, apart from those of runs. Off, as whoever judges again wants "
            "to know what is said this time.",
        ),
    ] = "off"
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
    quiet: Quiet = False
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Name every verdict that changed, and every failed criterion."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class CommentSettings(PullRequestSettings):
    """Options of `comment`."""

    results: Annotated[Path, typer.Argument(help="The run: its _results.json, or the folder of it.")]
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the comment and post nothing; needs no token.")
    ] = False
