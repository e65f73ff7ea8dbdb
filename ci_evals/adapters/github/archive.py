"""Reads one file of a downloaded artifact, in memory.

Anybody who could start a workflow may have made the artifact: nothing in it is trusted, and all reading is
bounded.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import IO

from ci_evals.domain.errors import CiEvalsError

MAX_MB = 100
"""Maximum size after unpacking: the results of 10,000 trials take some 40 MB."""

_LIST_BYTES = 4_000_000
"""Maximum size of the list of files. Each takes 46 bytes and its name, and 1 kB of memory."""

_PIECE = 1 << 16
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods that GitHub uses. With others Python unpacks unbounded pieces."""

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,  # offsets before the start, names that are no text
    OverflowError,
    RuntimeError,  # encrypted; a kind of zip that Python does not know
)


class ArchiveError(CiEvalsError):
    """The file cannot be read. The message continues the archive's name: "is damaged"."""


def read(file: IO[bytes], name: str) -> bytes:
    """Return the content of the file `name` in a zip: of several the one at the least depth.

    An artifact may also have been uploaded unzipped: a JSON file is returned as it is.

    Raises:
        ArchiveError: it is neither, damaged, too large or ambiguous.
    """
    file.seek(0)
    if file.read(len(_ZIP[0])) not in _ZIP:
        file.seek(0)
        return _json(_bounded(file), f"is neither a zip nor the file {name}")
    try:
        with zipfile.ZipFile(_BoundedFile(file)) as archive:
            entry = _select(archive.infolist(), name)
            with archive.open(entry) as content:
                return _json(_bounded(content), f"holds a {name} that is not JSON")
    except _BROKEN as error:
        raise ArchiveError("is damaged, and cannot be unpacked") from error


def _select(entries: Sequence[zipfile.ZipInfo], name: str) -> zipfile.ZipInfo:
    named = [entry for entry in entries if entry.filename.rpartition("/")[2] == name]
    depths = {entry: entry.filename.count("/") for entry in named}
    if not depths:
        raise ArchiveError(f"holds no file {name}; upload the one in the output folder")
    if any(map(_is_elsewhere, depths)):
        raise ArchiveError(f"holds a {name} whose path leads out of it")
    nearest = [entry for entry, depth in depths.items() if depth == min(depths.values())]
    if len(nearest) > 1:
        raise ArchiveError(
            f"holds {len(nearest)} files {name} side by side; upload only the one in the output folder"
        )
    (entry,) = nearest
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise ArchiveError(f"holds a {name} that is a symbolic link")
    if entry.flag_bits & 1:
        raise ArchiveError("is encrypted")
    if entry.compress_type not in _METHODS:
        raise ArchiveError("is packed in a way that is not supported")
    return entry


def _is_elsewhere(entry: zipfile.ZipInfo) -> bool:
    """Return whether the path is absolute, has a `..` or is ambiguous."""
    parts = entry.filename.split("/")[:-1]
    odd = any(part in {"", ".", ".."} or "\\" in part or ":" in part for part in parts)
    return odd or entry.filename != entry.orig_filename  # cut at a NUL


def _bounded(file: IO[bytes]) -> bytes:
    """Read all of it in pieces, whatever a header says of its size."""
    content = io.BytesIO()
    while piece := file.read(_PIECE):
        content.write(piece)
        if content.tell() > MAX_MB * 1_000_000:
            raise ArchiveError(f"holds more than {MAX_MB} MB")
    return content.getvalue()


def _json(content: bytes, otherwise: str) -> bytes:
    """Return the content if it begins like a JSON object."""
    if not content[:_PIECE].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n").startswith(b"{"):
        raise ArchiveError(otherwise)
    return content


class _BoundedFile:
    """A file with bounded reads, since Python reads the list of files in one piece of any length."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LIST_BYTES:
            raise ArchiveError("lists too many files; upload only the _results.json of the output folder")
        return self._file.read(size if size >= 0 else _LIST_BYTES)
