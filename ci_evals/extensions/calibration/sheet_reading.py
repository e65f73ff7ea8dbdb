"""Filled sheets, as spreadsheets and the page save them: whose labels they hold, or what is wrong."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import input_files
from ci_evals.domain.errors import UsageError
from ci_evals.support.text import visible

_PASS = frozenset({"pass", "passed", "passes", "yes", "y", "true", "1", "p", "ok"})
_FAIL = frozenset({"fail", "failed", "fails", "no", "n", "false", "0", "f"})
_CANNOT = frozenset({"cannot tell", "can't tell", "cant tell", "can not tell", "cannot", "unsure", "?", "c"})
ALLOWED = "pass, fail, cannot tell; yes, no; 1, 0; or nothing"
_MOST = 50_000_000
"""Bytes of a sheet: ten thousand items have less."""
_SHOWN = 40


@dataclass(frozen=True)
class Label:
    """A person's label of an item."""

    item: str
    passed: bool | None
    """None if it cannot be told."""
    labeller: str
    place: str
    """File and line, for messages."""


def read(paths: Sequence[Path]) -> list[Label]:
    """Read all labels of all sheets; a folder stands for the tables (`.csv`) in it.

    The labeller is whom the column names, else the file's name without its ending. A person may have several
    files, and say the same of an item twice.

    Raises:
        UsageError: with every problem of every file.
    """
    problems: list[str] = []
    found: dict[tuple[str, str], Label] = {}
    for file in _files(paths, problems):
        for label in _labels(file, problems):
            before = found.setdefault((label.labeller.casefold(), label.item), label)
            if before.passed is not label.passed:
                problems.append(
                    f"{label.place}: {label.labeller!r} says another thing of {label.item!r} than at "
                    f"{before.place}; remove one of the two, or name the labeler in the column labeller"
                )
    if not found and not problems:
        named = ", ".join(map(str, paths))
        problems.append(f"{named}: no label in it; fill in the column label: {ALLOWED}")
    if problems:
        raise UsageError("\n".join(problems))
    return list(found.values())


def count_labels(file: Path) -> int:
    """Count the labels in a sheet that may exist already.

    Raises:
        UsageError: it is no sheet, or holds what is no label.
    """
    if not file.exists():
        return 0
    problems: list[str] = []
    found = len(list(_labels(file, problems)))
    if problems:
        raise UsageError(problems[0])
    return found


def _files(paths: Sequence[Path], problems: list[str]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        try:
            found = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        except OSError as error:
            problems.append(f"{path}: cannot be read: {error.strerror or error}")
            continue
        if not found:
            problems.append(f"{path}: there is no sheet (.csv) in this folder")
        for file in found:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def _labels(file: Path, problems: list[str]) -> Iterator[Label]:
    """The labels of one file. What is wrong is added to `problems`."""
    text = _text(file, problems)
    if text is None:
        return
    first = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns: dict[str, int] | None = None
    line = 1
    try:
        for row in reader:
            place, line = f"{file}:{line}", reader.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                columns = _columns(row, place, problems)
                if columns is None:
                    return
                continue
            yield from _label(row, columns, place, file.stem, problems)
    except csv.Error as error:
        problems.append(f"{file}:{max(reader.line_num, 1)}: not CSV: {error}")
        return
    if columns is None:
        problems.append(f"{file}: it is empty; save the filled sheet as CSV")


def _text(file: Path, problems: list[str]) -> str | None:
    try:
        data = input_files.read(file, _MOST)
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror or error}")
        return None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # "Unicode text" of a spreadsheet
        return data.decode("utf-16", "replace")
    if data.startswith(b"PK"):
        problems.append(f"{file}: it is a workbook or an archive; save the sheet as CSV")
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # Excel's "CSV" on Windows; items and labels are ASCII


def _columns(row: Sequence[str], place: str, problems: list[str]) -> dict[str, int] | None:
    """The indexes of the required columns; None if one is missing."""
    names = [cell.strip().lower() for cell in row]
    missing = [name for name in ("item", "label") if name not in names]
    twice = [name for name in ("item", "label", "labeller") if names.count(name) > 1]
    if missing:
        problems.append(
            f"{place}: there is no column {' and none '.join(map(repr, missing))}; the first line names the "
            "columns as `ci-evals label` wrote them: item, label, labeller"
        )
    if twice:
        problems.append(f"{place}: the column {twice[0]!r} appears twice; remove one")
    return None if missing or twice else {name: at for at, name in enumerate(names)}


def _label(
    row: Sequence[str], columns: dict[str, int], place: str, stem: str, problems: list[str]
) -> Iterator[Label]:
    def said(name: str) -> str:
        at = columns.get(name, len(row))
        return " ".join(visible(row[at]).split()) if at < len(row) else ""

    label, item = said("label"), said("item")
    if not label:
        return
    if not item:
        problems.append(f"{place}: column item: it is empty, so it is unknown what {_short(label)} labels")
        return
    word = label.lower().replace("_", " ").replace("\u2019", "'").strip("\"'. ")
    if word not in _PASS | _FAIL | _CANNOT:
        problems.append(f"{place}: column label: {_short(label)} is not a label; write {ALLOWED}")
        return
    yield Label(
        item=item,
        passed=None if word in _CANNOT else word in _PASS,
        labeller=said("labeller") or stem,
        place=place,
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
