"""The options of commands that read suites.

For `RunSettings` a field is also an input of the action. `options` says what is made of a field.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import CommentMode, MissingSecrets, Provider
from ci_evals.cli.settings.shared import (
    AgentApiSettings,
    BaselineSettings,
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
    SuiteSettings,
)
from ci_evals.domain.choices import CheckMode


@dataclass(frozen=True)
class ValidateSettings(SuiteSettings):
    """Options of `validate`."""

    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also warn of what makes a suite weak; the exit code stays the same."),
    ] = False


@dataclass(frozen=True)
class PlanSettings(SuiteSettings):
    """Options of `plan`, and of `run` as far as cost and duration depend on them."""

    loops: Annotated[int, typer.Option(min=1, max=1000, help="Trials of each test.")] = 1
    test: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only tests whose name contains one of these.")
    ] = None
    tag: Annotated[
        str | None, typer.Option(metavar="TAG,...", help="Only tests that have one of these tags.")
    ] = None
    provider: Annotated[
        Provider, typer.Option(help="The LLM behind judge and simulated user; offline needs no key.")
    ] = Provider.OPENAI
    judge_model: Annotated[
        str | None, typer.Option(help="The judge's model, in place of the suite's judgeModel.")
    ] = None
    user_model: Annotated[
        str | None, typer.Option(help="The simulated user's model, in place of the suite's userModel.")
    ] = None
    embedding_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model that compares answers by their meaning: the provider's, or local:NAME.",
        ),
    ] = None
    judge_votes: Annotated[
        int,
        typer.Option(
            min=1,
            max=99,
            help="Votes on each judged criterion, an odd number; no more are asked for once it is decided. "
            "With --judge-panel by default as many as it takes for each model to have a say.",
        ),
    ] = 1
    judge_panel: JudgePanel = None
    judge_check: JudgeCheckMode = CheckMode.AUTO
    audit_user: Annotated[
        bool,
        typer.Option(
            "--audit-user",
            help="Let a model look whether the simulated user kept to its guidelines and data, besides the "
            "checks that need none.",
        ),
    ] = False
    audit_model: Annotated[
        str | None, typer.Option(help="The model of --audit-user. Default: the simulated user's.")
    ] = None
    parallel: Annotated[int, typer.Option(min=1, max=10_000, help="Conversations at a time.")] = 1
    prices: Prices = None


@dataclass(frozen=True)
class RunSettings(AgentApiSettings, BaselineSettings, PullRequestSettings, GateSettings, PlanSettings):
    """Options of `run`."""

    llm_key: LlmKey = field(default=None, repr=False)
    llm_timeout: LlmTimeout = 120
    retries: Annotated[
        int, typer.Option(min=0, help="How often a failed trial is played again, from a fresh session.")
    ] = 1
    comment: Annotated[
        CommentMode,
        typer.Option(
            help="In GitHub Actions, whether to post the results as a comment. auto: in events of a pull "
            "request, but not with --shard; always: also on the pull requests that a pushed commit is the "
            "head of; never."
        ),
    ] = CommentMode.AUTO
    on_missing_secrets: Annotated[
        MissingSecrets,
        typer.Option(
            help="In a pull request of a fork or of Dependabot, which is given no secrets, where a key is "
            "missing: skip the run with a notice and exit 0, or fail."
        ),
    ] = MissingSecrets.SKIP
    confirm: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            help="Where the first look is close, play so many more trials of each test and decide on all.",
        ),
    ] = 0
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on with the run that was broken off in this output folder: what had finished is taken "
            "from its journal, the rest is played. Give the same suites and options as then.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Play only the I-th of N parts of the tests, the same whenever suites and --baseline are "
            "the same. A baseline tells how long each test takes, so that all parts take about as long. "
            "`ci-evals merge` makes one run of all parts, and compares it.",
        ),
    ] = None
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Begin no more trials once one has failed.")
    ] = False
    max_duration: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="End the run after so many seconds: what has finished is reported, the rest is not run.",
            show_default=False,
        ),
    ] = None
    max_failures_in_row: Annotated[
        int,
        typer.Option(
            min=0,
            help="End the run when so many trials in a row, and at least as many as play at a time, broke "
            "off or could not be judged. 0: never.",
        ),
    ] = 10
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep what the agent and the models answer in this folder, without secrets, for --replay.",
        ),
    ] = None
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Take all answers from a recording, in place of the agent and the models: without network "
            "and keys.",
        ),
    ] = None
    judge_cache: Annotated[
        str,
        typer.Option(
            metavar="auto|off|DIR",
            help="Keep the judge's answers in this folder, and ask no question twice. auto: in the user's "
            "cache folder, but not in CI.",
        ),
    ] = "auto"
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What `calibrate` found out about the judge: reports show it while the judge is the same.",
        ),
    ] = None
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
    agent_in_process: Annotated[
        bool,
        typer.Option(
            "--agent-in-process",
            help="Run an agent in Python inside this process, for a debugger; by default it has a process of "
            "its own, and what it does there cannot end the run.",
        ),
    ] = False
    debug: Annotated[
        bool, typer.Option("--debug", help="Keep the agent's raw replies in the results and reports.")
    ] = False
    quiet: Quiet = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name every failed criterion on the console.")
    ] = False
