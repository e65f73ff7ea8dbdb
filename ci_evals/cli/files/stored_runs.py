"""The runs that a folder of results holds: artifacts as they are unpacked, and output folders."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.reports.names import RESULTS
from ci_evals.scoring.suite_results import joined

MOST_FILES = 5_000
"""Results files that are read."""
_DEPTH = 6
"""Folders below the given one: those of workflow runs, artifacts, output folders, suites and times."""
_MOST_IN_HISTORY = 100
"""The most runs of a history."""
_NO_RUNS = (
    f"contains no {RESULTS}, nor does a folder in it. Name a folder of results, or of artifacts as "
    "actions/download-artifact leaves them."
)


@dataclass(frozen=True)
class LeftOut:
    """A file that no run was read from, and the reason."""

    file: Path
    why: str


@dataclass(frozen=True)
class StoredRuns:
    """The runs of a folder, oldest first, each of them once."""

    runs: tuple[Results, ...]
    left_out: tuple[LeftOut, ...] = ()


def read_stored_runs(
    folder: Path,
    *,
    earlier_version: bool = False,
    compact: Callable[[Results], Results] = lambda results: results,
    begun: Callable[[int], None] = lambda _: None,
    read: Callable[[], None] = lambda: None,
) -> StoredRuns:
    """Read every run in a folder and the folders below it.

    A run that wrote a file for each suite is put together from them. Links are not followed.

    Args:
        folder: The folder.
        earlier_version: Whether results of the version before this one are read too.
        compact: Drops what is not needed from results, before the next file is read.
        begun: Called with the number of files, before the first.
        read: Called after each file.

    Raises:
        UsageError: there is no such folder, or no results file in it.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    files = list(_files_below(folder, _DEPTH))
    if not files:
        raise UsageError(f"{folder}: {_NO_RUNS}")
    begun(len(files))
    by_run: dict[tuple[str, datetime], list[Results]] = defaultdict(list)
    left_out = []
    for file in files[:MOST_FILES]:
        try:
            results = _read(file, earlier_version=earlier_version)
        except UsageError as error:
            left_out.append(LeftOut(file, str(error).partition("\n")[0]))
        else:
            by_run[_run_key(results)].append(compact(results))
        read()
    left_out += [LeftOut(file, f"{file}: more than {MOST_FILES:,} files") for file in files[MOST_FILES:]]
    runs = sorted(map(_whole, by_run.values()), key=lambda run: (run.run.started_at, run.run.id))
    return StoredRuns(tuple(runs), tuple(left_out))


def unfit(run: Results) -> str | None:
    """Return why a run is no sample of what an agent does; None if it is one."""
    info = run.run
    if info.status != "completed":
        return f"the run was not completed ({info.status})"
    if info.origin:
        return f"its conversations are those of the run {info.origin.run} ({info.origin.how})"
    if info.shard:
        return "a shard of a run; merge its shards first"
    if any(test.taken_from for test in run.tests) or info.pooled:
        return "some of its trials are of an earlier run"
    return None


@dataclass(frozen=True)
class StoredHistory:
    """The runs of a branch up to a run."""

    runs: tuple[Results, ...]
    """Oldest first; the last one is the run."""
    left_out: int
    """Other runs that do not belong to them."""


def history_in(folder: Path, newest: Results) -> StoredHistory:
    """Read the runs of a branch in a folder of results, with `newest` as the last of them.

    Left out are runs of pull requests and of other branches, those that began later, and those that are no
    sample of what the agent does.

    Raises:
        UsageError: there are none, or one cannot be read.
    """
    stored = read_stored_runs(folder, earlier_version=True)
    if stored.left_out:
        raise UsageError("\n".join(one.why for one in stored.left_out))
    others = [run for run in stored.runs if _run_key(run) != _run_key(newest)]
    earlier = [run for run in others if _is_earlier(run, newest)]
    return StoredHistory((*earlier[-_MOST_IN_HISTORY + 1 :], newest), len(others) - len(earlier))


def _is_earlier(run: Results, newest: Results) -> bool:
    """Return whether a run is one of the same branch that did not begin after the newest."""
    git, branch = run.run.git, newest.run.git.branch
    if git.pull_request is not None or (branch is not None and git.branch != branch):
        return False
    return run.run.started_at <= newest.run.started_at and unfit(run) is None


def _run_key(run: Results) -> tuple[str, datetime]:
    """Return what tells runs apart: two runs of `gate` on equal files have one id."""
    return run.run.id, run.run.started_at


def _read(file: Path, *, earlier_version: bool) -> Results:
    if file.is_symlink():
        raise UsageError(f"{file}: is a link")
    return SavedRun.open(file, None, unfinished=True, earlier_version=earlier_version).results


def _whole(parts: Sequence[Results]) -> Results:
    """Return the run that these files are of: each suite counts once."""
    found: dict[tuple[str, str], SuiteResult] = {}
    used: list[Results] = []
    for part in sorted(parts, key=lambda part: len(part.suites), reverse=True):
        own = {(suite.name, suite.file): suite for suite in part.suites}
        new = tuple(suite for key, suite in own.items() if key not in found)
        if new or not used:
            used.append(part if len(new) == len(part.suites) else replace(part, suites=new))
        found |= own
    return joined(used)


def _files_below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the results files in a folder and below it, in the order of their names."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name == RESULTS and not entry.is_dir(follow_symlinks=False):
            yield folder / entry.name
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _files_below(folder / entry.name, depth - 1)
