"""The options of commands that read suites.

For `RunSettings` a field is also an input of the action. `options` says what is made of a field.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import MissingSecrets, OutputFormat
from ci_evals.cli.settings.gate_rules import settings_class
from ci_evals.cli.settings.shared import (
    AgentApiSettings,
    BaselineSettings,
    CommentingSettings,
    GateSettings,
    HistorySettings,
    JudgeCheckMode,
    JudgePanel,
    JunitFile,
    LlmKey,
    LlmTimeout,
    OutputDir,
    Prices,
    Quiet,
    SidesSettings,
    SuiteSettings,
)
from ci_evals.domain.choices import CheckMode, Regression
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import providers, run_options

LAST = "last"
"""The word for the last run in the output folder."""


@dataclass(frozen=True)
class ValidateSettings(SuiteSettings):
    """Options of `validate`."""

    strict: Annotated[
        bool, OptionSpec("Also warn about weak spots of a suite; the exit code stays 0.", group=Group.SUITES)
    ] = False


@dataclass(frozen=True)
class PlanSettings(SidesSettings, SuiteSettings):
    """Options of `plan`, and of `run` as far as cost and duration depend on them."""

    loops: Annotated[
        int, OptionSpec("Trials of each test.", group=Group.REPETITION, minimum=1, maximum=1000)
    ] = 1
    rounds: Annotated[
        str,
        OptionSpec(
            "Stop as soon as the verdict is clear.\n\n"
            "Evaluates the run after these numbers of trials per test, some of 2,3,5,7, and stops if more "
            "could hardly change the verdict. `auto` is all of them. With `--against` or `--arms` it is "
            "always 3,5,7. Not with `--loops`.",
            group=Group.REPETITION,
            names=Names.TEXT,
            metavar="off|auto|N,N,...",
        ),
    ] = "off"
    test: Annotated[
        list[str] | None,
        OptionSpec(
            "Only tests with this name, or whose name contains it.\n\n"
            "May be repeated. The whole name of a test selects that test alone. Else parts of names may be "
            "separated by commas. In variables and inputs, write a name a line.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    tag: Annotated[
        str | None,
        OptionSpec(
            "Only tests that have one of these tags.\n\nComma-separated.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="TAG,...",
        ),
    ] = None
    provider: Annotated[
        str,
        OptionSpec(
            f"Model provider: {', '.join(providers())}.\n\n"
            "For judge and simulated user. With `offline` nothing is judged and no key is needed.",
            group=Group.MODELS,
            metavar="NAME",
            words=providers,
        ),
    ] = OPENAI.name
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "Judge model, instead of the suite's `judgeModel`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    user_model: Annotated[
        str | None,
        OptionSpec(
            "Model of the simulated user, instead of `userModel`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    embedding_model: Annotated[
        str | None,
        OptionSpec(
            "Embedding model, for checks that compare meanings.\n\n"
            "One of the provider's models, or `local:NAME`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    judge_votes: Annotated[
        int,
        OptionSpec(
            "Judge votes on each criterion, an odd number.\n\n"
            "Voting ends once a criterion is decided. With `--judge-panel` there are at least as many votes "
            "as models.",
            group=Group.MODELS,
            minimum=1,
            maximum=99,
        ),
    ] = 1
    judge_panel: JudgePanel = None
    judge_check: JudgeCheckMode = CheckMode.AUTO
    audit_user: Annotated[
        bool,
        OptionSpec(
            "Let a model check that the simulated user is in character.\n\n"
            "It must follow its guidelines and data. Checks without a model always run.",
            group=Group.MODELS,
        ),
    ] = False
    output_format: Annotated[
        OutputFormat,
        OptionSpec(
            "Form of what is printed.\n\n"
            "With `json`, standard output has one JSON object (of `run`, that of _results.json), and all "
            "else goes to standard error.",
            group=Group.OUTPUT,
            flag="--format",
        ),
    ] = OutputFormat.TEXT
    parallel: Annotated[
        int, OptionSpec("Concurrent conversations.", group=Group.LIMITS, minimum=1, maximum=10_000)
    ] = 1
    prices: Prices = None


_ExtensionOptions = settings_class("_ExtensionOptions", run_options())


@dataclass(frozen=True)
class RunSettings(
    _ExtensionOptions,  # type: ignore[misc, valid-type]  # its fields are what extensions declare
    AgentApiSettings,
    HistorySettings,
    BaselineSettings,
    CommentingSettings,
    GateSettings,
    PlanSettings,
):
    """Options of `run`."""

    llm_key: LlmKey = field(default=None, repr=False)
    llm_timeout: LlmTimeout = 120
    agent_timeout: Annotated[
        float,
        OptionSpec(
            "Timeout of a reply of the agent.\n\nA turn's own `timeout` in the suite takes precedence.",
            group=Group.AGENT,
            metavar="SECONDS",
            minimum=0.1,
        ),
    ] = 120
    retries: Annotated[
        int,
        OptionSpec(
            "Retries of a failed trial.\n\nEach starts a new session.", group=Group.REPETITION, minimum=0
        ),
    ] = 1
    on_missing_secrets: Annotated[
        MissingSecrets,
        OptionSpec(
            "What to do if a fork has no secrets.\n\n"
            "GitHub gives no secrets to pull requests of forks and of Dependabot. `skip` runs nothing, says "
            "so, and exits 0. Elsewhere a missing key is always an error.",
            group=Group.GITHUB,
        ),
    ] = MissingSecrets.SKIP
    resume: Annotated[
        Path | None,
        OptionSpec(
            "Resume the interrupted run in this output folder.\n\n"
            "Finished trials come from its journal; the rest runs. Use the same suites and options as "
            "before.",
            group=Group.REPETITION,
            names=Names.INPUT,
            metavar="DIR",
            recorded=False,  # a resumed run is the same as one that was never interrupted
        ),
    ] = None
    only_failed: Annotated[
        Path | None,
        OptionSpec(
            "Run only tests that did not pass in an earlier run.\n\n"
            "Without a value, or with `last`: the last run in the output folder. Else, as "
            "`--only-failed=RESULTS`, its _results.json or the folder of that file. Passed tests are taken "
            "from it. Every report says so, and the comparison with the baseline excludes them. In CI both "
            "runs must have the same commit.",
            group=Group.SUITES,
            names=Names.INPUT,
            metavar="RESULTS",
            bare_value=LAST,
        ),
    ] = None
    changed_since: Annotated[
        str | None,
        OptionSpec(
            "Run only tests that a change since REF affects.\n\n"
            "By their `when.paths`; tests without it always run. The others are taken from the baseline; "
            "every report says so, and the comparison excludes them. REF is a branch or commit that git "
            "knows (fetch-depth: 0), such as origin/main. In the action's container, which has no git, "
            "GitHub lists the changes.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="REF",
        ),
    ] = None
    shard: Annotated[
        str | None,
        OptionSpec(
            "Run one part of the tests: 2/5 is the second of five.\n\n"
            "`ci-evals merge` combines all parts into one run. The split depends only on suites and "
            "`--baseline`; a baseline makes the parts equally long.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="I/N",
        ),
    ] = None
    fail_fast: Annotated[bool, OptionSpec("Start no new trials once one has failed.", group=Group.LIMITS)] = (
        False
    )
    max_duration: Annotated[
        float | None,
        OptionSpec(
            "Maximum duration of the run.\n\n"
            "Finished trials are reported; the rest is not run. Set it below the job's timeout.",
            group=Group.LIMITS,
            metavar="SECONDS",
            minimum=0,
        ),
    ] = None
    record: Annotated[
        Path | None,
        OptionSpec(
            "Record all answers of agent and models.\n\nWithout secrets, for `--replay`.",
            group=Group.REPETITION,
            names=Names.OUTPUT,
            metavar="DIR",
        ),
    ] = None
    replay: Annotated[
        Path | None,
        OptionSpec(
            "Replay a recording instead of calling agent and models.\n\n"
            "Needs no network and no key. Every report says that it is a replay.",
            group=Group.REPETITION,
            names=Names.INPUT,
            metavar="DIR",
        ),
    ] = None
    judge_cache: Annotated[
        str,
        OptionSpec(
            "Folder that keeps the judge's answers.\n\n"
            "Each question is paid for only once. `auto` is the user's cache folder, and off in CI: set a "
            "folder there, and keep it with actions/cache.",
            group=Group.MODELS,
            names=Names.CACHE,
            metavar="auto|off|DIR",
        ),
    ] = "auto"
    calibration: Annotated[
        Path | None,
        OptionSpec(
            "File written by `calibrate`, shown in reports.\n\nAs long as judge and prompt stay the same.",
            group=Group.MODELS,
            names=Names.INPUT,
            metavar="FILE",
        ),
    ] = None
    otlp_endpoint: Annotated[
        str | None,
        OptionSpec(
            "OpenTelemetry backend to export the results to.\n\n"
            "After the run, each test becomes a span with an event per verdict, sent over OTLP/HTTP with "
            "the headers in OTEL_EXPORTER_OTLP_HEADERS. A failure is only a warning.",
            group=Group.AGENT,
            names=Names.ADDRESS,
            metavar="URL",
        ),
    ] = None
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
    agent_in_process: Annotated[
        bool,
        OptionSpec(
            "Run a Python agent inside this process, for a debugger.\n\n"
            "By default it has a separate process and cannot end the run.",
            group=Group.AGENT,
        ),
    ] = False
    debug: Annotated[
        bool, OptionSpec("Keep raw replies, and the judge's unusable answers.", group=Group.OUTPUT)
    ] = False
    quiet: Quiet = False

    verbose: Annotated[
        bool, OptionSpec("Print all failed criteria, checks and changes.", group=Group.OUTPUT)
    ] = False

    @property
    def compares(self) -> bool:
        """True if something asks for a comparison with earlier runs."""
        return bool(self.max_drop or self.against) or self.regression is not Regression.OFF
