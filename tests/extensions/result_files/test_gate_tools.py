"""`ci-evals gate` on files that other tools wrote: a run made worse fails, and what broke is named."""

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from gate_command import FILES, run_gate, saved_results

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext


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


def test_only_broken_samples_have_no_verdict_and_two_models_are_refused(gated):
    code, results, _ = gated("head", str(FILES / "inspect/broken.json"))
    assert (code, results["score"]) == (3, None)
    (results,) = (Path(name) for name in files_of("lm-eval/worse/results*"))
    other = json.loads(results.read_text())
    other["config"]["model_args"] = "name=other"
    Path("results.json").write_text(json.dumps(other))
    options = [*files_of("lm-eval/base/*"), "results.json", *files_of("lm-eval/worse/samples*")]
    code, _, message = gated("head", *options)
    assert code == 2
    assert re.search(r"several models: 'dummy', 'dummy name=other'.*gate the files", message)


def test_two_promptfoo_prompts_of_one_file_are_compared(gated):
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
