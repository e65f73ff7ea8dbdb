"""The check run on a commit: <https://docs.github.com/en/rest/checks/runs>."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.workflow import check_key
from ci_evals.domain.errors import GitHubError
from ci_evals.support.payload import member
from ci_evals.support.text import whole

NEEDS = "checks: write"

BUDGET = 60_000
"""Bytes of the summary; GitHub takes 65,535."""
_TITLE = 255
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
"""Characters that the API of checks refuses."""


@dataclass(frozen=True)
class CheckRun:
    """A finished check of a commit. A commit has one for each key: GitHub shows the last of a name."""

    key: str
    commit: str
    conclusion: str
    title: str
    summary: str
    url: str | None = None
    """The page behind *Details*."""

    @property
    def body(self) -> dict[str, object]:
        """The request that creates it."""
        name = "ci-evals" if self.key == "default" else f"ci-evals ({check_key(self.key)})"
        output = {"title": _plain(self.title)[:_TITLE], "summary": _plain(self.summary)}
        details = {"details_url": self.url} if self.url else {}
        return {
            "name": name,
            "head_sha": self.commit,
            "status": "completed",
            "conclusion": self.conclusion,
            "output": output,
            **details,
        }


async def create(hub: GitHub, repository: str, check: CheckRun) -> str | None:
    """Create the check run, and return its address.

    Raises:
        GitHubError: it was not created; the text says why, and what to do.
    """
    try:
        created = await hub.post(f"/repos/{quote(repository)}/check-runs", check.body, needs=NEEDS)
    except GitHubError as error:
        raise GitHubError(_with_advice(error), error.status) from error
    url = member(created, "html_url")
    return url if isinstance(url, str) else None


def _plain(text: str) -> str:
    return _ASTRAL.sub("\N{REPLACEMENT CHARACTER}", whole(text))


def _with_advice(error: GitHubError) -> str:
    message = str(error)
    if error.status == HTTPStatus.FORBIDDEN and NEEDS in message:
        return f"{message}; add it to the job's 'permissions:' (a fork's pull request cannot have it)"
    return message
