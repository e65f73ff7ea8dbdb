"""Finds suites by paths, globs, folders, or names of those bundled with the package."""

import difflib
import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import input_files
from ci_evals.adapters.files import os_errors
from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.suite import COLLECTIONS, is_bundled

ENDINGS = (".json", ".yaml", ".yml")


@dataclass(frozen=True)
class SuiteSource:
    """The text of a suite."""

    file: str
    """Its name as given by the user."""
    text: str
    path: Path


def bundled_path(collection: str) -> Path:
    """Return the folder of a collection of bundled suites, in the installed package or a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "suites" / collection
    return installed if installed.is_dir() else package.parent / "suites" / collection


def bundled_names() -> tuple[str, ...]:
    """Return the names of all bundled suites, such as `demo:hr`."""
    return tuple(
        f"{collection}:{path.relative_to(bundled_path(collection)).with_suffix('').as_posix()}"
        for collection in COLLECTIONS
        for path in sorted(bundled_path(collection).rglob("*.json"))
    )


def sources(name: str) -> tuple[SuiteSource, ...]:
    """Return the suites of a path, glob, folder or bundled name, sorted."""
    if not name.strip():
        raise UsageError("The name of a suite is empty. Name a file, a folder or a bundled suite.")
    if is_bundled(name):
        path = _bundled(name)
        return (SuiteSource(name, _read(path, name), path),)
    with os_errors(f"{name!r} cannot be read"):
        paths = list(_files(name))
    return tuple(SuiteSource(_name_of(p), _read(p, _name_of(p)), p.resolve()) for p in paths)


def _name_of(path: Path) -> str:
    """Return a file's name, which is never that of a bundled suite."""
    name = path.as_posix()
    return f"./{name}" if is_bundled(name) else name


MAX_BESIDE = 1_000_000
"""Maximum size of a file that a suite names."""


def read_beside(folder: Path, name: str) -> str:
    """Read a file that a suite in `folder` names. It must be in the suite's folder or in the current one.

    Raises:
        UsageError: it cannot be read, with a clause on the file.
    """
    try:
        path = (folder / name).resolve()
        if not any(path.is_relative_to(root.resolve()) for root in (folder, Path.cwd())):
            raise UsageError("is outside of the suite's folder and the current folder")
        return input_files.read(path, MAX_BESIDE).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("cannot be read: it is not UTF-8") from None
    except (OSError, ValueError) as error:  # also a name with a null character
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot be read: {reason}") from None


def _bundled(name: str) -> Path:
    known = bundled_names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)  # they share a prefix
        hint = f"Did you mean {close[0]!r}?" if close else f"Bundled suites: {', '.join(known)}."
        raise UsageError(f"No bundled suite is called {name!r}. {hint}")
    collection, _, rest = name.partition(":")
    return bundled_path(collection) / f"{rest}.json"


def _files(name: str) -> Iterator[Path]:
    path = Path(name)
    if path.is_file():
        yield path
    elif path.is_dir():
        inside = [p for p in sorted(path.rglob("*")) if _is_suite_of(p, path)]
        if not inside:
            raise UsageError(f"The folder {name!r} contains no suite (*.json, *.yaml, *.yml).")
        yield from inside
    elif glob.has_magic(name):
        matches = [Path(p) for p in sorted(glob.glob(name, recursive=True)) if Path(p).is_file()]  # noqa: PTH207  # absolute patterns
        if not matches:
            raise UsageError(f"No file matches {name!r}.")
        yield from matches
    elif path.is_symlink():
        raise UsageError(f"{name!r} is a broken link.")
    elif path.exists():
        raise UsageError(f"{name!r} is not a regular file.")
    else:
        raise UsageError(f"No file {name!r}{_nearby(path)}")


def _is_suite_of(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return path.is_file() and path.suffix.lower() in ENDINGS and not hidden


def _nearby(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return f", nor a folder {path.parent.as_posix()!r}."
    close = difflib.get_close_matches(path.name, names, n=1)
    return f". Did you mean {(path.parent / close[0]).as_posix()!r}?" if close else "."


def _read(path: Path, name: str) -> str:
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{name}: not a suite file, which ends in {', '.join(ENDINGS)}")
    return read_text(path, name)


def read_text(path: Path, name: str) -> str:
    """Read a file that a person wrote, and that messages call `name`."""
    with os_errors(f"{name}: cannot be read"):
        data = input_files.read(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise SuiteError([Problem(name, line, column, "", "not UTF-8")]) from error
