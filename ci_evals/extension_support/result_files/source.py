"""The bytes of a result file, read with bounds."""

import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

from pydantic_core import from_json

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files.json_keys import repeated_key
from ci_evals.support.documentation import extra

T = TypeVar("T")

zipfile: Any
ZstdError: type[Exception]
try:  # reads zstd, as the standard library does from Python 3.14 on
    zipfile = import_module("backports.zstd.zipfile")
    ZstdError = import_module("backports.zstd").ZstdError
except ImportError:
    zipfile = import_module("zipfile")
    ZstdError = zipfile.BadZipFile

MOST_VALUES = 20_000_000
"""The most values of a JSON document: each takes up to a hundred bytes of memory."""
MOST_ROWS = 500_000
"""The most rows of a file: each takes up to ten kilobytes of memory once it is a trial."""
MOST_MEMBERS = 200_000
MOST_UNPACKED = 1_000_000_000
"""Bytes of all members of a zip file together."""
MOST_MEMBER = 300_000_000

_LONE = re.compile(rb"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})", re.IGNORECASE)
_BLANK = re.compile(rb"(\xef\xbb\xbf)?\s*")
"""A byte order mark and empty lines, before the first line that says something."""
_ZSTD = 93
_DAMAGED = (zipfile.BadZipFile, ZstdError, zlib.error, RuntimeError, ValueError, OSError, EOFError)

_NEEDS_ZSTD = (
    f"is packed with zstd, which needs Python 3.14 or {extra('zstd')}. "
    "Or convert it: inspect log dump FILE > log.json"
)


class SourceFile:
    """A result file: its name, for messages and tests of the same name, and its bytes.

    What it is parsed into is kept, since several readers look at it. JSON may hold NaN, as Python's tools
    write it, but is nested 200 levels deep at most.
    """

    def __init__(self, name: str, data: bytes, options: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.data = data
        self.options = options or {}
        """What a format needs: `map`, as it was read, and the `SourceFile` of `answers`."""
        self.repeated_keys: list[str] = []
        """The keys that objects of what was parsed have twice, each with its place."""

    @property
    def stem(self) -> str:
        """The name of the file without folder and ending."""
        return re.split(r"[/\\]", self.name)[-1].rpartition(".")[0] or self.name

    def broken(self, message: str) -> UsageError:
        """Return the error that refuses the file."""
        return UsageError(f"{self.name}: {message}")

    def check_rows(self, number: int) -> None:
        """Raise `UsageError` if these are more rows than a file may have."""
        if number > MOST_ROWS:
            raise self.broken(f"has more than {MOST_ROWS:,} rows. Split it by suite, and gate each part.")

    def bounded(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield the rows; raise `UsageError` if they are more than a file may have."""
        for number, row in enumerate(rows, 1):
            self.check_rows(number)
            yield row

    def text(self) -> str | None:
        """Return the file as text; None if it is not UTF-8."""
        return self._text

    def json(self) -> Any:
        """Return the JSON document that the file is; None if it is none."""
        return self._json

    def json_lines(self) -> Iterator[Any] | None:
        """Return the values of a file with one JSON value in each line; None if it is none.

        They are parsed when their turn comes.

        Raises:
            UsageError: in a later line, which is not JSON.
        """
        start = _BLANK.match(self.data)
        first = self.data[start.end() if start else 0 :].partition(b"\n")[0].strip()
        if not first.startswith((b"{", b"[")) or parse(first) is None:
            return None
        return self.bounded(self._lines())

    def members(self) -> Mapping[str, "Member"] | None:
        """Return the members of a zip file by name, the last of each name; None if it is no zip file.

        Raises:
            UsageError: it is damaged, or unpacks to more than a file may.
        """
        return self._members

    @cached_property
    def _text(self) -> str | None:
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    @cached_property
    def _json(self) -> Any:
        start = _BLANK.match(self.data)
        if self.data[start.end() if start else 0 :][:1] not in (b"{", b"["):
            return None
        return self.parse(self.data)

    def parse(self, data: bytes, place: str = "") -> Any:
        """Parse a part of the file as JSON, and note the key that is there twice; None if it is none."""
        value = parse(data)
        if value is not None and (key := repeated_key(data, value)):
            self.repeated_keys.append(f"{place}has the key {key} twice in one object")
        return value

    def _lines(self) -> Iterator[Any]:
        whole = self.json() is not None  # a single line, which has been looked at
        for number, line in enumerate(io.BytesIO(self.data.removeprefix(b"\xef\xbb\xbf")), 1):
            if stripped := line.strip():
                value = parse(stripped) if whole else self.parse(stripped, f"line {number} ")
                if value is None:
                    raise self.broken(f"line {number} is not JSON. The file may be cut off.")
                yield value

    @cached_property
    def _members(self) -> Mapping[str, "Member"] | None:
        if not self.data.startswith(b"PK"):
            return None
        try:
            archive = zipfile.ZipFile(io.BytesIO(self.data))
        except _DAMAGED as error:
            raise self.broken(f"is a damaged zip file: {error}") from error
        members = archive.infolist()
        if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_UNPACKED:
            raise self.broken("is a zip file that unpacks to more than 1 GB or 200,000 members.")
        return {member.filename: Member(self, archive, member) for member in members}


class Member:
    """A member of a zip file, unpacked when it is asked for and never written to the disk."""

    def __init__(self, file: SourceFile, archive: Any, info: Any) -> None:
        self._file, self._archive, self._info = file, archive, info

    @property
    def size(self) -> int:
        """Its bytes, unpacked, as its entry says."""
        return int(self._info.file_size)

    def read(self) -> bytes:
        """Unpack it, in no more memory than its entry says.

        Raises:
            UsageError: it is damaged, encrypted, too large, or larger than it says.
        """
        name, size = self._info.filename, self._info.file_size
        if size > MOST_MEMBER:
            raise self._file.broken(f"its member {name!r} is larger than {MOST_MEMBER // 1_000_000} MB.")
        try:
            with self._archive.open(self._info) as stream:
                data: bytes = stream.read(size + 1)
        except _DAMAGED as error:
            if isinstance(error, NotImplementedError) and self._info.compress_type == _ZSTD:
                raise self._file.broken(_NEEDS_ZSTD) from error
            raise self._file.broken(f"its member {name!r} cannot be unpacked: {error}") from error
        if len(data) != size:
            raise self._file.broken(f"its member {name!r} does not have the size in its entry.")
        return data

    def json(self) -> Any:
        """Unpack and parse it; None if it is not JSON."""
        return self._file.parse(self.read(), f"its member {self._info.filename!r} ")


def parse(data: bytes) -> Any:
    """Parse JSON; None if it is none, is nested more than 200 levels deep, or has too many values."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        return None
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return from_json(data)
    except ValueError:
        if b"\\ud" not in data.lower():
            return None
    try:  # half of a surrogate pair, which JavaScript writes and UTF-8 cannot
        return from_json(_LONE.sub(lambda match: rb"\ufffd" if match[1] else match[0], data))
    except ValueError:
        return None
