"""The options of commands that write a suite, or begin with saved results."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ci_evals.agent_registry import AGENT_KINDS, PROGRAM_KINDS
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
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import judging_providers, providers


@dataclass(frozen=True)
class InitSettings:
    """Options of `init`."""

    folder: Annotated[
        Path, OptionSpec("The repository, or a folder in it.", names=Names.OUTPUT, argument=True)
    ] = Path()
    adapter: Annotated[
        str | None,
        OptionSpec(
            "How to call your agent, such as openai, http or python.\n\n"
            "Default: the adapter of existing suites, otherwise aui. `demo` is for a first look. Known are "
            f"{', '.join([*AGENT_KINDS, *PROGRAM_KINDS])}.",
            group=Group.AGENT,
            names=Names.TEXT,
            metavar="ADAPTER",
        ),
    ] = None
    provider: Annotated[
        StarterProvider,
        OptionSpec(
            "Who plays the user and judges on pull requests.\n\n"
            "offline needs no key: strict checks alone decide.",
            group=Group.MODELS,
        ),
    ] = StarterProvider.OPENAI
    start: Annotated[
        str | None,
        OptionSpec(
            "Command that serves your agent, such as 'python3 agent.py'. Runs start it, so that a pull "
            "request's own code is tested.\n\nDefault: the agent is deployed somewhere.",
            group=Group.AGENT,
            names=Names.TEXT,
            metavar="COMMAND",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Options of `report`."""

    results: Annotated[
        list[Path],
        OptionSpec(
            "The run to show: its _results.json or folder, or a folder of runs for the newest. "
            "Then runs to compare it with.",
            names=Names.SUBJECT,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    baseline: Annotated[
        str | None,
        OptionSpec(
            "Run that this one was compared with.\n\n"
            "The page shows its conversations; nothing is compared again, and other runs are refused. "
            "Default: `auto`, the one among the given runs.",
            group=Group.BASELINE,
            names=Names.SUBJECT,
            metavar="auto|none|PATH",
        ),
    ] = None
    format: Annotated[
        str | None,
        OptionSpec(
            "Reports to write, see above. Default: all but badge, csv and what extensions write.",
            group=Group.OUTPUT,
            names=Names.TEXT,
            metavar="FORMAT,...",
        ),
    ] = None
    open: Annotated[
        bool, OptionSpec("Open report.html in the browser; in CI print its path.", group=Group.OUTPUT)
    ] = False


@dataclass(frozen=True, kw_only=True)
class ShowSettings:
    """Options of `show`."""

    results: Run = Path("results")
    test: Annotated[
        list[str] | None,
        OptionSpec(
            "Only these tests: a whole name, or parts of names, separated by commas. Can be repeated.",
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    trial: Annotated[int | None, OptionSpec("Only this trial of each test, counted from 1.", minimum=1)] = (
        None
    )
    failed: Annotated[bool, OptionSpec("Only tests and trials that did not pass.")] = False


@dataclass(frozen=True, kw_only=True)
class CompareSettings(ChangeSettings):
    """Options of `compare`."""

    head: Annotated[
        Path,
        OptionSpec(
            "The run: its _results.json, or the folder of that file.", names=Names.EVIDENCE, argument=True
        ),
    ]
    base: Annotated[Path, OptionSpec("The earlier run to compare it with.", names=Names.INPUT, argument=True)]
    trust_suites: TrustSuites = SuiteTrust.AUTO
    format: Annotated[ComparisonFormat, OptionSpec("Format to print.", group=Group.OUTPUT)] = (
        ComparisonFormat.TEXT
    )


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
        OptionSpec(
            "Results files, their folders, or folders of such folders, as from actions/download-artifact.",
            names=Names.EVIDENCE,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    shards: Annotated[
        int | None,
        OptionSpec(
            "Required number of results; with fewer there is no verdict.\n\n"
            "Not needed for runs with `--shard`.",
            minimum=1,
        ),
    ] = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None


@dataclass(frozen=True, kw_only=True)
class RejudgeSettings(BaselineSettings, GateSettings):
    """Options of `rejudge`."""

    results: Annotated[
        Path,
        OptionSpec(
            "The run, or one of its suites: its _results.json, or the folder of that file.",
            names=Names.EVIDENCE,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    provider: Annotated[
        str,
        OptionSpec(
            f"Judge's provider: {', '.join(judging_providers())}.",
            group=Group.MODELS,
            metavar="NAME",
            words=providers,
        ),
    ] = OPENAI.name
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "Judge model.\n\n"
            "Default: the run's judge if the provider is the same, otherwise the provider's default.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    judge_votes: Annotated[
        int | None,
        OptionSpec(
            "Votes on each criterion, an odd number. Default: the run's.\n\n"
            "With `--judge-panel` at least as many as the panel has models.",
            group=Group.MODELS,
            minimum=1,
            maximum=99,
        ),
    ] = None
    judge_panel: JudgePanel = None
    prices: Prices = None
    parallel: Annotated[
        int, OptionSpec("Trials judged concurrently.", group=Group.LIMITS, minimum=1, maximum=10_000)
    ] = 10
    judge_check: JudgeCheckMode = CheckMode.AUTO
    llm_timeout: LlmTimeout = 120
    judge_cache: Annotated[
        str,
        OptionSpec(
            "Folder that keeps the judge's answers.\n\n"
            "Separate from the cache of runs. Off by default: the judge is asked again.",
            group=Group.MODELS,
            names=Names.CACHE,
            metavar="auto|off|DIR",
        ),
    ] = "off"
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: Annotated[
        Path | None,
        OptionSpec(
            "Folder for reports. Default: `rejudged` in the folder of the run.",
            group=Group.OUTPUT,
            names=Names.OUTPUT,
            metavar="DIR",
        ),
    ] = None
    junit: JunitFile = None
    quiet: Quiet = False
    verbose: Annotated[
        bool, OptionSpec("Print every changed verdict and every failed criterion.", group=Group.OUTPUT)
    ] = False


@dataclass(frozen=True, kw_only=True)
class CommentSettings(PullRequestSettings):
    """Options of `comment`."""

    results: Run
    platform: Annotated[
        Platform,
        OptionSpec(
            "Where to post.\n\n"
            "`auto`: GitLab in GitLab jobs, otherwise GitHub. On GitLab the note goes to the pipeline's "
            "merge request, with the token in CI_EVALS_GITLAB_TOKEN or GITLAB_TOKEN."
        ),
    ] = Platform.AUTO
    dry_run: Annotated[bool, OptionSpec("Print the comment and post nothing; needs no token.")] = False
