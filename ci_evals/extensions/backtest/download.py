"""Downloads the results that runs of a branch left on GitHub, each once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from ci_evals.adapters import files
from ci_evals.adapters.github import archive
from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.archive import ArchiveError
from ci_evals.domain.errors import GitHubError
from ci_evals.reports.names import RESULTS

MOST_LISTED = 5_000
"""Artifacts that are looked through, the newest first."""
MOST_BYTES = 2_000_000_000
"""Bytes that are downloaded in all, as they are after unpacking."""
_NEEDS = "actions: read"
_GONE = (404, 410)


@dataclass(frozen=True)
class Source:
    """The artifacts to download."""

    repository: str
    """`owner/name`."""
    branch: str
    name: str
    """The name of the artifacts."""
    last: int
    """The most runs, the newest first."""


@dataclass
class Downloaded:
    """Numbers of artifacts, by what became of them."""

    new: int = 0
    there: int = 0
    """In the folder already."""
    gone: int = 0
    """Expired, or deleted since they were listed."""
    unreadable: int = 0
    too_much: bool = False
    """True if the limit of bytes was reached."""


async def download(hub: GitHub, source: Source, folder: Path, tell: Callable[[int, int], None]) -> Downloaded:
    """Download the newest runs to `folder`, each into a folder by the number of its artifact.

    What is there already is not downloaded again. `tell` is called with the number of runs that are done, and
    of all.

    Raises:
        GitHubError: GitHub refuses, or cannot be reached. What was downloaded stays.
    """
    artifacts, outcome = await _listed(hub, source)
    size = 0
    for done, number in enumerate(artifacts, start=1):
        place = f"{number}/{RESULTS}"
        if files.is_there(folder / place):
            outcome.there += 1
        elif size >= MOST_BYTES:
            outcome.too_much = True
            break
        else:
            try:
                data = await _content(hub, source, number)
            except ArchiveError:
                outcome.unreadable += 1
            else:
                size += len(data or b"")
                _keep(data, folder, place, outcome)
        tell(done, len(artifacts))
    return outcome


def _keep(data: bytes | None, folder: Path, place: str, outcome: Downloaded) -> None:
    """Write results; None stands for those that are gone."""
    if data is None:
        outcome.gone += 1
        return
    files.write_all(folder, {place: data.decode("utf-8", errors="replace")})
    outcome.new += 1


async def _listed(hub: GitHub, source: Source) -> tuple[list[int], Downloaded]:
    """Return the numbers of the newest artifacts of the branch. Those of forks are none of it."""
    found: dict[int, None] = {}
    outcome = Downloaded()
    seen = 0
    path = f"/repos/{source.repository}/actions/artifacts"
    async for item in hub.pages(path, needs=_NEEDS, within="artifacts", name=source.name):
        seen += 1
        if _is_wanted(item, source):
            if item.get("expired") is not False:
                outcome.gone += 1
            else:
                found[item["id"]] = None
        if len(found) == source.last or seen == MOST_LISTED:
            break
    return list(found), outcome


def _is_wanted(item: Any, source: Source) -> bool:
    match item:
        case {
            "id": int(),
            "name": source.name,
            "workflow_run": {
                "head_branch": source.branch,
                "repository_id": ours,
                "head_repository_id": theirs,
            },
        }:
            return bool(ours == theirs)
    return False


async def _content(hub: GitHub, source: Source, number: int) -> bytes | None:
    """Return the results in an artifact; None if it is gone."""
    path = f"/repos/{source.repository}/actions/artifacts/{number}/zip"
    with TemporaryFile() as file:
        try:
            await hub.download(path, file, needs=_NEEDS, max_mb=archive.MAX_MB)
        except GitHubError as error:
            if error.status in _GONE:
                return None
            raise
        return archive.read(file, RESULTS)
