"""A file of conversations: its bytes as text, or as JSON values with their positions."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from ci_evals.adapters import input_files
from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.extension_support.drafting.conversation import RecordedConversation
from ci_evals.extensions.importers.records import JSON_LINES, MOST_TESTS, Remarks
from ci_evals.planning.documents import json_document
from ci_evals.planning.documents.document import Document

MAX_BYTES = 100_000_000
"""Limit of a file of conversations."""


@dataclass(frozen=True)
class RecordedFile:
    """A file by its name and its bytes."""

    name: str
    data: bytes

    @classmethod
    def read(cls, path: Path) -> "RecordedFile":
        """Read a file.

        Raises:
            UsageError: it cannot be read, or is too large.
        """
        try:
            return cls(path.as_posix(), input_files.read(path, MAX_BYTES))
        except OSError as error:
            hint = " Split the file." if error.errno == errno.EFBIG else ""
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}.{hint}") from error

    @property
    def ending(self) -> str:
        """The ending of the name, in lower case."""
        return PurePath(self.name).suffix.lower()

    @property
    def begins_as_json(self) -> bool:
        """True if the first sign is one with which JSON begins."""
        return self.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")

    def text(self) -> str:
        """Return the bytes as text.

        Raises:
            UsageError: they are not UTF-8.
        """
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data[: error.start].count(b"\n") + 1
            message = f"{self.name}:{line}: not UTF-8. Save the file as UTF-8."
            raise UsageError(message) from error

    def values(self) -> list["LocatedValue"]:
        """Return the JSON value of the file, or one of each line.

        Raises:
            SuiteError: it is neither JSON nor JSON Lines, with the position of the error.
        """
        text = self.text()
        if self.ending in JSON_LINES:
            return [*self._lines(text)]
        try:
            document = _document(text, self.name)
        except SuiteError as error:
            lines = [line for line in text.splitlines() if line.strip()]
            if len(lines) < 2 or not _is_json(lines[0]):
                raise
            try:
                return [*self._lines(text)]
            except SuiteError as error_of_line:
                raise error_of_line from error
        return [LocatedValue(document.value, document)]

    def _lines(self, text: str) -> Iterator["LocatedValue"]:
        count = 0
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            count += 1
            if count > MOST_TESTS:
                message = f"more than {MOST_TESTS:,} lines. Split the file."
                raise SuiteError([Problem(self.name, number, 1, "", message)])
            try:
                document = _document(line, self.name)
            except SuiteError as error:
                raise SuiteError([replace(error.problems[0], line=number)]) from error
            document.line = number
            yield LocatedValue(document.value, document)


class LocatedValue(NamedTuple):
    """A JSON value and its position."""

    value: JsonValue
    document: Document
    path: tuple[str | int, ...] = ()

    @property
    def place(self) -> Problem:
        """The position, as a problem without a message."""
        return self.document.problem(self.path, "")

    def fault(self, message: str) -> SuiteError:
        """Return an error about the value, to be raised."""
        return SuiteError([self.document.problem(self.path, message)])

    def at(self, *path: str | int) -> "LocatedValue":
        """Return the value at a path within this one; the path exists."""
        value = self.value
        for step in path:
            value = value[step]  # type: ignore[index]  # the caller has looked
        return LocatedValue(value, self.document, (*self.path, *path))

    def items(self) -> list["LocatedValue"]:
        """Return the items of a list, each with its position; none of anything else."""
        return [self.at(index) for index in range(len(self.value))] if isinstance(self.value, list) else []


class ReadConversations(Protocol):
    """Reads the conversations of a file."""

    def __call__(self, file: RecordedFile, remarks: Remarks, /) -> list[RecordedConversation]:
        """Return the conversations in the order of the file; those that cannot be read are remarked.

        Raises:
            UsageError: the file is not of the format, with the position.
        """


def _document(text: str, name: str) -> Document:
    document = Document(name)
    json_document.read(text, document)
    if document.problems:
        raise SuiteError(document.problems)
    return document


def _is_json(line: str) -> bool:
    try:
        _document(line, "")
    except SuiteError:
        return False
    return True
