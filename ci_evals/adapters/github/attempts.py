"""Finds what earlier attempts at the same commit left: the artifacts `ci-evals-attempt-KEY-N` of their runs.

A run belongs to the commit if GitHub says so: the same workflow file, event, branch and commit as this run,
and no fork. Then whoever could write its artifacts could have written this run too. N is GitHub's attempt, so
that a rerun does not replace what an earlier attempt left. What cannot be read is returned as such, never
skipped: it may be a failure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, TypeVar, cast

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, ValidationError

from ci_evals.adapters.github import archive
from ci_evals.adapters.github.api import MAX_PAGES, PAGE, GitHub
from ci_evals.adapters.github.archive import ArchiveError
from ci_evals.adapters.github.context import GitHubEvent, WorkflowRun
from ci_evals.domain.errors import GitHubError

MAX_RUNS = 20
"""Maximum number of workflow runs that are searched, the newest first."""

MAX_LISTED = 1000
"""Maximum number of runs that GitHub lists for a commit."""

MAX_ATTEMPTS = 50
"""Maximum number of artifacts that are read, the newest first. Each carries the trials that it pooled."""

_FILE = "_results.json"
_ACTIONS = "actions: read"
_ALONE = frozenset(
    {
        "schedule",
        "repository_dispatch",
        "workflow_dispatch",
        "workflow_run",
        "issue_comment",
        "pull_request_target",
    }
)
"""Events of whose runs only the attempts belong together: their commit is not the one that is tested, their
inputs are not known, or they ask again on purpose what may have changed since, such as a model."""
_SPOOLED_BYTES = 10_000_000
_T = TypeVar("_T", bound=BaseModel)


@dataclass(frozen=True)
class Attempt:
    """An attempt that left results."""

    run: int
    attempt: int
    data: bytes | None = None
    """The unread content of `_results.json`; None if it cannot be had."""
    why: str = ""
    """The reason, in a clause."""


@dataclass(frozen=True)
class Found:
    """The earlier attempts that were found."""

    attempts: list[Attempt]
    cut: bool
    """True if there may be more, beyond a limit."""


class NotPermittedError(GitHubError):
    """The token may not read workflow runs at all, so that no attempt of this workflow can be pooled."""


class _Run(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    id: int
    workflow_id: int
    event: str
    head_sha: str
    head_branch: str | None
    path: str
    started_at: str = Field(validation_alias=AliasChoices("run_started_at", "created_at"))
    """In ISO 8601, of the latest attempt."""
    repository_id: int = Field(validation_alias=AliasChoices("repository_id", AliasPath("repository", "id")))
    head_repository_id: int = Field(
        validation_alias=AliasChoices("head_repository_id", AliasPath("head_repository", "id"))
    )

    @property
    def identity(self) -> tuple[str, str, str | None, str, int, int]:
        """The facts that all runs of one commit share."""
        where = (self.repository_id, self.head_repository_id)
        return self.event, self.head_sha, self.head_branch, self.path, *where


class _Artifact(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    id: int
    name: str
    expired: bool


def artifact_name(key: str, attempt: int) -> str:
    """Return the name under which an attempt leaves its results."""
    return f"ci-evals-attempt-{key}-{attempt}"


async def find(hub: GitHub, event: GitHubEvent, key: str, own: WorkflowRun) -> Found:
    """Find the earlier attempts at the commit of this run, those of this run last.

    The event's repository is known. That takes three requests, one more for each other run, and two more for
    each attempt.

    Raises:
        NotPermittedError: the token lacks the permission.
        GitHubError: GitHub does not say which attempts there are.
    """
    runs, cut = await _runs(hub, event, own)
    attempts: list[Attempt] = []
    for run in runs:
        path = f"/repos/{event.repository}/actions/runs/{run}/artifacts"
        found = [item async for item in hub.pages(path, needs=_ACTIONS, within="artifacts")]
        cut = cut or len(found) >= MAX_PAGES * PAGE
        for number, artifact in _of_key(found, key):
            if run == own.id and number >= own.attempt:
                continue
            if len(attempts) == MAX_ATTEMPTS:
                cut = True
                break
            attempts.append(await _read(hub, event, Attempt(run, number), artifact))
    return Found(attempts[::-1], cut)


async def _runs(hub: GitHub, event: GitHubEvent, own: WorkflowRun) -> tuple[list[int], bool]:
    """Return the runs of this run's commit, itself first, then the newest, and whether that is not all."""
    actions = f"/repos/{event.repository}/actions"
    this = _parsed(_Run, await _own_run(hub, f"{actions}/runs/{own.id}"))
    if this is None:
        raise GitHubError("GitHub describes this workflow run in an unknown way")
    if this.repository_id != this.head_repository_id:
        return [], False
    if this.event in _ALONE:
        return [this.id], False
    path = f"{actions}/workflows/{this.workflow_id}/runs"
    asked = {"head_sha": this.head_sha, "event": this.event}
    items = [item async for item in hub.pages(path, needs=_ACTIONS, within="workflow_runs", **asked)]
    others = [run for item in items if (run := _parsed(_Run, item))]
    # A run with a higher id is an earlier one too, if this one is an older run that is rerun.
    same = [run for run in others if run.id != this.id and run.identity == this.identity]
    same.sort(key=lambda run: (run.started_at, run.id), reverse=True)
    searched = [this.id, *(run.id for run in same)]
    return searched[:MAX_RUNS], len(searched) > MAX_RUNS or len(items) >= MAX_LISTED


async def _own_run(hub: GitHub, path: str) -> Any:
    """Return this workflow run. Only here does a refusal mean the permission: later it is a fault."""
    try:
        return await hub.get(path, needs=_ACTIONS)
    except GitHubError as error:
        if error.not_permitted:
            raise NotPermittedError(str(error), error.status) from error
        raise


def _of_key(items: list[Any], key: str) -> Iterator[tuple[int, _Artifact]]:
    """Yield the attempts' artifacts of this key, the newest attempt first.

    A later attempt may upload one more by the name of an earlier one, which must not hide what that left.
    """
    name = re.compile(re.escape(artifact_name(key, 0)[:-1]) + r"([1-9][0-9]{0,5})")
    found: list[tuple[int, _Artifact]] = []
    for item in items:
        artifact = _parsed(_Artifact, item)
        numbered = name.fullmatch(artifact.name) if artifact else None
        if artifact and numbered:
            found.append((int(numbered[1]), artifact))
    yield from sorted(found, key=lambda entry: -entry[0])


async def _read(hub: GitHub, event: GitHubEvent, attempt: Attempt, artifact: _Artifact) -> Attempt:
    run, number = attempt.run, attempt.attempt
    if artifact.expired:
        return Attempt(run, number, why="its artifact has expired")
    path = f"/repos/{event.repository}/actions/artifacts/{artifact.id}/zip"
    with SpooledTemporaryFile(_SPOOLED_BYTES) as spooled:
        file = cast("BinaryIO", spooled)
        try:
            await hub.download(path, file, needs=_ACTIONS, max_mb=archive.MAX_MB)
            return Attempt(run, number, archive.read(file, _FILE))
        except ArchiveError as error:
            return Attempt(run, number, why=f"its artifact {error}")
        except GitHubError as error:
            return Attempt(run, number, why=f"its artifact cannot be downloaded: {error}")
        except OSError as error:
            return Attempt(run, number, why=f"its artifact cannot be kept ({error.strerror or error})")


def _parsed(kind: type[_T], data: Any) -> _T | None:
    try:
        return kind.model_validate(data)
    except ValidationError:
        return None
