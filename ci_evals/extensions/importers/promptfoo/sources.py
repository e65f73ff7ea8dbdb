"""Parts of a promptfoo configuration that are in other files."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from ci_evals.extensions.importers.imported import ImportedSuite
from ci_evals.extensions.importers.other_files import PROMPTS, NotReadError, OtherFile, OtherFiles
from ci_evals.extensions.importers.promptfoo import rows
from ci_evals.extensions.importers.promptfoo.places import Place
from ci_evals.extensions.importers.records import JSON_LINES, ImportedRecord, kind_of, records, whole_document
from ci_evals.extensions.importers.records import rows as table_rows
from ci_evals.support.json_text import JsonObject

FILE = "file://"
_DEEPEST = 5
"""The most files of which each names the next."""
_SEPARATOR = "\n---\n"
"""Between the prompts of a text file."""

Located = tuple[Place, Any]


class Sources:
    """Reads what a configuration names, and reports what cannot be read."""

    def __init__(self, files: OtherFiles | None, imported: ImportedSuite) -> None:
        self._files = files
        self._imported = imported
        self._open: list[str] = []

    def tests(self, place: Place, given: Any) -> Iterator[Located]:
        """Yield tests as `items` does; what is no test in another file is a row of a table."""
        return self._items(place, given, only_marked=False, tests=True)

    def items(self, place: Place, given: Any, *, only_marked: bool = False) -> Iterator[Located]:
        """Yield the items of a list, or one that is none; those of other files in the place of their names.

        A text names a file; with `only_marked` only one that begins with `file://` does.
        """
        return self._items(place, given, only_marked=only_marked, tests=False)

    def _items(self, place: Place, given: Any, *, only_marked: bool, tests: bool) -> Iterator[Located]:
        if given is None:
            return
        for at, item in _parts(place, given):
            name = _name(item, only_marked=only_marked)
            if name is None:
                yield at, item
            else:
                yield from self._of_files(at, name, tests=tests)

    def within(self, located: Iterable[Located]) -> Iterator[Located]:
        """Yield what is located, with the items of other files in the place of their names."""
        for place, item in located:
            yield from self.tests(place, item)

    def one(self, place: Place, given: Any) -> Located | None:
        """Return an object, or the one in the file that a text names; None if it is not given or not read.

        Raises:
            SuiteError: it is neither.
        """
        found = list(self.items(place, given))
        if not found and (given is None or isinstance(given, str)):
            return None
        if len(found) != 1 or not isinstance(found[0][1], dict):
            raise place.fault(f"must be an object or the name of a file with one, found {kind_of(given)}")
        return found[0]

    def objects(self, place: Place, given: Any) -> JsonObject:
        """Return the keys of an object, or of those in the files that a text or a list of texts names.

        Raises:
            SuiteError: it is none of these, or a file is not read.
        """
        if given is None or isinstance(given, dict):
            return given or {}
        names = given if isinstance(given, list) else [given]
        if not names or not all(isinstance(name, str) for name in names):
            raise place.fault(f"must be an object, found {kind_of(given)}")
        joined: JsonObject = {}
        for name in names:
            try:
                found = [
                    item for file in self._read(place, name) for item in self._content(file, tests=False)
                ]
            except NotReadError as error:
                raise place.fault(f"{name!r} {error}") from None
            for at, item in found:
                if not isinstance(item, dict):
                    raise at.fault(f"must be an object, found {kind_of(item)}")
                joined |= item
        return joined

    def prompts(self, place: Place, given: Any) -> Any:
        """Return the prompts, with the texts of files in the place of their names where they are read."""
        if self._files is None or not given:
            return given
        texts: list[Any] = []
        for item in given if isinstance(given, list) else [given]:
            name = item.get("id") or item.get("raw") if isinstance(item, dict) else item
            if not isinstance(name, str) or not name.startswith(FILE):
                texts.append(item)
                continue
            try:
                files = self._files.read(name, place.folder, PROMPTS)
            except NotReadError:
                texts.append(item)  # the reader says that it is elsewhere
            else:
                texts += [text for file in files for text in _prompts_in(file)]
        return texts

    def _of_files(self, place: Place, name: str, *, tests: bool) -> Iterator[Located]:
        try:
            files = self._read(place, name)
        except NotReadError as error:
            self._imported.leave_out(place.problem(f"{name!r} {error}"))
            return
        for file in files:
            if file.name in self._open or len(self._open) >= _DEEPEST:
                self._imported.leave_out(place.problem(f"{file.name!r} names itself, or too many others"))
                continue
            self._open.append(file.name)
            found: list[Located] = []
            with self._imported.leaving_out():
                found = list(self._content(file, tests=tests))
            for at, item in found:
                yield from self._items(at, item, only_marked=True, tests=tests)
            self._open.pop()

    def _read(self, place: Place, name: str) -> list[OtherFile]:
        if self._files is None:
            raise NotReadError("is another file, which is not read")
        return self._files.read(name, place.folder)

    def _content(self, file: OtherFile, *, tests: bool) -> Iterator[Located]:
        found = content_of(file.text, file.name, file.folder, self._imported)
        return as_tests(found, self._imported) if tests else found


def content_of(text: str, file: str, folder: PurePosixPath, imported: ImportedSuite) -> Iterator[Located]:
    """Yield what a file of tests holds: each item of a list, line or row, or one object."""
    ending = PurePosixPath(file).suffix.lower()
    if ending == ".csv":
        for record in table_rows(text, file, imported, with_empty=True):
            yield from _of_row(_place_of(record, folder), record.values, imported)
        return
    if ending in JSON_LINES:
        yield from ((_place_of(one, folder), one.values) for one in records(text, file, imported))
        return
    document = whole_document(text, file)
    yield from _parts(Place(document, (), folder), document.value)


def as_tests(located: Iterable[Located], imported: ImportedSuite) -> Iterator[Located]:
    """Yield what a file of tests holds as tests: rows too, which have no key of a test."""
    for place, item in located:
        if isinstance(item, dict) and {"tests", "scenarios"} & set(item):
            imported.leave_out(place.problem("is another configuration; import it by itself"))
        elif isinstance(item, dict) and rows.is_row(item):
            yield from _of_row(place, item, imported)
        else:
            yield place, item


def _of_row(place: Place, row: JsonObject, imported: ImportedSuite) -> Iterator[Located]:
    try:
        yield place, rows.case_of(row)
    except ValueError as error:
        imported.leave_out(place.problem(str(error)))


def _place_of(record: ImportedRecord, folder: PurePosixPath) -> Place:
    return Place(record.document, record.path, folder)


def _parts(place: Place, given: Any) -> Iterator[Located]:
    if not isinstance(given, list):
        yield place, given
        return
    for i, item in enumerate(given):
        yield place.at(i), item


def _name(item: Any, *, only_marked: bool) -> str | None:
    """Return the name of a file that stands in the place of items."""
    if isinstance(item, str):
        return item if item.startswith(FILE) or not only_marked else None
    if isinstance(item, dict) and isinstance(item.get("path"), str) and "type" not in item:
        return str(item["path"])
    return None


def _prompts_in(file: OtherFile) -> list[str]:
    if not file.name.endswith(".txt"):
        return [file.text]
    return [text.strip() for text in file.text.replace("\r\n", "\n").split(_SEPARATOR) if text.strip()]
