"""Reads input files: regular files only, up to a maximum size, so that no read hangs."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_TEXT = 20_000_000
"""Maximum size of a file by a person or a small tool: a suite, options, prices, an event, a sheet."""
MAX_RESULTS = 1_000_000_000
"""Maximum size of the results of a run: 5,000 long conversations take a tenth of it."""
MAX_LINE = 100_000_000
"""Maximum size of a line of a journal or a recording: one trial."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: it cannot be opened, or is no regular file. `strerror` is a message for the user.
    """
    _check_kind(path, os.stat(path).st_mode)  # noqa: PTH116  # a device may act when it is opened
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    )
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _check_kind(path, os.fstat(file.fileno()).st_mode)  # it may have been replaced in between
    except OSError:
        file.close()
        raise
    return file


def read(path: Path, limit: int = MAX_TEXT) -> bytes:
    """Read a regular file of at most `limit` bytes. Raises as `open_file`, also if it is larger."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size <= limit and len(data := file.read(limit + 1)) <= limit:
            return data
    raise OSError(errno.EFBIG, f"it is larger than {limit // 1_000_000} MB", str(path))


def lines(file: BinaryIO, limit: int = MAX_LINE) -> Iterator[bytes]:
    """Read lines of at most `limit` bytes each."""
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise OSError(errno.EFBIG, f"it has a line of more than {limit // 1_000_000} MB")
        yield line


def _check_kind(path: Path, mode: int) -> None:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            number = errno.EISDIR if is_kind is stat.S_ISDIR else errno.EINVAL
            reason = os.strerror(number) if number == errno.EISDIR else f"it is {name}, not a regular file"
            raise OSError(number, reason, str(path))
