"""The files by which a step talks to the runner, protected against writes of others.

An agent that is code does not get their names, but can find them. So everything is cut off that neither this
program wrote nor was there before.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

REPORTS = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
"""The files that show results."""
_ALL = (*REPORTS, "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")

_lengths: dict[Path, int] = {}
"""The watched files, and the bytes in each that are ours or were there before."""


def watch(environ: Mapping[str, str]) -> None:
    """Watch the files from now on."""
    paths = [Path(environ[name]) for name in _ALL if environ.get(name)]
    _lengths.update({path: path.stat().st_size if path.is_file() else 0 for path in paths})


def lengths() -> dict[Path, int]:
    """The bytes in each watched file that are ours or were there before."""
    return dict(_lengths)


def append(path: Path, data: bytes) -> None:
    """Append to a file after cutting off what is not ours."""
    _cut(path)
    with path.open("ab") as file:
        file.write(data)
        if path in _lengths:
            _lengths[path] = file.tell()


def restore() -> None:
    """Cut off what others have appended, where possible."""
    for path in _lengths:
        with suppress(OSError):
            _cut(path)


def _cut(path: Path) -> None:
    length = _lengths.get(path)
    if length is not None and path.is_file() and path.stat().st_size > length:
        os.truncate(path, length)
