"""The files by which a step speaks to the runner: nobody but this program writes to them while it works.

An agent that is code does not get their names, but finds them: it has the rights of this process. So whatever
else is in them than what this program wrote, and what was there before it, is cut off.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

REPORTS = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
"""Where results show: what stands in neither file has not been published."""
_ALL = (*REPORTS, "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")

_lengths: dict[Path, int] = {}
"""The files that are watched, and the bytes in each that are ours or were there before."""


def watch(environ: Mapping[str, str]) -> None:
    """Watch the files from now on, as they are."""
    paths = [Path(environ[name]) for name in _ALL if environ.get(name)]
    _lengths.update({path: path.stat().st_size if path.is_file() else 0 for path in paths})


def lengths() -> dict[Path, int]:
    """The bytes in each watched file that are ours or were there before."""
    return dict(_lengths)


def append(path: Path, data: bytes) -> None:
    """Append to a file, behind what is ours.

    Raises:
        OSError: the file cannot be written.
    """
    _cut(path)
    with path.open("ab") as file:
        file.write(data)
        if path in _lengths:
            _lengths[path] = file.tell()


def restore() -> None:
    """Cut off what others have appended. What cannot be written stays as it is."""
    for path in _lengths:
        with suppress(OSError):
            _cut(path)


def _cut(path: Path) -> None:
    length = _lengths.get(path)
    if length is not None and path.is_file() and path.stat().st_size > length:
        os.truncate(path, length)
