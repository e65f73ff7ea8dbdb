"""The job on GitHub that a command runs in, if any: its event, its commit, its token."""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_evals.adapters import input_files
from ci_evals.adapters.git.checkout import checkout_of
from ci_evals.adapters.github.context import GitHubEvent, read
from ci_evals.adapters.github.workflow import check_key
from ci_evals.cli.github.run_identity import commit_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import CommentMode
from ci_evals.cli.settings.shared import (
    BASELINE_WORDS,
    BaselineSettings,
    CommentingSettings,
    GitHubSettings,
    PullRequestSettings,
)
from ci_evals.domain.results.run import Git
from ci_evals.extension_registry import lacks_gitlab, platform_of

if TYPE_CHECKING:
    from ci_evals.adapters.github.api import GitHub

Wait = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs asynchronous work to its end; returns its result, or None if it was interrupted."""

_NO_TOKEN = "GITHUB_TOKEN is not set"  # noqa: S105  # says so
_NO_REPOSITORY = "GITHUB_REPOSITORY does not say in which repository"


@dataclass(frozen=True)
class GitHubJob:
    """The event of the job, and the token to speak to GitHub with."""

    event: GitHubEvent
    context: RunContext
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: object, context: RunContext) -> "GitHubJob":
        """Read settings and environment. Commands that know nothing of GitHub have no settings for it.

        Raises:
            UsageError: the comment key has characters that names of artifacts cannot have.
        """
        settings = settings if isinstance(settings, GitHubSettings) else GitHubSettings()
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
        """The commit, as results name it."""
        known = self.event
        return Git(
            commit=commit_of(known, self.context),
            ref=known.ref,
            repository=known.repository,
            head_commit=known.head.sha if known.head and known.number else None,
            pull_request=known.number,
        )

    @property
    def tests_merge(self) -> bool:
        """True if the checkout is the pull request merged with its base, as GitHub made it for this job.

        Any other, such as the tip of the branch, may lack commits of the base branch. Without a checkout, as
        where shards are merged, it is taken to be the commit that the job was started for.
        """
        known, checkout = self.event, checkout_of(Path.cwd())
        tested = checkout.commit if checkout else known.sha
        return tested == known.sha and tested not in {None, known.head.sha if known.head else None}

    @property
    def missing(self) -> str | None:
        """The reason why GitHub cannot be called; None if it can."""
        if not self.event.repository:
            return _NO_REPOSITORY
        return None if self.token else _NO_TOKEN

    @property
    def read_only(self) -> bool:
        """True if the job's token can only read: that of a fork's pull request."""
        return self.event.without_secrets and self.event.foreign

    def client(self) -> "GitHub":
        """Return a client of its API."""
        from ci_evals.adapters.github.api import GitHub  # noqa: PLC0415  # most runs ask GitHub nothing

        return GitHub(self.event.api_url, self.token or "", redactor=self.context.redactor)


def baseline_option(settings: BaselineSettings, github: GitHubJob) -> str:
    """Return the baseline that the settings name: `auto`, `none`, `required`, or its path."""
    option = settings.baseline or ("auto" if _has_base(github) else "none")
    return option.lower() if option.lower() in BASELINE_WORDS else option


def _has_base(github: GitHubJob) -> bool:
    environ = github.context.environ
    if lacks_gitlab(environ) and environ.get("CI_MERGE_REQUEST_IID"):
        return True
    platform = platform_of(environ)
    return github.event.compared_with_base() or (platform is not None and platform.has_base(environ))


def wants_comment(settings: CommentingSettings, github: GitHubJob) -> bool:
    """Return whether a run posts a comment.

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
    """Return the event's payload, empty if it cannot be read."""
    path = environ.get("GITHUB_EVENT_PATH")
    try:
        return json.loads(input_files.read(Path(path))) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
