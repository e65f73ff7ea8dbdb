"""The event of a job on GitHub: its pull request, its base, the owner of its code. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ci_evals.support.text import whole

PULL_REQUEST_EVENTS = frozenset(
    {"pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment"}
)
"""Events whose payload holds the pull request."""

_DEPENDABOT = "dependabot[bot]"
_PULL_REF = re.compile(r"refs/pull/([0-9]{1,18})/")
_NUMBER = re.compile(r"[0-9]{1,18}")
_BRANCH_REF = "refs/heads/"
_QUEUE_REF = "gh-readonly-queue/"
_NO_COMMIT = re.compile("0*")
"""The commit before the first one, in the event of a push."""


@dataclass(frozen=True)
class Commit:
    """A commit, with the repository (`owner/name`) and branch that it was pushed to.

    `repository` is None if a fork was deleted.
    """

    sha: str
    repository: str | None = None
    branch: str | None = None


@dataclass(frozen=True)
class Base:
    """The base of a comparison: a branch, and the commit of it that the tested code builds on."""

    branch: str | None = None
    sha: str | None = None
    merge: str | None = None
    """The tested commit, if it is the merge of a pull request: its first parent is nearer than `sha`."""


@dataclass(frozen=True)
class WorkflowRun:
    """A workflow run. Its id grows with time; its attempts count from 1."""

    id: int
    attempt: int = 1


@dataclass(frozen=True)
class GitHubEvent:
    """The event. A value that the event lacks is None."""

    event: str = ""
    repository: str | None = None
    """`owner/name`."""
    sha: str | None = None
    """The commit that was checked out."""
    ref: str | None = None
    number: int | None = None
    """Number of the pull request."""
    head: Commit | None = None
    """The pull request's own last commit, or what was pushed."""
    base: Base = Base()
    merged: str | None = None
    """GitHub's test merge of the pull request into its base."""
    default_branch: str | None = None
    run: WorkflowRun | None = None
    """The run that produced the results: after `workflow_run` the one that it follows."""
    own_run: WorkflowRun | None = None
    """This run."""
    of_dependabot: bool = False
    server_url: str = "https://github.com"
    api_url: str = "https://api.github.com"

    @property
    def of_pull_request(self) -> bool:
        """True if the event belongs to a pull request, known or still to be looked up."""
        return self.number is not None or self.event in PULL_REQUEST_EVENTS or self.event == "workflow_run"

    @property
    def foreign(self) -> bool:
        """True if the code comes from another repository."""
        return self.head is not None and self.head.repository != self.repository

    @property
    def without_secrets(self) -> bool:
        """True if GitHub gives the job no secrets, since it runs code that anybody or a bot proposed."""
        withheld = self.event in PULL_REQUEST_EVENTS - {"pull_request_target"}
        return withheld and (self.foreign or self.of_dependabot)

    @property
    def run_url(self) -> str | None:
        """The page of the run that produced the results."""
        if self.run is None or self.repository is None:
            return None
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run.id}"

    def source_url(self, commit: str | None) -> str | None:
        """Return the page of the repository's files at a commit."""
        known = self.repository and commit
        return f"{self.server_url}/{self.repository}/blob/{commit}" if known else None

    def compared_with_base(self) -> bool:
        """Return whether the run is compared with a baseline by default."""
        return self.event in PULL_REQUEST_EVENTS or self.event == "merge_group" or self.number is not None


def read(environ: Mapping[str, str], payload: Any) -> GitHubEvent:
    """Read the event of a job from its environment and the payload (any JSON).

    Shapes: "Webhook events and payloads" of GitHub's documentation.
    """
    event = _Payload(payload)
    known = GitHubEvent(
        event=environ.get("GITHUB_EVENT_NAME", ""),
        repository=environ.get("GITHUB_REPOSITORY") or event.text("repository", "full_name"),
        sha=environ.get("GITHUB_SHA") or None,
        ref=whole(environ.get("GITHUB_REF", "")) or None,
        default_branch=event.text("repository", "default_branch"),
        own_run=_run(environ.get("GITHUB_RUN_ID"), environ.get("GITHUB_RUN_ATTEMPT")),
        run=_run(environ.get("GITHUB_RUN_ID"), environ.get("GITHUB_RUN_ATTEMPT")),
        of_dependabot=environ.get("GITHUB_ACTOR") == _DEPENDABOT,
        server_url=(environ.get("GITHUB_SERVER_URL") or GitHubEvent.server_url).rstrip("/"),
        api_url=(environ.get("GITHUB_API_URL") or GitHubEvent.api_url).rstrip("/"),
    )
    match known.event:
        case name if name in PULL_REQUEST_EVENTS:
            return _of_pull_request(known, event)
        case "issue_comment":
            # Comments on issues come with the same event.
            on_pull_request = event.get("issue", "pull_request") is not None
            return replace(known, number=event.number("issue", "number") if on_pull_request else None)
        case "workflow_run":
            return _after_run(known, event)
        case "merge_group":
            base = Base(_branch(event.text("merge_group", "base_ref")), event.text("merge_group", "base_sha"))
            return replace(known, base=base, head=_own_commit(known))
        case "push":
            before = event.text("before") or ""
            earlier = None if _NO_COMMIT.fullmatch(before) else before
            return replace(known, base=Base(_branch(known.ref), earlier), head=_own_commit(known))
        case _:
            # Compared with an earlier run of the same branch, maybe of the same commit.
            return replace(known, base=Base(_branch(known.ref), known.sha), head=_own_commit(known))


def with_pull(known: GitHubEvent, pull: Any) -> GitHubEvent:
    """Add number, head and base of a pull request: JSON of a payload or of the API."""
    data = _Payload(pull)
    sha = data.text("head", "sha")
    return replace(
        known,
        number=data.number("number") or known.number,
        head=Commit(sha, data.text("head", "repo", "full_name"), data.text("head", "ref")) if sha else None,
        base=Base(branch=data.text("base", "ref"), sha=data.text("base", "sha")),
        merged=data.text("merge_commit_sha"),
    )


def queue_of(branch: str) -> str:
    """Return the prefix of the branches on which a merge queue tests changes to `branch`."""
    return f"{_QUEUE_REF}{branch}/"


def _of_pull_request(known: GitHubEvent, event: "_Payload") -> GitHubEvent:
    merged = _PULL_REF.match(known.ref or "")
    number = event.number("number") or (_number(merged[1]) if merged else None)
    context = with_pull(replace(known, number=number), event.get("pull_request"))
    return replace(context, base=replace(context.base, merge=known.sha if merged else None))


def _after_run(known: GitHubEvent, event: "_Payload") -> GitHubEvent:
    run = event.part("workflow_run")
    sha = run.text("head_sha")
    return replace(
        known,
        head=Commit(sha, run.text("head_repository", "full_name"), run.text("head_branch")) if sha else None,
        run=_run(run.number("id"), run.number("run_attempt")),
    )


def _own_commit(known: GitHubEvent) -> Commit | None:
    return Commit(known.sha, known.repository, _branch(known.ref)) if known.sha else None


def _run(number: str | int | None, attempt: str | int | None) -> WorkflowRun | None:
    known = _number(number)
    return WorkflowRun(known, _number(attempt) or 1) if known else None


def _number(value: str | int | None) -> int | None:
    if isinstance(value, str):
        value = int(value) if _NUMBER.fullmatch(value) else None
    return value or None


def _branch(ref: str | None) -> str | None:
    return (ref.removeprefix(_BRANCH_REF) or None) if ref and ref.startswith(_BRANCH_REF) else None


@dataclass(frozen=True)
class _Payload:
    """Some JSON, of which any part may be missing or of another kind."""

    data: Any

    def get(self, *path: str) -> Any:
        value = self.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def part(self, *path: str) -> "_Payload":
        return _Payload(self.get(*path))

    def text(self, *path: str) -> str | None:
        value = self.get(*path)
        return whole(value) if isinstance(value, str) and value else None

    def number(self, *path: str) -> int | None:
        value = self.get(*path)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
