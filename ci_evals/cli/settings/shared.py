"""Options that several commands share, each declared once. `help` says what its text means."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.cli.settings.choices import CommentMode, CommentOn, SuiteTrust
from ci_evals.domain.agents import is_program
from ci_evals.domain.choices import BothSides, CheckMode
from ci_evals.domain.options import Group, Names, OptionSpec

Suites = Annotated[
    list[str],
    OptionSpec(
        "Suite files (JSON or YAML), globs, folders, or bundled suites such as demo:hr.\n\n"
        "In the action one per line, relative to the workspace.",
        group=Group.SUITES,
        names=Names.SUITES,
        metavar="SUITE",
        argument=True,
    ),
]
REQUIRED = "required"
"""The baseline that is looked for as with `auto`, and without which a run has no verdict."""
BASELINE_WORDS = frozenset({"auto", "none", REQUIRED})
"""Values of the option `baseline` that are no path."""

Run = Annotated[
    Path,
    OptionSpec(
        "The run: its _results.json, or the folder of that file.",
        names=Names.SUBJECT,
        metavar="RESULTS",
        argument=True,
    ),
]
LlmTimeout = Annotated[
    float,
    OptionSpec(
        "Timeout of one request to a model.\n\nThere are up to three attempts.",
        group=Group.MODELS,
        metavar="SECONDS",
        minimum=1,
    ),
]
JudgeCheckMode = Annotated[
    CheckMode,
    OptionSpec(
        "Ask the judge control questions with known answers.\n\n"
        "If too few answers are right, there is no verdict (exit code 3), or with `warn` a warning. "
        "`auto` skips the questions if the baseline or the judge's cache has a passed check of the same "
        "judge from the last 30 days.",
        group=Group.MODELS,
    ),
]
LlmKey = Annotated[
    str | None,
    OptionSpec(
        "API key of the model provider.\n\n"
        "Default: LLM_API_KEY, then the provider's own variable. In the action pass a secret; elsewhere "
        "prefer the variables, since others can read a command line.",
        group=Group.MODELS,
        names=Names.TEXT,
        metavar="KEY",
    ),
]
JudgePanel = Annotated[
    str | None,
    OptionSpec(
        "Models that vote in turn, instead of one judge.\n\nComma-separated, all from one provider.",
        group=Group.MODELS,
        names=Names.TEXT,
        metavar="MODEL,...",
    ),
]
Prices = Annotated[
    Path | None,
    OptionSpec(
        "YAML or JSON file of model prices.\n\nReplaces the bundled table.",
        group=Group.MODELS,
        names=Names.INPUT,
        metavar="FILE",
    ),
]
OutputDir = Annotated[
    Path, OptionSpec("Folder for all reports.", group=Group.OUTPUT, names=Names.OUTPUT, metavar="DIR")
]
JunitFile = Annotated[
    Path | None,
    OptionSpec(
        "Path of the JUnit file. Default: OUTPUT_DIR/junit.xml.",
        group=Group.OUTPUT,
        names=Names.OUTPUT,
        metavar="FILE",
    ),
]
Quiet = Annotated[bool, OptionSpec("Show no progress, only the results.", group=Group.OUTPUT)]
AgentId = Annotated[
    str | None,
    OptionSpec(
        "Agent to test, instead of the suite's `agentId`.", group=Group.AGENT, names=Names.TEXT, metavar="ID"
    ),
]
AgentKey = Annotated[
    str | None,
    OptionSpec(
        "API key of the agent, instead of the suite's `apiKey`.\n\n"
        "In the action pass a secret; elsewhere set CI_EVALS_AGENT_KEY, since others can read a command "
        "line.",
        group=Group.AGENT,
        names=Names.TEXT,
        metavar="KEY",
    ),
]
BaseUrl = Annotated[
    str | None,
    OptionSpec(
        "Address of the agent's API.\n\nReplaces the adapter's default.",
        group=Group.AGENT,
        names=Names.ADDRESS,
        metavar="URL",
    ),
]
Adapter = Annotated[
    str | None,
    OptionSpec(
        "How to call the agent, such as openai or http.\n\n"
        f"Overrides the suite's `adapter`; the default is aui. Built in are {', '.join(AGENT_KINDS)}. "
        "`python:MODULE:ATTRIBUTE` calls a Python function, `command: PROGRAM` starts a program. Use a "
        "plug-in by its name.",
        group=Group.AGENT,
        names=Names.PROGRAM,
        is_word=lambda text: not is_program(text),
        metavar="ADAPTER",
    ),
]
AdapterOptions = Annotated[
    Path | None,
    OptionSpec(
        "YAML or JSON file, instead of `adapterOptions`.",
        group=Group.AGENT,
        names=Names.INPUT,
        metavar="FILE",
    ),
]
TrustSuites = Annotated[
    SuiteTrust,
    OptionSpec(
        "Whether suites and files of the workspace are trusted.\n\n"
        "With `auto` they are, except in a GitHub job with secrets: there the checkout must be known to be "
        "the repository's own code. Otherwise its suites may not name endpoints or read variables, and "
        "options may not name its files and programs. Suites are never trusted in pull_request_target, "
        "workflow_run and issue_comment.",
        group=Group.SUITES,
    ),
]


@dataclass(frozen=True)
class SuiteSettings:
    """The suites, their agent, and whether they are trusted."""

    suites: Suites
    adapter: Adapter = None
    adapter_options: AdapterOptions = None
    agent_id: AgentId = None
    agent_key: AgentKey = field(default=None, repr=False)
    base_url: BaseUrl = None
    trust_suites: TrustSuites = SuiteTrust.AUTO


@dataclass(frozen=True)
class GitHubSettings:
    """The comment key and the token for GitHub."""

    comment_key: Annotated[
        str,
        OptionSpec(
            "Distinguishes comments and baselines within one repository.\n\n"
            "Give each job of a matrix its own key: letters, digits, dots, underscores and dashes. The "
            "baseline is the artifact `ci-evals-results-KEY`.",
            group=Group.GITHUB,
            names=Names.TEXT,
            metavar="KEY",
        ),
    ] = "default"
    github_token: Annotated[
        str | None,
        OptionSpec(
            "Token for GitHub's API.\n\n"
            "Default: GITHUB_TOKEN. The action uses the job's token and permissions.",
            group=Group.GITHUB,
            names=Names.TEXT,
            metavar="TOKEN",
            input_default="${{ github.token }}",
        ),
    ] = field(default=None, repr=False)


@dataclass(frozen=True)
class BaselineSettings(GitHubSettings):
    """The source of the baseline."""

    baseline: Annotated[
        str | None,
        OptionSpec(
            "Run to compare with.\n\n"
            "`auto`: the artifact `ci-evals-results-KEY` of the base commit or the nearest earlier commit "
            "of its branch on GitHub (needs `actions: read`). `required`: the same, but a run without a "
            "comparison has no verdict (exit code 3). PATH: an earlier run's _results.json or its folder; a "
            "check against it that cannot be made leaves no verdict. "
            "Default: `auto` in pull requests and merge queues, `none` elsewhere and with `--shard`.",
            group=Group.BASELINE,
            names=Names.INPUT,
            is_word=lambda text: text.lower() in BASELINE_WORDS,
            metavar="auto|none|required|PATH",
        ),
    ] = None
    baseline_branch: Annotated[
        str | None,
        OptionSpec(
            "Branch of the baseline, instead of the base branch.",
            group=Group.BASELINE,
            names=Names.TEXT,
            metavar="BRANCH",
        ),
    ] = None


def _is_count(text: str) -> bool:
    """Return whether a text is a number in digits."""
    return text.strip().isascii() and text.strip().isdecimal()


@dataclass(frozen=True)
class HistorySettings:
    """Earlier runs of the base branch, besides the baseline."""

    history: Annotated[
        str,
        OptionSpec(
            "Earlier runs of the base branch to compare with.\n\n"
            "They show how much runs of an unchanged agent differ. N: the newest ones on GitHub, with "
            "`--baseline=auto` and one of `--max-drop`, `--regression` and `--against`; 0: none. DIR: a "
            "folder of results, with `--baseline=PATH`.",
            group=Group.BASELINE,
            names=Names.INPUT,
            is_word=_is_count,
            metavar="N|DIR",
        ),
    ] = "10"

    @property
    def history_folder(self) -> Path | None:
        """The folder of earlier runs, if one is named. A number is none, even if a folder has that name."""
        return None if _is_count(self.history) else Path(self.history)

    @property
    def compares(self) -> bool:
        """True if something asks for a comparison with earlier runs."""
        return False


@dataclass(frozen=True)
class SidesSettings:
    """Agents that are played in the same run as the one that is tested."""

    against: Annotated[
        str | None,
        OptionSpec(
            "Base agent to run side by side, one option per line.\n\n"
            "Both run every test, alternating trial by trial, so changes at a provider affect both. "
            "Options: adapter, adapter-options, agent-id, agent-key, base-url, agent-headers, start, "
            "wait-for. If the base agent fails to run, there is no verdict (exit code 3).",
            group=Group.BASELINE,
            names=Names.AGENTS,
            metavar="OPTION=VALUE",
        ),
    ] = field(default=None, repr=False)
    arms: Annotated[
        Path | None,
        OptionSpec(
            "File of agents to run side by side.\n\n"
            "YAML or JSON: each agent's name with the options of `--against` and `model`. All are compared "
            "with the first.",
            group=Group.BASELINE,
            names=Names.INPUT,
            metavar="FILE",
        ),
    ] = None
    gate_arm: Annotated[
        str | None,
        OptionSpec(
            "Agent of `--arms` that the gate applies to.\n\n"
            "Floors apply to its score, comparison checks to its change from the first agent, or from the "
            "baseline if it is the first. Default: the second.",
            group=Group.BASELINE,
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    both_sides: Annotated[
        BothSides,
        OptionSpec(
            "When to run the base agent.\n\n"
            "`auto`: if the score looks lower than in earlier runs of the base branch, or there are none. "
            "`always`: in every run.",
            group=Group.BASELINE,
            metavar="WHEN",
        ),
    ] = BothSides.AUTO


@dataclass(frozen=True)
class PullRequestSettings(GitHubSettings):
    """The pull request of a comment, and what it is told."""

    pr_number: Annotated[
        int | None, OptionSpec("Pull request, instead of the event's.", group=Group.GITHUB, minimum=1)
    ] = None
    comment_on: Annotated[
        CommentOn,
        OptionSpec(
            "Results that create a new comment.\n\n"
            "`change`: the run did not pass, a test or the score changed since the baseline, or nothing was "
            "compared. `failure`: the run failed or has no verdict. An existing comment is always updated, "
            "so it never shows an old verdict.",
            group=Group.GITHUB,
        ),
    ] = CommentOn.ALWAYS
    check: Annotated[
        bool,
        OptionSpec(
            "Create a check run with score and change.\n\n"
            "On the pull request's head: `success`, `failure`, or `neutral` if there is no verdict or a "
            "drop is suspected but not proven. GitHub accepts `neutral` for a required check, so require "
            "the job instead. Not with `--shard`. Needs `checks: write`.",
            group=Group.GITHUB,
        ),
    ] = False


@dataclass(frozen=True)
class CommentingSettings(PullRequestSettings):
    """The comment of a command that decides a gate."""

    comment: Annotated[
        CommentMode,
        OptionSpec(
            "When to comment on the pull request.\n\n"
            "`auto`: in pull request events, but not with `--shard`. `always`: also on pull requests whose "
            "head is the pushed commit. Needs `pull-requests: write`.",
            group=Group.GITHUB,
        ),
    ] = CommentMode.AUTO


@dataclass(frozen=True)
class AgentApiSettings:
    """How an agent is started and traced, and particulars of its API."""

    agent_headers: Annotated[
        str | None,
        OptionSpec(
            "More headers for the agent, one per line.\n\n"
            "Their values are secrets. For all adapters that call servers.",
            group=Group.AGENT,
            names=Names.TEXT,
            metavar="NAME: VALUE",
        ),
    ] = field(default=None, repr=False)
    start: Annotated[
        str | None,
        OptionSpec(
            "Command that starts the agent, instead of the suite's `start`.\n\n"
            "A shell runs it in the current folder (in the action, inside the container) and stops it after "
            "the run. Its output goes to agent.log in the output folder. If it exits early, there is no "
            "verdict (exit code 3).",
            group=Group.AGENT,
            names=Names.PROGRAM,
            metavar="COMMAND",
        ),
    ] = None
    wait_for: Annotated[
        str | None,
        OptionSpec(
            "Wait until this answers before the run, instead of `waitFor`.\n\n"
            "A URL may answer with any status; a local port must accept a connection. Default: the agent's "
            "base URL with `--start`, otherwise nothing.",
            group=Group.AGENT,
            names=Names.ADDRESS,
            metavar="URL|PORT",
        ),
    ] = None
    otlp: Annotated[
        bool,
        OptionSpec(
            "Read tool calls from the agent's OpenTelemetry spans.\n\n"
            "Receives OTLP over HTTP during the run. The same as `trace: otlp` in all suites.",
            group=Group.AGENT,
        ),
    ] = False
    otlp_port: Annotated[
        int,
        OptionSpec(
            "Port to receive spans on; 0: any free port.",
            group=Group.AGENT,
            metavar="PORT",
            minimum=0,
            maximum=65535,
        ),
    ] = 4318
    otlp_host: Annotated[
        str,
        OptionSpec(
            "Address to receive spans on.\n\n"
            "The default accepts only local connections. 0.0.0.0 lets other containers and hosts send spans "
            "too.",
            group=Group.AGENT,
            names=Names.ADDRESS,
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1"
