"""Our comment on a pull request: created once, updated in place.

It is recognized by its first line and its author, since any bot can quote that line. The second line names
the run that wrote it, so that a slow run does not replace the text of a newer one. GitHub cannot change a
comment conditionally: runs that write at the same moment settle on the oldest comment, but not always on the
newest text. Jobs should still take turns (`concurrency`).
"""

import contextlib
import re
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.context import WorkflowRun
from ci_evals.adapters.github.workflow import check_key
from ci_evals.domain.errors import GitHubError
from ci_evals.support.text import whole

NEEDS = "pull-requests: write"

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_WRITER = re.compile(r"<!-- ci-evals run: ([0-9]{1,18}) attempt: ([0-9]{1,9})(?: commit: [0-9a-fA-F]+)? -->")
_ROUNDS = 4
"""Maximum number of attempts if others delete what is about to be written."""

_WORKFLOW_BOT = "github-actions[bot]"
"""The account of a job's own token."""

_MAX_DISTANCE = 1_000_000_000
"""Maximum distance between this run's id and a newer run's if runs cannot be read: some 50 days."""

Author = dict[str, object]


@dataclass(frozen=True)
class Comment:
    """The text of a comment. A pull request has one comment for each key."""

    key: str
    text: str
    run: WorkflowRun | None = None
    """The run that the text describes."""
    commit: str | None = None
    """The commit that it describes."""

    @property
    def marker(self) -> str:
        """The first line, by which it is recognized."""
        return f"<!-- ci-evals comment: {check_key(self.key)} -->"

    @property
    def body(self) -> str:
        """The whole comment: two hidden lines and the text."""
        parts = [f"run: {self.run.id} attempt: {self.run.attempt}"] if self.run else []
        if self.commit and _COMMIT.fullmatch(self.commit):
            parts.append(f"commit: {self.commit}")
        writer = f"\n<!-- ci-evals {' '.join(parts)} -->" if parts else ""
        return f"{self.marker}{writer}\n\n{whole(self.text)}"


class CommentStatus(StrEnum):
    """The result of posting a comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    STALE = "stale"
    """Nothing was written, since a newer run has written already."""
    ABSENT = "absent"
    """Nothing was written, since there was no comment to update."""


@dataclass(frozen=True)
class Posted:
    """The result, and the address of the comment."""

    status: CommentStatus
    url: str | None


async def post(hub: GitHub, repository: str, number: int, comment: Comment, *, create: bool = True) -> Posted:
    """Make pull request `number` of `repository` (`owner/name`) have this comment exactly once.

    Without `create` only an existing comment is updated.
    """
    thread = _Thread(hub, repository, number, comment)
    try:
        return await thread.settle(create=create)
    except GitHubError as error:
        reason = f"the comment on #{number} was not written: {_with_advice(error)}"
        raise GitHubError(reason, error.status) from error


@dataclass(frozen=True)
class _ExistingComment:
    id: int
    body: str
    author: Author
    url: str | None

    def newer_than(self, run: WorkflowRun | None) -> WorkflowRun | None:
        """Return the run that it names as its writer, if that is a later one than `run`."""
        writer = _WRITER.fullmatch("".join(_lines(self.body)[1:2]))
        if writer is None or run is None:
            return None
        named = WorkflowRun(int(writer[1]), int(writer[2]))
        return named if (named.id, named.attempt) > (run.id, run.attempt) else None


class _Thread:
    """The conversation of one pull request, for one comment."""

    def __init__(self, hub: GitHub, repository: str, number: int, comment: Comment) -> None:
        self._hub, self._comment, self._body = hub, comment, comment.body
        self._issues = f"/repos/{quote(repository)}/issues"
        self._list = f"{self._issues}/{number}/comments"
        self._runs = f"/repos/{quote(repository)}/actions/runs"
        self._account: _Account | None = None

    async def settle(self, *, create: bool) -> Posted:
        """Write, then check what others wrote meanwhile: of all created comments one stays."""
        self._account = None if self._hub.of_app else await self._user()
        created: _ExistingComment | None = None
        for _ in range(_ROUNDS):
            try:
                own = await self._own()
                posted = await self._update(own, created) if own else None
            except GitHubError:
                if created is None:
                    raise
                break  # what was created stands
            if posted:
                return posted
            if not own and not create:
                return Posted(CommentStatus.ABSENT, None)
            if not own and created:
                break
            if not own:
                created = _existing(await self._hub.post(self._list, {"body": self._body}, needs=NEEDS))
                self._account = _account(created.author) or self._account  # the most reliable answer
        if created:
            return Posted(CommentStatus.CREATED, created.url)
        raise GitHubError("somebody deletes it as often as it is written")

    async def _update(self, own: list[_ExistingComment], created: _ExistingComment | None) -> Posted | None:
        """Update the first of our comments and delete the others. Return None if it is gone meanwhile."""
        kept, *others = own
        newer = await self._newer(own)
        if newer:
            # The newer run moves it to the first comment, which is never deleted, or both could be gone.
            await self._delete([created] if created and created.id != kept.id else [])
            return Posted(CommentStatus.STALE, newer.url)
        if _lines(kept.body) == _lines(self._body):
            status = CommentStatus.CREATED if created and created.id == kept.id else CommentStatus.UNCHANGED
        elif await self._gone_while_changed(kept):
            return None
        else:
            status = CommentStatus.UPDATED
        await self._delete(others)
        return Posted(status, kept.url)

    async def _gone_while_changed(self, comment: _ExistingComment) -> bool:
        try:
            await self._hub.patch(self._path(comment), {"body": self._body}, needs=NEEDS)
        except GitHubError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return True
            raise
        return False

    async def _delete(self, comments: list[_ExistingComment]) -> None:
        """Delete comments; the next run deletes those that could not be."""
        for comment in comments:
            with contextlib.suppress(GitHubError):
                await self._hub.delete(self._path(comment), needs=NEEDS)

    async def _newer(self, own: list[_ExistingComment]) -> _ExistingComment | None:
        for comment in own:
            run = comment.newer_than(self._comment.run)
            if run and await self._is_plausible(run):
                return comment
        return None

    async def _is_plausible(self, newer: WorkflowRun) -> bool:
        """Return whether this workflow has such a run: the number in a comment can be invented.

        If runs cannot be read (the token lacks `actions: read`), a near number is plausible.
        """
        run = self._comment.run
        known = await self._run(run) if run else None
        if run is None or known is None:
            return run is not None and newer.id - run.id <= _MAX_DISTANCE
        other = known if newer.id == run.id else await self._run(newer)
        attempts = other.get("run_attempt", 1) if other else 0
        same = other is not None and other.get("workflow_id") == known.get("workflow_id")
        return same and isinstance(attempts, int) and newer.attempt <= attempts

    async def _run(self, run: WorkflowRun) -> dict[str, object] | None:
        try:
            data = await self._hub.get(f"{self._runs}/{run.id}", needs="actions: read")
        except GitHubError:
            return None
        return data if isinstance(data, dict) else None

    async def _own(self) -> list[_ExistingComment]:
        """Return our comments, oldest first: the same for all writers, since the first one stays."""
        items = self._hub.pages(self._list, needs=NEEDS)
        comments = [_existing(item) async for item in items if _is_comment(item)]
        marked = [comment for comment in comments if _lines(comment.body)[0] == self._comment.marker]
        if marked and self._account is None:
            self._account = _Account(await self._hub.viewer() or _WORKFLOW_BOT)
        own = [comment for comment in marked if self._account and self._account.wrote(comment)]
        return sorted(own, key=lambda comment: comment.id)

    async def _user(self) -> "_Account | None":
        """Return the token's user; None if the token may not read it.

        An app's token, such as a job's, can read its viewer but not its user. A token that can read neither
        counts as the job's own, until the answer to its first comment shows otherwise.
        """
        try:
            user = await self._hub.get("/user", needs="read:user")
        except GitHubError as error:
            if error.status == HTTPStatus.FORBIDDEN and "rate limit" not in str(error):
                return None
            raise
        return _account(user)

    def _path(self, comment: _ExistingComment) -> str:
        return f"{self._issues}/comments/{comment.id}"


@dataclass(frozen=True)
class _Account:
    """An account, by name and by the id that stays if the name changes."""

    login: str
    id: int | None = None

    def wrote(self, comment: _ExistingComment) -> bool:
        author = _account(comment.author)
        if author is None:
            return False
        if self.id is not None and author.id is not None:
            return author.id == self.id
        return author.login.lower() == self.login.lower()


def _account(user: Any) -> _Account | None:
    login = user.get("login") if isinstance(user, dict) else None
    number = user.get("id") if isinstance(user, dict) else None
    if not isinstance(login, str) or not login:
        return None
    return _Account(login, number if isinstance(number, int) else None)


def _is_comment(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("id"), int)


def _existing(item: Any) -> _ExistingComment:
    if not _is_comment(item):
        raise GitHubError("GitHub answered with something other than a comment")
    body, author, url = item.get("body"), item.get("user"), item.get("html_url")
    return _ExistingComment(
        id=item["id"],
        body=body if isinstance(body, str) else "",
        author=author if isinstance(author, dict) else {},
        url=url if isinstance(url, str) else None,
    )


def _lines(body: str) -> list[str]:
    """Return the lines of a comment as GitHub normalizes them."""
    return [line.rstrip() for line in body.rstrip().split("\n")]


def _with_advice(error: GitHubError) -> str:
    message = str(error)
    match error.status:
        case HTTPStatus.FORBIDDEN if "locked" in message:
            return f"{message}; unlock the conversation to have it there"
        case HTTPStatus.FORBIDDEN if NEEDS in message:
            return f"{message}; add it to the job's 'permissions:' (a fork's pull request cannot have it)"
        case HTTPStatus.NOT_FOUND:
            return f"{message}; check the number, and the job's 'permissions:'"
        case _:
            return message
