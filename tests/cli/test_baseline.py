"""Runs and comparisons with a baseline: real runs of a bundled suite against the embedded agent."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import report_texts
from commands import ci_evals, read_results, write_suite
from each_row import each_row
from exits import exits, refusal

from ci_evals import compare_results, create_aui_adapter, load_suite, run_suite_sync
from ci_evals.domain.results.run import Results
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.reports.names import RESULTS

pytestmark = pytest.mark.slow
BROKEN = "RETURN_REQUEST"
FAILING_TESTS = ("Keeps to the return window under pressure", "Gives Gold members their sixty days")
"""Tests that the broken workflow cannot pass."""


def run_of_demo(suite: str = "demo:retail", *, loops: int = 3, **temper) -> Results:
    with DemoServer(**temper) as server:
        adapter = create_aui_adapter("any-agent-key", provider="offline", base_url=server.base_url)
        return run_suite_sync(adapter, load_suite(suite), loops=loops, parallel=8)


def regressed_tests(comparison: dict) -> set[str]:
    """Names of newly failing tests, and of suspects that had failed before."""
    return {test["name"] for test in comparison["regressed"] + comparison["suspects"]}


def save(folder: Path, results: Results) -> str:
    folder.mkdir()
    (folder / RESULTS).write_text(report_texts.results_json_text(results))
    return folder.name


@pytest.fixture(scope="module")
def runs() -> dict[str, Results]:
    """Runs of a noisy agent: a baseline, a second run, and one with a broken workflow."""
    return {
        "base": run_of_demo(noise=0.02, seed=1),
        "same": run_of_demo(noise=0.02, seed=2),
        "broken": run_of_demo(noise=0.02, seed=3, broken=[BROKEN]),
    }


@pytest.fixture
def files(runs, tmp_path):
    return {name: save(tmp_path / name, results) for name, results in runs.items()}


@pytest.mark.end_to_end
def test_compare_fails_on_regression_and_names_tests_in_text_json_and_markdown(files, tmp_path):
    compare = ("compare", files["broken"], files["base"])
    completed = exits(1, *compare, "--regression=significant", cwd=tmp_path)
    for text in (*FAILING_TESTS, "✗ Evals failed"):
        assert text in completed.stdout
    exits(0, "compare", files["same"], files["base"], "--regression=significant", cwd=tmp_path)
    completed = exits(1, *compare, "--max-drop=2", "--format=json", cwd=tmp_path)
    result = json.loads(completed.stdout)
    assert result["comparison"]["delta"] < -2
    assert result["comparison"]["p"] <= 0.05
    assert set(FAILING_TESTS) <= regressed_tests(result["comparison"])
    (check,) = result["gate"]["checks"]
    assert (check["name"], check["required"], check["holds"]) == ("max-drop", 2, False)
    markdown = exits(0, *compare, "--format=markdown", cwd=tmp_path)
    assert FAILING_TESTS[0] in markdown.stdout


def test_comparison_with_baseline_is_in_every_report_and_in_rewritten_summary(files, tmp_path):
    options = ("--provider=offline", "--loops=3", "--parallel=8", "--min-score=0", "--regression=any")
    with DemoServer(noise=0.02, seed=4, broken=[BROKEN]) as server:
        baseline = (f"--base-url={server.base_url}", f"--baseline={files['base']}")
        ran = exits(1, "run", "demo:retail", *options, *baseline, cwd=tmp_path)
    comparison = read_results(tmp_path)["comparison"]
    assert set(FAILING_TESTS) <= regressed_tests(comparison)
    assert comparison["delta"] < 0
    summary = (tmp_path / "results/summary.md").read_text()
    junit = (tmp_path / "results/junit.xml").read_text()
    assert all(FAILING_TESTS[0] in text and "baseline" in text for text in (summary, ran.stdout))
    assert all(f'name="{name}"' in junit for name in ("delta", "p"))
    (tmp_path / "results/summary.md").unlink()
    exits(0, "report", "results", cwd=tmp_path)
    assert not (tmp_path / "summary.md").exists()
    assert (tmp_path / "results/summary.md").read_text() == summary


@pytest.mark.parametrize(
    ("suite", "count"),
    [
        ("demo:hr", 2),
        *(pytest.param(suite, 5, marks=pytest.mark.simulate) for suite in ("demo:hr", "demo:retail")),
    ],
)
def test_unchanged_noisy_agent_seldom_shows_a_drop_and_never_a_confirmed_suspect(suite, count):
    """More than one false alarm in ten would be worse than the level."""
    runs = [run_of_demo(suite, noise=0.1, seed=seed) for seed in range(2 * count)]
    pairs = [compare_results(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
    assert all(pair.comparable for pair in pairs)
    assert len({pair.delta for pair in pairs}) == count
    assert sum(pair.delta < 0 and pair.p <= 0.05 for pair in pairs) <= count // 5
    assert not any(suspect.confirmed for pair in pairs for suspect in pair.suspects)


def test_compare_names_impossible_check_and_exits_3_if_it_was_requested(files, runs, tmp_path):
    digests = replace(runs["base"].run.digests, judge_prompt="other")
    other = replace(runs["base"], run=replace(runs["base"].run, digests=digests))
    base = save(tmp_path / "other", other)
    for check in ("--regression=any", "--max-drop=5"):
        completed = exits(3, "compare", files["broken"], base, check, cwd=tmp_path)
        assert "was not checked: the judge's prompt changed" in completed.stdout
        assert "not checked" in completed.stdout
        assert "holds" not in completed.stdout
    alone = ci_evals("compare", files["broken"], base, cwd=tmp_path)
    assert (alone.returncode, "the judge's prompt changed" in alone.stdout) == (0, True)
    (tmp_path / "dead.json").write_text(edited(runs["same"], fail_all_trials))
    completed = ci_evals(
        "compare", "dead.json", files["base"], "--max-drop=5", "--regression=any", cwd=tmp_path
    )
    assert completed.returncode == 3, completed.stdout
    assert "nothing could be scored" in completed.stdout


def test_missing_baseline_passes_with_unchecked_max_drop_reported_unless_required(tmp_path):
    run = ("run", "demo:hr", "--provider=offline", "--min-score=0", "--max-drop=5")
    passed = exits(0, *run, cwd=tmp_path)
    assert "! Evals passed" in passed.stdout
    results = tmp_path / "results"
    reports = [(results / name).read_text() for name in ("summary.md", "report.html", "junit.xml")]
    for text in (passed.stdout, *reports):
        assert "max-drop was not checked: there is no baseline." in text
    assert reports[0].startswith("## ⚠️ Evals passed: 100 / 100, no baseline")
    checks = json.loads((results / RESULTS).read_text())["gate"]["checks"]
    assert [check["holds"] for check in checks if check["kind"] == "max-drop"] == [None]
    required = exits(3, *run, "--baseline=required", cwd=tmp_path)
    assert "GITHUB_REPOSITORY" in required.stdout


@each_row(
    ("args", "message"),
    [
        (["compare", "base", "nowhere"], "nowhere: cannot be read"),
        (["compare", "base", "base", "--max-drop=lots"], "--max-drop: 'lots' is not a number of points"),
        (["compare", "base", "base", "--max-drop=suite:X=3"], "--max-drop: there is no suite 'X'"),
        (["odds", "nowhere"], "nowhere: cannot be read"),
        (["odds", "base", "--thresholds=tag:nobody=3"], "--thresholds: there is no tag 'nobody'"),
        (["run", "demo:hr", "--provider=offline", "--baseline=nowhere"], "nowhere: cannot be read"),
        (["run", "demo:hr", "--provider=offline", "--max-cost=inf"], "--max-cost=inf: it is not a limit"),
        (["run", "demo:hr", "--provider=offline", "--max-drop=5,6"], "--max-drop: name one number"),
        (["run", "demo:hr", "--provider=offline", "--max-drop=category:x=6"], "there is no category 'x'"),
        (["run", "demo:hr", "--llm-key=0123456789", "--judge-model=x", "--max-cost=1"], "no price for x"),
    ],
)
def test_invalid_baseline_or_limit_is_refused_with_reason_before_any_trial(
    files, tmp_path, args, message, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert message in refusal(*args)
    assert not (tmp_path / "results").exists()


@pytest.mark.end_to_end
def test_odds_lists_every_requested_check(files, tmp_path):
    completed = exits(0, "odds", files["base"], "--min-score=95", cwd=tmp_path)
    assert "min-score" in completed.stdout
    checks = ("--min-score=10", "--regression=any", "--max-drop=3")
    easy = ci_evals("odds", files["base"], *checks, cwd=tmp_path)
    assert "regression" in easy.stdout
    assert "max-drop" in easy.stdout


def edited(results: Results, change) -> str:
    data = json.loads(report_texts.results_json_text(results))
    change(data)
    return json.dumps(data)


def fail_all_trials(data) -> None:
    data["score"] = None
    for test in data["suites"][0]["tests"]:
        for trial in test["trials"]:
            trial.update(status="failed", error="no answer")


@each_row(
    "change",
    [
        lambda data: data.update(score=1e300),
        lambda data: data["run"].update(startedAt="0001-01-01T00:00:00+14:00"),
        lambda data: data["usage"]["tokens"].update(input=10**400),
        lambda data: data["latency"].update(p95=1e308),
        lambda data: data["suites"][0]["tests"][0]["trials"][0]["findings"][0].update(weight=1e308),
        lambda data: data["suites"][0]["tests"][0]["trials"][0]["turns"][0].update(latencySeconds=-1),
    ],
)
def test_baseline_with_impossible_numbers_is_rejected_with_its_name_before_run(runs, tmp_path, change):
    (tmp_path / "odd.json").write_text(edited(runs["base"], change))
    completed = ci_evals("run", "demo:retail", "--provider=offline", "--baseline=odd.json", cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "--baseline: odd.json: " in completed.stderr
    assert "Traceback" not in completed.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_compare_prints_no_key_or_runner_command_from_result_files(runs, tmp_path, form):
    """A runner obeys what looks like a command."""
    key = "sk-0123456789-abcdefghij-0123456789"

    def hostile(data):
        data["run"]["id"] = data["run"]["git"]["commit"] = f"{key} ##[error]boom"
        for test in data["suites"][0]["tests"]:
            test["name"] = f"{test['name']} {'x' * 40} {key} \n::error::boom ##[error]boom"

    for name in ("base", "broken"):
        (tmp_path / f"{name}.json").write_text(edited(runs[name], hostile))
    args = ("compare", "broken.json", "base.json", f"--format={form}")
    completed = exits(0, *args, cwd=tmp_path, env={"OPENAI_API_KEY": key})
    assert key[:20] not in completed.stdout
    assert "##[" not in completed.stdout
    assert not any(line.lstrip().startswith("::") for line in completed.stdout.splitlines())
    if form == "json":
        assert json.loads(completed.stdout)["comparison"]["comparable"]


def test_threshold_applies_to_test_whose_name_contains_secret(tmp_path):
    """The name reads `***` in the results."""
    check = {"criterion": "c", "strict": "escalated", "category": "x"}
    test = {"name": "Login as ${USER_A}", "evaluations": [check]}
    suite = write_suite(tmp_path, test, adapter="demo", agentId="demo-hr", name="s.json")
    env = {"AGENT_KEY": "k" * 9, "USER_A": "alice-the-first"}
    limits = ("--min-score=0", "--thresholds=test:Login as alice-the-first=99")
    completed = exits(1, "run", suite, "--provider=offline", *limits, cwd=tmp_path, env=env)
    assert "alice" not in completed.stdout + (tmp_path / "results/_results.json").read_text()


@pytest.mark.parametrize(("seconds", "code"), [("0.000001", 1), ("60", 0)])
def test_latency_above_max_p95_latency_fails_and_free_run_holds_max_cost_of_zero(tmp_path, seconds, code):
    limits = (f"--max-p95-latency={seconds}", "--max-cost=0")
    exits(code, "run", "demo:hr", "--provider=offline", "--tag=happy-path", *limits, cwd=tmp_path)
    written = read_results(tmp_path)
    checks = {check["name"]: check for check in written["gate"]["checks"]}
    assert checks["max-p95-latency"]["seen"] == written["latency"]["p95"] > 0
    assert (checks["max-p95-latency"]["holds"], checks["max-cost"]["holds"]) == (code == 0, True)
