"""Finds suites by paths, globs, folders, or names of those bundled with the package."""

import difflib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import input_files, suite_paths
from ci_evals.adapters.files import os_errors
from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.suite import COLLECTIONS, is_bundled
from ci_evals.planning.documents.reader import read


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
    """Return the suites of a path, glob, folder or bundled name, sorted.

    JSON Schemas and lock files of suites, in a folder or among the matches of a glob, are left out.

    Raises:
        UsageError: there are none, or one cannot be read.
    """
    if not name.strip():
        raise UsageError("The name of a suite is empty. Name a file, a folder or a bundled suite.")
    if is_bundled(name):
        path = _bundled(name)
        return (SuiteSource(name, _read(path, name), path),)
    with os_errors(f"{name!r} cannot be read"):
        paths = list(suite_paths.files(name))
    found, others = [], []
    for path in paths:
        text = _read(path, _name_of(path))
        if _is_json_schema(text):
            others.append(f"{_name_of(path)} is a JSON Schema")
        elif _is_lock_file(path, text):
            others.append(f"{_name_of(path)} has the translations of a suite")
        else:
            found.append(SuiteSource(_name_of(path), text, path.resolve()))
    if not found:
        raise UsageError(f"{name!r} holds no suite: {', '.join(others)}.")
    return tuple(found)


LOCK_ENDING = ".lock.yaml"


def _is_lock_file(path: Path, text: str) -> bool:
    """Return whether a text is the lock file of a suite, and surely no suite."""
    if not path.name.endswith(LOCK_ENDING):
        return False
    try:
        data = read(text, path.name).value
    except SuiteError:
        return False
    return isinstance(data, dict) and data.keys() == {"translations"}


_SCHEMA_KEY = re.compile(r'"\$schema"\s*:\s*"https?://json-schema\.org/')
_HEAD = 10_000
"""The characters in which a JSON Schema names its dialect."""


def _is_json_schema(text: str) -> bool:
    """Return whether a text is a JSON Schema, and surely no suite: one that is left out cannot fail."""
    if not _SCHEMA_KEY.search(text[:_HEAD]):
        return False
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "$schema" in data and "tests" not in data


def _name_of(path: Path) -> str:
    """Return a file's name, which is never that of a bundled suite."""
    name = path.as_posix()
    return f"./{name}" if is_bundled(name) else name


MAX_BESIDE = 1_000_000
"""Maximum size of a file that a suite names."""
MAX_LOCK = input_files.MAX_TEXT
"""The same of a lock file: its translations may be longer than all lines of the suite."""


def read_beside(folder: Path, name: str) -> str:
    """Read a file that a suite in `folder` names. It must be in the suite's folder or in the current one.

    Raises:
        UsageError: it cannot be read, with a clause on the file.
    """
    try:
        path = (folder / name).resolve()
        if not any(path.is_relative_to(root.resolve()) for root in (folder, Path.cwd())):
            raise UsageError("is outside of the suite's folder and the current folder")
        limit = MAX_LOCK if name.endswith(LOCK_ENDING) else MAX_BESIDE
        return input_files.read(path, limit).decode("utf-8-sig")
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
