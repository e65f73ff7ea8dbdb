"""`--against`: the base agent runs in the same run, and the gate compares both."""

import json
from pathlib import Path

import pytest
from commands import ci_evals, read_results, start
from refusals import refusal

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow
BROKEN = "RETURN_REQUEST"
OFFLINE = ("--provider=offline", "--regression=significant", "--parallel=8", "--min-score=0")
ALWAYS = (*OFFLINE, "--both-sides=always")
KEYS = {"CI_EVALS_AGENT_KEY": "the-key-of-the-head"}
BASE_KEY = "the-key-of-the-base-agent"


def run_both_sides(folder: Path, head: DemoServer, base: str, *more: str):
    options = (f"--base-url={head.base_url}", f"--against=base-url={base}\nagent-key={BASE_KEY}")
    return ci_evals("run", "demo:retail", *ALWAYS, *options, *more, cwd=folder, env=KEYS)


def test_both_agents_run_are_compared_and_replayed_from_recording(tmp_path):
    with DemoServer(noise=0.05, seed=1) as head, DemoServer(noise=0.05, seed=2) as base:
        ran = run_both_sides(tmp_path, head, base.base_url, "--loops=2", "--record=recorded")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    comparison = results["comparison"]
    assert comparison["method"] == "both-sides"
    assert comparison["tests"] == len(results["suites"][0]["tests"])
    assert [arm["name"] for arm in results["arms"]] == ["head", "base"]
    head_arm, base_arm = results["arms"]
    assert (head_arm["suites"], head_arm["score"]) == ([], results["score"])
    assert base_arm["counts"]["trials"] == results["counts"]["trials"] == 2 * comparison["tests"]
    assert comparison["baseline"]["score"] == base_arm["score"]
    assert BASE_KEY not in json.dumps(results)
    options = (*ALWAYS, f"--against=base-url={base.base_url}", "--loops=2", "--replay=recorded")
    again = ci_evals("run", "demo:retail", *options, cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    replayed = read_results(tmp_path)
    assert [arm["score"] for arm in replayed["arms"]] == [head_arm["score"], base_arm["score"]]
    assert replayed["comparison"]["delta"] == comparison["delta"]


def test_rounds_with_base_agent_always_have_3_5_and_7_trials(tmp_path):
    """Whatever numbers are given: the limits are those of 3, 5 and 7 trials a side."""
    with DemoServer() as head, DemoServer() as base:
        ran = run_both_sides(tmp_path, head, base.base_url, "--rounds=2,5")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert results["run"]["rounds"] == {"looks": [3, 5, 7], "played": 3}
    (look,) = results["comparison"]["looks"]
    assert (look["trials"], look["decision"]) == (3, "pass")
    assert {arm["counts"]["trials"] for arm in results["arms"]} == {3 * results["counts"]["tests"]}
    completed = ci_evals("odds", "results", cwd=tmp_path)
    assert "Such a run has 6 to 14 trials of each test, those of the base agent included." in completed.stdout


def test_broken_head_fails_and_broken_base_does_not(tmp_path):
    with DemoServer(noise=0.02, seed=1, broken=[BROKEN]) as broken, DemoServer(noise=0.02, seed=2) as good:
        ran = run_both_sides(tmp_path, broken, good.base_url, "--loops=5")
        assert ran.returncode == 1, ran.stdout + ran.stderr
        assert read_results(tmp_path)["comparison"]["p"] <= 0.05
        ran = run_both_sides(tmp_path, good, broken.base_url, "--loops=1")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert read_results(tmp_path)["comparison"]["delta"] > 0


def test_unreachable_base_agent_gives_no_verdict_unless_fail_fast_ends_run_first(tmp_path):
    for options in ([], ["--fail-fast"]):
        with DemoServer() as head:
            ran = run_both_sides(tmp_path, head, "http://127.0.0.1:9", "--retries=0", *options)
        assert ran.returncode == 3, ran.stdout + ran.stderr
        gate = read_results(tmp_path)["gate"]
        assert gate["passed"] is False
        assert "the agent at 127.0.0.1:9 could not be reached" in gate["reasons"][0]
    with DemoServer(broken=[BROKEN]) as head, DemoServer() as base:
        ran = run_both_sides(tmp_path, head, base.base_url, "--fail-fast", "--parallel=1")
    assert ran.returncode == 1, ran.stdout + ran.stderr


def test_invalid_base_agent_is_rejected_before_run(tmp_path, monkeypatch):
    ran = ci_evals("run", "demo:retail", *ALWAYS, cwd=tmp_path)
    assert (ran.returncode, "Name one with --against." in ran.stderr) == (2, True)
    monkeypatch.chdir(tmp_path)
    for against, message in (
        ("", "names no agent"),
        ("base-url", "not of the form OPTION=VALUE"),
        ("colour=red", "'colour' is unknown"),
        ("agent-id=a\nagent-id=b", "agent-id is given twice"),
        ("adapter=nothing", "--against: --adapter: 'nothing'"),
        ("adapter-options=missing.yaml", "missing.yaml cannot be read"),
        ("agent-headers=Nonsense", "not of the form NAME: VALUE"),
        ("adapter=http", "baseUrl"),
    ):
        assert message in refusal("run", "demo:hr", "--provider=offline", f"--against={against}")
    assert not (tmp_path / "results").exists()


def test_killed_run_with_base_agent_is_resumed(tmp_path):
    with DemoServer() as head, DemoServer() as base:
        options = [*ALWAYS, f"--base-url={head.base_url}", f"--against=base-url={base.base_url}", "--loops=6"]
        process = start("run", "demo:retail", *options, cwd=tmp_path, env=KEYS)
        for line in process.stderr:
            if line.startswith("[20/"):
                break
        process.kill()
        process.communicate()
        ran = ci_evals("run", "demo:retail", *options, "--resume=results", cwd=tmp_path, env=KEYS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert results["run"]["resumed"]["trials"] >= 20
    assert results["arms"][1]["counts"]["trials"] == results["counts"]["trials"]


def test_shards_of_both_sides_are_merged_unless_one_lacks_the_base_agent(tmp_path):
    """The comparison would be of a part of the tests."""
    with DemoServer(noise=0.05, seed=1) as head, DemoServer(noise=0.05, seed=2) as base:
        for part in (1, 2):
            own = (f"--shard={part}/2", "--loops=2", "--no-gate", f"--output-dir=part{part}")
            ran = run_both_sides(tmp_path, head, base.base_url, *own)
            assert ran.returncode == 0, ran.stdout + ran.stderr
        other = (*OFFLINE, "--shard=2/2", "--loops=2", "--output-dir=bare", f"--base-url={head.base_url}")
        assert ci_evals("run", "demo:retail", *other, cwd=tmp_path, env=KEYS).returncode == 0
    bare = ci_evals("merge", "part1", "bare", "--min-score=0", cwd=tmp_path)
    assert bare.returncode == 3, bare.stdout + bare.stderr
    assert "the agent 'base' was not played in bare" in bare.stdout
    options = ("--regression=significant", "--min-score=0", "--output-dir=whole")
    merged = ci_evals("merge", "part1", "part2", *options, cwd=tmp_path)
    assert merged.returncode == 0, merged.stdout + merged.stderr
    results = json.loads((tmp_path / "whole/_results.json").read_text())
    assert results["comparison"]["method"] == "both-sides"
    assert results["comparison"]["tests"] == results["counts"]["tests"]
    assert f"of {results['counts']['tests']} tests" in ran.stderr  # those of the base agent are no others
    head_arm, base_arm = results["arms"]
    assert base_arm["counts"]["trials"] == head_arm["counts"]["trials"] == 2 * results["counts"]["tests"]
