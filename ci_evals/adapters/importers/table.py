"""A table of tests, one a row, as a spreadsheet saves it: `csv`.

| column | holds |
| --- | --- |
| `id`, `name` | either names the test; an id is kept as `x-id` |
| `user` | what the user says first |
| `turns` | several lines of the user, one a line of the cell; `auto` for the simulated user |
| `guidelines` | how the simulated user acts; with them the conversation goes on after the lines |
| `expected` | the right answer, or several, one a line of the cell |
| `match` | how answers are compared, `gaia` by default |
| `criterion` | what a judge decides; several, one a line of the cell |
| `tags` | cut by commas or semicolons |
| `difficulty`, `max_turns` | as in a suite |
| `user_info.NAME` | a value of the user's data |
"""

import difflib
from dataclasses import replace

from ci_evals.adapters.importers.imported import (
    NO_ERROR,
    SAYS_ITS_LINES,
    Data,
    Imported,
    fixed,
    turns_at_most,
)
from ci_evals.adapters.importers.record import Record, rows
from ci_evals.domain.errors import SuiteError
from ci_evals.domain.suite import AUTO

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


def read(text: str, file: str) -> Imported:
    """One test for each row.

    Raises:
        SuiteError: a column that is none of ours, a row without anything to say or to check, with the line.
    """
    imported = Imported("Imported tests")
    for row in rows(text, file):
        record = Record({_column(name, row): value for name, value in row.values.items()}, row.document)
        test = _test(record)
        named = record.text("name", "id", "user", "guidelines") or test["turns"][0]["user"]
        imported.add(named, test)
    return imported


def _column(name: str, row: Record) -> str:
    """Our name of a column: `Max Turns` is `max_turns`. The part behind `user_info.` stays as it is."""
    folded = name.lower().replace(" ", "_").replace("-", "_")
    if folded.startswith(USER_INFO) and len(folded) > len(USER_INFO):
        return USER_INFO + name[len(USER_INFO) :]
    if folded in COLUMNS:
        return folded
    close = difflib.get_close_matches(folded, COLUMNS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(COLUMNS)}, {USER_INFO}NAME"
    problem = row.document.problem((), f"the column {name!r} is none of ours; {hint}")
    raise SuiteError([replace(problem, line=1)])


def _test(record: Record) -> Data:
    lines = [*_cell(record, "user"), *_cell(record, "turns")]
    guidelines = record.text("guidelines")
    if not lines and not guidelines:
        raise record.fault("user", "the row says nothing: it wants 'user', 'turns' or 'guidelines'")
    turns = [{"user": AUTO} if line == AUTO else fixed(line) for line in lines] or [{"user": AUTO}]
    test: Data = {"guidelines": guidelines or SAYS_ITS_LINES, "turns": turns}
    info = {
        key.removeprefix(USER_INFO): value
        for key, value in record.values.items()
        if key.startswith(USER_INFO)
    }
    test |= {"userInfo": info} if info else {}
    if most := record.text("max_turns"):
        if not most.isascii() or not most.isdigit() or len(most) > 4 or int(most) < 1:
            raise record.fault("max_turns", f"max_turns: {most!r} is no number of turns")
        test["maxTurns"] = turns_at_most(int(most))
    elif not guidelines:
        test["maxTurns"] = turns_at_most(len(turns))
    test["evaluations"] = _evaluations(record)
    test["tags"] = [tag.strip() for tag in record.text("tags").replace(";", ",").split(",") if tag.strip()]
    test["tags"] = test["tags"] or ["imported"]
    test |= {"difficulty": difficulty} if (difficulty := record.text("difficulty")) else {}
    test |= {"x-id": given} if (given := record.text("id")) else {}
    return test


def _evaluations(record: Record) -> list[Data]:
    found: list[Data] = []
    if expected := _cell(record, "expected"):
        found.append(
            {
                "criterion": "The answer is right",
                "strict": "answer_matches",
                "expected": expected[0] if len(expected) == 1 else expected,
                "category": "accuracy",
            }
            | ({"match": match} if (match := record.text("match").lower()) else {})
        )
    found += [{"criterion": line} for line in _cell(record, "criterion")]
    return found or [NO_ERROR]


def _cell(record: Record, column: str) -> list[str]:
    return [line.strip() for line in record.text(column).splitlines() if line.strip()]
