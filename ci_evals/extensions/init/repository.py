"""Surveys a repository for `init`: its root, its default branch, its suites. Needs no git."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_evals.adapters import input_files
from ci_evals.adapters.git import checkout
from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.reader import read

HOME = "evals"
"""The folder of suites in a repository without any."""

_DEFAULT_BRANCHES = ("main", "master", "trunk", "develop")
_NOT_OURS = {"node_modules", "venv", "env", "site-packages", "dist", "build", "target", "vendor", "results"}
_DEEPEST, _MAX_FILES, _MAX_BYTES = 5, 500, 1_000_000
_HEAD = re.compile(r"ref: refs/(?:heads|remotes/origin)/(\S+)")


@dataclass(frozen=True)
class Repository:
    """A repository. Paths are relative to its root, with `/`."""

    root: Path
    branch: str
    home: str
    """The folder for its suites, existing or not."""
    others: tuple[str, ...]
    """Suites outside of that folder."""
    adapter: str | None
    """The adapter of all suites; None if there are none, or several."""
    has_suites: bool
    """True if there are suites, wherever they are."""
    environment: Path | None = None
    """The virtual environment of Python in its root."""


def look(folder: Path) -> Repository:
    """Survey a folder and the repository around it."""
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
        has_suites=bool(suites),
        environment=_environment(root),
    )


def _environment(root: Path) -> Path | None:
    """Return the virtual environment in the root, by the names that uv, venv and poetry give it."""
    for name in (".venv", "venv"):
        if (root / name / "pyvenv.cfg").is_file():
            return root / name
    return None


def _home(folder: Path, suites: list[Path]) -> Path:
    """Return the folder that holds suites and nothing else that looks like one."""
    parents = {path.parent for path in suites} - {folder}
    for parent in sorted(parents, key=lambda path: (len(path.parts), path)):
        if set(_candidates(parent)) <= set(suites):
            return parent
    return folder / HOME


def _suites(folder: Path) -> Iterator[tuple[Path, dict[str, object]]]:
    for path in list(_candidates(folder))[:_MAX_FILES]:
        with suppress(OSError, UnicodeDecodeError, SuiteError):
            if path.stat().st_size > _MAX_BYTES:
                continue
            text = input_files.read(path, _MAX_BYTES).decode("utf-8-sig")
            if "guidelines" in text and "evaluations" in text:
                value = read(text, path.name).value
                tests = value.get("tests") if isinstance(value, dict) else None
                if isinstance(tests, list) and any(_is_test(test) for test in tests):
                    yield path, value


def _is_test(test: Any) -> bool:
    return isinstance(test, dict) and {"guidelines", "turns", "evaluations"} <= set(test)


def _candidates(folder: Path) -> Iterator[Path]:
    """Yield files that could be suites, in order, except hidden ones and those of others."""
    depth = len(folder.parts)
    for path, folders, files in os.walk(folder):
        here = Path(path)
        kept = [name for name in sorted(folders) if _is_plain(name) and name not in _NOT_OURS]
        folders[:] = kept if len(here.parts) - depth < _DEEPEST else []
        for name in sorted(files):
            if _is_plain(name) and Path(name).suffix.lower() in ENDINGS:
                yield here / name


def _is_plain(name: str) -> bool:
    """Return whether a name is not hidden, and may stand in a workflow, where `${{` begins an expression."""
    return name.isprintable() and name[0] not in "._" and name == name.strip() and "${{" not in name


def _branch(root: Path) -> str:
    """Return the default branch: the remote's, one with a common name, the current one, or main."""
    git = checkout.common_folder(checkout.git_folder(root))
    if head := _HEAD.match(checkout.text_of(git / "refs/remotes/origin/HEAD")):
        return head[1]
    packed = checkout.text_of(git / "packed-refs")
    for kind in ("remotes/origin", "heads"):
        for name in _DEFAULT_BRANCHES:
            if (git / "refs" / kind / name).is_file() or f" refs/{kind}/{name}\n" in packed:
                return name
    head = _HEAD.match(checkout.text_of(git / "HEAD"))
    return head[1] if head else _DEFAULT_BRANCHES[0]
