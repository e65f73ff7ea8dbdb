"""The job on GitHub that a command runs in, if it runs in one: its event, its commit, its token."""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_evals.adapters import input_files
from ci_evals.adapters.github.context import Context, read
from ci_evals.adapters.github.workflow import check_key
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import CommentMode
from ci_evals.cli.settings.shared import REQUIRED, BaselineSettings, GitHubSettings, PullRequestSettings
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.domain.results.run import Git, Results

if TYPE_CHECKING:
    from ci_evals.adapters.github.api import GitHub

Wait = Callable[[Coroutine[Any, Any, Any]], Any]
"""Sees work to its end and gives what came of it, or None where it was cut off."""

_NO_TOKEN = "there is no GitHub token: set GITHUB_TOKEN"  # noqa: S105  # says so
_NO_REPOSITORY = "GITHUB_REPOSITORY does not say in which repository"


@dataclass(frozen=True)
class GitHubJob:
    """The event of the job, and the token to speak to GitHub with."""

    event: Context
    context: RunContext
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: GitHubSettings, context: RunContext) -> "GitHubJob":
        """What settings and environment say.

        Raises:
            UsageError: the comment key has characters that names of artifacts cannot have.
        """
        check_key(settings.comment_key)
        environ = context.environ
        known = read(environ, _event(environ))
        if isinstance(settings, PullRequestSettings) and settings.pr_number is not None:
            known = replace(known, number=settings.pr_number)
        # In a step with `args` the inputs are no settings, but the token's default is still handed over.
        token = settings.github_token or environ.get("GITHUB_TOKEN") or environ.get("INPUT_GITHUB-TOKEN")
        return cls(known, context, token or None)

    @property
    def git(self) -> Git:
        """What the results tell of the commit."""
        known = self.event
        return Git(
            commit=known.sha,
            ref=known.ref,
            repository=known.repository,
            head_commit=known.head.sha if known.head and known.number else None,
            pull_request=known.number,
        )

    @property
    def missing(self) -> str | None:
        """Why GitHub cannot be asked; None where it can."""
        if not self.event.repository:
            return _NO_REPOSITORY
        return None if self.token else _NO_TOKEN

    @property
    def read_only(self) -> bool:
        """Whether the job's token can only read, whatever it asks for: that of a fork's pull request."""
        return self.event.without_secrets and self.event.foreign

    def client(self) -> "GitHub":
        """A client of its API."""
        from ci_evals.adapters.github.api import GitHub  # noqa: PLC0415  # most runs ask GitHub nothing

        return GitHub(self.event.api_url, self.token or "", redactor=self.context.redactor)


@dataclass(frozen=True)
class BaselineResults:
    """What a run is held against, and the line that says which it is or why there is none."""

    results: Results | None = None
    note: str | None = None


def asked_baseline(settings: BaselineSettings, github: GitHubJob) -> str:
    """Which baseline the settings ask for: `auto`, `none`, `required`, or where it is."""
    asked = settings.baseline or ("auto" if github.event.compared_with_base() else "none")
    return asked.lower() if asked.lower() in {"auto", "none", REQUIRED} else asked


def wants_comment(settings: RunSettings, github: GitHubJob) -> bool:
    """Whether a run posts a comment.

    Not by itself in a fork's pull request, whose token may only read: the second workflow does it.
    """
    match settings.comment:
        case CommentMode.NEVER:
            return False
        case CommentMode.ALWAYS:
            return True
        case CommentMode.AUTO:
            return github.event.of_pull_request and not github.read_only


def _event(environ: Mapping[str, str]) -> Any:
    """The event's payload; without a readable one nothing is known but the environment."""
    path = environ.get("GITHUB_EVENT_PATH")
    try:
        return json.loads(input_files.read(Path(path))) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
