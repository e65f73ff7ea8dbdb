"""The files that are watched, and what changed among them.

They are looked at again and again: that needs no library, works on every system and on network disks, and
takes some milliseconds for a thousand files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import suite_paths
from ci_evals.adapters.git.changes import Checkout, GitError
from ci_evals.domain.errors import UsageError

_NOT_WATCHED = frozenset({"__pycache__", "node_modules", "venv"})
_MOST_ASKED = 1_000
"""Changed files of which git is asked whether it ignores them."""

Snapshot = Mapping[Path, tuple[int, int, int]]
"""Time of the last change, size and number of each file."""


@dataclass(frozen=True)
class WatchedFiles:
    """Files and folders to watch, with all that is below them."""

    roots: tuple[Path, ...]
    left_out: frozenset[Path]
    """Folders and files that runs write, absolute."""
    suites: tuple[str, ...]
    """The names of the suites: they count also where git ignores them."""
    environ: Mapping[str, str]

    def look(self) -> Snapshot:
        """Return the state of all files now."""
        seen = {}
        for root in self.roots:
            for path in self._below(root.absolute()):
                with suppress(OSError):  # gone in the meantime
                    facts = path.stat()
                    seen[path] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        return seen

    def changed(self, before: Snapshot, now: Snapshot) -> tuple[Path, ...]:
        """Return the files that changed, came or went, without those that git ignores."""
        paths = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        if not paths:
            return ()
        ignored = self._ignored(paths) - self._suite_files()
        return tuple(path for path in paths if path not in ignored)

    def _below(self, root: Path) -> Iterator[Path]:
        if root.is_file():
            yield root
            return
        for folder, folders, names in os.walk(root):
            here = Path(folder)
            folders[:] = [name for name in folders if self._is_watched(here / name)]
            yield from (here / name for name in names if self._is_watched(here / name))

    def _is_watched(self, path: Path) -> bool:
        if path.name.startswith(".") or path.name.endswith("~") or path.name in _NOT_WATCHED:
            return False
        return path not in self.left_out

    def _ignored(self, paths: Sequence[Path]) -> frozenset[Path]:
        ignored: frozenset[Path] = frozenset()
        for root in self.roots:
            with suppress(GitError):
                folder = root if root.is_dir() else root.parent
                inside = [path for path in paths if path.is_relative_to(root.absolute())]
                ignored |= Checkout(folder, self.environ).ignored(inside[:_MOST_ASKED])
        return ignored

    def _suite_files(self) -> frozenset[Path]:
        found: set[Path] = set()
        for name in self.suites:
            with suppress(UsageError, OSError):
                found.update(path.absolute() for path in suite_paths.files(name))
        return frozenset(found)
