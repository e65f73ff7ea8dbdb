"""`--against`: the base agent is played in the same run, and the gate compares both."""

import json
from pathlib import Path

import pytest
from commands import ci_evals, read_results, start

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow

BROKEN = "RETURN_REQUEST"
OFFLINE = ("--provider=offline", "--regression=significant", "--parallel=8", "--min-score=0")
ALWAYS = (*OFFLINE, "--both-sides=always")
KEYS = {"CI_EVALS_AGENT_KEY": "the-key-of-the-head"}
BASE_KEY = "the-key-of-the-base-agent"


def play(folder: Path, head: DemoServer, base: str, *more: str):
    options = (f"--base-url={head.base_url}", f"--against=base-url={base}\nagent-key={BASE_KEY}")
    return ci_evals("run", "demo:retail", *ALWAYS, *options, *more, cwd=folder, env=KEYS)


def test_both_are_played_and_compared(tmp_path):
    """An unchanged agent passes, and the base's conversations stand in the results."""
    with DemoServer(noise=0.02, seed=1) as head, DemoServer(noise=0.02, seed=2) as base:
        ran = play(tmp_path, head, base.base_url, "--loops=3")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    comparison = results["comparison"]
    assert comparison["method"] == "both-sides"
    assert comparison["tests"] == len(results["suites"][0]["tests"])
    assert [arm["name"] for arm in results["arms"]] == ["head", "base"]
    head_arm, base_arm = results["arms"]
    assert head_arm["suites"] == []
    assert head_arm["score"] == results["score"]
    assert base_arm["counts"]["trials"] == results["counts"]["trials"] == 3 * comparison["tests"]
    assert comparison["baseline"]["score"] == base_arm["score"]
    assert BASE_KEY not in json.dumps(results)


def test_both_sides_are_looked_at_after_three_trials_each(tmp_path):
    """Whatever numbers are asked for: the limits are those of 3, 5 and 7 trials a side."""
    with DemoServer() as head, DemoServer() as base:
        ran = play(tmp_path, head, base.base_url, "--rounds=2,5")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert results["run"]["rounds"] == {"looks": [3, 5, 7], "played": 3}
    (look,) = results["comparison"]["looks"]
    assert (look["trials"], look["decision"]) == (3, "pass")
    assert {arm["counts"]["trials"] for arm in results["arms"]} == {3 * results["counts"]["tests"]}
    completed = ci_evals("odds", "results", cwd=tmp_path)
    assert "Such a run has 6 to 14 trials of each test, those of the base agent included." in completed.stdout


def test_a_broken_head_fails(tmp_path):
    """The gate names the check; without any recorded run."""
    with DemoServer(noise=0.02, seed=1, broken=[BROKEN]) as head, DemoServer(noise=0.02, seed=2) as base:
        ran = play(tmp_path, head, base.base_url, "--loops=5")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert read_results(tmp_path)["comparison"]["p"] <= 0.05


def test_a_broken_base_fails_nothing(tmp_path):
    """A head that is better passes."""
    with DemoServer(noise=0.02, seed=1) as head, DemoServer(noise=0.02, seed=2, broken=[BROKEN]) as base:
        ran = play(tmp_path, head, base.base_url, "--loops=3")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(tmp_path)["comparison"]["delta"] > 0


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_base_that_cannot_be_reached_is_no_verdict(tmp_path, fail_fast):
    """Never a pass: not even where the score is 100."""
    with DemoServer() as head:
        ran = play(tmp_path, head, "http://127.0.0.1:9", *(["--fail-fast"] if fail_fast else []))
    assert ran.returncode == 3, ran.stdout + ran.stderr
    gate = read_results(tmp_path)["gate"]
    assert gate["passed"] is False
    assert "the agent at 127.0.0.1:9 could not be reached" in gate["reasons"][0]


def test_a_failure_that_ends_the_run_early_needs_no_base_agent(tmp_path):
    """The run fails by its own agent, whatever the base agent still had to play."""
    with DemoServer(broken=[BROKEN]) as head, DemoServer() as base:
        ran = play(tmp_path, head, base.base_url, "--fail-fast", "--parallel=1")
    assert ran.returncode == 1, ran.stdout + ran.stderr


def test_both_sides_always_needs_a_base_agent(tmp_path):
    """Else it would pass without the comparison that was asked for."""
    ran = ci_evals("run", "demo:retail", *ALWAYS, cwd=tmp_path)
    assert (ran.returncode, "Name one with --against." in ran.stderr) == (2, True)


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("", "names no agent"),
        ("base-url", "not of the form OPTION=VALUE"),
        ("colour=red", "'colour' is unknown"),
        ("agent-id=a\nagent-id=b", "agent-id is given twice"),
        ("adapter=nothing", "--against: --adapter: 'nothing'"),
        ("adapter-options=missing.yaml", "missing.yaml cannot be read"),
        ("agent-headers=Nonsense", "not of the form NAME: VALUE"),
        ("adapter=http", "baseUrl"),
    ],
)
def test_wrong_option_is_reported_before_anything_runs(tmp_path, against, says):
    """With what to write."""
    ran = ci_evals("run", "demo:hr", "--provider=offline", f"--against={against}", cwd=tmp_path)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert says in ran.stderr
    assert not (tmp_path / "results").exists()


def test_a_run_that_was_killed_is_resumed_on_both_sides(tmp_path):
    """The journal holds the trials of both; none is rerun."""
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


def test_a_recording_holds_both_sides(tmp_path):
    """A replay comes to the same verdicts without an agent."""
    with DemoServer(noise=0.05, seed=1) as head, DemoServer(noise=0.05, seed=2) as base:
        ran = play(tmp_path, head, base.base_url, "--loops=2", "--record=recorded")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        first = read_results(tmp_path)
        url = base.base_url
    options = (*ALWAYS, f"--against=base-url={url}", "--loops=2", "--replay=recorded")
    again = ci_evals("run", "demo:retail", *options, cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    second = read_results(tmp_path)
    assert [arm["score"] for arm in second["arms"]] == [arm["score"] for arm in first["arms"]]
    assert second["comparison"]["delta"] == first["comparison"]["delta"]


def test_shards_are_merged_on_both_sides(tmp_path):
    """The whole is compared as one run would be."""
    with DemoServer(noise=0.05, seed=1) as head, DemoServer(noise=0.05, seed=2) as base:
        for part in (1, 2):
            folder = f"--output-dir=part{part}"
            ran = play(tmp_path, head, base.base_url, f"--shard={part}/2", "--loops=2", "--no-gate", folder)
            assert ran.returncode == 0, ran.stdout + ran.stderr
    options = ("--regression=significant", "--min-score=0", "--output-dir=whole")
    merged = ci_evals("merge", "part1", "part2", *options, cwd=tmp_path)
    assert merged.returncode == 0, merged.stdout + merged.stderr
    results = json.loads((tmp_path / "whole/_results.json").read_text())
    assert results["comparison"]["method"] == "both-sides"
    assert results["comparison"]["tests"] == results["counts"]["tests"]
    assert f"of {results['counts']['tests']} tests" in ran.stderr  # those of the base agent are no others
    head_arm, base_arm = results["arms"]
    assert base_arm["counts"]["trials"] == head_arm["counts"]["trials"] == 2 * results["counts"]["tests"]


def test_a_shard_without_its_base_leaves_no_verdict(tmp_path):
    """The comparison would be of a part of the tests."""
    with DemoServer() as head, DemoServer() as base:
        assert play(tmp_path, head, base.base_url, "--shard=1/2", "--output-dir=part1").returncode == 0
        other = ("--shard=2/2", "--output-dir=part2", f"--base-url={head.base_url}")
        assert ci_evals("run", "demo:retail", *OFFLINE, *other, cwd=tmp_path, env=KEYS).returncode == 0
    merged = ci_evals("merge", "part1", "part2", "--min-score=0", cwd=tmp_path)
    assert merged.returncode == 3, merged.stdout + merged.stderr
    assert "the agent 'base' was not played in part2" in merged.stdout
