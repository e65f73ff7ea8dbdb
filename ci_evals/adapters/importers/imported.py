"""Foreign files read into records, and the suite that is made of them."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.suite import AUTO, MOST_TURNS
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.documents.reader import read
from ci_evals.planning.documents.writing import literal, write
from ci_evals.planning.parse import load

MOST_TESTS = 10_000
LONGEST_NAME = 80

JsonObject = dict[str, Any]
"""An object of a suite or of a foreign file."""

SAYS_ITS_LINES = "You say the planned lines and nothing else."
"""Guidelines of a test whose lines are all fixed."""

ANSWERS: JsonObject = {"criterion": "The agent answers", "strict": "regex", "pattern": r"\S"}
"""The check of a test for which the foreign file has none; it suits any agent that answers in text."""


@dataclass
class ImportedSuite:
    """Tests out of a foreign file, and notes on what was left out."""

    name: str
    tests: list[JsonObject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Fields that were left out or need a hand, a line each."""
    fields: JsonObject = field(default_factory=dict)
    """More of the suite."""

    def leave(self, location: str, name: str, reason: str = "it has no counterpart") -> None:
        """Note that a field of the file is not imported: once for each name, with its first position."""
        if name not in self._left:
            self._left.add(name)
            self.notes.append(f"{location}: {name}: {reason}")

    _left: set[str] = field(default_factory=set, repr=False)

    def add(self, name: str, test: JsonObject) -> None:
        """Add a test; a name that is taken or empty is changed."""
        name = cut(name) or f"Test {len(self.tests) + 1}"
        unique = name
        while unique in self._numbers:
            self._numbers[name] += 1
            unique = f"{name} ({self._numbers[name]})"
        self._numbers[unique] = 1
        self.tests.append({"name": unique} | test)

    _numbers: dict[str, int] = field(default_factory=dict, repr=False)
    """The number of the last test of each name that was taken."""


def suite_text(imported: ImportedSuite, kind: str, source: str, output: str) -> str:
    """The suite as a file called `output` holds it; our own reader has read it."""
    if not imported.tests:
        raise UsageError(f"{source}: contains nothing that can become a test")
    origin = {"format": kind, "file": PurePath(source).name}
    head: JsonObject = {"name": imported.name.strip() or PurePath(source).stem, "x-imported-from": origin}
    suite = literal(head | imported.fields | {"tests": imported.tests})
    comment = (
        "Imported by ci-evals. The agent is not part of it: name it here (adapter, agentId, baseUrl)\n"
        "or by options (--adapter, --agent-id, --base-url). Then: ci-evals validate --strict"
    )
    text = write(suite, output, comment=comment)
    try:
        load(text, output, Reading())
    except SuiteError as error:
        problems = "\n".join(f"{problem.path}: {problem.message}" for problem in error.problems[:5])
        raise UsageError(f"{source}: its content is not a valid suite:\n{problems}") from error
    return text


def cut(text: str) -> str:
    """The first words of a text, for a name."""
    text = " ".join(text.split())
    if len(text) <= LONGEST_NAME:
        return text
    return text[: LONGEST_NAME - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def fixed(line: str) -> JsonObject:
    """A turn that says this line, also where it is the word that stands for the simulated user."""
    return {"user": f"{line}." if line == AUTO else line}


def turns_at_most(turns: int) -> int:
    """The number of turns, as far as a suite may have so many."""
    return max(1, min(turns, MOST_TURNS))


JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class ImportedRecord:
    """An object of a foreign file, and its position."""

    values: dict[str, Any]
    document: Document
    path: Path = ()

    def fault(self, key: str, message: str) -> SuiteError:
        """An error about the value under `key`, to be raised."""
        return SuiteError([self.document.problem((*self.path, key), message)])

    def location(self) -> str:
        """The record's `file:line`."""
        problem = self.document.problem(self.path, "")
        return f"{problem.file}:{problem.line}"

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
                    raise self.fault(key, f"must be a string, found {_kind(value)}")
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
                    raise self.fault(key, f"must be a list of texts, found {_kind(value)}")
        return []


def _kind(value: Any) -> str:
    return (
        "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)[:60]
    )


def whole_document(text: str, file: str) -> Document:
    """A JSON or YAML file."""
    document = read(text, file)
    if document.problems:
        raise SuiteError(document.problems)
    return document


def records(text: str, file: str, under: Sequence[str] = ()) -> list[ImportedRecord]:
    """The objects of a JSON list, of JSON lines (`.jsonl`) or of a table (`.csv`).

    A JSON object may hold the list under one of the keys `under`.
    """
    ending = PurePath(file).suffix.lower()
    if ending in JSON_LINES:
        all_records = list(_lines(text, file))
    elif ending == ".csv":
        all_records = rows(text, file)
    else:
        all_records = list(_listed(whole_document(text, file), under))
    if not all_records:
        raise SuiteError([Problem(file, 1, 1, "", "the file holds no records")])
    return all_records


def _listed(document: Document, under: Sequence[str]) -> Iterator[ImportedRecord]:
    value, path = document.value, ()
    if isinstance(value, dict):
        key = next((key for key in under if value.get(key)), None)
        if key is None:
            alternative = f", or an object with {' or '.join(map(repr, under))}" if under else ""
            raise SuiteError([document.problem((), f"must be a list of objects{alternative}")])
        value, path = value[key], (key,)  # type: ignore[assignment]  # a path of one step
    if not isinstance(value, list):
        raise SuiteError([document.problem(path, f"must be a list of objects, found {_kind(value)}")])
    for i, item in enumerate(value):
        _bounded(i, document.problem((*path, i), ""))
        if not isinstance(item, dict):
            raise SuiteError([document.problem((*path, i), f"must be an object, found {_kind(item)}")])
        yield ImportedRecord(item, document, (*path, i))


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


def rows(text: str, file: str) -> list[ImportedRecord]:
    """The rows of a table with a header, cut by commas, semicolons or tabs. Empty cells are left out."""
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[ImportedRecord] = []
    header: list[str] = []
    line = 1
    try:
        for row in reader:
            document = Document(file, values={(): (line, 1)})
            if not header:
                header = [name.strip() for name in row]
                if repeated := sorted(name for name, times in Counter(header).items() if name and times > 1):
                    raise SuiteError([document.problem((), f"the column {repeated[0]!r} appears twice")])
                if not any(header):
                    raise SuiteError([document.problem((), "needs the columns' names in the first line")])
            elif any(cell.strip() for cell in row):
                if len(row) > len(header):
                    message = f"the row has {len(row)} cells, the header {len(header)}"
                    raise SuiteError([document.problem((), message)])
                _bounded(len(found), document.problem((), ""))
                found.append(
                    ImportedRecord({k: v for k, v in zip(header, row, strict=False) if v.strip()}, document)
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise SuiteError([Problem(file, max(reader.line_num, 1), 1, "", f"not CSV: {error}")]) from error
    return found


def _bounded(count: int, problem: Problem) -> None:
    if count >= MOST_TESTS:
        raise SuiteError([replace(problem, message=f"more than {MOST_TESTS:,} records; split the file")])
