"""Finding the format of a file, and the checks that hold for every format."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from ci_evals.domain.base import MOST, MOST_DOLLARS
from ci_evals.domain.errors import UsageError
from ci_evals.extension_registry import result_readers
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files import ctrf, deepeval, inspect, junit, own, promptfoo, rows

AUTO = "auto"
OWN = own.READER.format
ROWS = rows.READER.format

_FIRST = (own.READER, junit.READER, ctrf.READER, inspect.READER, promptfoo.READER, deepeval.READER)
_LAST = rows.READER
"""It reads nearly any table."""


@cache
def readers() -> Mapping[str, Reader]:
    """Return all readers by the name of their format, in the order in which files are offered to them."""
    by_format = {reader.format: reader for reader in _FIRST}
    for reader in (*result_readers(), _LAST):
        by_format.setdefault(reader.format, reader)
    return by_format


def rows_of_help() -> list[tuple[str, str]]:
    """Return the name of each format, and what it is."""
    return [(reader.format, reader.title) for reader in readers().values()]


MOST_NAME = 2_000
"""Characters of a name of a test, a suite, a group or an arm."""
_SHOWN_NAME = 100
_MOST_AMOUNTS = {
    "cost": MOST_DOLLARS,
    "number of input tokens": MOST,
    "number of output tokens": MOST,
    "duration": 1e9,
}
"""The name and the maximum of each of a row's amounts."""
_MOST_REPEATED = 5
"""The most keys that a verdict names as there twice."""
_BROKEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


def read_file(file: SourceFile, form: str = AUTO) -> tuple[Reader, Sequence[ResultSet]]:
    """Read a file in a format, or in the first that it is of.

    Raises:
        UsageError: it is of none of them, or broken, or there is no such format.
    """
    known = readers()
    if form not in {AUTO, *known}:
        raise UsageError(f"`format=`: {form!r} is not one of {', '.join([AUTO, *known])}.")
    for reader in known.values() if form == AUTO else (known[form],):
        try:
            sets = reader.read(file)
        except _BROKEN as error:
            raise file.broken(f"looks like {reader.title}, but is broken: {_reason(error)}.") from error
        if sets is not None:
            if not any(one.rows or (one.official and one.official.of) for one in sets):
                why = "no rows, so there is nothing to gate. Did the tool end before it ran a test?"
                raise file.broken(f"has {why}")
            return reader, _with_repeated_keys([check(one, file, reader) for one in sets], file)
    if form == rows.READER.format and "map" not in file.options and (hint := rows.without_map(file)):
        raise file.broken(hint)
    if form != AUTO:
        raise file.broken(f"is not {known[form].title} (`format={form}`).")
    if not file.data.strip():
        raise file.broken("is empty. Did the tool end before it wrote its results?")
    if file.text() is None and file.members() is None:
        raise file.broken("is neither UTF-8 text nor a zip file. Save it as UTF-8.")
    tried = ", ".join(known)
    raise file.broken(
        f"has no known format (tried {tried}). It may be cut off. Name its format with `format=`, or "
        "describe its rows with `format=rows` and `map=`."
    )


def _with_repeated_keys(sets: Sequence[ResultSet], file: SourceFile) -> Sequence[ResultSet]:
    """Return the sets of a file; the keys that it has twice contradict each other, whatever they say."""
    found = dict.fromkeys(file.repeated_keys)
    answers = file.options.get("answers")
    if isinstance(answers, SourceFile):
        found |= dict.fromkeys(f"{answers.name} {key}" for key in answers.repeated_keys)
    if not found:
        return sets
    first = tuple(found)[:_MOST_REPEATED]
    return [replace(one, contradictions=(*first, *one.contradictions)) for one in sets]


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"{str(error.args[0])[:100]!r} is missing"
    return str(error)[:200] or type(error).__name__


def check(results: ResultSet, file: SourceFile, reader: Reader) -> ResultSet:
    """Return the results with each row that is wrong in itself as an error of that row.

    Raises:
        UsageError: every row is wrong, so the file is; or the rows contradict each other.
    """
    for name in (results.suite, results.arm or ""):
        if len(name) > MOST_NAME:
            raise file.broken(f"has the name of a suite or an arm with more than {MOST_NAME:,} characters.")
    file.check_rows(len(results.rows))
    wrong: dict[int, str] = {}
    seen: set[tuple[str, str | int]] = set()
    for index, row in enumerate(results.rows):
        if problem := _problem(row):
            wrong[index] = f"{reader.format}, row {index + 1} (test {row.test[:100]!r}): {problem}"
        if row.trial is None:
            continue
        key = row.test, row.trial
        if key in seen:
            raise file.broken(f"test {row.test[:100]!r} has trial {str(row.trial)[:100]!r} twice.")
        seen.add(key)
    if not wrong:
        return results
    if len(wrong) == len(results.rows):
        raise file.broken(wrong[0])
    return replace(
        results,
        rows=[
            _error(row, index + 1, wrong[index]) if index in wrong else row
            for index, row in enumerate(results.rows)
        ],
    )


def _error(row: Row, number: int, reason: str) -> Row:
    """Return the undecided row in place of one that is wrong in itself."""
    test = row.test
    if not test.strip():
        test = f"row {number} (no name)"
    elif len(test) > MOST_NAME:
        test = f"row {number} ({test[:_SHOWN_NAME]}…)"
    return Row(
        test=test,
        trial=row.trial,
        undecided=Undecided.ERROR,
        reason=(row.undecided and row.reason) or reason,
        critical=row.critical,
        min_score=row.min_score,
    )


def _problem(row: Row) -> str | None:
    return _wrong_outcome(row) or _wrong_name(row) or _wrong_amount(row)


def _wrong_outcome(row: Row) -> str | None:
    if (row.passed is None) is (row.undecided is None):
        return "it must say either whether the test passed, or why that is undecided"
    if row.undecided and row.score is not None:
        return "it is undecided and has a score"
    for score in (row.score, *(check.score for check in row.checks)):
        if score is not None and not 0 <= score <= 1:  # nor is NaN
            return f"the score {score!r} is not a number from 0 to 1"
    if row.passed and row.score == 0:
        return "it passed, and its score is 0: they contradict each other"
    return None


def _wrong_name(row: Row) -> str | None:
    if not row.test.strip():
        return "the test has no name"
    longest = max(map(len, (row.test, row.cluster or "", *row.groups)))
    return f"a name has more than {MOST_NAME:,} characters" if longest > MOST_NAME else None


def _wrong_amount(row: Row) -> str | None:
    for (name, most), amount in zip(_MOST_AMOUNTS.items(), row.amounts, strict=True):
        if amount is not None and not 0 <= amount <= most:
            return f"its {name} is {amount!r}"
    return None
