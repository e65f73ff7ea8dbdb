"""One comment of ours on a pull request: found again, written in place, never anybody else's.

It is known by its first line and by its author, the very account that writes now: any bot can quote that
line. The second line says which run wrote it, so that a slow run does not write over what a newer one said.
GitHub has no way to change a comment only if nobody else did: runs that write in the same moment settle on
one comment, the oldest, but not always on the newest text. Jobs should still take turns (`concurrency`).
"""

import contextlib
import re
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.context import Run
from ci_evals.adapters.github.workflow import check_key
from ci_evals.domain.errors import GitHubError
from ci_evals.support.text import whole

NEEDS = "pull-requests: write"

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_WRITER = re.compile(r"<!-- ci-evals run: ([0-9]{1,18}) attempt: ([0-9]{1,9})(?: commit: [0-9a-fA-F]+)? -->")
_ROUNDS = 4
"""How often it is looked again, where others delete what is about to be written."""

_WORKFLOW_BOT = "github-actions[bot]"
"""The account of a job's own token, on github.com as on a server of one's own."""

_NEAR = 1_000_000_000
"""How far beyond this run's id a newer run's may be where GitHub does not tell which runs there are.

It counts some twenty million a day.
"""

Author = dict[str, Any]


@dataclass(frozen=True)
class Comment:
    """What to say, and under which key: a pull request has one comment of each."""

    key: str
    text: str
    run: Run | None = None
    """The run that the text tells of."""
    commit: str | None = None
    """The commit that it tells of."""

    @property
    def marker(self) -> str:
        """The first line, by which it is found again."""
        return f"<!-- ci-evals comment: {check_key(self.key)} -->"

    @property
    def body(self) -> str:
        """What is posted: two hidden lines, and the text.

        Raises:
            UsageError: as `check_key`.
        """
        parts = [f"run: {self.run.id} attempt: {self.run.attempt}"] if self.run else []
        if self.commit and _COMMIT.fullmatch(self.commit):
            parts.append(f"commit: {self.commit}")
        writer = f"\n<!-- ci-evals {' '.join(parts)} -->" if parts else ""
        return f"{self.marker}{writer}\n\n{whole(self.text)}"


class Outcome(StrEnum):
    """What became of a comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    STALE = "stale"
    """Nothing was written, since a newer run has spoken already."""
    ABSENT = "absent"
    """Nothing was written, since there was none to bring up to date."""


@dataclass(frozen=True)
class Posted:
    """What was done, and the page of the comment."""

    what: Outcome
    url: str | None


async def post(hub: GitHub, repository: str, number: int, comment: Comment, *, create: bool = True) -> Posted:
    """Sees to it that pull request `number` of `repository` (`owner/name`) has this comment, and has it once.

    Without `create` only a comment that is there is brought up to date.

    Raises:
        UsageError: as `check_key`.
        GitHubError: it was not written. The text says why, and what to do.
    """
    thread = _Thread(hub, repository, number, comment)
    try:
        return await thread.settle(create=create)
    except GitHubError as error:
        why = f"the comment on #{number} was not written: {_advised(error)}"
        raise GitHubError(why, error.status) from error


@dataclass(frozen=True)
class _Found:
    id: int
    body: str
    author: Author
    url: str | None

    def newer_than(self, run: Run | None) -> Run | None:
        """The run that wrote it by its own words, where that is a later one than `run`."""
        writer = _WRITER.fullmatch("".join(_lines(self.body)[1:2]))
        if writer is None or run is None:
            return None
        found = Run(int(writer[1]), int(writer[2]))
        return found if (found.id, found.attempt) > (run.id, run.attempt) else None


class _Thread:
    """The conversation of one pull request, for one comment."""

    def __init__(self, hub: GitHub, repository: str, number: int, comment: Comment) -> None:
        self._hub, self._comment, self._body = hub, comment, comment.body
        self._issues = f"/repos/{quote(repository)}/issues"
        self._list = f"{self._issues}/{number}/comments"
        self._runs = f"/repos/{quote(repository)}/actions/runs"
        self._account: _Account | None = None

    async def settle(self, *, create: bool) -> Posted:
        """Writes, then looks again for what others wrote in between: of all that were created one stays."""
        self._account = None if self._hub.of_app else await self._user()
        created: _Found | None = None
        for _ in range(_ROUNDS):
            try:
                own = await self._own()
                posted = await self._written(own, created) if own else None
            except GitHubError:
                if created is None:
                    raise
                break  # what was created stands
            if posted:
                return posted
            if not own and not create:
                return Posted(Outcome.ABSENT, None)
            if not own and created:
                break
            if not own:
                created = _found(await self._hub.post(self._list, {"body": self._body}, needs=NEEDS))
                self._account = _account(created.author) or self._account  # no other answer is as sure
        if created:
            return Posted(Outcome.CREATED, created.url)
        raise GitHubError("somebody deletes it as often as it is written")

    async def _written(self, own: list[_Found], created: _Found | None) -> Posted | None:
        """Makes the first of our comments say it, and deletes the others; None where it is gone meanwhile."""
        kept, *others = own
        newer = await self._newer(own)
        if newer:
            # Whoever wrote it moves it to the first; that one is never deleted, or both could be gone.
            await self._delete([created] if created and created.id != kept.id else [])
            return Posted(Outcome.STALE, newer.url)
        if _same(kept.body, self._body):
            what = Outcome.CREATED if created and created.id == kept.id else Outcome.UNCHANGED
        elif await self._gone_while_changed(kept):
            return None
        else:
            what = Outcome.UPDATED
        await self._delete(others)
        return Posted(what, kept.url)

    async def _gone_while_changed(self, comment: _Found) -> bool:
        try:
            await self._hub.patch(self._path(comment), {"body": self._body}, needs=NEEDS)
        except GitHubError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return True
            raise
        return False

    async def _delete(self, comments: list[_Found]) -> None:
        """Deletes as many as can be: the next run sees to the rest."""
        for comment in comments:
            with contextlib.suppress(GitHubError):
                await self._hub.delete(self._path(comment), needs=NEEDS)

    async def _newer(self, own: list[_Found]) -> _Found | None:
        """The comment of ours that a newer run of this workflow wrote."""
        for one in own:
            run = one.newer_than(self._comment.run)
            if run and await self._is_plausible(run):
                return one
        return None

    async def _is_plausible(self, newer: Run) -> bool:
        """Whether there is such a run of this workflow: who can write the line can invent its number.

        Where GitHub does not even tell of this run (the token lacks `actions: read`), a number that is near.
        """
        run = self._comment.run
        known = await self._run(run) if run else None
        if run is None or known is None:
            return run is not None and newer.id - run.id <= _NEAR
        found = known if newer.id == run.id else await self._run(newer)
        attempts = found.get("run_attempt", 1) if found else 0
        same = found is not None and found.get("workflow_id") == known.get("workflow_id")
        return same and isinstance(attempts, int) and newer.attempt <= attempts

    async def _run(self, run: Run) -> dict[str, Any] | None:
        try:
            found = await self._hub.get(f"{self._runs}/{run.id}", needs="actions: read")
        except GitHubError:
            return None
        return found if isinstance(found, dict) else None

    async def _own(self) -> list[_Found]:
        """Our comments, oldest first: the same for all who write, since the first one stays."""
        found = [_found(item) async for item in self._hub.pages(self._list, needs=NEEDS) if _is_comment(item)]
        marked = [one for one in found if _lines(one.body)[0] == self._comment.marker]
        if marked and self._account is None:
            self._account = _Account(await self._hub.viewer() or _WORKFLOW_BOT)
        own = [one for one in marked if self._account and self._account.wrote(one)]
        return sorted(own, key=lambda one: one.id)

    async def _user(self) -> "_Account | None":
        """The token's user; None where it has none that it may know.

        An app's token, a job's among them, cannot ask for its user, but for its viewer. Where neither is told
        it is taken for the job's own. If it is not, the answer to the first comment that it writes says so.
        """
        try:
            user = await self._hub.get("/user", needs="read:user")
        except GitHubError as error:
            if error.status == HTTPStatus.FORBIDDEN and "rate limit" not in str(error):
                return None
            raise
        return _account(user)

    def _path(self, comment: _Found) -> str:
        return f"{self._issues}/comments/{comment.id}"


@dataclass(frozen=True)
class _Account:
    """Who writes: by name, and by the id that stays when a name changes."""

    login: str
    id: int | None = None

    def wrote(self, comment: _Found) -> bool:
        """Whether a comment is of this very account."""
        author = _account(comment.author)
        if author is None:
            return False
        if self.id is not None and author.id is not None:
            return author.id == self.id
        return author.login.lower() == self.login.lower()


def _account(user: Any) -> _Account | None:
    """The account that the API describes, if it does."""
    login = user.get("login") if isinstance(user, dict) else None
    number = user.get("id") if isinstance(user, dict) else None
    if not isinstance(login, str) or not login:
        return None
    return _Account(login, number if isinstance(number, int) else None)


def _is_comment(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("id"), int)


def _found(item: Any) -> _Found:
    if not _is_comment(item):
        raise GitHubError("GitHub answered with something else than a comment")
    body, author, url = item.get("body"), item.get("user"), item.get("html_url")
    return _Found(
        id=item["id"],
        body=body if isinstance(body, str) else "",
        author=author if isinstance(author, dict) else {},
        url=url if isinstance(url, str) else None,
    )


def _lines(body: str) -> list[str]:
    """The lines of a comment. GitHub changes line ends, and cuts white space."""
    return [line.rstrip() for line in body.rstrip().split("\n")]


def _same(one: str, other: str) -> bool:
    return _lines(one) == _lines(other)


def _advised(error: GitHubError) -> str:
    """What went wrong, with what to do about it."""
    told = str(error)
    match error.status:
        case HTTPStatus.FORBIDDEN if "locked" in told:
            return f"{told}; unlock the conversation to have it there"
        case HTTPStatus.FORBIDDEN if NEEDS in told:
            return f"{told}; add it to the job's 'permissions:' (a fork's pull request cannot have it)"
        case HTTPStatus.NOT_FOUND:
            return f"{told}; check the number, and the job's 'permissions:'"
        case _:
            return told
