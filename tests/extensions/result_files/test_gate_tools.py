"""`ci-evals gate` on files that other tools wrote: a run made worse fails, and what broke is named."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

FILES = Path(__file__).parent / "files"
LENIENT = ("--min-score=0", "--max-errors=50")


def gated(folder: str, *options: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        invoke(
            ["gate", *options, *LENIENT, f"--output-dir={folder}"], RunContext({"PATH": os.environ["PATH"]})
        )
    assert isinstance(ended.value.code, int)
    return ended.value.code, json.loads(Path(folder, "_results.json").read_text())


def files(pattern: str) -> list[str]:
    found = sorted(str(path) for path in FILES.glob(pattern))
    assert found
    return found


@pytest.mark.parametrize(
    ("base", "worse", "options", "broken"),
    [
        ("inspect/numbers.eval", "inspect/worse.eval", [], []),  # `two` failed once before
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
    ],
)
def test_a_worse_run_of_a_tool_fails_the_gate(base, worse, options, broken, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, before = gated("main", *files(base), *options)
    assert code == 0
    code, results = gated("head", *files(worse), *options, "--baseline=main", "--max-drop=0")
    assert code == 1
    assert results["score"] < before["score"]
    if broken is not None:
        assert sorted(test["name"] for test in results["comparison"]["regressed"]) == broken
        page = Path("head/summary.md").read_text()
        assert all(name.replace("_", "") in page.replace("\\", "").replace("_", "") for name in broken)


def test_samples_that_all_broke_leave_no_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, results = gated("head", str(FILES / "inspect/broken.json"))
    assert (code, results["score"]) == (3, None)


def test_two_prompts_of_one_file_are_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arms = ("--arm=base · polite", "--baseline-arm=base · plain")
    code, results = gated("head", str(FILES / "promptfoo/shop.json"), *arms, "--regression=any")
    assert code == 1
    assert [test["name"] for test in results["comparison"]["regressed"]] == ["shipping"]
    assert (
        "Official score: passed 33.3 % of 6. Ours is 25.0. A row that broke counts" in capsys.readouterr().out
    )


def test_samples_of_two_models_of_lm_eval_are_not_mixed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (results,) = (Path(name) for name in files("lm-eval/worse/results*"))
    other = json.loads(results.read_text())
    other["config"]["model_args"] = "name=other"
    Path("results.json").write_text(json.dumps(other))
    options = [*files("lm-eval/base/*"), "results.json", *files("lm-eval/worse/samples*")]
    with pytest.raises(UsageError, match=r"several models: 'dummy', 'dummy name=other'.*gate the files"):
        gated("head", *options)


def test_pass_hat_k_is_not_called_pass_at_k(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    gated("head", str(FILES / "tau2/base.json"))
    assert "pass^1 68.3 % of 5 (pass^1 68.3 %, pass^2 46.6 %, pass^3 30.0 %)" in capsys.readouterr().out


def test_records_of_every_eval_ever_that_a_report_writes_can_be_gated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _, before = gated("main", str(FILES / "tau2/base.json"))
    with suppress(SystemExit):
        invoke(["report", "main", "--format=eee"], RunContext({"PATH": os.environ["PATH"]}))
    code, after = gated("head", *map(str, Path("main/eee").rglob("*.json*")))
    assert code == 0
    assert after["score"] == before["score"]
    trials = [
        [trial["score"] for test in run["suites"][0]["tests"] for trial in test["trials"]]
        for run in (before, after)
    ]
    assert trials[0] == trials[1]
    assert after["official"]["value"] == pytest.approx(before["score"] / 100)
