"""Files of other tools are read with bounds, and refused with one message that says what is wrong."""

import io
import re
import zipfile
from contextlib import nullcontext
from typing import Any

import pytest
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files import source
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import check, read_file

NO_SCORES = (float("nan"), float("inf"), -0.1, 1.01)
READER = Reader("made-up", "made-up results", lambda _: None, files="any")


def ok_row(test: str = "t", **fields: Any) -> Row:
    return Row(test=test, **{"passed": True} | fields)


@each_row(("rows", "message"), [
    *(([ok_row(score=score)], "is not a number from 0 to 1") for score in NO_SCORES),
    *(
        ([ok_row(checks=(Check("c", passed=True, score=score),))], "is not a number from 0 to 1")
        for score in NO_SCORES
    ),
    ([Row(test="t")], "row 1 (test 't'): it must say either"),
    ([ok_row(undecided=Undecided.ERROR)], "it must say either"),
    ([Row(test="t", undecided=Undecided.ERROR, score=1)], "undecided and has a score"),
    ([ok_row(trial=1), ok_row(trial=1)], "trial '1' twice"),
    ([ok_row(" ")], "no name"),
    ([ok_row("t" * 2001)], "more than 2,000"),
    ([ok_row(cost_usd=-1)], "cost is -1"),
    ([ok_row(cost_usd=float("nan"))], "cost is nan"),
    ([ok_row(score=0.5, cost_usd=0.1, seconds=0)], None),
])  # fmt: skip
def test_invalid_row_is_refused(rows: list[Row], message: str | None) -> None:
    with nullcontext() if message is None else pytest.raises(UsageError, match=re.escape(message or "")):
        check(ResultSet(suite="s", rows=rows), SourceFile("f.json", b""), READER)


@each_row(("data", "message"), [
    (b"\x00\x01", r"x\.csv: has no known format \(tried .*junit"),
    (b" \n", r"x\.csv: is empty\. Did the tool end before it wrote its results\?"),
    ("test,passed\ncaf\xe9,true\n".encode("latin-1"), r"x\.csv: is neither UTF-8 text nor a zip file\. "),
    ("test,passed\na,true\n".encode("utf-16"), r"x\.csv: is neither UTF-8 text nor a zip file\. "),
])  # fmt: skip
def test_file_without_known_format_is_refused_with_its_reason(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        read_file(SourceFile("x.csv", data))


@pytest.mark.parametrize(
    "text",
    ["test,passed\n" + "a,true\n" * 4, '{"test": "a", "passed": true}\n' * 4, "<testcase name='a'/>" * 4],
)
def test_file_with_too_many_rows_is_refused(text: str, monkeypatch) -> None:
    monkeypatch.setattr(source, "MOST_ROWS", 3)
    document = f"<testsuite>{text}</testsuite>" if text.startswith("<") else text
    with pytest.raises(UsageError, match=r"has more than 3 rows\. Split it by suite"):
        read_file(SourceFile("f", document.encode()))


def test_json_lines_and_zip_files_are_read_within_limits():
    assert SourceFile("f", b'\xef\xbb\xbf {"a": 1}').json() == {"a": 1}
    assert SourceFile("f", b"[" * 5000 + b"]" * 5000).json() is None
    assert SourceFile("f", b'{"a": 1').json() is None
    assert SourceFile("f", rb'{"a": "\ud83d\ude00 \ud83d \\ud800"}').json() == {"a": "😀 � \\ud800"}
    lines = SourceFile("f.jsonl", b'{"a": 1}\n\n{"a": 2}\n{"a"').json_lines()
    assert lines is not None
    assert [next(lines), next(lines)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(UsageError, match=re.escape("f.jsonl: line 4 is not JSON")):
        next(lines)
    assert SourceFile("f", b"a,b\n").json_lines() is None
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../a.json", '{"a": 1}')
        archive.writestr("bomb", b"0" * 301_000_000)
    members = SourceFile("f.eval", stream.getvalue()).members()
    assert members is not None
    assert members["../a.json"].json() == {"a": 1}
    with pytest.raises(UsageError, match="larger than 300 MB"):
        members["bomb"].read()
    with pytest.raises(UsageError, match="damaged zip file"):
        SourceFile("f.eval", stream.getvalue()[:500]).members()
    assert SourceFile("f", b"text").members() is None


def rows_of(*lines: str) -> dict[str, object]:
    reader, (result,) = read_file(SourceFile("x.jsonl", "\n".join(lines).encode()))
    assert reader.format == "rows"
    return {row.test: row.undecided or row.passed for row in result.rows}


def test_json_lines_keys_may_vary_except_key_that_names_test():
    assert rows_of(
        '{"test": "a", "passed": true}',
        '{"test": "b", "passed": false, "error": "timeout"}',
        '{"error": "no reply", "test": "c"}',
    ) == {"a": True, "b": Undecided.ERROR, "c": Undecided.ERROR}
    rows = rows_of('{"test": "a", "error": "no reply"}', '{"test": "b", "score": 1}')
    assert rows == {"a": Undecided.ERROR, "b": True}
    lines = b'{"test": "a", "passed": true}\n{"test": "a", "passed": true, "model": "m"}'
    _, result = read_file(SourceFile("x.jsonl", lines))
    assert [results.arm for results in result] == [None, "m"]
    with pytest.raises(UsageError, match=r"^x.jsonl: row 2 has no 'test', by which row 1 names its test"):
        rows_of('{"id": 1, "test": "a", "passed": true}', '{"id": 2, "passed": false}')
