"""Files that other tools wrote become rows: `files/README.md` says which version made each, and how."""

import copy
import io
import json
import math
import subprocess
import sys
import zipfile
from collections import Counter
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
def test_both_log_formats_of_inspect_say_the_same(name: str) -> None:
    results = read_set(name)
    assert (results.suite, results.arm) == ("numbers", "mockllm/model")
    assert outcomes_by_test(results) == {
        "one": [PASSED] * 3,
        "two": [FAILED, PASSED, PASSED],
        "three": [FAILED] * 3,
        "four": [PASSED, ERROR, PASSED],
    }
    assert [row_of(results, "two", i).trial for i in range(3)] == [1, 2, 3]
    assert row_of(results, "four", 1).reason == "RuntimeError('the sandbox is gone')"


def test_inspect_has_its_own_accuracy_over_samples_that_did_not_break() -> None:
    score = official_score(read_set("inspect/numbers.eval"))
    assert (score.name, score.value, score.of) == ("accuracy", (1 + 2 / 3 + 0 + 1) / 4, 4)


def test_a_log_of_inspect_has_conversations_checks_and_tokens() -> None:
    first = row_of(read_set("inspect/numbers.eval"), "three")
    assert [(message.role, message.text) for message in first.conversation] == [
        ("user", "Write three as a digit"),
        ("assistant", "It is 3, or 30"),
    ]
    assert [(check.name, check.passed) for check in first.checks] == [("match", False), ("includes", True)]
    assert (first.input_tokens, first.output_tokens) == (20, 4)
    assert first.seconds


def test_samples_that_never_began_are_undecided() -> None:
    results = read_set("inspect/cancelled.json")
    assert results.contradictions[0].startswith("status is 'cancelled'")
    assert Counter(row.undecided for row in results.rows) == {None: 1, ERROR: 11}
    assert row_of(results, "four", 2).reason == "never began"


def test_a_log_whose_samples_all_broke_has_no_official_score_though_its_status_is_success() -> None:
    results = read_set("inspect/broken.json")
    assert results.official is None
    assert {row.undecided for row in results.rows} == {ERROR}


def test_logs_of_inspect_compare_by_data_set_and_not_by_file() -> None:
    base, worse = read_set("inspect/numbers.eval"), read_set("inspect/worse.eval")
    assert base.fingerprint == worse.fingerprint == read_set("inspect/deflated.eval").fingerprint
    assert outcomes_by_test(worse)["two"] == [FAILED] * 3
    assert {row.test: row.definition for row in base.rows} == {row.test: row.definition for row in worse.rows}


@each_row(
    ("value", "score"),
    [
        ("C", 1),
        ("P", 0.5),
        ("I", 0),
        ("N", 0),
        (True, 1),
        (0.25, 0.25),
        ("0.75", 0.75),
        ("yes", 1),
        ({"match": "C"}, 1),
    ],
)
def test_values_of_inspect_are_numbers_as_inspect_reads_them(value: Any, score: float) -> None:
    log = load_json("inspect/numbers.json")
    log["samples"][0]["scores"]["match"]["value"] = value
    (results,) = read_text(json.dumps(log))
    assert results.rows[0].score == score
    assert results.rows[0].passed is (score == 1)


@pytest.mark.parametrize("value", [7, -1, "perhaps", [1], {}])
def test_a_value_of_inspect_that_is_no_score_is_refused(value: Any) -> None:
    log = load_json("inspect/numbers.json")
    log["samples"][0]["scores"]["match"]["value"] = value
    assert "looks like an Inspect log, but is broken" in read_error(log)


@pytest.mark.parametrize("value", [None, math.nan])
def test_a_sample_of_inspect_without_a_value_is_undecided(value: Any) -> None:
    log = load_json("inspect/numbers.json")
    log["samples"][0]["scores"]["match"]["value"] = value
    (results,) = read_text(json.dumps(log))
    assert results.rows[0].undecided is Undecided.EMPTY


def test_a_log_of_inspect_that_was_broken_off_is_read_from_its_journal() -> None:
    whole = zipfile.ZipFile(FILES / "inspect/deflated.eval")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as cut:
        for name in whole.namelist():
            if name.startswith("_journal/"):
                cut.writestr(name, whole.read(name))
    (results,) = read_file(SourceFile("cut.eval", stream.getvalue()))[1]
    assert results.contradictions[0].startswith("status is 'started'")
    assert len(results.rows) == 12


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="zipfile reads zstd")
def test_without_a_reader_of_zstd_the_message_says_what_to_do() -> None:
    program = (
        "import sys; sys.modules['backports.zstd.zipfile'] = None\n"
        "from ci_evals.extensions.result_files.reading import SourceFile, read_file\n"
        "read_file(SourceFile('f.eval', open(sys.argv[1], 'rb').read()))"
    )
    command = [sys.executable, "-c", program, str(FILES / "inspect/numbers.eval")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "f.eval: is packed with zstd" in ended.stderr
    assert "pip install 'ci-evals[zstd]'" in ended.stderr


def test_samples_of_inspect_are_the_same_though_their_messages_have_other_ids() -> None:
    """It draws them anew in each run."""

    def definition(number: int) -> str | None:
        log = load_json("inspect/numbers.json")
        log["samples"][0]["input"] = [{"role": "user", "content": "One?", "id": f"m{number}"}]
        (results,) = read_text(json.dumps(log))
        return results.rows[0].definition

    assert definition(1) == definition(2)


def test_each_pair_of_a_provider_and_a_prompt_of_promptfoo_is_an_arm() -> None:
    found = {results.arm: results for results in read_sets("promptfoo/shop.json")}
    assert sorted(filter(None, found)) == ["base · plain", "base · polite", "flaky · plain", "flaky · polite"]
    assert {results.suite for results in found.values()} == {"Shop answers"}
    assert outcomes_by_test(found["base · plain"]) == {
        "shipping": [PASSED, PASSED],
        "refund": [FAILED, FAILED],
        "question=Hello, answer=there": [SKIPPED, SKIPPED],
    }
    assert outcomes_by_test(found["flaky · polite"])["refund"] == [ERROR, ERROR]


def test_the_share_of_promptfoo_counts_errors_as_failures_and_unchecked_rows_as_passes() -> None:
    prompts = load_json("promptfoo/shop.json")["results"]["prompts"]
    stated = sorted(
        one["metrics"]["testPassCount"]
        / sum(one["metrics"][f"test{kind}Count"] for kind in ("Pass", "Fail", "Error"))
        for one in prompts
    )
    assert (
        sorted(official_score(results).value or 0 for results in read_sets("promptfoo/shop.json")) == stated
    )


def test_a_row_of_promptfoo_has_its_assertions_and_cost() -> None:
    (polite,) = [results for results in read_sets("promptfoo/shop.json") if results.arm == "flaky · polite"]
    shipping = row_of(polite, "shipping")
    assert (shipping.score, shipping.cost_usd, shipping.input_tokens) == (0.5, 0.002, 8)
    assert [(check.name, check.passed) for check in shipping.checks] == [
        ("contains: we ship", True),
        ("not-contains: thank you", False),
    ]
    assert shipping.reason == 'Expected output to not contain "thank you"'


def test_lines_of_promptfoo_say_the_same_as_the_whole_file() -> None:
    whole, lines = read_sets("promptfoo/shop.json"), read_sets("promptfoo/shop.jsonl")
    assert [(results.arm, outcomes_by_test(results)) for results in whole] == [
        (results.arm, outcomes_by_test(results)) for results in lines
    ]


def test_tests_of_promptfoo_with_one_description_are_told_apart() -> None:
    document = load_json("promptfoo/shop.json")
    for result in document["results"]["results"]:
        result["testCase"]["description"] = "same"
    names = {row.test for results in read_text(json.dumps(document)) for row in results.rows}
    assert len(names) == 3
    assert all(name.startswith("same #") for name in names)


def test_another_version_of_promptfoo_is_named() -> None:
    document = load_json("promptfoo/shop.json")
    document["results"]["version"] = 4
    assert "its version is 4, and only 3 is known" in read_error(document)


def test_a_row_of_promptfoo_that_failed_without_assertions_has_failed() -> None:
    """Only what passed without any was not checked."""
    document = load_json("promptfoo/shop.json")
    first = document["results"]["results"][0]
    first |= {"success": False, "failureReason": 1, "gradingResult": None, "score": 0}
    (failed,) = [
        found for results in read_text(json.dumps(document)) for found in results.rows[:1] if found.score == 0
    ][:1]
    assert (failed.passed, failed.undecided) == (False, None)


def test_a_test_of_deepeval_that_failed_without_metrics_has_failed() -> None:
    run = load_json("deepeval/shop.json")
    run["testCases"][0] |= {"success": False, "metricsData": []}
    (results,) = read_text(json.dumps(run))
    assert results.rows[0].passed is False


def test_a_test_of_deepeval_whose_metric_broke_is_undecided() -> None:
    results = read_set("deepeval/shop.json")
    assert (results.suite, results.arm) == ("shop", "demo")
    assert outcomes_by_test(results) == {
        "returns": [PASSED],
        "test_case_1": [PASSED],
        "late": [FAILED],
        "broken judge": [ERROR],
    }
    assert (official_score(results).value, official_score(results).of) == (0.5, 4)
    assert (
        row_of(results, "broken judge").reason
        == "Contains 30 days: ConnectionError: the judge cannot be reached"
    )
    assert row_of(results, "late").score == 0.25


def test_a_conversation_of_deepeval_has_its_tools() -> None:
    returns = row_of(read_set("deepeval/shop.json"), "returns").conversation[-1]
    assert [(call.name, call.arguments, call.result) for call in returns.tool_calls] == [
        ("find_order", {"id": 7}, "found")
    ]
    greeting = row_of(read_set("deepeval/chat.json"), "greeting").conversation
    assert [message.text for message in greeting] == ["Hi", "Hello, please go on"]
    assert [call.name for call in greeting[1].tool_calls] == ["greet"]


def test_a_flaky_metric_of_deepeval_never_decides() -> None:
    run = load_json("deepeval/shop.json")
    for metric in run["testCases"][3]["metricsData"]:
        metric["flaky"] = True
    (results,) = read_text(json.dumps(run))
    assert row_of(results, "broken judge").undecided is SKIPPED


def test_a_success_of_deepeval_that_its_metrics_deny_is_refused() -> None:
    run = load_json("deepeval/shop.json")
    run["testCases"][2]["success"] = True
    assert "does not agree with its metrics" in read_error(run)


@pytest.mark.parametrize("index", [0, 1])
def test_a_row_of_promptfoo_without_its_parts_is_named(index: int) -> None:
    document = load_json("promptfoo/shop.json")
    del document["results"]["results"][index]["prompt"]
    assert f"results.results[{index}] has no testCase, provider, prompt or" in read_error(document)


def real_files() -> list[str]:
    return sorted(
        str(path.relative_to(FILES))
        for path in FILES.rglob("*.*")
        if path.name not in {"README.md", "metadata.jsonl"} and path.is_file()
    )


@each_row("name", real_files())
def test_a_format_is_found_by_content(name: str) -> None:
    data = (FILES / name).read_bytes()
    reader, _ = read_file(SourceFile("renamed", data, gaia_answers()))
    assert reader.format == name.partition("/")[0]


@each_row("name", real_files())
def test_a_file_that_is_cut_off_is_refused_or_has_fewer_rows(name: str) -> None:
    data = (FILES / name).read_bytes()
    before = sum(len(results.rows) for results in read_file(SourceFile(name, data, gaia_answers()))[1])
    for end in (len(data) // 3, len(data) - 20):
        try:
            _, found = read_file(SourceFile(name, data[:end], gaia_answers()))
        except UsageError:
            continue
        assert sum(len(results.rows) for results in found) <= before


WRONG: list[Any] = [None, True, -1, 1e308, math.nan, "", "x" * 5000, [], {}, [[]], {"a": None}, [None]]


def mutations(value: Any) -> list[Any]:
    """Each field of a document, in turn, with a wrong value; of a list only the first and last item."""
    found: list[Any] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += [value | {key: wrong} for wrong in WRONG]
            found += [value | {key: changed} for changed in mutations(inner)]
            found.append({other: kept for other, kept in value.items() if other != key})
    elif isinstance(value, list) and value:
        found += [[*copy.copy(value[:-1]), wrong] for wrong in WRONG]
        found += [[changed, *value[1:]] for changed in mutations(value[0])]
    return found


MUTATED = [
    "inspect/cancelled.json",
    "deepeval/shop.json",
    "swe-bench/demo__agent.base.json",
    "swe-bench/report-5.json",
    "webarena-verified/base/3/eval_result.json",
    "eee/base/numbers.json",
]


@pytest.mark.parametrize("name", MUTATED)
def test_a_field_of_a_wrong_type_is_a_message_or_nothing(name: str) -> None:
    for document in mutations(load_json(name)):
        try:
            read_text(json.dumps(document))
        except UsageError as error:
            assert str(error).startswith("f.json: ")  # noqa: PT017  # both ends are right


LINES = [
    "human-eval/base.jsonl_results.jsonl",
    "gaia/base.jsonl",
    "promptfoo/shop.jsonl",
    "eee/base/numbers_samples.jsonl",
]


@pytest.mark.parametrize("name", [*LINES, "agentbench/base/demo-agent/dbbench-std/runs.jsonl"])
def test_a_line_with_a_wrong_type_is_a_message_or_nothing(name: str) -> None:
    first = json.loads((FILES / name).read_text().partition("\n")[0])
    for line in mutations(first):
        try:
            read_text(json.dumps(line) + "\n")
        except UsageError as error:
            assert str(error).startswith("f.json: ")  # noqa: PT017  # both ends are right


def test_every_reader_here_has_a_real_file() -> None:
    assert {name.partition("/")[0] for name in real_files()} >= readers().keys() - {
        "junit",
        "rows",
        "ci-evals",
    }
