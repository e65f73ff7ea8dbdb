"""Finds the baseline: results that an earlier run left as an artifact on GitHub.

The nearest commit before the base with such an artifact wins, whether its run passed the gate or not. An
artifact's name and branch prove nothing, since any pull request can use them: the run's event and repository
are checked before the artifact is trusted.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, TypeVar, cast
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from ci_evals.adapters.github import archive
from ci_evals.adapters.github.api import PAGE, GitHub
from ci_evals.adapters.github.archive import ArchiveError
from ci_evals.adapters.github.context import GitHubEvent, queue_of
from ci_evals.domain.errors import GitHubError
from ci_evals.support.text import visible, whole

TRUSTED_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"})
"""Events of code that members of this repository merged or started. Other runs on the base branch, such as
those of `pull_request_target`, `workflow_run` and `issue_comment`, may hold strangers' data."""

MAX_LISTED = 500
"""Maximum number of listed artifacts, the newest first."""

MAX_CONFIRMED = 10
"""Maximum number of checked runs."""

_FILE = "_results.json"
_QUEUE_EVENT = "merge_group"
_ACTIONS, _CONTENTS = "actions: read", "contents: read"
_GONE = (404, 410)
"""Statuses of what has expired or was deleted since it was listed."""

_SPOOLED_BYTES = 10_000_000
_SHA_LENGTH = 7
_LINE_LENGTH = 600


@dataclass(frozen=True)
class BaselineRequest:
    """The baseline to look for: the artifact `ci-evals-results-KEY`, of `branch` or the event's base."""

    key: str
    branch: str | None = None


@dataclass(frozen=True)
class BaselineArtifact:
    """An earlier run's results."""

    data: bytes
    """The unread content of `_results.json`."""
    note: str
    """One line about its commit and the distance from the base."""
    commit: str


@dataclass(frozen=True)
class NoBaseline:
    """There is no baseline, for a reason in one line."""

    reason: str


async def find(hub: GitHub, context: GitHubEvent, wanted: BaselineRequest) -> BaselineArtifact | NoBaseline:
    """The baseline for the run that `context` tells of, whose repository is known.

    Usually five requests, the download among them. Whatever GitHub refuses or answers is told as `Missing`.
    """
    branch = wanted.branch or context.base.branch
    if not branch:
        return NoBaseline(_line(NO_BRANCH, event=context.event))
    search = _Search(hub, context, whole(f"ci-evals-results-{wanted.key}"), whole(branch))
    try:
        return await search.result()
    except GitHubError as error:
        return NoBaseline(_line(NO_ANSWER, why=error))


class _GitHubAnswer(BaseModel):
    """A part of an answer of GitHub's. An unexpected one is skipped."""

    model_config = ConfigDict(frozen=True, strict=True)


_T = TypeVar("_T", bound=_GitHubAnswer)
_Sha = Annotated[str, StringConstraints(pattern="^[0-9a-f]{7,64}$")]
_Moment = Annotated[AwareDatetime, Field(strict=False)]


class _ListedRun(_GitHubAnswer):
    id: int
    repository_id: int
    head_repository_id: int
    head_branch: str
    head_sha: _Sha


class _Artifact(_GitHubAnswer):
    id: int
    name: str
    expired: bool
    created_at: _Moment
    run: _ListedRun = Field(alias="workflow_run")


class _RunRepository(_GitHubAnswer):
    id: int


class _RunDetails(_GitHubAnswer):
    id: int
    event: str
    head_branch: str
    head_sha: _Sha
    repository: _RunRepository
    head_repository: _RunRepository


class _Parent(_GitHubAnswer):
    sha: _Sha


class _Committer(_GitHubAnswer):
    date: _Moment


class _Details(_GitHubAnswer):
    committer: _Committer


class _ListedCommit(_GitHubAnswer):
    sha: _Sha
    parents: list[_Parent]
    details: _Details = Field(alias="commit")


@dataclass(frozen=True)
class _History:
    """The base and the commits before it, the nearest first; without a base, those of the branch."""

    base: str | None
    tested: bool = False
    """True if the base is the tested commit itself, as in nightly runs."""
    commits: Sequence[_ListedCommit] = ()
    unread: GitHubError | None = None
    """The reason why there are no commits."""

    def is_after(self, artifact: _Artifact) -> bool:
        """Return whether the base is newer than the artifact, as far as commits can be read."""
        if self.base is None or not self.commits:
            return True
        return artifact.created_at <= self.commits[0].details.committer.date

    def relation(self, index: int | None, branch: str) -> str:
        """Describe the commit at `index` relative to the base; None is one that is not among `commits`."""
        if self.base is None:
            return NEWEST.format(branch=branch)
        if self.unread:
            return UNSURE.format(branch=branch, why=self.unread)
        if index is None:
            return FAR.format(branch=branch, page=PAGE)
        if index == 0:
            return AT_TESTED if self.tested else AT_BASE
        distance = "1 commit" if index == 1 else f"{index} commits"
        return (BEFORE_TESTED if self.tested else BEFORE).format(distance=distance)


@dataclass(frozen=True)
class _BaselineCandidate:
    """An artifact that may be the baseline, and its relation to the base."""

    artifact: _Artifact
    relation: str


@dataclass(frozen=True)
class _Search:
    hub: GitHub
    context: GitHubEvent
    name: str
    branch: str

    async def result(self) -> BaselineArtifact | NoBaseline:
        listed, cut = await self._listed()
        usable = [artifact for artifact in listed if not artifact.expired and self._may_serve(artifact.run)]
        if not usable:
            return self._missing(self._why_none(listed, cut=cut))
        candidates = self._ranked(usable, await self._history())
        if not candidates:
            own = any(artifact.run.head_branch == self.branch for artifact in usable)
            return self._missing(ALL_NEWER if own else ONLY_OTHERS)
        expired = unfinished = False
        for candidate in candidates[:MAX_CONFIRMED]:
            run = candidate.artifact.run
            if not await self._is_confirmed(run):
                continue
            try:
                data = await self._content(candidate.artifact)
            except ArchiveError as error:
                return self._missing(UNREADABLE, commit=run.head_sha[:_SHA_LENGTH], why=error)
            if data is not None and _is_unfinished(data):
                unfinished = True
                continue
            if data is not None:
                note = _line(
                    FOUND,
                    commit=run.head_sha[:_SHA_LENGTH],
                    branch=self.branch,
                    relation=candidate.relation,
                )
                return BaselineArtifact(data, note, run.head_sha)
            expired = True
        if unfinished:
            return self._missing(ALL_UNFINISHED)
        return self._missing(ALL_EXPIRED if expired else ONLY_OTHERS)

    async def _listed(self) -> tuple[list[_Artifact], bool]:
        """Return the artifacts of exactly this name of other runs, and whether there may be older ones."""
        artifacts: dict[int, _Artifact] = {}  # pages shift while they are read: one may come twice
        seen = 0
        path = f"{self._repository}/actions/artifacts"
        async for item in self.hub.pages(path, needs=_ACTIONS, within="artifacts", name=self.name):
            artifact = _read(_Artifact, item)
            if artifact and artifact.name == self.name and not self._is_own(artifact.run):
                artifacts[artifact.id] = artifact
            seen += 1
            if seen == MAX_LISTED:
                break
        return list(artifacts.values()), seen == MAX_LISTED

    def _is_own(self, run: _ListedRun) -> bool:
        """Return whether it is an earlier attempt of this run."""
        return self.context.own_run is not None and run.id == self.context.own_run.id

    def _may_serve(self, run: _ListedRun) -> bool:
        here = run.repository_id == run.head_repository_id
        return here and (run.head_branch == self.branch or self._is_queued(run))

    def _is_queued(self, run: _ListedRun) -> bool:
        """Return whether it ran in the merge queue."""
        return run.head_branch.startswith(queue_of(self.branch))

    def _why_none(self, listed: Sequence[_Artifact], *, cut: bool) -> str:
        if any(self._may_serve(artifact.run) for artifact in listed):
            return ALL_EXPIRED
        if cut:
            return HIDDEN
        return ONLY_OTHERS if listed else NONE_YET

    async def _history(self) -> _History:
        base = await self._base()
        tested = base is not None and base == self.context.sha
        path = f"{self._repository}/commits"
        try:
            items = await self.hub.get(path, needs=_CONTENTS, sha=base or self.branch, per_page=PAGE)
        except GitHubError as error:
            return _History(base, tested, unread=error)
        commits = [_read(_ListedCommit, item) for item in items] if isinstance(items, list) else []
        known = [commit for commit in commits if commit]
        return _History(base, tested, known, unread=None if known else GitHubError("GitHub lists none"))

    async def _base(self) -> str | None:
        """Return the commit that the tested code builds on, if the branch is the one that it goes to."""
        base = self.context.base
        if base.branch != self.branch:
            return None
        if base.merge:
            path = f"{self._repository}/commits/{quote(whole(base.merge), safe='')}"
            with suppress(GitHubError):
                merge = _read(_ListedCommit, await self.hub.get(path, needs=_CONTENTS))
                if merge and len(merge.parents) > 1:
                    return merge.parents[0].sha
        return whole(base.sha) if base.sha else None

    def _ranked(self, artifacts: Sequence[_Artifact], history: _History) -> list[_BaselineCandidate]:
        """Return candidates, the best first: the nearest commits, then the newest runs of the branch."""
        indexes = {commit.sha: index for index, commit in enumerate(history.commits)}
        kept = [
            artifact
            for artifact in artifacts
            if artifact.run.head_sha in indexes
            or (artifact.run.head_branch == self.branch and history.is_after(artifact))
        ]
        kept.sort(key=lambda artifact: (indexes.get(artifact.run.head_sha, len(indexes)), -artifact.id))
        return [
            _BaselineCandidate(artifact, history.relation(indexes.get(artifact.run.head_sha), self.branch))
            for artifact in kept
        ]

    async def _is_confirmed(self, listed: _ListedRun) -> bool:
        """Return whether the run is as the list of artifacts describes it, and its event is trusted."""
        try:
            data = await self.hub.get(f"{self._repository}/actions/runs/{listed.id}", needs=_ACTIONS)
        except GitHubError as error:
            if error.status in _GONE:
                return False
            raise
        run = _read(_RunDetails, data)
        if run is None or run.event not in TRUSTED_EVENTS:
            return False
        return (
            (run.event == _QUEUE_EVENT or not self._is_queued(listed))
            and run.head_repository.id == run.repository.id == listed.repository_id
            and (run.id, run.head_branch, run.head_sha) == (listed.id, listed.head_branch, listed.head_sha)
        )

    async def _content(self, artifact: _Artifact) -> bytes | None:
        """Return the content of an artifact; None if it is gone."""
        path = f"{self._repository}/actions/artifacts/{artifact.id}/zip"
        with SpooledTemporaryFile(_SPOOLED_BYTES) as spooled:
            file = cast("BinaryIO", spooled)
            try:
                await self.hub.download(path, file, needs=_ACTIONS, max_mb=archive.MAX_MB)
                return archive.read(file, _FILE)
            except GitHubError as error:
                if error.status in _GONE:
                    return None
                raise
            except OSError as error:
                raise GitHubError(f"the download cannot be kept ({error.strerror or error})") from error

    def _missing(self, text: str, **parts: object) -> NoBaseline:
        return NoBaseline(_line(text, name=self.name, branch=self.branch, most=MAX_LISTED, **parts))

    @property
    def _repository(self) -> str:
        return f"/repos/{self.context.repository}"


def _read(kind: type[_T], data: Any) -> _T | None:
    try:
        return kind.model_validate(data)
    except ValidationError:
        return None


def _is_unfinished(data: bytes) -> bool:
    """Return whether results are of a run that was cut off."""
    if b'"unfinished"' not in data:
        return False  # most are large, and are read by the caller
    try:
        match json.loads(data):
            case {"run": {"status": "unfinished"}}:
                return True
    except (ValueError, RecursionError):
        pass  # the caller says what is wrong with it
    return False


def _line(text: str, **parts: object) -> str:
    """Fill in a template on one printable line."""
    return " ".join(visible(text.format(**parts)).split())[:_LINE_LENGTH]


# Notes on the baseline, then reasons why there is none.

FOUND = "the baseline is commit {commit} of {branch}, {relation}"
AT_BASE = "the base commit"
AT_TESTED = "the same commit in an earlier run"
BEFORE = "{distance} before the base"
BEFORE_TESTED = "{distance} before this one"
FAR = "the newest run of {branch} before the base; not among the last {page} commits"
NEWEST = "the newest run of {branch}"
UNSURE = "the newest run of {branch}; it may be newer than the base, since the commits cannot be read: {why}"

NONE_YET = (
    "no baseline yet: no run on {branch} has left the artifact {name!r}; it is uploaded by the first "
    "run there"
)
ONLY_OTHERS = (
    "no baseline yet: only pull requests, forks, other branches or untrusted events have left the artifact "
    "{name!r}; it is uploaded by the first run on {branch}"
)
HIDDEN = (
    "no baseline: none of the newest {most} artifacts {name!r} is of a run on {branch}; what pull requests "
    "leave needs another name"
)
ALL_EXPIRED = (
    "no baseline: all artifacts {name!r} of {branch} have expired; the next run there uploads a new one"
)
ALL_UNFINISHED = (
    "no baseline: the runs of {branch} that left the artifact {name!r} were cut off before they had finished"
)
ALL_NEWER = "no baseline: all runs of {branch} that left the artifact {name!r} are newer than the base"
UNREADABLE = "no baseline: the artifact {name!r} of commit {commit} {why}"
NO_ANSWER = "no baseline: {why}"
NO_BRANCH = "no baseline: the event {event!r} names no base branch; name one by --baseline-branch"
