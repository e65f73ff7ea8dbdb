"""What the commands do on GitHub: read the event, find the baseline, post the comment.

Nothing here decides an exit code: what GitHub refuses is told in one line, and the run stands without it.
"""

import asyncio
import json
import os
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ci_evals.adapters.github import baseline as artifacts
from ci_evals.adapters.github import comments, context, pulls
from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.context import Context
from ci_evals.cli.choices import Commenting
from ci_evals.cli.console import PLEASE_REPORT, error_console
from ci_evals.cli.settings import BaselineSettings, GitHubSettings, PullRequestSettings, RunSettings
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.domain.results import Git, Results
from ci_evals.library import load_results
from ci_evals.reports import comment, layout

Wait = Callable[[Coroutine[Any, Any, Any]], Any]
"""Sees work to its end and gives what came of it, or None where it was cut off."""

_FIND_SECONDS = 180.0
_POST_SECONDS = 90.0
_NO_TOKEN = "there is no GitHub token: give --github-token or set GITHUB_TOKEN"  # noqa: S105  # says so
_NO_REPOSITORY = "GITHUB_REPOSITORY does not say in which repository"


@dataclass(frozen=True)
class Platform:
    """The event of the job, and the token to speak to GitHub with."""

    context: Context
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: GitHubSettings, environ: Mapping[str, str]) -> "Platform":
        """What settings and environment say.

        Raises:
            UsageError: the comment key has characters that names of artifacts cannot have.
        """
        comments.check_key(settings.comment_key)
        known = context.read(environ, _event(environ))
        if isinstance(settings, PullRequestSettings) and settings.pr_number is not None:
            known = replace(known, number=settings.pr_number)
        # In a step with `args` the inputs are no settings, but the token's default is still handed over.
        token = settings.github_token or environ.get("GITHUB_TOKEN") or environ.get("INPUT_GITHUB-TOKEN")
        return cls(known, token or None)

    @property
    def git(self) -> Git:
        """What the results tell of the commit."""
        known = self.context
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
        if not self.context.repository:
            return _NO_REPOSITORY
        return None if self.token else _NO_TOKEN

    @property
    def read_only(self) -> bool:
        """Whether the job's token can only read, whatever it asks for: that of a fork's pull request."""
        return self.context.without_secrets and self.context.foreign

    def client(self) -> GitHub:
        """A client of its API."""
        return GitHub(self.context.api_url, self.token or "", redactor=error_console(os.environ).redactor)


def _event(environ: Mapping[str, str]) -> Any:
    """The event's payload; without a readable one nothing is known but the environment."""
    path = environ.get("GITHUB_EVENT_PATH")
    try:
        return json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}


@dataclass(frozen=True)
class Held:
    """What a run is held against, and the line that says which it is or why there is none."""

    results: Results | None = None
    note: str | None = None


def baseline_of(settings: BaselineSettings, platform: Platform, wait: Wait = asyncio.run) -> Held:
    """The baseline that the settings ask for. `wait` sees the search to its end, or gives None.

    Raises:
        UsageError: they name a file that is not there or is none of ours.
    """
    asked = settings.baseline or ("auto" if platform.context.compared_with_base() else "none")
    match asked.lower():
        case "none":
            return Held()
        case "auto":
            return _recorded(settings, platform, wait)
    try:
        return Held(load_results(asked))
    except UsageError as error:
        raise UsageError(f"--baseline: {error}") from error


def _recorded(settings: BaselineSettings, platform: Platform, wait: Wait) -> Held:
    """The baseline that a run of the base branch left on GitHub. Whatever goes wrong is told in one line."""
    if platform.missing:
        return Held(note=f"no baseline: {platform.missing}")
    try:
        found = wait(_found(platform, artifacts.Wanted(settings.comment_key, settings.baseline_branch)))
        if isinstance(found, artifacts.Found):
            return Held(layout.load(found.data, f"the results of commit {found.commit[:7]}"), found.note)
        return Held(note=found.why if found else "no baseline: the search was interrupted")
    except TimeoutError:
        why = "GitHub did not answer in time"
    except (GitHubError, UsageError) as error:
        why = str(error).splitlines()[0]
    except Exception:  # noqa: BLE001  # a run must not fail over what it is compared with
        error_console(os.environ).say(f"{traceback.format_exc()}\n{PLEASE_REPORT}")
        why = "a bug in ci-evals (see the log)"
    return Held(note=f"no baseline: {why}")


async def _found(platform: Platform, wanted: artifacts.Wanted) -> artifacts.Found | artifacts.Missing:
    async with asyncio.timeout(_FIND_SECONDS), platform.client() as hub:
        return await artifacts.find(hub, await pulls.located(hub, platform.context), wanted)


def wants_comment(settings: RunSettings, platform: Platform) -> bool:
    """Whether a run posts a comment.

    Not by itself in a fork's pull request, whose token may only read: the second workflow does it.
    """
    match settings.comment:
        case Commenting.NEVER:
            return False
        case Commenting.ALWAYS:
            return True
        case Commenting.AUTO:
            return platform.context.of_pull_request and not platform.read_only


def text_of(results: Results, platform: Platform) -> str:
    """The comment as people will see it."""
    return comment.render(results, _place(platform))


def refusal(reason: str, platform: Platform) -> str:
    """The comment where nothing was run."""
    return comment.refused(reason, _place(platform))


def _place(platform: Platform) -> comment.Place:
    known = platform.context
    foreign = known.foreign and known.event == "workflow_run"
    own = known.head if known.of_pull_request else None
    return comment.Place(run_url=known.run_url, commit=own.sha if own else None, foreign=foreign)


async def post(
    text: str, key: str, platform: Platform, *, pushed: bool = True, create: bool = True
) -> tuple[str, ...]:
    """Posts a comment, and gives back what became of it, a line for each pull request.

    Args:
        text: What it says.
        key: Of the comment.
        platform: Where to.
        pushed: Whether a pushed commit's pull requests are looked for too.
        create: Whether there is to be one where there was none.

    Raises:
        GitHubError: it was not posted; the text says why, and what to do.
    """
    if platform.missing:
        raise GitHubError(platform.missing)
    try:
        async with asyncio.timeout(_POST_SECONDS), platform.client() as hub:
            known = platform.context
            numbers = await pulls.numbers_of(hub, known, pushed=pushed)
            commit = known.head.sha if known.head else known.sha
            written = comments.Comment(key, text, known.run, commit)
            return await _posted(hub, known.repository or "", numbers, written, create=create)
    except TimeoutError as error:
        raise GitHubError("GitHub did not answer in time") from error


async def _posted(
    hub: GitHub, repository: str, numbers: Sequence[int], written: comments.Comment, *, create: bool
) -> tuple[str, ...]:
    if not numbers:
        return ("no comment: no open pull request has this commit as its head",)
    told = []
    for number in numbers:
        posted = await comments.post(hub, repository, number, written, create=create)
        told.append(f"comment on #{number} {posted.what}" + (f": {posted.url}" if posted.url else ""))
    return tuple(told)
