"""Records of foreign files: objects of a JSON list, of JSON Lines or of a table, with their positions."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Protocol

from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.documents.reader import read
from ci_evals.support.json_text import JsonObject

MOST_TESTS = 10_000

JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class ImportedRecord:
    """An object of a foreign file, and its position."""

    values: JsonObject
    document: Document
    path: Path = ()

    def fault(self, key: str, message: str) -> SuiteError:
        """An error about the value under `key`, to be raised."""
        return SuiteError([self.document.problem((*self.path, key), message)])

    def place(self) -> Problem:
        """The record's position, as a problem without a message."""
        return self.document.problem(self.path, "")

    def location(self) -> str:
        """The record's `file:line`."""
        place = self.place()
        return f"{place.file}:{place.line}"

    def text(self, *keys: str) -> str:
        """The text under the first of the keys that holds one, else an empty one. A number is a text."""
        for key in keys:
            match self.values.get(key):
                case None | "":
                    continue
                case str() as value:
                    return value.strip()
                case bool() as value:
                    raise self.fault(key, f"must be a string, found {str(value).lower()}")
                case int() | float() as value:
                    return str(value)
                case value:
                    raise self.fault(key, f"must be a string, found {kind_of(value)}")
        return ""

    def texts(self, *keys: str) -> list[str]:
        """The texts in the list under the first of the keys that holds one; one text is a list of one."""
        for key in keys:
            match self.values.get(key):
                case None | "" | []:
                    continue
                case str() as value:
                    return [value.strip()]
                case list() as value if all(isinstance(item, str) for item in value):
                    return [item.strip() for item in value if item.strip()]
                case value:
                    raise self.fault(key, f"must be a list of strings, found {kind_of(value)}")
        return []


def kind_of(value: Any) -> str:
    """Return what a value is, for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)[:60]


def whole_document(text: str, file: str) -> Document:
    """A JSON or YAML file."""
    document = read(text, file)
    if document.problems:
        raise SuiteError(document.problems)
    return document


class Remarks(Protocol):
    """What is to be told of a file: `ImportedSuite` collects it."""

    def note(self, problem: Problem) -> None:
        """Report something that is imported in another way than it may be expected."""

    def leave_out(self, problem: Problem) -> None:
        """Report a record that is not imported, and why."""


def records(text: str, file: str, remarks: Remarks, under: Sequence[str] = ()) -> list[ImportedRecord]:
    """The objects of a JSON list, of JSON lines (`.jsonl`) or of a table (`.csv`).

    A JSON object may hold the lists under the keys `under`.
    """
    ending = PurePath(file).suffix.lower()
    if ending in JSON_LINES:
        found = list(_lines(text, file))
        number = len(found)
    elif ending == ".csv":
        found = rows(text, file, remarks)
        number = len(found)
    else:
        lists = list(_lists(whole_document(text, file), under, remarks))
        found = [record for items in lists for record in _objects(*items, remarks)]
        number = sum(len(items) for _, _, items in lists)
    if not number and not found:
        raise SuiteError([Problem(file, 1, 1, "", "the file holds no records")])
    return found


_FoundList = tuple[Document, Path, list[Any]]


def _lists(document: Document, under: Sequence[str], remarks: Remarks) -> Iterator[_FoundList]:
    """Yield the document as a list, or those lists that it holds under the keys."""
    if not isinstance(document.value, dict):
        yield document, (), _as_list(document, (), document.value)
        return
    keys = [key for key in under if document.value.get(key)]
    if not keys:
        alternative = f", or an object with {' or '.join(map(repr, under))}" if under else ""
        raise SuiteError([document.problem((), f"must be a list of objects{alternative}")])
    if others := sorted(str(key) for key, value in document.value.items() if value and key not in under):
        remarks.note(document.problem((), f"no counterpart for {', '.join(others)}"))
    for key in keys:
        yield document, (key,), _as_list(document, (key,), document.value[key])


def _as_list(document: Document, path: Path, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise SuiteError([document.problem(path, f"must be a list of objects, found {kind_of(value)}")])
    if len(value) > MOST_TESTS:
        _bounded(MOST_TESTS, document.problem((*path, MOST_TESTS), ""))
    return value


def _objects(document: Document, path: Path, items: list[Any], remarks: Remarks) -> Iterator[ImportedRecord]:
    for i, item in enumerate(items):
        if isinstance(item, dict):
            yield ImportedRecord(item, document, (*path, i))
        else:
            problem = document.problem((*path, i), f"must be an object, found {kind_of(item)}")
            remarks.leave_out(problem)


def _lines(text: str, file: str) -> Iterator[ImportedRecord]:
    count = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            document = read(line, file)
        except SuiteError as error:
            raise SuiteError([replace(error.problems[0], line=number)]) from error
        document.line = number
        if document.problems:
            raise SuiteError([replace(problem, line=number) for problem in document.problems])
        if not isinstance(document.value, dict):
            raise SuiteError([document.problem((), "must be one JSON object a line")])
        _bounded(count, document.problem((), ""))
        count += 1
        yield ImportedRecord(document.value, document)


def rows(text: str, file: str, remarks: Remarks, *, with_empty: bool = False) -> list[ImportedRecord]:
    """The rows of a table with a header, cut by commas, semicolons or tabs; with or without empty cells.

    A row with more cells than the header is left out. One with fewer, as a file that was cut off or edited by
    hand has them, is read and noted.
    """
    first = text.lstrip().split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    found: list[ImportedRecord] = []
    header: list[str] = []
    line = 1
    try:
        for row in reader:
            document = Document(file, values={(): (line, 1)})
            line = reader.line_num + 1
            if not any(cell.strip() for cell in row) and (header or not row):
                continue
            if not header:
                header = _header(row, document)
                continue
            problem = document.problem((), f"the row has {len(row)} cells, the header {len(header)}")
            if any(cell.strip() for cell in row[len(header) :]):
                remarks.leave_out(problem)
                continue
            if len(row) < len(header):
                missing = ", ".join(map(repr, header[len(row) :]))
                remarks.note(replace(problem, message=f"{problem.message}: nothing is read for {missing}"))
            _bounded(len(found), problem)
            cells = {
                name: cell
                for name, cell in zip(header, row, strict=False)
                if cell.strip() or (with_empty and name)
            }
            found.append(ImportedRecord(cells, document))
    except csv.Error as error:
        raise SuiteError([Problem(file, max(reader.line_num, 1), 1, "", f"not CSV: {error}")]) from error
    return found


def _header(row: list[str], document: Document) -> list[str]:
    header = [name.strip() for name in row]
    if repeated := sorted(name for name, times in Counter(header).items() if name and times > 1):
        raise SuiteError([document.problem((), f"the column {repeated[0]!r} appears twice")])
    if not any(header):
        raise SuiteError([document.problem((), "needs the columns' names in the first line")])
    return header


def _bounded(count: int, problem: Problem) -> None:
    if count >= MOST_TESTS:
        raise SuiteError([replace(problem, message=f"more than {MOST_TESTS:,} records; split the file")])
