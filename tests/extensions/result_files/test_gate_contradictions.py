"""`ci-evals gate` on files that contradict themselves or each other: no verdict, and why.

Each row of a table changes a file that a tool wrote. Add a row for another way.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import ci_evals

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

FILES = Path(__file__).parent / "files"
ANSWERS = f"--answers={FILES / 'gaia/metadata.jsonl'}"
Change = Callable[[Any], None]


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Gate files without any floor; return the exit code and what is printed."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str) -> tuple[int, str]:
        with pytest.raises((SystemExit, UsageError)) as ended:
            invoke(["gate", *options, "--min-score=0"], RunContext({"PATH": os.environ["PATH"]}))
        printed = "".join(capsys.readouterr())
        if isinstance(ended.value, UsageError):
            return 2, str(ended.value)
        assert isinstance(ended.value.code, int)
        return ended.value.code, printed

    return run


def put(*keys: Any, value: Any) -> Change:
    """Set the value at a place of a document."""

    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def drop(*keys: Any) -> Change:
    """Remove what is at a place of a document."""

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


ARM = "--arm=base · plain"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("inspect/numbers.json", put("status", value="started"), "status is 'started'"),
        ("inspect/numbers.json", put("status", value="error"), "status is 'error'"),
        ("inspect/numbers.json", drop("samples", 0), "never began"),
        ("inspect/numbers.json", put("eval", "config", "epochs", value=4), "results.total_samples is 12"),
        ("inspect/numbers.json", put("results", "total_samples", value=99), "results.total_samples is 99"),
        ("inspect/numbers.json", put("results", "completed_samples", value=2), "completed_samples is 2"),
        ("promptfoo/shop.json", put("results", "stats", "failures", value=99), "stats.failures is 99"),
        ("promptfoo/shop.json", put("results", "stats", "successes", value=1), "stats.successes is 1"),
        ("promptfoo/shop.json", put("results", "stats", "errors", value=9), "results.stats.errors is 9"),
        ("promptfoo/shop.json", drop("results", "results", 0), "results.stats"),
        (
            "promptfoo/shop.json",
            put("results", "prompts", 0, "metrics", "testFailCount", value=7),
            "results.prompts[0].metrics.testFailCount is 7",
        ),
        ("deepeval/shop.json", put("testFailed", value=99), "testFailed is 99"),
        ("deepeval/shop.json", put("testPassed", value=1), "testPassed is 1"),
        ("deepeval/shop.json", drop("testCases", 0), "testPassed is 2"),
        ("deepeval/shop.json", put("metricsScores", 0, "fails", value=5), "metricsScores[0].fails is 5"),
        ("swe-bench/demo__agent.base.json", put("total_instances", value=300), "total_instances is 300"),
        ("swe-bench/demo__agent.base.json", put("resolved_instances", value=9), "resolved_instances is 9"),
        ("swe-bench/demo__agent.base.json", put("resolved_ids", 0, value="x__y-1"), "demo__shop-1"),
        ("swe-bench/demo__agent.base.json", drop("unresolved_ids", 0), "unresolved_instances is 2"),
        ("swe-bench/demo__agent.base.json", drop("submitted_ids", 0), "submitted_instances is 9"),
        ("tau2/base.json", drop("simulations", 0), "info.num_trials is 4, and task '0' has 3 simulations"),
        ("tau2/base.json", drop("tasks", 0), "such as '0'"),
        ("tau2/base.json", put("info", "num_trials", value=9), "info.num_trials is 9"),
    ],
)
def test_a_total_that_the_rows_contradict_leaves_no_verdict(gate, name, change, message):
    options = [ARM] if name.startswith("promptfoo") else []
    code, printed = gate(changed(name, change), "--max-errors=50", *options)
    assert (code, message in printed) == (3, True), printed


UNCERTAINTY = ("evaluation_results", 0, "score_details", "uncertainty")
LM_EVAL = "lm-eval/base/{}_2026-11-24T01-43-08.674653"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        # lm-eval: a document, or a whole task, is missing.
        (
            [(LM_EVAL.format("results") + ".json", None)],
            "n-samples.shop_choice.effective is 6, and no file has the rows of 'shop_choice'",
        ),
        (
            [
                (LM_EVAL.format("results") + ".json", None),
                (LM_EVAL.format("samples_shop_words") + ".jsonl", None),
                (LM_EVAL.format("samples_shop_choice") + ".jsonl", drop(0)),
            ],
            "n-samples.shop_choice.effective is 6, and the files have 5 tests of 'shop_choice'",
        ),
        (
            [
                (LM_EVAL.format("results") + ".json", put("results", "shop_choice", "acc,none", value=0.1)),
                (LM_EVAL.format("samples_shop_words") + ".jsonl", None),
                (LM_EVAL.format("samples_shop_choice") + ".jsonl", None),
            ],
            "the stated score is 0.100, and the rows of 'shop_choice' have 0.500",
        ),
        # Every Eval Ever: the aggregate.
        (
            [("eee/stable/refunds.json", None), ("eee/stable/refunds_samples.jsonl", drop(0))],
            "rows are stated, and the files have",
        ),
        (
            [
                ("eee/stable/refunds.json", put(*UNCERTAINTY, "num_samples", value=100)),
                ("eee/stable/refunds_samples.jsonl", None),
            ],
            "num_samples is 100, and the files have 3 tests",
        ),
        (
            [
                ("eee/stable/refunds.json", put(*UNCERTAINTY[:-1], "score", value=0.03)),
                ("eee/stable/refunds_samples.jsonl", None),
            ],
            "the stated score is 0.030",
        ),
        # WebArena-Verified: the summary of the batch.
        (
            [(f"webarena-verified/base/{name}.json", None) for name in ("eval_results", "1/eval_result")],
            "summary.overall.total is 5, and the files have 1 tests",
        ),
    ],
)
def test_a_total_in_another_file_that_the_rows_contradict_leaves_no_verdict(gate, files, message):
    names = [changed(name, *([change] if change else [])) for name, change in files]
    code, printed = gate(*names, "--max-errors=50")
    if code == 2:  # the summary alone
        assert "no rows" in printed
    else:
        assert (code, message in printed) == (3, True), printed


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("inspect/numbers.json", put("samples", 0, "error", value={"message": "gone"})),
        ("promptfoo/shop.json", put("results", "results", 3, "gradingResult", "pass", value=False)),
        ("promptfoo/shop.json", put("results", "results", 3, "failureReason", value=1)),
        ("promptfoo/shop.json", put("results", "results", 3, "error", value="it broke")),
        ("tau2/base.json", put("simulations", 0, "termination_reason", value="agent_error")),
        ("tau2/base.json", put("simulations", 0, "termination_reason", value="timeout")),
        ("webarena-verified/base/1/eval_result.json", put("score", value=0.0)),
        ("webarena-verified/base/1/eval_result.json", put("error_msg", value="it broke")),
        (
            "webarena-verified/base/1/eval_result.json",
            put("evaluators_results", 0, "status", value="failure"),
        ),
        ("swe-bench/report-1.json", put("demo__shop-1", "patch_successfully_applied", value=False)),
        ("swe-bench/report-1.json", put("demo__shop-1", "patch_exists", value=False)),
        (
            "swe-bench/report-1.json",
            put("demo__shop-1", "tests_status", value={"FAIL_TO_PASS": {"failure": ["t"]}}),
        ),
        (
            "agentbench/base/demo-agent/dbbench-std/runs.jsonl",
            put(0, "output", "result", "error", value="it broke"),
        ),
        ("gaia/base.jsonl", drop(0)),
    ],
)
def test_a_row_that_contradicts_itself_or_is_missing_is_no_pass(gate, name, change):
    options = [ANSWERS] if name.startswith("gaia") else []
    document = changed(name, change)
    if name.startswith("promptfoo"):
        row = json.loads(Path(document).read_text())["results"]["results"][3]
        assert row["success"] is True
        options = [f"--arm={row['provider']['label']} · {row['prompt']['label']}"]
    gate(str(FILES / name), "--max-errors=0", "--output-dir=before", *options)
    errors = json.loads(Path("before/_results.json").read_text())["counts"]["errors"]
    gate(document, *options)
    assert json.loads(Path("results/_results.json").read_text())["counts"]["errors"] == errors + 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[{"test": "a", "passed": false, "passed": true}]', "has the key [0].passed twice"),
        ('[{"test": "a", "passed": true}, {"test": "b", "test": "c", "passed": true}]', "[1].test twice"),
        (
            '{"test": "b", "passed": true}\n{"test": "a", "passed": false, "passed": true}',
            "line 2 has the key passed twice",
        ),
        (
            '[{"test": "a", "passed" : false, "x": {"y": "\\\\", "y": 1}, "passed" : true}]',
            "[0].passed twice",
        ),
        ('[{"test": "a", "x": {"y": "\\\\", "y": 1}, "passed" : true}]', "[0].x.y twice"),
        ('[{"test": "a", "passed": true, "p\\u0061ssed": true}]', "[0].passed twice"),
    ],
)
def test_a_key_that_is_there_twice_leaves_no_verdict(gate, text, place):
    Path("rows.json").write_text(text)
    code, printed = gate("rows.json")
    assert (code, place in printed) == (3, True), printed


@pytest.mark.parametrize(
    "text",
    [
        '[{"test": "a", "reason": "\\"passed\\": true, \\"passed\\": 1", "passed": true}]',
        '[{"test" : "a", "reason" : "C:\\\\", "passed" : true}]',
        '[{"test": "a", "passed": true, "x": {"test": 1}}, {"test": "b", "passed": true}]',
    ],
)
def test_equal_keys_of_two_objects_or_in_a_text_are_not_twice(gate, text):
    Path("rows.json").write_text(text)
    assert gate("rows.json")[0] == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("junit/gradle.xml", lambda text: text),
        ("junit/gradle.xml", lambda text: text.replace("\n", "\n\n")),
        ("deepeval/shop.json", lambda text: text),
        ("deepeval/shop.json", lambda text: json.dumps(json.loads(text), indent=1)),
        # Another version of one run, which its id names.
        ("inspect/stable.eval", None),
        ("tau2/base.json", lambda text: text.replace('"duration": ', '"duration": 1')),
        ("promptfoo/shop.json", (FILES / "promptfoo/shop.jsonl").read_text()),
        ("promptfoo/shop.json", lambda text: text.replace('"latencyMs": ', '"latencyMs": 1')),
        ("eee/stable/refunds_samples.jsonl", lambda text: text.replace('"latency_ms": ', '"latency_ms": 1')),
    ],
)
def test_one_run_under_two_names_leaves_no_verdict(gate, first, second):
    source = FILES / first
    copy = Path("copy.jsonl" if isinstance(second, str) else f"copy{source.suffix}")
    if second is None:
        copy.write_bytes(source.read_bytes())
    else:
        copy.write_text(second if isinstance(second, str) else second(source.read_text()))
    options = [ARM] if first.startswith("promptfoo") else []
    code, printed = gate(str(source), str(copy), "--max-errors=50", *options)
    assert (code, "Name each run once" in printed) == (3, True), printed


@pytest.mark.slow
def test_results_of_ours_given_twice_leave_no_verdict(gate, tmp_path):
    assert (
        ci_evals("run", "demo:hr", "--provider=offline", "--no-gate", "--quiet", cwd=tmp_path).returncode == 0
    )
    results = json.loads(Path("results/_results.json").read_text())
    Path("again.json").write_text(json.dumps(results | {"odds": None}))
    code, printed = gate("results/_results.json", "again.json", "--output-dir=out", "--max-errors=999")
    assert (code, "has the same run as results/_results.json" in printed) == (3, True)


def test_results_of_one_test_in_two_folders_are_trials(gate):
    """Tools that write a file for each result give all of them one name, and no time."""
    for folder in "ab":
        Path(folder).mkdir()
        shutil.copy(FILES / "webarena-verified/base/1/eval_result.json", folder)
    assert gate("a/eval_result.json", "b/eval_result.json")[0] == 0


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


@pytest.mark.parametrize(
    ("metric", "higher", "expected"),
    [
        ("acc", True, [True, False, False]),
        ("acc", None, [True, False, False]),
        ("toxicity", True, [True, False, False]),
        ("toxicity", False, [False, True, False]),
        ("acc", False, [False, True, False]),
        ("ter", None, [False, True, False]),
        ("brier_score", False, [False, True, False]),
    ],
)
def test_a_metric_of_which_a_lower_score_is_better_is_read_right(gate, metric, higher, expected):
    code, printed = gate(*lm_eval(metric, 1, 0, 0.25, higher=higher))
    assert code == 0, printed
    (suite,) = json.loads(Path("results/_results.json").read_text())["suites"]
    assert [test["passed"] for test in suite["tests"]] == expected
    scores = [100, 0, 25] if expected[0] else [0, 100, 75]
    assert [test["score"] for test in suite["tests"]] == pytest.approx(scores)


def test_a_metric_whose_direction_nobody_states_leaves_no_verdict(gate):
    code, printed = gate(*lm_eval("toxicity", 1, 1))
    assert (code, "it is not known whether a higher one is better" in printed) == (3, True)


@pytest.mark.parametrize("lower", [True, False])
def test_the_direction_of_every_eval_ever_is_in_its_aggregate(gate, lower):
    change = put("evaluation_results", 0, "metric_config", "lower_is_better", value=lower)
    names = [changed("eee/stable/refunds.json", change), changed("eee/stable/refunds_samples.jsonl")]
    gate(*names)
    (suite,) = json.loads(Path("results/_results.json").read_text())["suites"]
    assert {test["passed"] for test in suite["tests"]} == {not lower}


def test_an_official_score_without_a_denominator_states_none(gate):
    """Older logs of Inspect do not have it; it is the number of samples with a score."""
    old = changed("inspect/numbers.json", *(drop("results", "scores", i, "scored_samples") for i in (0, 1)))
    code, printed = gate(old, "--max-errors=9")
    assert "of 0" not in printed
    assert "Official score: accuracy 66.6 % of 4" in printed
    none = changed("deepeval/shop.json", drop("testPassed"), drop("testFailed"))
    code, printed = gate(none, "--max-errors=9")
    assert code == 0
    assert "none of" not in printed
    assert "of 0" not in printed


def test_a_baseline_that_contradicts_itself_compares_with_nothing(gate):
    wrong = changed("deepeval/worse.json", put("testFailed", value=99))
    head = str(FILES / "deepeval/shop.json")
    code, printed = gate(head, f"--baseline={wrong}", "--max-drop=0", "--max-errors=9")
    assert code == 3
    assert (
        "max-drop was not checked: the baseline contradicts itself: worse.json: testFailed is 99" in printed
    )


def test_a_contradiction_is_in_every_report(gate):
    gate(changed("deepeval/shop.json", put("testFailed", value=99)), "--max-errors=9")
    results = json.loads(Path("results/_results.json").read_text())
    assert results["gate"]["exitCode"] == 3
    assert any("testFailed is 99" in reason for reason in results["gate"]["reasons"])
    for name in ("summary.md", "report.html"):
        assert "testFailed is 99" in Path("results", name).read_text()


def bias(*metrics: tuple[float, bool]) -> list[dict[str, Any]]:
    """Return test cases with a metric that has such scores and verdicts."""
    return [
        {
            "name": f"t{i}",
            "input": "q",
            "success": passed,
            "metricsData": [{"name": "Bias", "threshold": 0.5, "score": score, "success": passed}],
        }
        for i, (score, passed) in enumerate(metrics)
    ]


@pytest.mark.parametrize(
    ("metrics", "code", "scores"),
    [
        ([(0.9, True), (0.2, False)], 0, [90, 20]),
        ([(0.0, True), (1.0, False), (0.5, True)], 0, [100, 0, 50]),  # lower is better
        ([(0.0, True)], 0, [100]),
        ([(0.9, True), (0.2, True)], 3, None),  # who knows
    ],
)
def test_a_metric_of_deepeval_that_passes_below_its_threshold_is_read_right(gate, metrics, code, scores):
    run = {"testCases": bias(*metrics), "metricsScores": []}
    Path("run.json").write_text(json.dumps(run))
    assert gate("run.json")[0] == code
    (suite,) = json.loads(Path("results/_results.json").read_text())["suites"]
    if scores:
        assert [test["score"] for test in suite["tests"]] == pytest.approx(scores)


def test_a_full_score_of_what_failed_is_worth_nothing(gate):
    Path("rows.csv").write_text("test,passed,score\na,false,1\nb,true,1\n")
    gate("rows.csv")
    assert json.loads(Path("results/_results.json").read_text())["score"] == 50


def test_one_run_of_deepeval_in_two_shapes_leaves_no_verdict(gate):
    run = json.loads((FILES / "deepeval/shop.json").read_text())
    Path("latest.json").write_text(json.dumps({"testRunData": run}))
    code, printed = gate(str(FILES / "deepeval/shop.json"), "latest.json", "--max-errors=9")
    assert (code, "has the same run as" in printed) == (3, True)
