"""A table of tests, one a row, as a spreadsheet saves it: `csv`. The columns are in docs/import.md."""

import difflib
import re
from dataclasses import replace

from ci_evals.domain.errors import SuiteError
from ci_evals.domain.suite import AUTO
from ci_evals.extension_support.drafting.draft import ANSWERS, SAYS_ITS_LINES, fixed
from ci_evals.extensions.importers.imported import ImportedSuite, turns_at_most
from ci_evals.extensions.importers.importer import Importer
from ci_evals.extensions.importers.other_files import OtherFiles
from ci_evals.extensions.importers.records import ImportedRecord, rows
from ci_evals.support.json_text import JsonObject

COLUMNS = (
    "id",
    "name",
    "user",
    "turns",
    "guidelines",
    "expected",
    "match",
    "criterion",
    "tags",
    "difficulty",
    "max_turns",
)
USER_INFO = "user_info."
_KEPT = "x-"
_LIKE = 0.52
"""The similarity from which a column is taken for a typo: `expektation` is like `expected`."""
_SYNONYMS = {
    "question": "user",
    "prompt": "user",
    "input": "user",
    "message": "user",
    "answer": "expected",
    "output": "expected",
    "response": "expected",
}
"""Columns of other tools' tables, and ours that most likely has the same meaning."""
_DEFAULT_MATCH = "contains"
"""A table's answers mostly stand within a sentence of the agent."""


def read(text: str, file: str, _files: OtherFiles | None = None) -> ImportedSuite:
    """One test for each row."""
    imported = ImportedSuite("Imported tests")
    for row in rows(text, file, imported):
        columns = _columns(row)
        for name, column in columns.items():
            if column.startswith(_KEPT) and not name.lower().startswith(_KEPT):
                imported.leave(f"{file}:1", f"the column {name!r}", f"kept as {column}, which has no effect")
        record = ImportedRecord({columns[name]: value for name, value in row.values.items()}, row.document)
        with imported.leaving_out():
            test = _test(record)
            title = record.text("name", "id", "user", "guidelines") or test["turns"][0]["user"]
            imported.add(title, test, record.place())
    return imported


def _column(name: str, row: ImportedRecord) -> str:
    """Our name for a column: `Max Turns` is `max_turns`. The part after `user_info.` stays as it is."""
    folded = name.lower().replace(" ", "_").replace("-", "_")
    if folded.startswith(USER_INFO) and len(folded) > len(USER_INFO):
        return USER_INFO + name[len(USER_INFO) :]
    if folded in COLUMNS:
        return folded
    synonym = _SYNONYMS.get(folded)
    close = [synonym] if synonym else difflib.get_close_matches(folded, COLUMNS, n=1, cutoff=_LIKE)
    kept = "-".join(re.findall(r"\w+", folded.removeprefix(_KEPT)))
    if kept and (not close or folded.startswith(_KEPT)):
        return f"{_KEPT}{kept}"
    hint = f"did you mean {close[0]!r}? Call it 'x-…' to keep it aside" if close else "give it a name"
    raise _at_header(row, f"unknown column {name!r}; {hint}")


def _columns(row: ImportedRecord) -> dict[str, str]:
    columns = {name: _column(name, row) for name in row.values}
    if repeated := [name for name, column in columns.items() if [*columns.values()].count(column) > 1]:
        raise _at_header(row, f"the columns {', '.join(map(repr, repeated))} are the same")
    if all(column.startswith(_KEPT) for column in columns.values()):
        unknown = ", ".join(map(repr, columns))
        ours = f"{', '.join(COLUMNS)}, {USER_INFO}NAME"
        raise _at_header(row, f"unknown columns {unknown}; available: {ours}")
    return columns


def _at_header(row: ImportedRecord, message: str) -> SuiteError:
    return SuiteError([replace(row.document.problem((), message), line=1)])


def _test(record: ImportedRecord) -> JsonObject:
    first = record.text("user")
    lines = _cell(record, "turns")
    if first:
        lines = [first, *lines]
    guidelines = record.text("guidelines")
    if not lines and not guidelines:
        raise record.fault("user", "the row is empty: it needs 'user', 'turns' or 'guidelines'")
    turns = [{"user": AUTO} if line == AUTO else fixed(line) for line in lines] or [{"user": AUTO}]
    test: JsonObject = {"guidelines": guidelines or SAYS_ITS_LINES, "turns": turns}
    info = {
        key.removeprefix(USER_INFO): value
        for key, value in record.values.items()
        if key.startswith(USER_INFO)
    }
    test |= {"userInfo": info} if info else {}
    if most := record.text("max_turns"):
        if not most.isascii() or not most.isdigit() or len(most) > 4 or int(most) < 1:
            raise record.fault("max_turns", f"max_turns: {most!r} is not a number of turns")
        test["maxTurns"] = turns_at_most(int(most))
    elif not guidelines:
        test["maxTurns"] = turns_at_most(len(turns))
    test["evaluations"] = _evaluations(record)
    test["tags"] = [tag.strip() for tag in record.text("tags").replace(";", ",").split(",") if tag.strip()]
    test["tags"] = test["tags"] or ["imported"]
    test |= {"difficulty": difficulty} if (difficulty := record.text("difficulty")) else {}
    test |= {"x-id": given} if (given := record.text("id")) else {}
    test |= {key: value for key, value in record.values.items() if key.startswith(_KEPT)}
    return test


def _evaluations(record: ImportedRecord) -> list[JsonObject]:
    checks: list[JsonObject] = []
    if expected := _cell(record, "expected"):
        checks.append(
            {
                "criterion": "The answer is right",
                "strict": "answer_matches",
                "expected": expected[0] if len(expected) == 1 else expected,
                "category": "accuracy",
            }
            | {"match": record.text("match").lower() or _DEFAULT_MATCH}
        )
    checks += [{"criterion": line} for line in _cell(record, "criterion")]
    return checks or [ANSWERS]


def _cell(record: ImportedRecord, column: str) -> list[str]:
    return [line.strip() for line in record.text(column).splitlines() if line.strip()]


IMPORTER = Importer("csv", "a table: name, user, guidelines, expected, criterion, tags", read)
