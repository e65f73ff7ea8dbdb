"""What can be found out about a repository without asking: its root, its default branch, the suites in it.

Only files are read, git's own among them, so that no git is needed.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_evals.adapters import checkout, input_files
from ci_evals.adapters.suites import ENDINGS
from ci_evals.domain.errors import SuiteError
from ci_evals.planning.reader import read

HOME = "evals"
"""Where suites go in a repository that has none."""

_DEFAULT_BRANCHES = ("main", "master", "trunk", "develop")
_NOT_OURS = {"node_modules", "venv", "env", "site-packages", "dist", "build", "target", "vendor", "results"}
_DEEPEST, _MOST_FILES, _MOST_BYTES = 5, 500, 1_000_000
_HEAD = re.compile(r"ref: refs/(?:heads|remotes/origin)/(\S+)")


@dataclass(frozen=True)
class Repository:
    """A repository, as far as its files tell. Paths are relative to its root, with `/`."""

    root: Path
    branch: str
    home: str
    """The folder of its suites, or where they would go."""
    others: tuple[str, ...]
    """Suites that are not in that folder."""
    adapter: str | None
    """The adapter that all suites name; None where there are none, or several."""


def look(folder: Path) -> Repository:
    """What `folder` and the repository around it tell."""
    folder = folder.resolve()
    root = checkout.root_of(folder) or folder
    suites = dict(_suites(folder))
    adapters = {str(suite.get("adapter", "aui")) for suite in suites.values()}
    home = _home(folder, list(suites))
    return Repository(
        root=root,
        branch=_branch(root),
        home=home.relative_to(root).as_posix(),
        others=tuple(path.relative_to(root).as_posix() for path in suites if not path.is_relative_to(home)),
        adapter=adapters.pop() if len(adapters) == 1 else None,
    )


def _home(folder: Path, suites: list[Path]) -> Path:
    """The folder that holds suites and nothing else that looks like one."""
    for place in sorted(
        {path.parent for path in suites} - {folder}, key=lambda path: (len(path.parts), path)
    ):
        if set(_candidates(place)) <= set(suites):
            return place
    return folder / HOME


def _suites(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in list(_candidates(folder))[:_MOST_FILES]:
        with suppress(OSError, UnicodeDecodeError, SuiteError):
            if path.stat().st_size > _MOST_BYTES:
                continue
            text = input_files.read(path, _MOST_BYTES).decode("utf-8-sig")
            if "guidelines" in text and "evaluations" in text:
                value = read(text, path.name).value
                tests = value.get("tests") if isinstance(value, dict) else None
                if isinstance(tests, list) and any(_is_test(test) for test in tests):
                    yield path, value


def _is_test(test: Any) -> bool:
    return isinstance(test, dict) and {"guidelines", "turns", "evaluations"} <= set(test)


def _candidates(folder: Path) -> Iterator[Path]:
    """Files that could be suites, in order; none that is hidden or somebody else's."""
    depth = len(folder.parts)
    for place, folders, files in os.walk(folder):
        here = Path(place)
        kept = [name for name in sorted(folders) if name[0] not in "._" and name not in _NOT_OURS]
        folders[:] = kept if len(here.parts) - depth < _DEEPEST else []
        for name in sorted(files):
            if name.isprintable() and name[0] not in "._" and Path(name).suffix.lower() in ENDINGS:
                yield here / name


def _branch(root: Path) -> str:
    """The default branch: the remote's, else one of a usual name, else the one checked out, else main."""
    git = checkout.common_folder(checkout.git_folder(root))
    if found := _HEAD.match(checkout.text_of(git / "refs/remotes/origin/HEAD")):
        return found[1]
    packed = checkout.text_of(git / "packed-refs")
    for kind in ("remotes/origin", "heads"):
        for name in _DEFAULT_BRANCHES:
            if (git / "refs" / kind / name).is_file() or f" refs/{kind}/{name}\n" in packed:
                return name
    found = _HEAD.match(checkout.text_of(git / "HEAD"))
    return found[1] if found else _DEFAULT_BRANCHES[0]
