"""The earlier runs that an output folder still has, for the trend: the files of their suites."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_evals.adapters.git.checkout import root_of, tracked_files
from ci_evals.cli.files.saved_run import SavedRun, without_trials
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.reports.names import RESULTS
from ci_evals.reports.story.comparison_runs import ComparisonRun
from ci_evals.scoring.suite_results import joined
from ci_evals.support.redaction import Redactor

MOST_RUNS = 50
"""The newest runs are read."""
_MOST_FILES = 5_000
"""Results files that are looked for."""
_MOST_BYTES = 50_000_000
"""Bytes that are read in all: some two seconds."""
_NAMED = 3
"""Files left out that are named."""
_SELECTING = ("test", "tag", "shard")
"""Options of a run that plays a part of its suites."""


def earlier_runs(
    folder: Path, results: Results, context: RunContext, most: int = MOST_RUNS
) -> tuple[ComparisonRun, ...]:
    """Return the newest runs below an output folder that played the same tests, all of them.

    Links are not followed, and in CI no file counts that is committed. What cannot be read is said, and left
    out. Raises nothing.
    """
    runs = _Runs(results, context.redactor, most)
    committed = _committed(folder) if context.in_ci else frozenset()
    read = 0
    for file in _newest_first(folder):
        if file.resolve() in committed:
            continue
        read += file.lstat().st_size
        if read > _MOST_BYTES or not runs.has_room_for(file):
            break
        if file.is_symlink():
            runs.unreadable.append(f"{file}: is a link")
        else:
            runs.add(file)
    if runs.unreadable:
        named = "; ".join(runs.unreadable[:_NAMED])
        more = len(runs.unreadable) - _NAMED
        others = f"; and {more:,} more" if more > 0 else ""
        context.console.say(
            f"note: left out of the trend, since no earlier run could be read: {named}{others}"
        )
    return runs.found()


@dataclass
class _Runs:
    """Earlier runs, put together from the files of their suites."""

    shown: Results
    redactor: Redactor
    most: int
    """Runs that are read."""
    unreadable: list[str] = field(default_factory=list)
    """Why a file was left out."""
    _by_id: dict[str, dict[str, Results]] = field(default_factory=dict)
    """The results of each suite by its name, by the id of the run."""
    _folders: set[str] = field(default_factory=set)
    """The names of their folders: the time at which a run began is the name in each suite's folder."""

    def has_room_for(self, file: Path) -> bool:
        """Return whether a file may be read: one of a run that is known already, or of one of the newest."""
        return len(self._by_id) < self.most or file.parent.name in self._folders

    def add(self, file: Path) -> None:
        """Read a file."""
        try:
            results = SavedRun.open(file, None, unfinished=True, earlier_version=True).results
        except UsageError as error:
            self.unreadable.append(str(error).partition("\n")[0])
            return
        self._folders.add(file.parent.name)
        suites = self._by_id.setdefault(results.run.id, {})
        if len(results.suites) == 1:
            suites.setdefault(results.suites[0].name, results)

    def found(self) -> tuple[ComparisonRun, ...]:
        """Return the runs that can be compared with the one that is shown."""
        found = []
        for suites in self._by_id.values():
            if self._is_like_shown(suites):
                whole = without_trials(joined(list(suites.values())))
                label = f"{whole.run.started_at:%m-%d %H:%M}"
                found.append(ComparisonRun.of(self.redactor.model(whole), label))
        return tuple(found)

    def _is_like_shown(self, suites: Mapping[str, Results]) -> bool:
        shown = self.shown.run
        if suites.keys() != {suite.name for suite in self.shown.suites}:
            return False
        run = next(iter(suites.values())).run
        if run.id == shown.id or run.status != "completed" or run.origin:
            return False
        return all(run.config.get(option) == shown.config.get(option) for option in _SELECTING)


def _newest_first(folder: Path) -> Iterator[Path]:
    """Yield the results files one and two folders below, by the time of their last change."""
    files = []
    for path in _below(folder):
        try:
            facts = path.lstat()
        except OSError:
            continue  # most folders have none
        files.append((facts.st_mtime_ns, str(path)))
        if len(files) == _MOST_FILES:
            break
    yield from (Path(path) for _, path in sorted(files, reverse=True))


def _below(folder: Path) -> Iterator[Path]:
    for outer in _folders_in(folder):
        yield outer / RESULTS
        for inner in _folders_in(outer):
            yield inner / RESULTS


def _folders_in(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder, without links."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield folder / entry.name


def _committed(folder: Path) -> frozenset[Path]:
    """Return the files that git tracks: whoever commits could have written them."""
    root = root_of(folder.resolve())
    return frozenset(root / name for name in tracked_files(folder) or ()) if root else frozenset()
