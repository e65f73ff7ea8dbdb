"""Result files of other tools, as their readers read them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import read_file

FILES = Path(__file__).parents[1] / "extensions/result_files/files"


PASSED, FAILED = True, False


ERROR, INFRA, SKIPPED = Undecided.ERROR, Undecided.INFRASTRUCTURE, Undecided.SKIPPED


def gaia_answers() -> Mapping[str, Any]:
    name = "gaia/metadata.jsonl"
    return {"answers": SourceFile(name, (FILES / name).read_bytes())}


def read_sets(name: str) -> list[ResultSet]:
    reader, result = read_file(SourceFile(name, (FILES / name).read_bytes(), gaia_answers()))
    assert reader.format == name.partition("/")[0]
    return list(result)


def read_set(name: str) -> ResultSet:
    (result,) = read_sets(name)
    return result


def official_score(results: ResultSet) -> OfficialScore:
    assert results.official is not None
    return results.official


def outcomes_by_test(results: ResultSet) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    for row in results.rows:
        result.setdefault(row.test, []).append(row.undecided or row.passed)
    return result


def row_of(results: ResultSet, test: str, index: int = 0) -> Row:
    return [row for row in results.rows if row.test == test][index]


def read_text(text: str, name: str = "f.json") -> list[ResultSet]:
    return list(read_file(SourceFile(name, text.encode(), gaia_answers()))[1])


def read_error(value: Any) -> str:
    with pytest.raises(UsageError) as error:
        read_text(value if isinstance(value, str) else json.dumps(value))
    return str(error.value)


def load_json(name: str) -> Any:
    return json.loads((FILES / name).read_text())
