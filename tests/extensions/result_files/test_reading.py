"""Files of other tools are read with bounds, and refused with one message that says what is wrong."""

import io
import re
import zipfile

import pytest

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files import source
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import check, read_file

READER = Reader("made-up", "made-up results", lambda _: None, files="any")


def refused(*rows: Row) -> str:
    with pytest.raises(UsageError) as error:
        check(ResultSet(suite="s", rows=rows), SourceFile("f.json", b""), READER)
    return str(error.value)


def test_a_sound_row_is_accepted() -> None:
    sound = ResultSet(suite="s", rows=[Row(test="t", passed=True, score=0.5, cost_usd=0.1, seconds=0)])
    check(sound, SourceFile("f.json", b""), READER)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.01])
def test_a_score_that_is_no_share_is_refused(score: float) -> None:
    assert "is not a number from 0 to 1" in refused(Row(test="t", passed=True, score=score))
    assert "is not a number from 0 to 1" in refused(
        Row(test="t", passed=True, checks=(Check("c", passed=True, score=score),))
    )


def test_a_row_is_either_decided_or_undecided() -> None:
    assert "row 1 (test 't'): it must say either" in refused(Row(test="t"))
    assert "it must say either" in refused(Row(test="t", passed=True, undecided=Undecided.ERROR))
    assert "undecided and has a score" in refused(Row(test="t", undecided=Undecided.ERROR, score=1))


def test_a_trial_that_is_there_twice_is_refused() -> None:
    assert "trial '1' twice" in refused(
        Row(test="t", trial=1, passed=True), Row(test="t", trial=1, passed=True)
    )


def test_names_and_amounts_have_bounds() -> None:
    assert "no name" in refused(Row(test=" ", passed=True))
    assert "more than 2,000" in refused(Row(test="t" * 2001, passed=True))
    assert "cost is -1" in refused(Row(test="t", passed=True, cost_usd=-1))
    assert "cost is nan" in refused(Row(test="t", passed=True, cost_usd=float("nan")))


def test_a_file_of_no_format_is_refused_with_what_was_tried() -> None:
    with pytest.raises(UsageError, match=r"^x\.bin: has no known format \(tried .*junit"):
        read_file(SourceFile("x.bin", b"\x00\x01"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "x.csv: is empty. Did the tool end before it wrote its results?"),
        ("test,passed\ncaf\xe9,true\n".encode("latin-1"), "x.csv: is neither UTF-8 text nor a zip file. "),
        ("test,passed\na,true\n".encode("utf-16"), "x.csv: is neither UTF-8 text nor a zip file. "),
    ],
)
def test_a_file_that_is_empty_or_in_another_encoding_is_told_from_one_of_no_format(data, message) -> None:
    with pytest.raises(UsageError) as error:
        read_file(SourceFile("x.csv", data))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    ["test,passed\n" + "a,true\n" * 4, '{"test": "a", "passed": true}\n' * 4, "<testcase name='a'/>" * 4],
)
def test_a_file_with_more_rows_than_fit_into_memory_is_refused(text: str, monkeypatch) -> None:
    monkeypatch.setattr(source, "MOST_ROWS", 3)
    document = f"<testsuite>{text}</testsuite>" if text.startswith("<") else text
    with pytest.raises(UsageError, match=r"has more than 3 rows\. Split it by suite"):
        read_file(SourceFile("f", document.encode()))


def test_json_is_read_within_bounds() -> None:
    assert SourceFile("f", b'\xef\xbb\xbf {"a": 1}').json() == {"a": 1}
    assert SourceFile("f", b"[" * 5000 + b"]" * 5000).json() is None
    assert SourceFile("f", b'{"a": 1').json() is None
    assert SourceFile("f", rb'{"a": "\ud83d\ude00 \ud83d \\ud800"}').json() == {"a": "😀 � \\ud800"}


def test_json_lines_are_read_one_by_one_and_a_broken_one_is_named() -> None:
    lines = SourceFile("f.jsonl", b'{"a": 1}\n\n{"a": 2}\n{"a"').json_lines()
    assert lines is not None
    assert [next(lines), next(lines)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(UsageError, match=re.escape("f.jsonl: line 4 is not JSON")):
        next(lines)
    assert SourceFile("f", b"a,b\n").json_lines() is None


def test_a_zip_file_is_unpacked_in_memory_within_bounds() -> None:
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
    reader, (found,) = read_file(SourceFile("x.jsonl", "\n".join(lines).encode()))
    assert reader.format == "rows"
    return {row.test: row.undecided or row.passed for row in found.rows}


def test_each_row_of_json_lines_has_its_own_keys() -> None:
    """Many tools write an error, or a model, only where there is one."""
    assert rows_of(
        '{"test": "a", "passed": true}',
        '{"test": "b", "passed": false, "error": "timeout"}',
        '{"error": "no reply", "test": "c"}',
    ) == {"a": True, "b": Undecided.ERROR, "c": Undecided.ERROR}
    assert rows_of('{"test": "a", "error": "no reply"}', '{"test": "b", "score": 1}') == {
        "a": Undecided.ERROR,
        "b": True,
    }
    lines = b'{"test": "a", "passed": true}\n{"test": "a", "passed": true, "model": "m"}'
    _, found = read_file(SourceFile("x.jsonl", lines))
    assert [results.arm for results in found] == [None, "m"]


def test_a_row_without_the_key_that_names_the_others_is_refused() -> None:
    """By another of its keys it might be taken for a trial of another test."""
    with pytest.raises(UsageError, match=r"^x.jsonl: row 2 has no 'test', by which row 1 names its test"):
        rows_of('{"id": 1, "test": "a", "passed": true}', '{"id": 2, "passed": false}')
