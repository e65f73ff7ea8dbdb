"""Our note on a merge request: created once, updated in place.

It is recognized by its first line and its author. The second line names the pipeline that wrote it, so that a
slow pipeline does not replace the text of a newer one.
"""

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ci_evals.adapters.github.comments import CommentStatus
from ci_evals.adapters.github.workflow import check_key
from ci_evals.extensions.gitlab.api import GitLab, GitLabError
from ci_evals.extensions.gitlab.context import GitLabJob
from ci_evals.support.payload import member
from ci_evals.support.text import whole

_WRITER = re.compile(r"<!-- ci-evals pipeline: ([0-9]{1,18}) -->")
_ROUNDS = 3
"""Maximum number of attempts if others delete what is about to be written."""


@dataclass(frozen=True)
class _Note:
    id: int
    lines: tuple[str, ...]

    def newer_than(self, pipeline: int | None) -> bool:
        writer = _WRITER.fullmatch(self.lines[1]) if len(self.lines) > 1 else None
        return writer is not None and pipeline is not None and int(writer[1]) > pipeline


async def post(hub: GitLab, job: GitLabJob, key: str, text: str, *, create: bool = True) -> CommentStatus:
    """Make the merge request of the job have this note exactly once.

    Unless `create`, one that is there is updated, and none is written where there is none.

    Raises:
        GitLabError: it was not written.
    """
    marker = f"<!-- ci-evals comment: {check_key(key)} -->"
    writer = f"<!-- ci-evals pipeline: {job.pipeline} -->\n" if job.pipeline else ""
    body = f"{marker}\n{writer}\n{whole(text)}"
    path = f"/projects/{job.project}/merge_requests/{job.merge_request}/notes"
    try:
        author = member(await hub.get("/user"), "id")
        created = None
        for _ in range(_ROUNDS):
            own = [note async for note in _own(hub, path, author, marker)]
            if not own:
                if not create:
                    return CommentStatus.ABSENT
                created = member(await hub.post(path, {"body": body}), "id")
                continue  # another job may have written one meanwhile: the oldest stays
            if any(note.newer_than(job.pipeline) for note in own):
                return CommentStatus.STALE
            kept, *others = own
            status = CommentStatus.CREATED if kept.id == created else CommentStatus.UPDATED
            if kept.id != created:
                if kept.lines == _lines(body):
                    status = CommentStatus.UNCHANGED
                elif not await _change(hub, f"{path}/{kept.id}", body):
                    continue
            for note in others:
                with suppress(GitLabError):
                    await hub.delete(f"{path}/{note.id}")
            return status
    except GitLabError as error:
        raise GitLabError(
            f"the note on !{job.merge_request} was not written: {error}", error.status
        ) from error
    raise GitLabError(f"the note on !{job.merge_request} was not written: somebody deletes it each time")


async def _own(hub: GitLab, path: str, author: Any, marker: str) -> AsyncIterator[_Note]:
    """Yield our notes, the oldest first."""
    async for item in hub.pages(path, sort="asc", order_by="created_at"):
        body, number = member(item, "body"), member(item, "id")
        if not isinstance(body, str) or not isinstance(number, int):
            continue
        lines = _lines(body)
        if lines[0] == marker and author is not None and member(member(item, "author"), "id") == author:
            yield _Note(number, lines)


async def _change(hub: GitLab, path: str, body: str) -> bool:
    """Change a note; return False if it is gone meanwhile."""
    try:
        await hub.put(path, {"body": body})
    except GitLabError as error:
        if error.status == 404:
            return False
        raise
    return True


def _lines(body: str) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in body.rstrip().split("\n"))
