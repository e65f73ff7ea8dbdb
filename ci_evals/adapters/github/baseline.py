"""Finds the baseline: results that an earlier run left as an artifact on GitHub.

The nearest commit before the base with such an artifact wins, whether its run passed the gate or not. An
artifact's name and branch prove nothing, since any pull request can use them: the run's event and repository
are checked before the artifact is trusted.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, TypeVar, cast
from urllib.parse import quote

from pydantic import (
    AliasChoices,
    AliasPath,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

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

MAX_HISTORY_BYTES = 200_000_000
"""Maximum size of the results that are kept in memory."""

_FILE = "_results.json"
_QUEUE_EVENT = "merge_group"
_ACTIONS, _CONTENTS = "actions: read", "contents: read"
_GONE = (404, 410)
"""Statuses of what has expired or was deleted since it was listed."""

_SPOOLED_BYTES = 10_000_000
_SHA_LENGTH = 7
_LINE_LENGTH = 600


@dataclass(frozen=True)
class BaselineArtifact:
    """An earlier run's results."""

    data: bytes
    """The unread content of `_results.json`."""
    note: str
    """One line about its commit and the distance from the base."""
    commit: str
    earlier: tuple["BaselineArtifact", ...] = ()
    """Those of further runs of the branch, the nearest first."""
    skipped: int = 0
    """Further runs whose results could not be had."""
    of_base_commit: bool = False
    """True if `commit` is known to be the base itself."""


@dataclass(frozen=True)
class NoBaseline:
    """There is no baseline, for a reason in one line."""

    reason: str
    yet: bool = False
    """True if the branch's first run will leave one."""

    @property
    def note(self) -> str:
        """A line about it."""
        missing = "no baseline yet" if self.yet else "no baseline"
        return f"{missing}: {self.reason}"


Unfit = Callable[[BaselineArtifact], str | None]
"""Returns what results are of, if not of their artifact's commit: `commit 0f3c2ab`; None if they fit."""


def _any(_: BaselineArtifact) -> None:
    return None


async def find(
    hub: GitHub,
    context: GitHubEvent,
    key: str,
    branch: str | None = None,
    *,
    earlier: int = 0,
    unfit: Unfit = _any,
) -> BaselineArtifact | NoBaseline:
    """Find the artifact `ci-evals-results-KEY` of `branch` or of the event's base; its repository is known.

    That takes five requests as a rule, the download among them, and three for each of so many `earlier` runs.
    What GitHub refuses becomes the reason; of an earlier run it is counted. `unfit` results are passed over.
    """
    branch = branch or context.base.branch
    if not branch:
        return _none(f"the event {context.event!r} names no base branch; name one with baseline-branch")
    try:
        search = _Search(hub, context, whole(f"ci-evals-results-{key}"), whole(branch), earlier, unfit)
        return await search.result()
    except GitHubError as error:
        return _none(str(error))


class _GitHubAnswer(BaseModel):
    """A part of an answer of GitHub's. An unexpected one is skipped."""

    model_config = ConfigDict(frozen=True, strict=True)


_T = TypeVar("_T", bound=_GitHubAnswer)
_Sha = Annotated[str, StringConstraints(pattern="^[0-9a-f]{7,64}$")]
_Moment = Annotated[AwareDatetime, Field(strict=False)]


def _id_of(repository: str) -> Any:
    """The id of a run's repository, as lists and as the run itself have it."""
    return Field(validation_alias=AliasChoices(f"{repository}_id", AliasPath(repository, "id")))


class _Run(_GitHubAnswer):
    id: int
    head_branch: str
    head_sha: _Sha
    repository_id: int = _id_of("repository")
    head_repository_id: int = _id_of("head_repository")
    event: str = ""
    """Empty in lists."""


class _Artifact(_GitHubAnswer):
    id: int
    name: str
    expired: bool
    created_at: _Moment
    run: _Run = Field(alias="workflow_run")


class _Commit(_GitHubAnswer):
    sha: _Sha
    date: _Moment = Field(validation_alias=AliasPath("commit", "committer", "date"))
    first_parent: _Sha | None = Field(None, validation_alias=AliasPath("parents", 0, "sha"))
    second_parent: _Sha | None = Field(None, validation_alias=AliasPath("parents", 1, "sha"))


@dataclass(frozen=True)
class _History:
    """The base and the commits before it, the nearest first; without a base, those of the branch."""

    base: str | None
    tested: bool
    """True if the base is the tested commit itself, as in nightly runs."""
    commits: Sequence[_Commit] = ()
    unread: GitHubError | None = None
    """The reason why there are no commits."""

    def distance(self, sha: str) -> int | None:
        """Return how many commits before the base one is; None if it is not among `commits`."""
        return next((index for index, commit in enumerate(self.commits) if commit.sha == sha), None)

    def is_after(self, artifact: _Artifact) -> bool:
        """Return whether the base is newer than the artifact, as far as commits can be read."""
        if self.base is None or not self.commits:
            return True
        return artifact.created_at <= self.commits[0].date

    def relation(self, sha: str, branch: str) -> str:
        newest, distance = f"the newest run of {branch}", self.distance(sha)
        if self.base is None:
            return newest
        if self.unread:
            return f"{newest}; it may be newer than the base, since the commits cannot be read: {self.unread}"
        if distance is None:
            return f"{newest} before the base; not among the last {PAGE} commits"
        if distance == 0:
            return "the same commit in an earlier run" if self.tested else "the base commit"
        commits = "1 commit" if distance == 1 else f"{distance} commits"
        later = "this one" if self.tested else "the base"
        return f"{commits} before {later}"


@dataclass(frozen=True)
class _Search:
    hub: GitHub
    context: GitHubEvent
    name: str
    branch: str
    earlier: int
    """The most further runs to return."""
    unfit: Unfit

    async def result(self) -> BaselineArtifact | NoBaseline:
        artifacts, cut = await self._listed()
        usable = [artifact for artifact in artifacts if self._may_serve(artifact.run)]
        alive = [artifact for artifact in usable if not artifact.expired]
        if alive:
            history = await self._history()
            return await self._first_of(self._ranked(alive, history), alive, history)
        if usable:
            return self._all_expired()
        if cut:
            return _none(
                f"none of the newest {MAX_LISTED} artifacts {self.name!r} is of a run on {self.branch}; what "
                "pull requests leave needs another name"
            )
        if artifacts:
            return self._only_others()
        where = f"no run on {self.branch} has left the artifact {self.name!r}"
        return _none(f"{where}; it is uploaded by the first run there", yet=True)

    async def _first_of(
        self, ranked: list[_Artifact], alive: list[_Artifact], history: _History
    ) -> BaselineArtifact | NoBaseline:
        """Return the first that is confirmed and holds the results of a finished run."""
        expired = unfinished = False
        unfit = ""
        for index, artifact in enumerate(ranked[:MAX_CONFIRMED], start=1):
            sha = artifact.run.head_sha
            if not await self._is_confirmed(artifact.run):
                continue
            try:
                data = await self._content(artifact)
            except ArchiveError as error:
                return _none(f"the artifact {self.name!r} of commit {sha[:_SHA_LENGTH]} {error}")
            if data is None:
                expired = True
            elif is_unfinished(data):
                unfinished = True
            elif why := self.unfit(BaselineArtifact(data, "", sha)):
                of = f"the artifact {self.name!r} of commit {sha[:_SHA_LENGTH]}"
                unfit = unfit or f"{of} holds results of {why}"
            else:
                relation = history.relation(sha, self.branch)
                note = f"the baseline is commit {sha[:_SHA_LENGTH]} of {self.branch}, {relation}"
                earlier, skipped = await self._earlier(ranked[index:], MAX_HISTORY_BYTES - len(data))
                of_base = history.distance(sha) == 0
                return BaselineArtifact(data, _line(note), sha, earlier, skipped, of_base)
        if unfit:
            return _none(unfit)
        left = f"that left the artifact {self.name!r}"
        if unfinished:
            return _none(f"the runs of {self.branch} {left} did not finish")
        if not ranked and any(artifact.run.head_branch == self.branch for artifact in alive):
            return _none(f"all runs of {self.branch} {left} are newer than the base")
        return self._all_expired() if expired else self._only_others()

    async def _earlier(
        self, ranked: Sequence[_Artifact], most_bytes: int
    ) -> tuple[tuple[BaselineArtifact, ...], int]:
        """Return further runs, and how many could not be had. None of them is worth a failed search."""
        earlier: list[BaselineArtifact] = []
        skipped = 0
        for artifact in ranked[: self.earlier + MAX_CONFIRMED]:
            if len(earlier) == self.earlier or most_bytes <= 0:
                break
            try:
                data = await self._content(artifact) if await self._is_confirmed(artifact.run) else None
            except (ArchiveError, GitHubError):
                skipped += 1
                continue
            if data is not None and not is_unfinished(data) and len(data) <= most_bytes:
                earlier.append(BaselineArtifact(data, "", artifact.run.head_sha))
            most_bytes -= len(data or b"")
        return tuple(earlier), skipped

    def _all_expired(self) -> NoBaseline:
        return _none(
            f"all artifacts {self.name!r} of {self.branch} have expired; the next run there uploads a new one"
        )

    def _only_others(self) -> NoBaseline:
        return _none(
            "only pull requests, forks, other branches or untrusted events have left the artifact "
            f"{self.name!r}; it is uploaded by the first run on {self.branch}",
            yet=True,
        )

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

    def _is_own(self, run: _Run) -> bool:
        return self.context.own_run is not None and run.id == self.context.own_run.id

    def _may_serve(self, run: _Run) -> bool:
        here = run.repository_id == run.head_repository_id
        return here and (run.head_branch == self.branch or self._is_queued(run))

    def _is_queued(self, run: _Run) -> bool:
        return run.head_branch.startswith(queue_of(self.branch))

    async def _history(self) -> _History:
        base = await self._base()
        tested = base is not None and base == self.context.sha
        path = f"{self._repository}/commits"
        try:
            items = await self.hub.get(path, needs=_CONTENTS, sha=base or self.branch, per_page=PAGE)
        except GitHubError as error:
            return _History(base, tested, unread=error)
        commits = [_read(_Commit, item) for item in items] if isinstance(items, list) else []
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
                merge = _read(_Commit, await self.hub.get(path, needs=_CONTENTS))
                if merge and merge.second_parent:
                    return merge.first_parent
        return whole(base.sha) if base.sha else None

    def _ranked(self, artifacts: Sequence[_Artifact], history: _History) -> list[_Artifact]:
        """Return candidates, the best first: the nearest commits, then the newest runs of the branch."""
        ranked = []
        for artifact in artifacts:
            distance = history.distance(artifact.run.head_sha)
            of_branch = artifact.run.head_branch == self.branch
            if distance is not None or (of_branch and history.is_after(artifact)):
                ranked.append((len(history.commits) if distance is None else distance, artifact))
        ranked.sort(key=lambda entry: (entry[0], -entry[1].id))
        return [artifact for _, artifact in ranked]

    async def _is_confirmed(self, listed: _Run) -> bool:
        """Return whether the run is as the list of artifacts describes it, and its event is trusted."""
        try:
            data = await self.hub.get(f"{self._repository}/actions/runs/{listed.id}", needs=_ACTIONS)
        except GitHubError as error:
            if error.status in _GONE:
                return False
            raise
        run = _read(_Run, data)
        if run is None or run.event not in TRUSTED_EVENTS:
            return False
        in_queue = self._is_queued(listed) and run.event != _QUEUE_EVENT
        is_as_listed = run.model_dump(exclude={"event"}) == listed.model_dump(exclude={"event"})
        return is_as_listed and not in_queue

    async def _content(self, artifact: _Artifact) -> bytes | None:
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

    @property
    def _repository(self) -> str:
        return f"/repos/{self.context.repository}"


def _read(kind: type[_T], data: Any) -> _T | None:
    try:
        return kind.model_validate(data)
    except ValidationError:
        return None


def is_unfinished(data: bytes) -> bool:
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


def _none(reason: str, *, yet: bool = False) -> NoBaseline:
    return NoBaseline(_line(reason), yet)


def _line(text: str) -> str:
    return " ".join(visible(text).split())[:_LINE_LENGTH]
