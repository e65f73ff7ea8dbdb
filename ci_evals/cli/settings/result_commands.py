"""The options of commands that write a suite, or begin with saved results."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.agent_registry import FOLDERS, PROGRAM_FOLDERS
from ci_evals.cli.settings.choices import (
    ComparisonFormat,
    Platform,
    StarterProvider,
    SuiteTrust,
)
from ci_evals.cli.settings.gate_rules import odds_options, settings_class
from ci_evals.cli.settings.shared import (
    BaselineSettings,
    ChangeSettings,
    CommentingSettings,
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
    Run,
    TrustSuites,
)
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.options import Names
from ci_evals.domain.providers import WITH_MODELS, Provider


@dataclass(frozen=True)
class InitSettings:
    """Options of `init`."""

    folder: Annotated[Path, Names.OUTPUT, typer.Argument(help="The repository, or a folder in it.")] = Path()
    adapter: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(
            metavar="ADAPTER",
            help="How to call your agent, such as openai, http or python.\n\n"
            "Default: the adapter of existing suites, otherwise aui. `demo` is for a first look. Known are "
            f"{', '.join([*FOLDERS, *PROGRAM_FOLDERS])}.",
        ),
    ] = None
    provider: Annotated[
        StarterProvider,
        typer.Option(
            help="Who plays the user and judges on pull requests.\n\n"
            "offline needs no key: strict checks alone decide."
        ),
    ] = StarterProvider.OPENAI
    start: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(
            metavar="COMMAND",
            help="Command that serves your agent, such as 'python3 agent.py'. Runs start it, so that a pull "
            "request's own code is tested.\n\nDefault: the agent is deployed somewhere.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Options of `report`."""

    results: Annotated[
        list[Path],
        Names.SUBJECT,
        typer.Argument(
            metavar="RESULTS",
            help="The run to show: its _results.json or folder, or a folder of runs for the newest. "
            "Then runs to compare it with.",
        ),
    ]
    baseline: Annotated[
        str | None,
        Names.SUBJECT,
        typer.Option(
            metavar="auto|none|PATH",
            help="Run that this one was compared with.\n\n"
            "The page shows its conversations; nothing is compared again, and other runs are refused. "
            "Default: `auto`, the one among the given runs.",
        ),
    ] = None
    format: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(
            metavar="FORMAT,...",
            help="Reports to write, see above. Default: all but badge and what extensions write.",
        ),
    ] = None
    open: Annotated[
        bool, typer.Option("--open", help="Open report.html in the browser; in CI print its path.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CompareSettings(ChangeSettings):
    """Options of `compare`."""

    head: Annotated[
        Path, Names.EVIDENCE, typer.Argument(help="The run: its _results.json, or the folder of that file.")
    ]
    base: Annotated[Path, Names.INPUT, typer.Argument(help="The earlier run to compare it with.")]
    trust_suites: TrustSuites = SuiteTrust.AUTO
    format: Annotated[ComparisonFormat, typer.Option(help="Format to print.")] = ComparisonFormat.TEXT


_OddsOptions = settings_class("_OddsOptions", odds_options())


@dataclass(frozen=True, kw_only=True)
class OddsSettings(_OddsOptions):  # type: ignore[misc, valid-type]  # its fields are what the rules declare
    """Options of `odds`, each instead of the saved run's."""

    results: Run


@dataclass(frozen=True, kw_only=True)
class MergeSettings(BaselineSettings, GateSettings):
    """Options of `merge`."""

    results: Annotated[
        list[Path],
        Names.EVIDENCE,
        typer.Argument(
            metavar="RESULTS",
            help="Results files, their folders, or folders of such folders, as from "
            "actions/download-artifact.",
        ),
    ]
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Required number of results; with fewer there is no verdict.\n\n"
            "Not needed for runs with `--shard`.",
        ),
    ] = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None


@dataclass(frozen=True, kw_only=True)
class GateFilesSettings(BaselineSettings, CommentingSettings, GateSettings):
    """Options of `gate`."""

    files: Annotated[
        list[str],
        Names.EVIDENCE,
        typer.Argument(
            metavar="FILE", help="Result files of another tool, or globs. In the action one per line."
        ),
    ]
    format: Annotated[
        str,
        Names.TEXT,
        typer.Option(metavar="FORMAT", help="Format of the files. Default: found by content."),
    ] = "auto"
    map: Annotated[
        Path | None,
        Names.INPUT,
        typer.Option(
            metavar="FILE",
            help="YAML file that maps fields to JSONPaths, for rows.\n\n"
            "Fields: test, trial, score, passed, error, reason, cost, tokens, seconds, group, cluster, "
            "suite, arm; `rows` is the path of the list in a JSON document.",
        ),
    ] = None
    answers: Annotated[
        Path | None,
        Names.INPUT,
        typer.Option(metavar="FILE", help="File with the expected answers, for gaia."),
    ] = None
    arm: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(
            metavar="NAME",
            help="Model, prompt or provider to gate, if the files have several.",
        ),
    ] = None
    baseline_arm: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(
            metavar="NAME",
            help="Arm of the same files to compare with, instead of `--baseline`.",
        ),
    ] = None
    prices: Prices = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all failed criteria, checks and changes.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class RejudgeSettings(BaselineSettings, GateSettings):
    """Options of `rejudge`."""

    results: Annotated[
        Path,
        Names.EVIDENCE,
        typer.Argument(
            metavar="RESULTS",
            help="The run, or one of its suites: its _results.json, or the folder of that file.",
        ),
    ]
    provider: Annotated[
        Provider,
        typer.Option(metavar="NAME", help=f"Judge's provider: {', '.join(WITH_MODELS)}."),
    ] = Provider.OPENAI
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        Names.TEXT,
        typer.Option(
            metavar="MODEL",
            help="Judge model.\n\n"
            "Default: the run's judge if the provider is the same, otherwise the provider's default.",
        ),
    ] = None
    judge_votes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=99,
            help="Votes on each criterion, an odd number. Default: the run's.\n\n"
            "With `--judge-panel` at least as many as the panel has models.",
        ),
    ] = None
    judge_panel: JudgePanel = None
    prices: Prices = None
    parallel: Annotated[int, typer.Option(min=1, max=10_000, help="Trials judged concurrently.")] = 10
    judge_check: JudgeCheckMode = CheckMode.AUTO
    llm_timeout: LlmTimeout = 120
    judge_cache: Annotated[
        str,
        Names.CACHE,
        typer.Option(
            metavar="auto|off|DIR",
            help="Folder that keeps the judge's answers.\n\n"
            "Separate from the cache of runs. Off by default: the judge is asked again.",
        ),
    ] = "off"
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
    quiet: Quiet = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print every changed verdict and every failed criterion.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CommentSettings(PullRequestSettings):
    """Options of `comment`."""

    results: Run
    platform: Annotated[
        Platform,
        typer.Option(
            help="Where to post.\n\n"
            "`auto`: GitLab in GitLab jobs, otherwise GitHub. On GitLab the note goes to the pipeline's "
            "merge request, with the token in CI_EVALS_GITLAB_TOKEN or GITLAB_TOKEN."
        ),
    ] = Platform.AUTO
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the comment and post nothing; needs no token.")
    ] = False
