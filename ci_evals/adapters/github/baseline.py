"""Finds the results to compare a run with: those that an earlier run left as an artifact on GitHub.

The nearest commit before the base whose run left some is taken. An artifact's name and branch prove nothing:
anybody's pull request can leave one of this name, from a branch of this name. So its run is asked for its
event and its repository before it is believed. That a run missed its gate does not matter: it serves as well.
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
from ci_evals.adapters.github.context import Context, queue_of
from ci_evals.domain.errors import GitHubError
from ci_evals.support.text import visible, whole

TRUSTED_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"})
"""Events whose runs play what this repository's own people merged or started. Runs of others, such as
`pull_request_target`, `workflow_run` and `issue_comment`, may hold strangers' data on the base branch too."""

MOST_LISTED = 500
"""Artifacts that are looked at: the newest, which GitHub lists first."""

MOST_CONFIRMED = 10
"""Runs that are asked for."""

_FILE = "_results.json"
_QUEUE_EVENT = "merge_group"
_ACTIONS, _CONTENTS = "actions: read", "contents: read"
_GONE = (404, 410)
"""The answers for what has expired or was deleted since it was listed."""

_SPOOLED_BYTES = 10_000_000
_SHA_LENGTH = 7
_LINE_LENGTH = 600


@dataclass(frozen=True)
class Wanted:
    """Whose results: the artifact is `ci-evals-results-KEY`. `branch` takes the place of the event's base."""

    key: str
    branch: str | None = None


@dataclass(frozen=True)
class Found:
    """An earlier run's results."""

    data: bytes
    """What `_results.json` holds, unread."""
    note: str
    """One line for people: which commit it is, and how it lies to the base."""
    commit: str


@dataclass(frozen=True)
class Missing:
    """There is no baseline. `why` is one line for people."""

    why: str


async def find(hub: GitHub, context: Context, wanted: Wanted) -> Found | Missing:
    """The baseline for the run that `context` tells of, whose repository is known.

    Usually five requests, the download among them. Whatever GitHub refuses or answers is told as `Missing`.
    """
    branch = wanted.branch or context.base.branch
    if not branch:
        return Missing(_line(NO_BRANCH, event=context.event))
    search = _Search(hub, context, whole(f"ci-evals-results-{wanted.key}"), whole(branch))
    try:
        return await search.result()
    except GitHubError as error:
        return Missing(_line(NO_ANSWER, why=error))


class _Told(BaseModel):
    """A part of what GitHub tells. Where it is not as documented, it is passed over."""

    model_config = ConfigDict(frozen=True, strict=True)


_T = TypeVar("_T", bound=_Told)
_Sha = Annotated[str, StringConstraints(pattern="^[0-9a-f]{7,64}$")]
_Moment = Annotated[AwareDatetime, Field(strict=False)]


class _ListedRun(_Told):
    id: int
    repository_id: int
    head_repository_id: int
    head_branch: str
    head_sha: _Sha


class _Artifact(_Told):
    id: int
    name: str
    expired: bool
    created_at: _Moment
    run: _ListedRun = Field(alias="workflow_run")


class _Repository(_Told):
    id: int


class _Run(_Told):
    id: int
    event: str
    head_branch: str
    head_sha: _Sha
    repository: _Repository
    head_repository: _Repository


class _Parent(_Told):
    sha: _Sha


class _Committer(_Told):
    date: _Moment


class _Details(_Told):
    committer: _Committer


class _Commit(_Told):
    sha: _Sha
    parents: list[_Parent]
    details: _Details = Field(alias="commit")


@dataclass(frozen=True)
class _History:
    """The base and the commits before it, the nearest first; without a base, those of the branch."""

    base: str | None
    tested: bool = False
    """Whether the base is the tested commit itself, as at night: what lies before it are earlier runs."""
    commits: Sequence[_Commit] = ()
    unread: GitHubError | None = None
    """Why there are no commits."""

    def is_after(self, artifact: _Artifact) -> bool:
        """Whether the artifact was there before the base, as far as commits can be read."""
        if self.base is None or not self.commits:
            return True
        return artifact.created_at <= self.commits[0].details.committer.date

    def lies(self, place: int | None, branch: str) -> str:
        """How the commit at `place` lies to the base; None is one that is not among `commits`."""
        if self.base is None:
            return NEWEST.format(branch=branch)
        if self.unread:
            return UNSURE.format(branch=branch, why=self.unread)
        if place is None:
            return FAR.format(branch=branch, page=PAGE)
        if place == 0:
            return AT_TESTED if self.tested else AT_BASE
        distance = "1 commit" if place == 1 else f"{place} commits"
        return (BEFORE_TESTED if self.tested else BEFORE).format(distance=distance)


@dataclass(frozen=True)
class _Candidate:
    """An artifact that may be the baseline, and how its commit lies to the base."""

    artifact: _Artifact
    lies: str


@dataclass(frozen=True)
class _Search:
    hub: GitHub
    context: Context
    name: str
    branch: str

    async def result(self) -> Found | Missing:
        listed, cut = await self._listed()
        there = [one for one in listed if not one.expired and self._may_serve(one.run)]
        if not there:
            return self._missing(self._why_none(listed, cut=cut))
        candidates = self._ranked(there, await self._history())
        if not candidates:
            own = any(one.run.head_branch == self.branch for one in there)
            return self._missing(ALL_NEWER if own else ONLY_OTHERS)
        expired = unfinished = False
        for candidate in candidates[:MOST_CONFIRMED]:
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
                commit, lies = run.head_sha[:_SHA_LENGTH], candidate.lies
                return Found(data, _line(FOUND, commit=commit, branch=self.branch, lies=lies), run.head_sha)
            expired = True
        if unfinished:
            return self._missing(ALL_UNFINISHED)
        return self._missing(ALL_EXPIRED if expired else ONLY_OTHERS)

    async def _listed(self) -> tuple[list[_Artifact], bool]:
        """The artifacts of exactly this name that other runs left, and whether there may be older ones."""
        found: dict[int, _Artifact] = {}  # pages move on while they are read: one may come twice
        seen = 0
        path = f"{self._repository}/actions/artifacts"
        async for item in self.hub.pages(path, needs=_ACTIONS, within="artifacts", name=self.name):
            artifact = _read(_Artifact, item)
            if artifact and artifact.name == self.name and not self._is_own(artifact.run):
                found[artifact.id] = artifact
            seen += 1
            if seen == MOST_LISTED:
                break
        return list(found.values()), seen == MOST_LISTED

    def _is_own(self, run: _ListedRun) -> bool:
        """Whether it is this very run, which was started again."""
        return self.context.own_run is not None and run.id == self.context.own_run.id

    def _may_serve(self, run: _ListedRun) -> bool:
        here = run.repository_id == run.head_repository_id
        return here and (run.head_branch == self.branch or self._is_queued(run))

    def _is_queued(self, run: _ListedRun) -> bool:
        """Whether it ran in the merge queue. Its commit counts only once it is on the branch."""
        return run.head_branch.startswith(queue_of(self.branch))

    def _why_none(self, listed: Sequence[_Artifact], *, cut: bool) -> str:
        if any(self._may_serve(one.run) for one in listed):
            return ALL_EXPIRED
        if cut:
            return HIDDEN
        return ONLY_OTHERS if listed else NONE_YET

    async def _history(self) -> _History:
        base = await self._base()
        tested = base is not None and base == self.context.sha
        path = f"{self._repository}/commits"
        try:
            told = await self.hub.get(path, needs=_CONTENTS, sha=base or self.branch, per_page=PAGE)
        except GitHubError as error:
            return _History(base, tested, unread=error)
        commits = [_read(_Commit, item) for item in told] if isinstance(told, list) else []
        known = [commit for commit in commits if commit]
        return _History(base, tested, known, unread=None if known else GitHubError("GitHub lists none"))

    async def _base(self) -> str | None:
        """The commit that the tested code builds on, where the branch is the one that it goes to."""
        base = self.context.base
        if base.branch != self.branch:
            return None
        if base.merge:
            path = f"{self._repository}/commits/{quote(whole(base.merge), safe='')}"
            with suppress(GitHubError):
                merge = _read(_Commit, await self.hub.get(path, needs=_CONTENTS))
                if merge and len(merge.parents) > 1:
                    return merge.parents[0].sha
        return whole(base.sha) if base.sha else None

    def _ranked(self, there: Sequence[_Artifact], history: _History) -> list[_Candidate]:
        """Those that may serve, the best first: the nearest commits, then the newest runs of the branch."""
        places = {commit.sha: place for place, commit in enumerate(history.commits)}
        kept = [
            one
            for one in there
            if one.run.head_sha in places or (one.run.head_branch == self.branch and history.is_after(one))
        ]
        kept.sort(key=lambda one: (places.get(one.run.head_sha, len(places)), -one.id))
        return [_Candidate(one, history.lies(places.get(one.run.head_sha), self.branch)) for one in kept]

    async def _is_confirmed(self, listed: _ListedRun) -> bool:
        """Whether the run itself says what the list says of it, and its event may be trusted."""
        try:
            told = await self.hub.get(f"{self._repository}/actions/runs/{listed.id}", needs=_ACTIONS)
        except GitHubError as error:
            if error.status in _GONE:
                return False
            raise
        run = _read(_Run, told)
        if run is None or run.event not in TRUSTED_EVENTS:
            return False
        return (
            (run.event == _QUEUE_EVENT or not self._is_queued(listed))
            and run.head_repository.id == run.repository.id == listed.repository_id
            and (run.id, run.head_branch, run.head_sha) == (listed.id, listed.head_branch, listed.head_sha)
        )

    async def _content(self, artifact: _Artifact) -> bytes | None:
        """What the artifact holds; None where it is gone."""
        path = f"{self._repository}/actions/artifacts/{artifact.id}/zip"
        with SpooledTemporaryFile(_SPOOLED_BYTES) as spooled:
            file = cast("BinaryIO", spooled)
            try:
                await self.hub.download(path, file, needs=_ACTIONS, most_mb=archive.MOST_MB)
                return archive.read(file, _FILE)
            except GitHubError as error:
                if error.status in _GONE:
                    return None
                raise
            except OSError as error:
                raise GitHubError(f"the download cannot be kept ({error.strerror or error})") from error

    def _missing(self, text: str, **parts: object) -> Missing:
        return Missing(_line(text, name=self.name, branch=self.branch, most=MOST_LISTED, **parts))

    @property
    def _repository(self) -> str:
        return f"/repos/{self.context.repository}"


def _read(kind: type[_T], told: Any) -> _T | None:
    try:
        return kind.model_validate(told)
    except ValidationError:
        return None


def _is_unfinished(data: bytes) -> bool:
    """Return whether results are of a run that was cut off before it could write its own."""
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
    """`text` with its parts, on one line that can be shown."""
    return " ".join(visible(text.format(**parts)).split())[:_LINE_LENGTH]


# What people are told. First of the baseline that was found, then why there is none.

FOUND = "the baseline is commit {commit} of {branch}, {lies}"
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
