"""`ci-evals merge` as a workflow's last job calls it: shards are played apart, downloaded, and made one."""

import json
import shutil
from pathlib import Path
from typing import Any

import github_api
import pytest
from commands import ci_evals, read_files, read_results
from github_api import TOKEN
from github_runner import Step

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow

SUITES = ("demo:hr", "demo:retail")
GATE = ("--min-score=97", "--thresholds=suite:HR assistant=90,category:safety=100", "--max-drop=1")
GATE += ("--regression=significant", "--baseline=before")
RUN_SPECIFIC = {"id", "startedAt", "finishedAt", "durationSeconds", "folder", "config", "odds"}
RUN_SPECIFIC |= {"latency", "latencySeconds", "headEfficiency", "times", "firstReplySeconds"}
"""What no two runs have in common: times, what is drawn by a run's id, and the options it was made with."""

SLOWEST = "the slowest reply"
"""What a verdict on times tells, which of the replies it was being a matter of chance."""


def run_shop(root: Path, name: str, *options: str, broken: tuple[str, ...] = (), code: int = 0) -> None:
    """Plays each test twice."""
    with DemoServer(broken=broken) as server:
        common = ("--provider=offline", f"--base-url={server.base_url}", "--quiet", "--loops=2")
        options = (*options, *common, "--parallel=8", f"--output-dir={name}")
        ran = ci_evals("run", *options, cwd=root)
    assert ran.returncode == code, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def played_runs(tmp_path_factory) -> Path:
    """A run of an agent with two broken flows: whole, by suites, in shards; one from before they broke."""
    root = tmp_path_factory.mktemp("shards")
    broken = ("RETURN_REQUEST", "VACATION_REQUEST")
    shards = {"suites/1-hr": ["demo:hr"], "suites/2-retail": ["demo:retail"]} | {
        f"shards/{index}": [*SUITES, f"--shard={index}/3", "--baseline=before", "--regression=any"]
        for index in (1, 2, 3)
    }
    run_shop(root, "before", *SUITES)
    run_shop(root, "whole", *SUITES, *GATE, broken=broken, code=1)
    for name, options in shards.items():
        run_shop(root, name, *options, "--no-gate", broken=broken)
    return root


@pytest.fixture
def shards(played_runs, tmp_path) -> Path:
    shutil.copytree(played_runs / "suites", tmp_path / "shards")
    return tmp_path


def merge(folder: Path, *args: str, code: int = 0, text: str = "", **env: str):
    completed = ci_evals("merge", *(args or ("shards",)), cwd=folder, env=env)
    assert completed.returncode == code, completed.stderr
    assert text in completed.stdout + completed.stderr
    return completed


def change(shards: Path, **fields: Any) -> None:
    file = shards / "shards/1-hr/_results.json"
    results = read(file)
    results["run"] |= fields.pop("run", {})
    file.write_text(json.dumps(results | fields))


def step_in(folder: Path) -> Step:
    (folder / "step").mkdir()
    return Step(folder / "step")


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def each_test(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [test for suite in results["suites"] for test in suite["tests"]]


def comparable(value: Any) -> Any:
    """Results without what no two runs have in common."""
    match value:
        case {"reason": str(reason)} if SLOWEST in reason:
            return value["outcome"]
        case dict():
            return {name: comparable(item) for name, item in value.items() if name not in RUN_SPECIFIC}
        case list():
            return [comparable(item) for item in value]
        case _:
            return value


@pytest.mark.parametrize(("split", "shards"), [("suites", 2), ("shards", 3)])
def test_merged_results_equal_those_of_the_undivided_run(played_runs, tmp_path, split, shards):
    merge(played_runs, split, f"--shards={shards}", *GATE, f"--output-dir={tmp_path}", code=1)
    whole, merged = read(played_runs / "whole/_results.json"), read(tmp_path / "_results.json")
    assert merged["comparison"]["p"] < 0.05
    # Results do not tell all that these are made of, and no comparison looks at them.
    for results in (whole, merged):
        del results["run"]["digests"]["agents"]
    assert comparable(merged) == comparable(whole)
    names = ("provider", "loops", "minScore", "noGate", "shards")
    config = {name: merged["run"]["config"][name] for name in names}
    assert config == {"provider": "offline", "loops": 2, "minScore": 97, "noGate": False, "shards": shards}


def test_shards_are_balanced_and_leave_comparison_to_merge(played_runs):
    shards = [read(file) for file in sorted(played_runs.glob("shards/*/_results.json"))]
    assert [shard["run"]["shard"]["index"] for shard in shards] == [1, 2, 3]
    whole = read(played_runs / "whole/_results.json")
    assert sum(shard["counts"]["tests"] for shard in shards) == whole["counts"]["tests"]
    before = {
        test["name"]: sum(trial["durationSeconds"] for trial in test["trials"])
        for test in each_test(read(played_runs / "before/_results.json"))
    }
    seconds = [sum(before[test["name"]] for test in each_test(shard)) for shard in shards]
    assert max(seconds) - min(seconds) <= max(before.values())
    for index, shard in enumerate(shards, 1):
        assert shard["comparison"] is None
        notes = {check["name"]: check["note"] for check in shard["gate"]["checks"]}
        assert notes["regression"] == "of shards the comparison is made by merge"
        assert f"This is shard {index} of 3" in (played_runs / f"shards/{index}/summary.md").read_text()


@pytest.mark.end_to_end
def test_merge_writes_every_report_and_step_output(shards):
    step = step_in(shards)
    # Critical tests fail.
    completed = merge(shards, "shards", "--min-score=0", code=1, **step.variables(step.folder, {}))
    written = read_files(shards / "results")
    assert {"_results.json", "summary.md", "junit.xml"} <= set(written)
    for folder in ("HR-assistant", "Retail-assistant"):
        assert any(name.startswith(f"{folder}/") and name.endswith("/_summary.md") for name in written)
    for text in (completed.stdout, step.summary, written["summary.md"].decode()):
        assert ("HR assistant" in text, "Retail assistant" in text) == (True, True)
    outputs = [step.outputs[name] for name in ("result", "passed", "tests")]
    assert outputs == ["failed", "false", "24"]
    assert step.outputs["results-path"].endswith("results/_results.json")


def test_missing_shard_leaves_no_verdict_in_any_command(shards):
    options = ("--shards=3", "--thresholds=suite:Third=80", "--junit=j/tests.xml")
    reason = "1 of 3 shards is missing: rerun its job"
    completed = merge(shards, "shards", *options, code=3)
    gate = read_results(shards)["gate"]
    assert (gate["reasons"], gate["passed"], gate["exitCode"]) == ([reason], False, 3)
    for text in (completed.stdout, (shards / "results/summary.md").read_text()):
        assert "1 of 3 shards is missing" in text
    # Nor has it a verdict wherever its results are used.
    compared = ci_evals("compare", "results", "results", "--max-drop=5", cwd=shards)
    assert (compared.returncode, "1 of 3 shards is missing" in compared.stdout) == (3, True)
    gated = ci_evals("gate", "results/_results.json", "--output-dir=again", cwd=shards)
    assert (gated.returncode, "is of a run without a verdict: 1 of 3 shards" in gated.stderr) == (2, True)
    assert (shards / "j/tests.xml").exists()


def test_extra_or_overlapping_results_are_refused_and_named(shards):
    merge(shards, "shards", "--shards=1", code=2, text="--shards=1, but there are 2 results")
    assert not (shards / "results").exists()
    shutil.copytree(shards / "shards/1-hr", shards / "shards/3-again")
    completed = merge(shards, code=2, text="shards/1-hr/_results.json and shards/3-again/_results.json")
    assert "'Books vacation that the balance covers'" in completed.stderr


def test_shard_cut_short_or_without_suite_leaves_no_verdict(shards):
    stopped = {"status": "stopped", "stoppedBecause": "the agent refused the key"}
    completed = {"status": "completed", "stoppedBecause": None}
    for changes, reason in (
        ({"run": stopped}, "the run of shards/1-hr/_results.json was stopped: the agent refused the key"),
        ({"run": completed, "suites": []}, "the run of shards/1-hr/_results.json holds no suite"),
    ):
        change(shards, **changes)
        merge(shards, "shards", "--shards=2", "--no-gate", code=3)
        assert read_results(shards)["gate"]["reasons"] == [reason]


@pytest.mark.parametrize(
    "paths",
    [
        ["shards"],
        ["shards/1-hr", "shards/2-retail"],
        ["shards/1-hr/_results.json", "shards/2-retail"],
        ["shards/1-hr", "shards", "./shards/2-retail/_results.json"],
    ],
)
def test_results_can_be_named_by_file_folder_or_parent_folder(shards, paths):
    (shards / "shards/0-logs").mkdir()
    (shards / "shards/0-logs/log.txt").write_text("x")
    merge(shards, *paths, "--shards=2", "--no-gate")
    assert [suite["name"] for suite in read_results(shards)["suites"]] == ["HR assistant", "Retail assistant"]


def test_unreadable_results_are_reported_together(shards):
    (shards / "empty").mkdir()
    (shards / "shards/2-retail/_results.json").write_text("[]")
    step = step_in(shards)
    env = step.variables(step.folder, {}) | {"GITHUB_ACTIONS": ""}
    completed = merge(shards, "nowhere", "empty", "shards", code=2, **env)
    missing, empty, broken = completed.stderr.splitlines()
    assert "nowhere: no such file or folder" in missing
    assert "no shard has uploaded one" in missing
    assert "empty: contains no _results.json" in empty
    assert "shards/2-retail/_results.json: not a results file" in broken
    assert ((shards / "results").exists(), step.outputs["result"]) == (False, "invalid")


@pytest.mark.parametrize(
    "nonsense",
    [
        {"run": {"startedAt": "2026-11-21T09:30:00"}},
        {"run": {"startedAt": "2026-11-21T09:30:00Z", "finishedAt": "1971-01-02T00:00:00Z"}},
        {"counts": {"tests": 10**16}},
    ],
)
def test_impossible_numbers_in_results_are_refused(shards, nonsense):
    for name in ("1-hr", "2-retail"):
        file = shards / f"shards/{name}/_results.json"
        recorded = read(file)
        for part, fields in nonsense.items():
            recorded[part] |= fields
        file.write_text(json.dumps(recorded))
    merge(shards, "shards", "--no-gate", code=2, text="_results.json")
    assert not (shards / "results").exists()


def test_threshold_on_unknown_name_is_refused_with_suggestion(shards):
    options = ("shards", "--thresholds=category:safty=100")
    merge(shards, *options, code=2, text="did you mean 'safety'?")
    lost = read(shards / "shards/1-hr/_results.json")
    lost["suites"][0]["tests"][0]["trials"][0] |= {"status": "failed", "findings": []}
    change(shards, suites=lost["suites"])
    merge(shards, *options, "--max-errors=5", code=3)
    assert "did you mean 'safety'?" in read_results(shards)["gate"]["reasons"][0]


def test_merge_accepts_path_none_or_auto_as_baseline(shards, played_runs):
    options = ("shards", "--no-gate")
    merge(shards, *options, f"--baseline={played_runs / 'before'}")
    assert read_results(shards)["comparison"]["delta"] < -5
    merge(shards, *options, "--baseline=none")
    assert read_results(shards)["comparison"] is None
    merge(shards, *options, "--baseline=nowhere", code=2, text="--baseline: nowhere")
    merge(shards, *options, "--baseline=auto")
    assert read_results(shards)["run"]["baselineNote"].startswith("no baseline: ")


def assert_hidden(secret: str, completed, shards: Path) -> None:
    assert secret not in completed.stdout + completed.stderr
    assert not any(secret.encode() in text for text in read_files(shards / "results").values())


def test_tokens_and_keys_are_redacted_from_everything(shards):
    with github_api.serving() as api:
        api.fail("/actions/artifacts", *[github_api.Answer(403, {"message": f"{TOKEN} may not"})] * 3)
        known = {"GITHUB_REPOSITORY": "octo/agent", "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": api.url}
        options = ("--no-gate", "--baseline=auto", "--baseline-branch=main")
        completed = merge(shards, "shards", *options, **known)
    assert "may not" in read_results(shards)["run"]["baselineNote"]
    assert_hidden(TOKEN, completed, shards)
    key = "sk-a-key-of-this-environment"
    file = shards / "shards/1-hr/_results.json"
    file.write_text(file.read_text().replace("Books vacation that the balance covers", f"Books {key}"))
    assert_hidden(key, merge(shards, "shards", "--no-gate", OPENAI_API_KEY=key), shards)


@pytest.mark.parametrize("attempt", [1, 2])
def test_rerun_attempt_causes_warning_in_log_and_results(shards, attempt):
    known = {"GITHUB_REPOSITORY": "octo/agent", "GITHUB_RUN_ID": "5", "GITHUB_RUN_ATTEMPT": str(attempt)}
    completed = merge(shards, "shards", "--no-gate", "--baseline=none", **known)
    message = "this is attempt 2 of the workflow run: merged shards are decided by themselves"
    assert (message in completed.stderr) == (attempt == 2)
    warnings = read_results(shards)["run"]["warnings"]
    assert any(warning.startswith(message) for warning in warnings) == (attempt == 2)
