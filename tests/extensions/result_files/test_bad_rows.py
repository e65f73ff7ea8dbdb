"""Files of other tools are read with bounds; one wrong row is an error of its own among thousands."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files import source
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import check, read_file

FILES = Path(__file__).parent / "files"
NAN = float("nan")
GOOD = 3


def junit(name: str = "", time: str = "1") -> bytes:
    cases = "".join(f"<testcase name='t{i}' classname='s' time='1'/>" for i in range(GOOD))
    bad = f"<testcase name='{name}' time='{time}'/>"
    return f"<testsuite name='s' tests='{GOOD + 1}'>{cases}{bad}</testsuite>".encode()


def junit_suites(bad: str, tests: int = 4) -> bytes:
    cases = "".join(f"<testcase name='t{i}'/>" for i in range(GOOD))
    suite = f"<testsuite name='refunds' tests='{tests}'>{cases}{bad}</testsuite>"
    return f"<testsuites>{suite}</testsuites>".encode()


def json_lines(good: Callable[[int], Any], bad: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in (*map(good, range(GOOD)), bad)).encode()


def deepeval(**bad: Any) -> bytes:
    def case(**fields: Any) -> dict[str, Any]:
        metric = {"name": "m", "success": True, "score": fields.pop("score", 1)}
        return {"name": "t", "input": "Hi", "success": True, "metricsData": [metric]} | fields

    cases = [case(name=f"t{i}") for i in range(GOOD)]
    return json.dumps({"testCases": [*cases, case(**bad)], "metricsScores": []}).encode()


def promptfoo(score: Any, check: Any = 1) -> bytes:
    def row(number: int, score: Any, check: Any = 1) -> dict[str, Any]:
        return {
            "testCase": {"description": f"t{number}"}, "provider": {"id": "p"},
            "prompt": {"raw": "Hi", "label": "l"}, "failureReason": 0, "success": True, "score": score,
            "gradingResult": {"pass": True, "componentResults": [{"pass": True, "score": check}]},
        }  # fmt: skip

    return json_lines(lambda number: row(number, 1), row(9, score, check))


def every_eval_ever(score: Any) -> bytes:
    def record(number: int, score: Any) -> dict[str, Any]:
        names = {"evaluation_id": "e", "model_id": "m", "evaluation_name": "n", "sample_id": f"t{number}"}
        return {"schema_version": "0.3.0", "evaluation": {"score": score, "is_correct": True}} | names

    return json_lines(lambda number: record(number, 1), record(9, score))


def lm_eval(value: float) -> bytes:
    def line(number: int, value: float) -> dict[str, Any]:
        shared = {"doc_hash": str(number), "filter": "none", "metrics": ["acc", "other"]}
        return shared | {"doc_id": number, "acc": value, "other": 1}

    return json_lines(lambda number: line(number, 1), line(9, value))


def rows(**bad: Any) -> bytes:
    return json_lines(lambda number: {"test": f"t{number}", "passed": True}, {"test": "bad"} | bad)


def table(bad: str) -> bytes:
    return ("test,passed,score\n" + "".join(f"t{i},true,1\n" for i in range(GOOD)) + bad + "\n").encode()


BAD_ROWS = [
    ("a JUnit case without a name", junit(), "row 4 (no name)", "no name"),
    ("a JUnit case with a class", junit_suites("<testcase classname='c'/>"), "row 4 (no name)", "no name"),
    ("a nameless rerun", junit_suites("<testcase name=''/><testcase/>", 4), "row 4 (no name)", "no name"),
    ("a JUnit case with a very long name", junit("n" * 2_001), "row 4 (nnn", "2,000 characters"),
    ("a DeepEval test without a name", deepeval(name=""), "row 4 (no name)", "no name"),
    ("a DeepEval test whose name is null", deepeval(name=None), "row 4 (no name)", "no name"),
    ("a DeepEval score that is NaN", deepeval(name="bad", score=NAN), "bad", "score nan"),
    ("a promptfoo score that is NaN", promptfoo(NAN), "t9", "score nan"),
    *[
        (f"a score of {tool} that is {score!r}", make(score), name, "is not a number from 0 to 1")
        for score in ("NaN", "many", -3.0, 7.0, [1])
        for tool, make, name in (
            ("promptfoo", promptfoo, "t9"),
            ("an assertion of promptfoo", lambda score: promptfoo(1, score), "t9"),
            ("DeepEval", lambda score: deepeval(name="bad", score=score), "bad"),
            ("Every Eval Ever", every_eval_ever, "t9"),
        )
    ],
    ("a score that is quoted", promptfoo("many"), "t9", "the score 'many' is not"),
    ("a score on another scale that is quoted", promptfoo(-3), "t9", "the score -3.0 is not"),
    ("a promptfoo row that passed with 0", promptfoo(0), "t9", "passed, and its score is 0"),
    ("a DeepEval pass with 0", deepeval(name="bad", score=0), "bad", "passed, and its score is 0"),
    ("a row that passed with 0", rows(passed=True, score=0), "bad", "passed, and its score is 0"),
    ("an lm-eval metric that is NaN", lm_eval(NAN), "9", "score nan"),
    ("a row whose score is NaN", rows(score=NAN), "bad", "score is 'nan'"),
    ("a row whose score is infinite", rows(score=float("inf")), "bad", "score is 'inf'"),
    ("a row whose score is on another scale", rows(score=70), "bad", "score 70.0"),
    ("a row whose score is a word", rows(score="high"), "bad", "score is 'high'"),
    ("a row whose outcome is a word", rows(passed="perhaps"), "bad", "passed is 'perhaps'"),
    ("a row whose outcomes disagree", rows(passed=True, correct=False), "bad", "contradict each other"),
    ("a row whose outcome has two forms", rows(success="yes", correct=0.0), "bad", "contradict each other"),
    ("a row whose cost is negative", rows(passed=True, cost=-1), "bad", "cost is -1"),
    ("a row without a name", rows(test="", passed=True), "row 4 (no name)", "no name"),
    ("a row whose name is an object", rows(test={"a": 1}, passed=True), "row 4 (no name)", "found a list or"),
    ("a row of a table that is NaN", table("bad,,nan"), "bad", "score is 'nan'"),
    ("a row of a table that passed and is NaN", table("bad,true,NaN"), "bad", "score is 'NaN'"),
    ("a row of a table without a name", table(",true,1"), "row 4 (no name)", "no name"),
]


@each_row(("data", "test", "reason"), [case[1:] for case in BAD_ROWS], ids=[case[0] for case in BAD_ROWS])
def test_malformed_row_becomes_error_without_affecting_good_rows(data, test, reason):
    result = rows_of(data)
    assert [row.passed for row in result[:GOOD]] == [True] * GOOD
    bad = result[GOOD]
    assert (bad.passed, bad.score, bad.undecided) == (None, None, Undecided.ERROR)
    assert bad.test.startswith(test)
    assert reason in bad.reason


def with_nan(value: Any, path: tuple[str | int, ...]) -> bytes:
    part = value
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = NAN
    return (json.dumps(value) if isinstance(value, dict) else "\n".join(map(json.dumps, value))).encode()


WEBSHOP = "agentbench/base/demo-agent/webshop-std/runs.jsonl"
BENCHMARK_REWARDS = [("tau2/base.json", ("simulations", 0, "reward_info", "reward"))]
BENCHMARK_REWARDS += [(WEBSHOP, (0, "output", "result", "reward"))]


@each_row(("name", "path"), BENCHMARK_REWARDS)
def test_nan_reward_makes_only_its_benchmark_row_an_error(name, path):
    text = (FILES / name).read_text()
    before = rows_of(text.encode())
    value = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)
    after = rows_of(with_nan(value, path))
    wrong = [row for old, row in zip(before, after, strict=True) if old.result != row.result]
    assert ([row.undecided for row in wrong], "nan" in wrong[0].reason.lower()) == ([Undecided.ERROR], True)


def test_agreeing_outcomes_of_a_row_pass_and_missing_ones_are_undecided():
    forms = ({"passed": 1.0}, {"passed": "1.0"})
    for row in (*forms, *({"passed": True, "correct": other} for other in (1, None))):
        assert rows_of(json.dumps({"test": "a"} | row).encode())[0].passed
    (empty,) = rows_of(b'{"test": "a", "passed": null}')
    assert (empty.undecided, "no value for passed or score" in empty.reason) == (Undecided.EMPTY, True)


def test_last_deepeval_run_is_read_and_file_with_only_a_link_is_refused():
    rows = rows_of(json.dumps({"testRunData": json.loads(deepeval(name="last"))}).encode())
    assert [row.test for row in rows] == ["t0", "t1", "t2", "last"]
    with pytest.raises(UsageError, match="has no known format"):
        rows_of(b'{"testRunLink": "https://app.confident-ai.com/x"}')


LINE = b'{"test": "t", "passed": true}\n'


@each_row("data", [
    b"\n" + LINE + LINE,
    b"\r\n\r\n" + LINE + LINE,
    b"\xef\xbb\xbf\n" + LINE + LINE,
    b"  \n\t\n" + LINE + b"\n" + LINE + b"\n",
    b"\n" * 2_000 + LINE + LINE,
    b"\ntest,passed\nt,true\nt,true\n",
    b"\r\n\r\ntest,passed\r\nt,true\r\nt,true\r\n",
])  # fmt: skip
def test_empty_lines_before_and_between_rows_are_skipped(data):
    assert [(row.test, row.passed) for row in rows_of(data)] == [("t", True), ("t", True)]


def rows_of(data: bytes) -> list[Row]:
    _, sets = read_file(SourceFile("f", data))
    return [row for results in sets for row in results.rows]


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
def test_invalid_row_is_refused_with_the_reason(rows, message):
    with nullcontext() if message is None else pytest.raises(UsageError, match=re.escape(message or "")):
        check(ResultSet(suite="s", rows=rows), SourceFile("f.json", b""), READER)


@each_row(("data", "message"), [
    (b"\x00\x01", r"x\.csv: has no known format \(tried .*junit"),
    (b" \n", r"x\.csv: is empty\. Did the tool end before it wrote its results\?"),
    ("test,passed\ncaf\xe9,true\n".encode("latin-1"), r"x\.csv: is neither UTF-8 text nor a zip file\. "),
    ("test,passed\na,true\n".encode("utf-16"), r"x\.csv: is neither UTF-8 text nor a zip file\. "),
])  # fmt: skip
def test_file_without_known_format_is_refused_with_its_reason(data, message):
    with pytest.raises(UsageError, match=f"^{message}"):
        read_file(SourceFile("x.csv", data))


@pytest.mark.parametrize("text", [
    "test,passed\n" + "a,true\n" * 4, '{"test": "a", "passed": true}\n' * 4, "<testcase name='a'/>" * 4,
])  # fmt: skip
def test_file_with_too_many_rows_is_refused(text, monkeypatch):
    monkeypatch.setattr(source, "MOST_ROWS", 3)
    document = f"<testsuite>{text}</testsuite>" if text.startswith("<") else text
    with pytest.raises(UsageError, match=r"has more than 3 rows\. Split it by suite"):
        read_file(SourceFile("f", document.encode()))


def test_json_and_json_lines_are_read_and_a_broken_line_is_named():
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


@pytest.mark.slow  # it computes
def test_zip_members_are_read_up_to_300_mb_and_damaged_zip_file_is_refused():
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


def test_json_lines_with_different_keys_are_read_if_all_have_the_key_of_the_test():
    assert outcomes_of_lines(
        '{"test": "a", "passed": true}',
        '{"test": "b", "passed": false, "error": "timeout"}',
        '{"error": "no reply", "test": "c"}',
    ) == {"a": True, "b": Undecided.ERROR, "c": Undecided.ERROR}
    rows = outcomes_of_lines('{"test": "a", "error": "no reply"}', '{"test": "b", "score": 1}')
    assert rows == {"a": Undecided.ERROR, "b": True}
    lines = b'{"test": "a", "passed": true}\n{"test": "a", "passed": true, "model": "m"}'
    _, result = read_file(SourceFile("x.jsonl", lines))
    assert [results.arm for results in result] == [None, "m"]
    with pytest.raises(UsageError, match=r"^x.jsonl: row 2 has no 'test', by which row 1 names its test"):
        outcomes_of_lines('{"id": 1, "test": "a", "passed": true}', '{"id": 2, "passed": false}')


def outcomes_of_lines(*lines: str) -> dict[str, object]:
    reader, (result,) = read_file(SourceFile("x.jsonl", "\n".join(lines).encode()))
    assert reader.format == "rows"
    return {row.test: row.undecided or row.passed for row in result.rows}
