"""Rows of one's own: CSV with a header, JSON Lines, or JSON with a list of objects.

Without a map, columns are known by their usual names. A map (option `map`) is a YAML file with a JSONPath for
each field, applied to a row; `rows` is the path to the list within a JSON document.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files import map_hints

if TYPE_CHECKING:  # for maps alone, which few files need
    from ci_evals.support.json_path import JsonPath

SUITE = "results"
"""The suite of rows that name none: the file's name would differ from run to run."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "test": ("test", "test_id", "task_id", "id", "name"),
    "trial": ("trial", "epoch", "repeat"),
    "score": ("score",),
    "passed": ("passed", "pass", "success", "correct"),
    "error": ("error",),
    "reason": ("reason",),
    "cost": ("cost", "cost_usd"),
    "tokens": ("tokens",),
    "seconds": ("seconds", "duration"),
    "group": ("group", "category"),
    "cluster": ("cluster",),
    "suite": ("suite",),
    "arm": ("arm", "model"),
}
"""The fields of a map, and the columns that stand for them without one."""
_ROWS = "rows"
_MOST_SHAPES = 100
"""Sets of keys whose columns are kept: most files have one or two."""
_PASSED = frozenset({"true", "1", "1.0", "yes", "y", "pass", "passed", "success", "ok"})
_FAILED = frozenset({"false", "0", "0.0", "no", "n", "fail", "failed", "failure"})
_SKIPPED = frozenset({"skip", "skipped"})
_ERRORS = frozenset({"error", "errored"})
_NOTHING = "the row has no value for passed or score"
_NAMES = re.compile(r"\$(\.[A-Za-z_][\w-]*)+")

_MISSING: Any = object()
"""The value of a path that finds nothing in a row; null is a value."""

Field = Callable[[Any], Any]


def read_map(value: object, file: str) -> "Mapping[str, JsonPath]":
    """Return the paths of a map.

    Raises:
        UsageError: it is no map, has an unknown field, or a path that is none.
    """
    from ci_evals.support.json_path import JsonPath  # noqa: PLC0415  # as above

    known = ", ".join((*COLUMNS, _ROWS))
    if not isinstance(value, dict) or "test" not in value or not value.keys() & {"passed", "score"}:
        raise UsageError(
            f"{file}: a map has a JSONPath for each field, at least for test and for passed or score. "
            f"Fields: {known}."
        )
    paths = {}
    for name, text in value.items():
        if name not in COLUMNS and name != _ROWS:
            raise UsageError(f"{file}: unknown field {str(name)[:60]!r}. Available: {known}.")
        try:
            paths[name] = JsonPath(str(text))
        except ValueError as error:
            raise UsageError(f"{file}: {name}: {str(text)[:60]!r} {error}.") from error
    return paths


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read rows, one set for each suite and arm that they name."""
    paths: Mapping[str, JsonPath] | None = file.options.get("map")
    found = _rows(file, paths.get(_ROWS) if paths else None)
    if found is None:
        return None
    sets: dict[tuple[str, str | None], list[Row]] = {}
    layout = _Mapped(paths) if paths else _Columns()
    faults: list[str] = []
    for number, item in enumerate(found, 1):
        if not isinstance(item, dict):
            raise file.broken(f"row {number} is not an object.")
        fields = layout.fields(item)
        if fields is None and number == 1:
            return None
        if fields is None:  # another name might take two tests for one
            raise file.broken(f"row {number} has no {layout.test!r}, by which row 1 names its test.")
        try:
            layout.check(item)
            suite, arm, row = _row(item, fields)
        except ValueError as error:
            faults.append(f"row {number}: {error}.")
            suite, arm, row = _error(item, fields, faults[-1])
        sets.setdefault((suite, arm), []).append(row)
    if faults and len(faults) == sum(map(len, sets.values())):
        raise file.broken(faults[0])
    warnings = tuple(layout.warnings())
    return [
        ResultSet(suite=suite, arm=arm, rows=rows, warnings=warnings) for (suite, arm), rows in sets.items()
    ]


class _Columns:
    """Rows whose columns are known by their names."""

    def __init__(self) -> None:
        self.test = ""
        """The column by which the first row names its test."""

    def fields(self, item: Mapping[str, Any]) -> Mapping[str, Field] | None:
        """Return how to find each field; None if the test or the result of the row has another column."""
        columns = _columns(tuple(item))
        if not self.test and columns.keys() & {"passed", "score", "error"}:
            self.test = columns.get("test", "")
        if not self.test or columns.get("test", "") != self.test:
            return None
        return _getters(tuple(columns.items()))

    def check(self, item: Mapping[str, Any]) -> None:
        """Raise `ValueError` if the row contradicts itself."""
        _check_agreement(item, _outcome_columns(tuple(item)))

    def warnings(self) -> Iterable[str]:
        """Return no warnings: a column is there or not."""
        return ()


class _Mapped:
    """Rows whose fields a map finds."""

    test = ""

    def __init__(self, paths: "Mapping[str, JsonPath]") -> None:
        self._paths = paths
        self._fields = {name: _getter(path) for name, path in paths.items() if name != _ROWS}
        self._never_found = dict.fromkeys(self._fields)
        self._keys = ""

    def fields(self, _: Mapping[str, Any]) -> Mapping[str, Field] | None:
        """Return how to find each field."""
        return self._fields

    def check(self, item: Mapping[str, Any]) -> None:
        """Raise `ValueError` if a path that the row needs finds nothing in it."""
        self._keys = self._keys or map_hints.keys_of(item)
        for name in [name for name in self._never_found if self._fields[name](item) is not _MISSING]:
            del self._never_found[name]
        results = [name for name in ("passed", "score") if name in self._fields]
        missing = [name for name in ("test", *results) if self._fields[name](item) is _MISSING]
        if "test" in missing or missing == results:
            named = " and ".join(f"{name}: {self._paths[name].text}" for name in missing)
            verb = "finds" if len(missing) == 1 else "find"
            raise ValueError(f"map: {named} {verb} nothing in it; {map_hints.keys_of(item)}")

    def warnings(self) -> Iterable[str]:
        """Yield the paths that found nothing in any row."""
        for name in self._never_found:
            path = self._paths[name].text
            yield f"`map=`: {name}: {path} finds nothing in any row. Row 1: {self._keys}"


READER = Reader(
    "rows",
    "rows in CSV, JSON or JSON Lines",
    read,
    files="[CSV, JSON, JSON Lines](#rows)",
)


def without_map(file: SourceFile) -> str | None:
    """Return that rows need a map, and one for their columns; None if the file has no rows."""
    path, first = map_hints.list_of_rows(file.json())
    if path is None:
        first = next(iter(_rows(file, None) or ()), None)
    if not isinstance(first, dict) or not first:
        return None
    lines = map_hints.example(first, _columns(tuple(first)), path)
    return (
        "has rows with other columns than the known ones, and `map=` is missing, which says what they hold. "
        f"In row 1, {map_hints.keys_of(first)}. Write a file such as this, and name it with `map=`:\n\n"
        f"{lines}"
    )


def _rows(file: SourceFile, path: "JsonPath | None") -> Iterable[Any] | None:
    lines = file.json_lines() if path is None else None
    if lines is not None and not file.data.lstrip().startswith(b"["):
        return lines
    document = file.json()
    if path is not None:
        if document is None:
            raise file.broken("is no JSON, in which `map=` finds rows. It may be cut off.")
        matches = path.find(document)
        found = matches[0] if matches and path.single else matches
        if not isinstance(found, list | tuple):
            raise file.broken(f"has no list at {path.text} (`map=`, rows): {map_hints.keys_of(document)}.")
        return found
    if isinstance(document, list):
        return document
    return None if document is not None else _table(file)


def _table(file: SourceFile) -> Iterator[Any] | None:
    text = file.text()
    if not text or text.startswith(("<", "{", "[", "PK")) or "\0" in text:
        return None
    first = text.lstrip().split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    if delimiter not in first:
        return None
    return file.bounded(_cells(file, text, delimiter))


def _cells(file: SourceFile, text: str, delimiter: str) -> Iterator[dict[str, str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(cells for cells in reader if any(map(str.strip, cells)))]
        if len(set(header)) < len(header):
            raise file.broken("has a column twice.")
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            if len(cells) != len(header):
                raise file.broken(
                    f"line {reader.line_num} has {len(cells)} cells, the header {len(header)}. The file may "
                    "be cut off."
                )
            yield dict(zip(header, cells, strict=True))
    except (csv.Error, StopIteration) as error:
        raise file.broken(f"line {reader.line_num}: not CSV: {error}.") from error


def _getter(path: "JsonPath") -> Field:
    """Return how to find a value in a row; most paths only name keys, which takes no search."""
    if not _NAMES.fullmatch(path.text):

        def search(row: Any) -> Any:
            matches = path.find(row)
            return matches[0] if matches else _MISSING

        return search
    keys = path.text[2:].split(".")

    def get(row: Any) -> Any:
        for key in keys:
            row = row.get(key, _MISSING) if isinstance(row, dict) else _MISSING
        return row

    return get


@lru_cache(_MOST_SHAPES)
def _columns(keys: tuple[str, ...]) -> Mapping[str, str]:
    """The columns of a row by field. Rows of JSON may differ: many have an error only if there was one."""
    by_name = {name.strip().lower().replace(" ", "_"): name for name in reversed(keys)}
    columns = {}
    for field, names in COLUMNS.items():
        column = next((by_name[name] for name in names if name in by_name), None)
        if column is not None:
            columns[field] = column
    return columns


@lru_cache(_MOST_SHAPES)
def _outcome_columns(keys: tuple[str, ...]) -> Sequence[str]:
    """Return the columns that each say whether the test passed."""
    return [key for key in keys if key.strip().lower() in COLUMNS["passed"]]


def _check_agreement(item: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Raise `ValueError` if the columns that say whether the test passed say different things."""
    if len(columns) < 2:
        return
    told = {key: outcome for key in columns if (outcome := _outcome(_given(item[key]))) != (None, None)}
    if len(set(told.values())) > 1:
        shown = ", ".join(f"{key} is {str(item[key])[:60]!r}" for key in told)
        raise ValueError(f"{shown}: they contradict each other. Name the one that decides with map")


@lru_cache(_MOST_SHAPES)
def _getters(columns: tuple[tuple[str, str], ...]) -> Mapping[str, Field]:
    return {field: methodcaller("get", column) for field, column in columns}


def _row(item: Any, fields: Mapping[str, Field]) -> tuple[str, str | None, Row]:
    values = {name: value for name, get in fields.items() if (value := _given(get(item))) is not None}
    score, (passed, undecided) = _number(values, "score"), _outcome(values.get("passed"))
    error = values.get("error")
    if error not in (None, False):
        undecided = undecided or Undecided.ERROR
    if passed is None and score is not None:
        passed = score == 1
    reason = values.get("reason") or (error if isinstance(error, str) else "")
    if passed is None and not undecided:
        undecided, reason = Undecided.EMPTY, reason or _NOTHING
    if undecided:
        passed, score = None, None
    group = values.get("group", ())
    tokens = _number(values, "tokens")
    row = Row(
        test=_text(values.get("test", "")),
        trial=_text(values["trial"]) if "trial" in values else None,
        passed=passed,
        score=score,
        undecided=undecided,
        reason=_text(reason),
        groups=tuple(map(_text, group if isinstance(group, list) else (group,))) if group else (),
        cluster=_text(values["cluster"]) if "cluster" in values else None,
        cost_usd=_number(values, "cost"),
        input_tokens=None if tokens is None else int(tokens),
        seconds=_number(values, "seconds"),
    )
    arm = values.get("arm")
    return _text(values.get("suite", SUITE)), None if arm is None else _text(arm), row


def _error(item: Any, fields: Mapping[str, Field], reason: str) -> tuple[str, str | None, Row]:
    """Return the row that stands for one that cannot be read, under whatever names it has."""
    names = {}
    for name in ("suite", "arm", "test", "trial"):
        value = fields[name](item) if name in fields else None
        names[name] = _text(value) if isinstance(value, str | int) and value != "" else None
    row = Row(test=names["test"] or "", trial=names["trial"], undecided=Undecided.ERROR, reason=reason)
    return names["suite"] or SUITE, names["arm"], row


def _given(value: Any) -> Any:
    """Return a value; None if it is empty or missing."""
    return None if value is _MISSING or value == "" else value


def _text(value: Any) -> str:
    if type(value) is str:
        return value.strip()
    if isinstance(value, dict | list):
        raise ValueError("expected a string, found a list or an object")  # noqa: TRY004  # of the file
    return str(value).strip()


def _number(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {str(value)[:60]!r}, not a number") from None
    if number not in (float("inf"), float("-inf")) and number == number:  # noqa: PLR0124  # NaN is not
        return number
    raise ValueError(f"{name} is {str(value)[:60]!r}, not a finite number")


def _outcome(value: Any) -> tuple[bool | None, Undecided | None]:
    if value is None or isinstance(value, bool):
        return value, None
    word = str(value).strip().lower()
    if word in _PASSED | _FAILED:
        return word in _PASSED, None
    if word in _SKIPPED | _ERRORS:
        return None, Undecided.SKIPPED if word in _SKIPPED else Undecided.ERROR
    raise ValueError(f"passed is {str(value)[:60]!r}, neither true nor false, skipped nor error")
