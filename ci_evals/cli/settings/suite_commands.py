"""The options of commands that read suites, and all that others have in common with them, each declared once.

For `RunSettings` a field is also an input of the action. `options` says what is made of a field.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import CommentMode, MissingSecrets, Provider, SuiteTrust
from ci_evals.cli.settings.options import INPUT_DEFAULT
from ci_evals.domain.choices import AgentIdLocation, CheckMode, Regression

Suites = Annotated[
    list[str],
    typer.Argument(
        metavar="SUITE",
        help="Suite files (JSON or YAML), globs, folders, or bundled suites such as demo:hr.",
        show_default=False,
    ),
]


REQUIRED = "required"
"""The baseline that is looked for as with `auto`, and without which a run has no verdict."""

LlmTimeout = Annotated[
    float,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="Seconds that each attempt to ask a model may take; there are up to three.",
    ),
]
JudgeCheckMode = Annotated[
    CheckMode,
    typer.Option(
        help="Ask the judge control questions whose answers are known. If too few are answered right "
        "there is no verdict (exit code 3), or with warn a warning. auto: unless the baseline or the "
        "judge's cache holds a passed check of the same judge.",
    ),
]


@dataclass(frozen=True)
class SuiteSettings:
    """What reading suites depends on."""

    suites: Suites
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="ADAPTER",
            help="How to speak to the agent, in place of the suite's own 'adapter': aui (default), demo, "
            "openai, http, python:MODULE:ATTRIBUTE, 'command: PROGRAM', or a plug-in's name.",
        ),
    ] = None
    adapter_options: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A YAML or JSON file of what the adapter needs to know, in place of the suite's "
            "'adapterOptions'.",
        ),
    ] = None
    agent_id: Annotated[
        str | None, typer.Option(help="The agent to test, in place of the suite's agentId.")
    ] = None
    agent_key: Annotated[
        str | None,
        typer.Option(
            help="The agent's network API key, in place of the suite's apiKey; better set CI_EVALS_AGENT_KEY."
        ),
    ] = field(default=None, repr=False)
    base_url: Annotated[
        str | None, typer.Option(help="Where the agent's API is, in place of the adapter's own address.")
    ] = None
    trust_suites: Annotated[
        SuiteTrust,
        typer.Option(
            help="Whether suites may name endpoints and read ${VARIABLES}. auto: in a job on GitHub only if "
            "the checkout is known to be the repository's own code, and never in pull_request_target, "
            "workflow_run and issue_comment."
        ),
    ] = SuiteTrust.AUTO


@dataclass(frozen=True)
class ValidateSettings(SuiteSettings):
    """What `validate` depends on."""

    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also warn of what makes a suite weak; the exit code stays the same."),
    ] = False


@dataclass(frozen=True)
class PlanSettings(SuiteSettings):
    """What the plan of a run depends on."""

    loops: Annotated[int, typer.Option(min=1, max=1000, help="Trials of each test.")] = 1
    test: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only tests whose name contains one of these.")
    ] = None
    tag: Annotated[
        str | None, typer.Option(metavar="TAG,...", help="Only tests that have one of these tags.")
    ] = None


@dataclass(frozen=True)
class EstimateSettings(PlanSettings):
    """What the cost and the duration of a run depend on."""

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
    judge_panel: Annotated[
        str | None,
        typer.Option(metavar="MODEL,...", help="Models that vote in turn, in place of one judge's model."),
    ] = None
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
    prices: Annotated[
        Path | None,
        typer.Option(help="A YAML or JSON file of prices, in place of the bundled table."),
    ] = None


@dataclass(frozen=True)
class ChangeSettings:
    """What the gate asks of a run against its baseline."""

    max_drop: Annotated[
        str | None,
        typer.Option(
            metavar="POINTS,SELECTOR=POINTS,...",
            help="Most points that the score may fall below the baseline's; also for parts, as in "
            "suite:NAME=3 or category:NAME=0, one per line or comma.",
        ),
    ] = None
    regression: Annotated[
        Regression,
        typer.Option(
            help="What fails against the baseline: any test that passed there and fails now, or a "
            "significant drop of the score."
        ),
    ] = Regression.OFF


@dataclass(frozen=True)
class GateSettings(ChangeSettings):
    """What the gate asks."""

    min_score: Annotated[
        float, typer.Option(min=0, max=100, help="Least run score, 0 to 100, for the gate to hold.")
    ] = 80
    thresholds: Annotated[
        str | None,
        typer.Option(
            metavar="SELECTOR=SCORE,...",
            help="More floors, one per line or comma: suite:NAME=85, test:NAME=…, category:NAME=100, "
            "tag:NAME=…, logic:ID=…, difficulty:NAME=…",
        ),
    ] = None
    max_errors: Annotated[
        int,
        typer.Option(
            min=0,
            help="Most unsound trials (agent error, failed, interrupted, or with an undecided verdict).",
        ),
    ] = 0
    max_invalid_users: Annotated[
        int,
        typer.Option(
            min=0,
            help="Most trials that may be left out since the simulated user broke its role, twice in a row.",
        ),
    ] = 0
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Most US dollars that the run may cost. A run that comes close to it begins no more trials.",
            show_default=False,
        ),
    ] = None
    max_p95_latency: Annotated[
        float | None,
        typer.Option(
            min=0, help="Most seconds that 95 % of the agent's replies may take.", show_default=False
        ),
    ] = None
    no_gate: Annotated[
        bool, typer.Option("--no-gate", help="Report only: exit 0 even where the gate does not hold.")
    ] = False


@dataclass(frozen=True)
class GitHubSettings:
    """What speaking to GitHub depends on."""

    comment_key: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="Tells comments and baselines of one repository apart, as those of a matrix's jobs: "
            "letters, digits, '.', '_' and '-'. The baseline is the artifact ci-evals-results-KEY.",
        ),
    ] = "default"
    github_token: Annotated[
        str | None,
        typer.Option(help="Token for GitHub's API; better set GITHUB_TOKEN."),
    ] = field(default=None, repr=False, metadata={INPUT_DEFAULT: "${{ github.token }}"})


@dataclass(frozen=True)
class BaselineSettings(GitHubSettings):
    """Where the baseline comes from."""

    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|required|PATH",
            help="What to compare with. auto: what the base commit, or an earlier one of its branch, left "
            "as an artifact on GitHub. required: the same, and without a comparison there is no verdict "
            "(exit 3). PATH: an earlier run's _results.json, or the folder that holds it. "
            "Default: auto in pull requests and merge queues, else, and with --shard, none.",
        ),
    ] = None
    baseline_branch: Annotated[
        str | None,
        typer.Option(metavar="BRANCH", help="The branch of --baseline=auto, in place of the base branch."),
    ] = None


@dataclass(frozen=True)
class PullRequestSettings(GitHubSettings):
    """Where a comment goes."""

    pr_number: Annotated[
        int | None,
        typer.Option(min=1, help="The pull request, in place of the event's.", show_default=False),
    ] = None


@dataclass(frozen=True)
class WireSettings:
    """How an agent's API is spoken to, where that differs from what most of them want."""

    agent_key_header: Annotated[str, typer.Option(help="AUI: the header that carries the agent's key.")] = (
        "x-network-api-key"
    )
    agent_headers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME: VALUE",
            help="Adapters aui, openai, http: more headers, one per line. Their values are secrets.",
        ),
    ] = field(default=None, repr=False)
    agent_id_in: Annotated[
        AgentIdLocation,
        typer.Option(
            help="AUI: where the create-task body names the agent: agent_id, agent.agent_id, both, none."
        ),
    ] = AgentIdLocation.TOP
    task_origin_type: Annotated[str, typer.Option(help="AUI: the task_origin_type of a new task.")] = (
        "web-widget"
    )


@dataclass(frozen=True)
class RunSettings(WireSettings, BaselineSettings, PullRequestSettings, GateSettings, EstimateSettings):
    """Every option of `run`."""

    llm_key: Annotated[
        str | None,
        typer.Option(help="Key of the LLM; better set LLM_API_KEY or the provider's own variable."),
    ] = field(default=None, repr=False)
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
    output_dir: Annotated[Path, typer.Option(help="Folder for all reports.")] = Path("results")
    junit: Annotated[
        Path | None, typer.Option(help="Where to write the JUnit file (default: OUTPUT_DIR/junit.xml).")
    ] = None
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
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the results.")] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name every failed criterion on the console.")
    ] = False
