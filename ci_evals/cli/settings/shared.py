"""Options that several commands share, each declared once."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.choices import SuiteTrust
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
LlmKey = Annotated[
    str | None, typer.Option(help="Key of the LLM; better set LLM_API_KEY or the provider's own variable.")
]
JudgePanel = Annotated[
    str | None,
    typer.Option(metavar="MODEL,...", help="Models that vote in turn, in place of one judge's model."),
]
Prices = Annotated[
    Path | None, typer.Option(help="A YAML or JSON file of prices, in place of the bundled table.")
]
OutputDir = Annotated[Path, typer.Option(help="Folder for all reports.")]
JunitFile = Annotated[
    Path | None, typer.Option(help="Where to write the JUnit file (default: OUTPUT_DIR/junit.xml).")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the results.")]


@dataclass(frozen=True)
class SuiteSettings:
    """The suites, their agent, and whether they are trusted."""

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
class ChangeSettings:
    """The gate on changes against the baseline."""

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
    """The gate."""

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
    """The comment key and the token for GitHub."""

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
    """The source of the baseline."""

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
    """The pull request of a comment."""

    pr_number: Annotated[
        int | None,
        typer.Option(min=1, help="The pull request, in place of the event's.", show_default=False),
    ] = None


@dataclass(frozen=True)
class AgentApiSettings:
    """Particulars of an agent's API."""

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
