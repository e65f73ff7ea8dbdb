"""`ci-evals gate` on files of other tools: a worse run fails, and no verdict if files contradict themselves.

Each row of a table of contradictions changes a file that a tool wrote. Add a row for another way.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from gate_command import FILES, run_gate, saved_results

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext

ANSWERS = f"--answers={FILES / 'gaia/metadata.jsonl'}"
Change = Callable[[Any], None]


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *options: run_gate(capsys, *options, "--min-score=0")


def set_value(*keys: Any, value: Any) -> Change:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def remove(*keys: Any) -> Change:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


def changed(name: str, *changes: Change) -> str:
    """Write a file of a tool with changes to its document or its lines; return the name."""
    source = FILES / name
    target = Path(source.name)
    if source.suffix == ".jsonl":
        document: Any = [json.loads(line) for line in source.read_text().splitlines()]
    else:
        document = json.loads(source.read_text())
    for change in changes:
        change(document)
    if source.suffix == ".jsonl":
        target.write_text("".join(json.dumps(line) + "\n" for line in document))
    else:
        target.write_text(json.dumps(document))
    return str(target)


INSPECT, SWE_BENCH = "inspect/numbers.json", "swe-bench/demo__agent.base.json"
PLAIN_ARM = "--arm=base · plain"
FAIL_COUNT = ("results", "prompts", 0, "metrics", "testFailCount")


@pytest.mark.parametrize(("name", "change", "message"), [
    (INSPECT, set_value("status", value="started"), "status is 'started'"),
    (INSPECT, set_value("status", value="error"), "status is 'error'"),
    (INSPECT, remove("samples", 0), "never began"),
    (INSPECT, set_value("eval", "config", "epochs", value=4), "results.total_samples is 12"),
    (INSPECT, set_value("results", "total_samples", value=99), "results.total_samples is 99"),
    (INSPECT, set_value("results", "completed_samples", value=2), "completed_samples is 2"),
    ("promptfoo/shop.json", set_value("results", "stats", "failures", value=99), "stats.failures is 99"),
    ("promptfoo/shop.json", set_value("results", "stats", "successes", value=1), "stats.successes is 1"),
    ("promptfoo/shop.json", set_value("results", "stats", "errors", value=9), "results.stats.errors is 9"),
    ("promptfoo/shop.json", remove("results", "results", 0), "results.stats"),
    ("promptfoo/shop.json", set_value(*FAIL_COUNT, value=7), "results.prompts[0].metrics.testFailCount is 7"),
    ("deepeval/shop.json", set_value("testFailed", value=99), "testFailed is 99"),
    ("deepeval/shop.json", set_value("testPassed", value=1), "testPassed is 1"),
    ("deepeval/shop.json", remove("testCases", 0), "testPassed is 2"),
    ("deepeval/shop.json", set_value("metricsScores", 0, "fails", value=5), "metricsScores[0].fails is 5"),
    (SWE_BENCH, set_value("total_instances", value=300), "total_instances is 300"),
    (SWE_BENCH, set_value("resolved_instances", value=9), "resolved_instances is 9"),
    (SWE_BENCH, set_value("resolved_ids", 0, value="x__y-1"), "demo__shop-1"),
    (SWE_BENCH, remove("unresolved_ids", 0), "unresolved_instances is 2"),
    (SWE_BENCH, remove("submitted_ids", 0), "submitted_instances is 9"),
    ("tau2/base.json", remove("simulations", 0), "info.num_trials is 4, and task '0' has 3 simulations"),
    ("tau2/base.json", remove("tasks", 0), "such as '0'"),
    ("tau2/base.json", set_value("info", "num_trials", value=9), "info.num_trials is 9"),
])  # fmt: skip
def test_total_contradicted_by_rows_leaves_no_verdict(gate, name, change, message):
    options = [PLAIN_ARM] if name.startswith("promptfoo") else []
    code, printed = gate(changed(name, change), "--max-errors=50", *options)
    assert (code, message in printed) == (3, True), printed


STATED_SCORE = ("evaluation_results", 0, "score_details")
LM_EVAL = "lm-eval/base/{}_2026-11-24T01-43-08.674653"
RESULTS, WORDS = LM_EVAL.format("results") + ".json", LM_EVAL.format("samples_shop_words") + ".jsonl"
CHOICE = LM_EVAL.format("samples_shop_choice") + ".jsonl"
EEE, EEE_ROWS = "eee/stable/refunds.json", "eee/stable/refunds_samples.jsonl"
LOW_SCORE = set_value("results", "shop_choice", "acc,none", value=0.1)
MORE_SAMPLES = set_value(*STATED_SCORE, "uncertainty", "num_samples", value=100)
BATCH = "webarena-verified/base/eval_results.json"
WEBARENA = "webarena-verified/base/1/eval_result.json"
AGENTBENCH = "agentbench/base/demo-agent/dbbench-std/runs.jsonl"
FAILED_TESTS = {"FAIL_TO_PASS": {"failure": ["t"]}}


@pytest.mark.parametrize(("files", "message"), [
    ({RESULTS: None}, "n-samples.shop_choice.effective is 6, and no file has the rows of 'shop_choice'"),
    ({RESULTS: None, WORDS: None, CHOICE: remove(0)},
     "n-samples.shop_choice.effective is 6, and the files have 5 tests of 'shop_choice'"),
    ({RESULTS: LOW_SCORE, WORDS: None, CHOICE: None},
     "the stated score is 0.100, and the rows of 'shop_choice' have 0.500"),
    ({EEE: None, EEE_ROWS: remove(0)}, "rows are stated, and the files have"),
    ({EEE: MORE_SAMPLES, EEE_ROWS: None}, "num_samples is 100, and the files have 3 tests"),
    ({EEE: set_value(*STATED_SCORE, "score", value=0.03), EEE_ROWS: None}, "the stated score is 0.030"),
    ({BATCH: None, WEBARENA: None}, "summary.overall.total is 5, and the files have 1 tests"),
])  # fmt: skip
def test_summary_file_contradicted_by_rows_of_sample_files_leaves_no_verdict(gate, files, message):
    names = [changed(name, *([change] if change else [])) for name, change in files.items()]
    code, printed = gate(*names, "--max-errors=50")
    if code == 2:  # the summary alone
        assert "no rows" in printed
    else:
        assert (code, message in printed) == (3, True), printed


@pytest.mark.parametrize(("name", "change"), [
    (INSPECT, set_value("samples", 0, "error", value={"message": "gone"})),
    ("promptfoo/shop.json", set_value("results", "results", 3, "gradingResult", "pass", value=False)),
    ("promptfoo/shop.json", set_value("results", "results", 3, "failureReason", value=1)),
    ("promptfoo/shop.json", set_value("results", "results", 3, "error", value="it broke")),
    ("tau2/base.json", set_value("simulations", 0, "termination_reason", value="agent_error")),
    ("tau2/base.json", set_value("simulations", 0, "termination_reason", value="timeout")),
    (WEBARENA, set_value("score", value=0.0)),
    (WEBARENA, set_value("error_msg", value="it broke")),
    (WEBARENA, set_value("evaluators_results", 0, "status", value="failure")),
    ("swe-bench/report-1.json", set_value("demo__shop-1", "patch_successfully_applied", value=False)),
    ("swe-bench/report-1.json", set_value("demo__shop-1", "patch_exists", value=False)),
    ("swe-bench/report-1.json", set_value("demo__shop-1", "tests_status", value=FAILED_TESTS)),
    (AGENTBENCH, set_value(0, "output", "result", "error", value="it broke")),
    ("gaia/base.jsonl", remove(0)),
])  # fmt: skip
def test_contradictory_or_missing_row_is_error(gate, name, change):
    options = [ANSWERS] if name.startswith("gaia") else []
    document = changed(name, change)
    if name.startswith("promptfoo"):
        row = json.loads(Path(document).read_text())["results"]["results"][3]
        assert row["success"] is True
        options = [f"--arm={row['provider']['label']} · {row['prompt']['label']}"]
    gate(str(FILES / name), "--max-errors=0", "--output-dir=before", *options)
    errors = saved_results("before")["counts"]["errors"]
    gate(document, *options)
    assert saved_results()["counts"]["errors"] == errors + 1


TWICE = '{"test": "a", "passed": false, "passed": true}'
NESTED = '"x": {"y": "\\\\", "y": 1}'


@pytest.mark.parametrize(("text", "message"), [
    (f"[{TWICE}]", "has the key [0].passed twice"),
    ('[{"test": "a", "passed": true}, {"test": "b", "test": "c", "passed": true}]', "[1].test twice"),
    ('{"test": "b", "passed": true}\n' + TWICE, "line 2 has the key passed twice"),
    ('[{"test": "a", "passed" : false, ' + NESTED + ', "passed" : true}]', "[0].passed twice"),
    ('[{"test": "a", ' + NESTED + ', "passed" : true}]', "[0].x.y twice"),
    ('[{"test": "a", "passed": true, "p\\u0061ssed": true}]', "[0].passed twice"),
    ('[{"test": "a", "reason": "\\"passed\\": true, \\"passed\\": 1", "passed": true}]', None),
    ('[{"test" : "a", "reason" : "C:\\\\", "passed" : true}]', None),
    ('[{"test": "a", "passed": true, "x": {"test": 1}}, {"test": "b", "passed": true}]', None),
])  # fmt: skip
def test_duplicate_key_of_one_object_leaves_no_verdict(gate, text, message):
    Path("rows.json").write_text(text)
    code, printed = gate("rows.json")
    assert (code == 0) if message is None else (code, message in printed) == (3, True), printed


@pytest.mark.parametrize(("first", "second"), [
    ("junit/gradle.xml", lambda text: text),
    ("junit/gradle.xml", lambda text: text.replace("\n", "\n\n")),
    ("deepeval/shop.json", lambda text: text),
    ("deepeval/shop.json", lambda text: json.dumps(json.loads(text), indent=1)),
    ("deepeval/shop.json", lambda text: json.dumps({"testRunData": json.loads(text)})),
    # Another version of one run, which its id names.
    ("inspect/stable.eval", None),
    ("tau2/base.json", lambda text: text.replace('"duration": ', '"duration": 1')),
    ("promptfoo/shop.json", (FILES / "promptfoo/shop.jsonl").read_text()),
    ("promptfoo/shop.json", lambda text: text.replace('"latencyMs": ', '"latencyMs": 1')),
    ("eee/stable/refunds_samples.jsonl", lambda text: text.replace('"latency_ms": ', '"latency_ms": 1')),
])  # fmt: skip
def test_same_run_under_two_names_leaves_no_verdict(gate, first, second):
    source = FILES / first
    copy = Path("copy.jsonl" if isinstance(second, str) else f"copy{source.suffix}")
    if second is None:
        copy.write_bytes(source.read_bytes())
    else:
        copy.write_text(second if isinstance(second, str) else second(source.read_text()))
    options = [PLAIN_ARM] if first.startswith("promptfoo") else []
    code, printed = gate(str(source), str(copy), "--max-errors=50", *options)
    assert (code, "has the same" in printed, "Name each run once" in printed) == (3, True, True), printed


def test_equal_result_files_of_two_folders_are_not_taken_for_one_run(gate):
    # Tools that write a file for each result give all of them one name, and no time.
    for folder in "ab":
        Path(folder).mkdir()
        shutil.copy(FILES / "webarena-verified/base/1/eval_result.json", folder)
    assert gate("a/eval_result.json", "b/eval_result.json")[0] == 0


def test_failed_row_counts_as_zero_whatever_its_score(gate):
    Path("rows.csv").write_text("test,passed,score\na,false,1\nb,true,1\n")
    gate("rows.csv")
    assert saved_results()["score"] == 50


def lm_eval(metric: str, *scores: float, higher: bool | None = None) -> list[str]:
    """Write samples of a task with such scores, and the results that state the direction of the metric."""
    common = {"filter": "none", "metrics": [metric]}
    lines = [{"doc_id": i, "doc_hash": f"h{i}", **common, metric: score} for i, score in enumerate(scores)]
    Path("samples_t_2026-01-01T00-00-00.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if higher is None:
        return ["samples_t_2026-01-01T00-00-00.jsonl"]
    results = {
        "results": {"t": {f"{metric},none": sum(scores) / len(scores)}},
        "versions": {"t": 1},
        "n-samples": {"t": {"original": len(scores), "effective": len(scores)}},
        "higher_is_better": {"t": {metric: higher}},
        "configs": {"t": {"metric_list": [{"metric": metric, "aggregation": "mean"}]}},
        "config": {"model": "m"},
    }
    Path("results.json").write_text(json.dumps(results))
    return ["results.json", "samples_t_2026-01-01T00-00-00.jsonl"]


@pytest.mark.parametrize(("metric", "higher", "expected"), [
    ("acc", True, [True, False, False]),
    ("acc", None, [True, False, False]),
    ("toxicity", True, [True, False, False]),
    ("toxicity", False, [False, True, False]),
    ("acc", False, [False, True, False]),
    ("ter", None, [False, True, False]),
    ("toxicity", None, None),
    ("brier_score", False, [False, True, False]),
])  # fmt: skip
def test_direction_of_lm_eval_metric_decides_what_passes_or_leaves_no_verdict(gate, metric, higher, expected):
    code, printed = gate(*lm_eval(metric, 1, 0, 0.25, higher=higher))
    if expected is None:
        assert (code, "it is not known whether a higher one is better" in printed) == (3, True)
        return
    assert code == 0, printed
    (suite,) = saved_results()["suites"]
    assert [test["passed"] for test in suite["tests"]] == expected
    scores = [100, 0, 25] if expected[0] else [0, 100, 75]
    assert [test["score"] for test in suite["tests"]] == pytest.approx(scores)


@pytest.mark.parametrize("lower", [True, False])
def test_direction_of_every_eval_ever_comes_from_its_aggregate(gate, lower):
    change = set_value("evaluation_results", 0, "metric_config", "lower_is_better", value=lower)
    gate(*[changed("eee/stable/refunds.json", change), changed("eee/stable/refunds_samples.jsonl")])
    (suite,) = saved_results()["suites"]
    assert {test["passed"] for test in suite["tests"]} == {not lower}


def test_contradictions_are_in_every_report_and_of_a_baseline_leave_no_verdict(gate):
    gate(changed("deepeval/shop.json", set_value("testFailed", value=99)), "--max-errors=9")
    decision = saved_results()["gate"]
    assert decision["exitCode"] == 3
    reports = [Path("results", name).read_text() for name in ("summary.md", "report.html")]
    for text in (str(decision["reasons"]), *reports):
        assert "testFailed is 99" in text
    wrong = changed("deepeval/worse.json", set_value("testFailed", value=99))
    head = str(FILES / "deepeval/shop.json")
    code, printed = gate(head, f"--baseline={wrong}", "--max-drop=0", "--max-errors=9")
    message = "max-drop was not checked: the baseline contradicts itself: worse.json: testFailed is 99"
    assert (code, message in printed) == (3, True)


def test_missing_counts_are_not_shown_as_0(gate):
    # Older logs of Inspect have no number of samples with a score.
    old = changed(INSPECT, *(remove("results", "scores", i, "scored_samples") for i in (0, 1)))
    printed = gate(old, "--max-errors=9")[1]
    assert "of 0" not in printed
    assert "Official score: accuracy 66.6 % of 4" in printed
    without = changed("deepeval/shop.json", remove("testPassed"), remove("testFailed"))
    code, printed = gate(without, "--max-errors=9")
    assert (code, "none of" in printed, "of 0" in printed) == (0, False, False)


def bias_tests(*metrics: tuple[float, bool]) -> list[dict[str, Any]]:
    """Return test cases with a metric that has such scores and verdicts."""
    return [
        {"name": f"t{i}", "input": "q", "success": passed}
        | {"metricsData": [{"name": "Bias", "threshold": 0.5, "score": score, "success": passed}]}
        for i, (score, passed) in enumerate(metrics)
    ]


@pytest.mark.parametrize(("metrics", "code", "scores"), [
    ([(0.9, True), (0.2, False)], 0, [90, 20]),
    ([(0.0, True), (1.0, False), (0.5, True)], 0, [100, 0, 50]),  # lower is better
    ([(0.0, True)], 0, [100]),
    ([(0.9, True), (0.2, True)], 3, None),  # who knows
])  # fmt: skip
def test_deepeval_metric_passing_below_threshold_is_inverted(gate, metrics, code, scores):
    Path("run.json").write_text(json.dumps({"testCases": bias_tests(*metrics), "metricsScores": []}))
    assert gate("run.json")[0] == code
    (suite,) = saved_results()["suites"]
    if scores:
        assert [test["score"] for test in suite["tests"]] == pytest.approx(scores)


@pytest.fixture
def gated(tmp_path, monkeypatch, capsys):
    """Gate files into a folder without limits; return the exit code, the results and what is printed."""
    monkeypatch.chdir(tmp_path)

    def run(folder: str, *options: str) -> tuple[int, dict[str, Any], str]:
        limits = ("--min-score=0", "--max-errors=50", f"--output-dir={folder}")
        code, printed = run_gate(capsys, *options, *limits)
        return code, saved_results(folder) if code != 2 else {}, printed

    return run


def files_of(pattern: str) -> list[str]:
    result = sorted(str(path) for path in FILES.glob(pattern))
    assert result
    return result


# Some files show no broken test, as the same test failed once before.
@pytest.mark.parametrize(("base", "worse", "options", "broken"), [
    ("inspect/numbers.eval", "inspect/worse.eval", [], []),
    ("inspect/stable.eval", "inspect/broke.eval", [], ["window"]),
    ("promptfoo/shop.json", "promptfoo/worse.json", ["--arm=base · plain"], ["shipping"]),
    ("deepeval/shop.json", "deepeval/worse.json", [], ["returns"]),
    ("lm-eval/base/*", "lm-eval/worse/*", [], None),
    ("swe-bench/*.base.json", "swe-bench/*.worse.json", [], [f"demo__shop-{i}" for i in (2, 3, 4)]),
    ("human-eval/base*", "human-eval/worse*", [], []),
    ("human-eval/stable*", "human-eval/broke*", [], ["HumanEval/1"]),
    ("tau2/base.json", "tau2/worse.json", [], ["1"]),
    ("gaia/base.jsonl", "gaia/worse.jsonl", [f"--answers={FILES / 'gaia/metadata.jsonl'}"], ["q1", "q2"]),
    ("agentbench/base/*/dbbench*/*", "agentbench/worse/*/dbbench*/*", [], ["0", "4"]),
    ("webarena/base/*.txt", "webarena/worse/*.txt", [], ["1", "27", "28"]),
    ("webarena-verified/base/**/*.json", "webarena-verified/worse/**/*.json", [], ["1", "4"]),
    ("eee/base/*", "eee/worse/*", [], []),
    ("eee/stable/*", "eee/broke/*", [], ["window"]),
])  # fmt: skip
def test_worse_run_of_other_tool_fails_gate(base, worse, options, broken, gated):
    """The baseline is the tool's own file if there is one, else the folder of the gated run."""
    code, before, _ = gated("main", *files_of(base), *options)
    assert code == 0
    baseline = files_of(base)[0] if len(files_of(base)) == 1 else "main"
    options = [*options, f"--baseline={baseline}", "--max-drop=0"]
    code, results, _ = gated("head", *files_of(worse), *options)
    assert (code, results["score"] < before["score"]) == (1, True)
    if broken is not None:
        assert sorted(test["name"] for test in results["comparison"]["regressed"]) == broken
        page = Path("head/summary.md").read_text().replace("\\", "")
        assert all(name in page for name in broken)


def test_run_of_only_broken_samples_has_no_verdict(gated):
    code, results, _ = gated("head", str(FILES / "inspect/broken.json"))
    assert (code, results["score"]) == (3, None)


def test_files_of_several_models_are_refused(gated):
    (results,) = (Path(name) for name in files_of("lm-eval/worse/results*"))
    other = json.loads(results.read_text())
    other["config"]["model_args"] = "name=other"
    Path("results.json").write_text(json.dumps(other))
    options = [*files_of("lm-eval/base/*"), "results.json", *files_of("lm-eval/worse/samples*")]
    code, _, message = gated("head", *options)
    assert code == 2
    assert re.search(r"several models: 'dummy', 'dummy name=other'.*gate the files", message)


def test_two_prompts_of_one_promptfoo_file_are_compared(gated):
    arms = ("--arm=base · polite", "--baseline-arm=base · plain")
    code, results, printed = gated("head", str(FILES / "promptfoo/shop.json"), *arms, "--regression=any")
    assert (code, [test["name"] for test in results["comparison"]["regressed"]]) == (1, ["shipping"])
    assert "Official score: passed 33.3 % of 6. Ours is 25.0. A row that broke counts" in printed


def test_pass_hat_k_is_labeled_and_exported_eee_records_gate_to_same_score(gated):
    _, before, printed = gated("main", str(FILES / "tau2/base.json"))
    assert "pass^1 68.3 % of 5 (pass^1 68.3 %, pass^2 46.6 %, pass^3 30.0 %)" in printed
    with suppress(SystemExit):
        invoke(["report", "main", "--format=eee"], RunContext({"PATH": os.environ["PATH"]}))
    code, after, _ = gated("head", *map(str, Path("main/eee").rglob("*.json*")))
    assert (code, after["score"]) == (0, before["score"])
    tests = [run["suites"][0]["tests"] for run in (before, after)]
    trials = [[trial["score"] for test in some for trial in test["trials"]] for some in tests]
    assert (trials[0], after["official"]["value"]) == (trials[1], pytest.approx(before["score"] / 100))
