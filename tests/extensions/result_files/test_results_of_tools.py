"""Files that other tools wrote become rows: `files/README.md` says which version made each, and how."""

import copy
import io
import json
import math
import sys
import zipfile
from collections import Counter
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest
from each_row import each_row
from tool_results import (
    ERROR,
    FAILED,
    FILES,
    PASSED,
    SKIPPED,
    gaia_answers,
    load_json,
    official_score,
    outcomes_by_test,
    read_error,
    read_set,
    read_sets,
    read_text,
    row_of,
)

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files.result_rows import Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import read_file, readers


@pytest.mark.parametrize("name", ["inspect/numbers.json", "inspect/numbers.eval", "inspect/deflated.eval"])
def test_inspect_json_and_eval_formats_give_same_rows(name):
    results = read_set(name)
    assert (results.suite, results.arm) == ("numbers", "mockllm/model")
    decided = {"one": [PASSED] * 3, "two": [FAILED, PASSED, PASSED], "three": [FAILED] * 3}
    assert outcomes_by_test(results) == decided | {"four": [PASSED, ERROR, PASSED]}
    assert [row_of(results, "two", i).trial for i in range(3)] == [1, 2, 3]
    assert row_of(results, "four", 1).reason == "RuntimeError('the sandbox is gone')"


def test_inspect_log_has_scores_and_tokens_and_samples_comparable_across_logs():
    score = official_score(read_set("inspect/numbers.eval"))
    assert (score.name, score.value, score.of) == ("accuracy", (1 + 2 / 3 + 0 + 1) / 4, 4)
    first = row_of(read_set("inspect/numbers.eval"), "three")
    texts = [(message.role, message.text) for message in first.conversation]
    assert texts == [("user", "Write three as a digit"), ("assistant", "It is 3, or 30")]
    assert [(check.name, check.passed) for check in first.checks] == [("match", False), ("includes", True)]
    assert (first.input_tokens, first.output_tokens) == (20, 4)
    assert first.seconds
    base, worse = read_set("inspect/numbers.eval"), read_set("inspect/worse.eval")
    assert base.fingerprint == worse.fingerprint == read_set("inspect/deflated.eval").fingerprint
    assert outcomes_by_test(worse)["two"] == [FAILED] * 3
    assert {row.test: row.definition for row in base.rows} == {row.test: row.definition for row in worse.rows}

    def definition(number: int) -> str | None:
        log = load_json("inspect/numbers.json")
        log["samples"][0]["input"] = [{"role": "user", "content": "One?", "id": f"m{number}"}]
        (results,) = read_text(json.dumps(log))
        return results.rows[0].definition

    assert definition(1) == definition(2)


def test_incomplete_inspect_logs_are_read_with_undecided_samples():
    results = read_set("inspect/cancelled.json")
    assert results.contradictions[0].startswith("status is 'cancelled'")
    assert Counter(row.undecided for row in results.rows) == {None: 1, ERROR: 11}
    assert row_of(results, "four", 2).reason == "never began"
    results = read_set("inspect/broken.json")
    assert (results.official, {row.undecided for row in results.rows}) == (None, {ERROR})
    whole = zipfile.ZipFile(FILES / "inspect/deflated.eval")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as cut:
        for name in whole.namelist():
            if name.startswith("_journal/"):
                cut.writestr(name, whole.read(name))
    (results,) = read_file(SourceFile("cut.eval", stream.getvalue()))[1]
    assert results.contradictions[0].startswith("status is 'started'")
    assert len(results.rows) == 12


def with_value(value: Any) -> dict[str, Any]:
    log = load_json("inspect/numbers.json")
    log["samples"][0]["scores"]["match"]["value"] = value
    return log


@each_row(("value", "score"), [
    *(("C", 1), ("P", 0.5), ("I", 0), ("N", 0), (True, 1), (0.25, 0.25), ("0.75", 0.75), ("yes", 1)),
    *(({"match": "C"}, 1), (None, None), (math.nan, None)),
])  # fmt: skip
def test_inspect_values_become_scores_or_are_undecided(value, score):
    (results,) = read_text(json.dumps(with_value(value)))
    row = results.rows[0]
    if score is None:
        assert row.undecided is Undecided.EMPTY
    else:
        assert (row.score, row.passed) == (score, score == 1)


@each_row("value", [7, -1, "perhaps", [1], {}])
def test_inspect_log_with_invalid_score_value_is_refused(value):
    assert "looks like an Inspect log, but is broken" in read_error(with_value(value))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="zipfile reads zstd")
def test_missing_zstd_reader_is_reported_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "backports.zstd.zipfile", None)
    spec = find_spec(SourceFile.__module__)
    without = module_from_spec(spec)
    spec.loader.exec_module(without)
    with pytest.raises(UsageError, match=r"f.eval: is packed with zstd.*pip install 'ci-evals\[zstd\]'"):
        read_file(without.SourceFile("f.eval", (FILES / "inspect/numbers.eval").read_bytes()))


def test_promptfoo_arms_have_outcomes_official_scores_assertions_and_cost():
    result = {results.arm: results for results in read_sets("promptfoo/shop.json")}
    arms = [f"{a} · {b}" for a in ("base", "flaky") for b in ("plain", "polite")]
    assert sorted(filter(None, result)) == arms
    assert {results.suite for results in result.values()} == {"Shop answers"}
    decided = {"shipping": [PASSED, PASSED], "refund": [FAILED, FAILED]}
    skipped = {"question=Hello, answer=there": [SKIPPED, SKIPPED]}
    assert outcomes_by_test(result["base · plain"]) == decided | skipped
    assert outcomes_by_test(result["flaky · polite"])["refund"] == [ERROR, ERROR]
    prompts = load_json("promptfoo/shop.json")["results"]["prompts"]
    counts = [[one["metrics"][f"test{kind}Count"] for kind in ("Pass", "Fail", "Error")] for one in prompts]
    stated = sorted(passed / sum([passed, *others]) for passed, *others in counts)
    assert sorted(official_score(results).value or 0 for results in result.values()) == stated
    shipping = row_of(result["flaky · polite"], "shipping")
    assert (shipping.score, shipping.cost_usd, shipping.input_tokens) == (0.5, 0.002, 8)
    checks = [(check.name, check.passed) for check in shipping.checks]
    assert checks == [("contains: we ship", True), ("not-contains: thank you", False)]
    assert shipping.reason == 'Expected output to not contain "thank you"'
    whole, lines = read_sets("promptfoo/shop.json"), read_sets("promptfoo/shop.jsonl")
    by_arm = [[(results.arm, outcomes_by_test(results)) for results in some] for some in (whole, lines)]
    assert by_arm[0] == by_arm[1]


def test_failure_without_assertions_or_metrics_is_failed_and_not_undecided():
    document = load_json("promptfoo/shop.json")
    first = document["results"]["results"][0]
    first |= {"success": False, "failureReason": 1, "gradingResult": None, "score": 0}
    first_rows = [results.rows[0] for results in read_text(json.dumps(document))]
    failed = next(row for row in first_rows if row.score == 0)
    assert (failed.passed, failed.undecided) == (False, None)
    run = load_json("deepeval/shop.json")
    run["testCases"][0] |= {"success": False, "metricsData": []}
    (results,) = read_text(json.dumps(run))
    assert results.rows[0].passed is False


def test_equal_promptfoo_test_names_are_numbered():
    document = load_json("promptfoo/shop.json")
    for result in document["results"]["results"]:
        result["testCase"]["description"] = "same"
    names = {row.test for results in read_text(json.dumps(document)) for row in results.rows}
    assert len(names) == 3
    assert all(name.startswith("same #") for name in names)


def test_promptfoo_file_of_other_version_or_with_missing_parts_is_refused():
    document = load_json("promptfoo/shop.json")
    document["results"]["version"] = 4
    assert "its version is 4, and only 3 is known" in read_error(document)
    for index in (0, 1):
        document = load_json("promptfoo/shop.json")
        del document["results"]["results"][index]["prompt"]
        assert f"results.results[{index}] has no testCase, provider, prompt or" in read_error(document)


def test_deepeval_outcomes_calls_and_flaky_metrics_are_read():
    results = read_set("deepeval/shop.json")
    assert (results.suite, results.arm) == ("shop", "demo")
    decided = {"returns": [PASSED], "test_case_1": [PASSED], "late": [FAILED]}
    assert outcomes_by_test(results) == decided | {"broken judge": [ERROR]}
    assert (official_score(results).value, official_score(results).of) == (0.5, 4)
    reason = "Contains 30 days: ConnectionError: the judge cannot be reached"
    assert (row_of(results, "broken judge").reason, row_of(results, "late").score) == (reason, 0.25)
    returns = row_of(results, "returns").conversation[-1]
    calls = [(call.name, call.arguments, call.result) for call in returns.tool_calls]
    assert calls == [("find_order", {"id": 7}, "found")]
    greeting = row_of(read_set("deepeval/chat.json"), "greeting").conversation
    assert [message.text for message in greeting] == ["Hi", "Hello, please go on"]
    assert [call.name for call in greeting[1].tool_calls] == ["greet"]
    run = load_json("deepeval/shop.json")
    for metric in run["testCases"][3]["metricsData"]:
        metric["flaky"] = True
    (results,) = read_text(json.dumps(run))
    assert row_of(results, "broken judge").undecided is SKIPPED
    run = load_json("deepeval/shop.json")
    run["testCases"][2]["success"] = True
    assert "does not agree with its metrics" in read_error(run)


def real_files() -> list[str]:
    files = [path for path in FILES.rglob("*.*") if path.name not in {"README.md", "metadata.jsonl"}]
    return sorted(str(path.relative_to(FILES)) for path in files if path.is_file())


@each_row("name", real_files())
def test_format_is_recognized_by_content(name):
    reader, _ = read_file(SourceFile("renamed", (FILES / name).read_bytes(), gaia_answers()))
    assert reader.format == name.partition("/")[0]


@each_row("name", real_files())
def test_truncated_file_is_refused_or_has_fewer_rows(name):
    data = (FILES / name).read_bytes()
    before = sum(len(results.rows) for results in read_file(SourceFile(name, data, gaia_answers()))[1])
    for end in (len(data) // 3, len(data) - 20):
        try:
            _, result = read_file(SourceFile(name, data[:end], gaia_answers()))
        except UsageError:
            continue
        assert sum(len(results.rows) for results in result) <= before


WRONG: list[Any] = [None, True, -1, 1e308, math.nan, "", "x" * 5000, [], {}, [[]], {"a": None}, [None]]


def mutations(value: Any) -> list[Any]:
    """Each field of a document, in turn, with a wrong value; of a list only the first and last item."""
    result: list[Any] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            result += [value | {key: wrong} for wrong in WRONG]
            result += [value | {key: changed} for changed in mutations(inner)]
            result.append({other: kept for other, kept in value.items() if other != key})
    elif isinstance(value, list) and value:
        result += [[*copy.copy(value[:-1]), wrong] for wrong in WRONG]
        result += [[changed, *value[1:]] for changed in mutations(value[0])]
    return result


@pytest.mark.parametrize("name", [
    "inspect/cancelled.json", "deepeval/shop.json", "swe-bench/demo__agent.base.json",
    "swe-bench/report-5.json", "webarena-verified/base/3/eval_result.json", "eee/base/numbers.json",
    "human-eval/base.jsonl_results.jsonl", "gaia/base.jsonl", "promptfoo/shop.jsonl",
    "eee/base/numbers_samples.jsonl", "agentbench/base/demo-agent/dbbench-std/runs.jsonl",
])  # fmt: skip
def test_field_of_wrong_type_raises_nothing_but_usage_error_that_names_the_file(name):
    lines = name.endswith(".jsonl")
    document = json.loads((FILES / name).read_text().partition("\n")[0]) if lines else load_json(name)
    for mutated in mutations(document):
        try:
            read_text(json.dumps(mutated) + "\n" * lines)
        except UsageError as error:
            assert str(error).startswith("f.json: ")  # noqa: PT017  # both ends are right


def test_every_reader_has_a_real_file():
    formats = {name.partition("/")[0] for name in real_files()}
    assert formats >= readers().keys() - {"junit", "rows", "ci-evals"}
