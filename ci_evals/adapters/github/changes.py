"""The files that changed since a commit, by GitHub's comparison of two commits."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ci_evals.adapters.github.api import GitHub
from ci_evals.domain.errors import GitHubError
from ci_evals.support.payload import member

NEEDS = "contents: read"
MAX_FILES = 300
"""GitHub lists no more files of a comparison."""


async def changed_files(hub: GitHub, repository: str, base: str, head: str) -> frozenset[str]:
    """Return the paths that differ between `head` and where it left `base`.

    Raises:
        GitHubError: GitHub does not list all of them.
    """
    commits = f"{quote(base.removeprefix('origin/'), safe='')}...{quote(head, safe='')}"
    answer = await hub.get(f"/repos/{quote(repository)}/compare/{commits}", needs=NEEDS, per_page=1)
    files = member(answer, "files")
    if not isinstance(files, list):
        raise GitHubError("GitHub lists no files of the change")
    if len(files) >= MAX_FILES:
        raise GitHubError(f"GitHub lists {MAX_FILES} changed files at most")
    return frozenset(name for file in files for name in _names(file))


def _names(file: Any) -> Iterator[str]:
    name, before = member(file, "filename"), member(file, "previous_filename")
    if not isinstance(name, str):
        raise GitHubError("GitHub lists a changed file without its name")
    yield name
    if isinstance(before, str):
        yield before
