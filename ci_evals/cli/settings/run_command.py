"""The options of `run`. Most fields are also inputs of the action.

`options` says what is made of a field.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import MissingSecrets, RerunMode
from ci_evals.cli.settings.gate_rules import GateSettings, settings_class
from ci_evals.cli.settings.plan_settings import PlanSettings
from ci_evals.cli.settings.shared import (
    AgentApiSettings,
    BaselineSettings,
    CommentingSettings,
    HistorySettings,
    JunitFile,
    LlmKey,
    LlmTimeout,
    OutputDir,
    Quiet,
)
from ci_evals.domain.choices import Regression
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.extension_registry import run_options

LAST = "last"
"""The word for the last run in the output folder."""

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
    reruns: Annotated[
        RerunMode | None,
        OptionSpec(
            "Trials of earlier attempts at the same commit.\n\n"
            "`pool`: they count with those of this run, so that a rerun adds evidence. They are read from "
            "the artifacts `ci-evals-attempt-KEY-N` (needs `actions: read`). `replace`: this run alone "
            "counts. Default: `pool` in GitHub jobs whose token may read artifacts, `replace` elsewhere.",
            group=Group.REPETITION,
        ),
    ] = None
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
