"""Comments in a pull request that approve weakened suites.

A comment counts as it stands now, if it is the command and nothing else, and if a person wrote it who may
write to the repository. Only such people can change a comment of somebody else. Nothing else is a record: not
what a workflow reports, and no comment of ours.

It approves the suites and gates that its code is of, and no later change of them. Without a code it approves
nothing: GitHub does not record which commit somebody looked at who comments.
"""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ci_evals.adapters.github.api import GitHub
from ci_evals.domain.errors import GitHubError
from ci_evals.domain.results.weakened import CODE_DIGITS, Approval
from ci_evals.support.payload import member

_NEEDS = "pull-requests: read"
_COMMAND = re.compile(rf"/evals approve suite ([0-9a-f]{{{CODE_DIGITS}}})", re.IGNORECASE)
_MAY_WRITE = frozenset({"write", "admin"})
_AUTHORS = 50
"""Maximum number of people whose rights are looked up."""


class _Answer(BaseModel):
    """A part of an answer of GitHub's. One of another form is skipped."""

    model_config = ConfigDict(frozen=True, strict=True)


class _Author(_Answer):
    login: str
    type: str


class _Comment(_Answer):
    body: str
    user: _Author
    created_at: Annotated[AwareDatetime, Field(strict=False)]
    html_url: str | None = None
    performed_via_github_app: Any = None
    """The app that wrote it in the name of its author; null if the author wrote it."""


async def find(hub: GitHub, repository: str, number: int, commit: str | None) -> tuple[Approval, ...]:
    """Return the approvals in pull request `number` of `repository` (`owner/name`), oldest first.

    Args:
        hub: A client of GitHub.
        repository: Of the pull request's base.
        number: Of the pull request.
        commit: Its last commit, which approvals are recorded with.

    Raises:
        GitHubError: they cannot be read.
    """
    comments = [
        comment
        async for item in hub.pages(f"/repos/{quote(repository)}/issues/{number}/comments", needs=_NEEDS)
        if (comment := _read(item))
    ]
    if not comments:
        return ()
    writers = await _writers(hub, repository, comments)
    return tuple(
        Approval(
            by=comment.user.login,
            at=comment.created_at,
            url=comment.html_url,
            code=code,
            commit=commit,
        )
        for comment in comments
        if comment.user.login in writers and (code := _code(comment))
    )


def _read(item: Any) -> _Comment | None:
    """Return a comment that is the command, and that a person wrote."""
    try:
        comment = _Comment.model_validate(item)
    except ValidationError:
        return None
    by_person = comment.user.type == "User" and comment.performed_via_github_app is None
    return comment if by_person and _code(comment) else None


def _code(comment: _Comment) -> str | None:
    match = _COMMAND.fullmatch(comment.body.strip())
    return match[1].lower() if match else None


async def _writers(hub: GitHub, repository: str, comments: Iterable[_Comment]) -> set[str]:
    """Return the authors who may write to the repository now."""
    authors = list(dict.fromkeys(comment.user.login for comment in comments))
    writers = set()
    for login in authors[-_AUTHORS:]:
        path = f"/repos/{quote(repository)}/collaborators/{quote(login, safe='')}/permission"
        try:
            answer = await hub.get(path, needs="metadata: read")
        except GitHubError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            continue
        if member(answer, "permission") in _MAY_WRITE:
            writers.add(login)
    return writers
