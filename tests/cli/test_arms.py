"""`--arms` and `--against`: several agents in one run; the gate compares the second with the first."""

import json
import re
from pathlib import Path

import pytest
from commands import ci_evals, read_results, start, write_suite_without_critical_tests
from exits import exits, refusal

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow
KEYS = {"CI_EVALS_AGENT_KEY": "a-key-of-the-agent", "OTHER_KEY": "another-key-91d2c7"}
SUITE = "shop.json"
OPTIONS = ("--provider=offline", "--parallel=8", "--loops=3", "--min-score=0")


def run_arms(folder: Path, arms: dict, *options: str, code: int | None = None):
    (folder / "arms.yaml").write_text(json.dumps(arms))
    write_suite_without_critical_tests(folder, "demo:retail", SUITE)
    return exits(code, "run", SUITE, *OPTIONS, "--arms=arms.yaml", *options, cwd=folder, env=KEYS)


BROKEN = ["RETURN_REQUEST", "ORDER_STATUS"]


def test_every_agent_is_compared_with_the_first_in_every_report(tmp_path):
    with DemoServer() as now, DemoServer() as same, DemoServer(broken=BROKEN) as worse:
        alike = {"base-url": same.base_url, "agent-key": "${OTHER_KEY}"}
        arms = {"today": {"base-url": now.base_url}, "alike": alike, "broken": {"base-url": worse.base_url}}
        ran = run_arms(tmp_path, arms, "--regression=significant", code=0)
    results = read_results(tmp_path)
    today, alike, other = results["arms"]
    names = [(arm["name"], arm["gated"]) for arm in results["arms"]]
    assert names == [("today", False), ("alike", True), ("broken", False)]
    assert (today["delta"], today["p"], today["pAdjusted"]) == (None, None, None)
    assert (alike["score"], alike["suites"]) == (results["score"], [])
    assert (alike["delta"], alike["p"], alike["pAdjusted"]) == (0, 1, 1)
    assert other["deltaInterval"]["low"] < other["delta"] < other["deltaInterval"]["high"] < 0
    assert other["p"] < other["pAdjusted"] <= 0.05
    assert (results["comparison"]["method"], results["comparison"]["delta"]) == ("both-sides", 0)
    assert "another-key-91d2c7" not in json.dumps(results)
    for report in (ran.stdout, (tmp_path / "results/summary.md").read_text()):
        assert all(name in report for name in ("today", "alike", "broken"))
        assert "Agents" in report
    assert "(36 of “alike”)" in ran.stdout
    assert 'name="arm: broken"' in (tmp_path / "results/junit.xml").read_text()
    assert 'id="_agents-title">Agents<' in (tmp_path / "results/report.html").read_text()


def test_gate_compares_second_or_named_arm_with_first_and_rejects_unknown_name(tmp_path):
    with DemoServer() as now, DemoServer(broken=BROKEN) as worse:
        servers = {"today": now, "broken": worse, "again": now}
        arms = {name: {"base-url": server.base_url} for name, server in servers.items()}
        second = run_arms(tmp_path, arms, "--regression=significant", "--loops=1", "--rounds=auto", code=1)
        assert re.search("Evals failed: [0-9]+ tests broke in “broken” compared with “today”", second.stdout)
        assert "base agent" not in second.stdout + (tmp_path / "results/summary.md").read_text()
        results = read_results(tmp_path)
        assert results["run"]["rounds"]["looks"] == [3, 5, 7]
        assert results["comparison"]["looks"][-1]["decision"] == "fail"
        assert results["score"] == results["arms"][1]["score"] < results["arms"][0]["score"]
        # In this test the broken agent fails.
        one = ("--regression=significant", "--loops=3", "--test=Gives Gold members")
        run_arms(tmp_path, arms, *one, "--gate-arm=again", code=0)
        assert [arm["name"] for arm in read_results(tmp_path)["arms"]] == ["today", "again", "broken"]
        run_arms(tmp_path, arms, *one, "--gate-arm=today", code=0)
    assert read_results(tmp_path)["comparison"] is None
    wrong = run_arms(tmp_path, arms, "--gate-arm=nobody")
    assert (wrong.returncode, "Agents: today, broken, again." in wrong.stderr) == (2, True)
    alone = ci_evals("run", SUITE, *OPTIONS, "--gate-arm=today", cwd=tmp_path, env=KEYS)
    assert (alone.returncode, "--arms, which is not given" in alone.stderr) == (2, True)


def test_unreachable_arm_affects_gate_only_if_it_is_compared(tmp_path):
    with DemoServer() as now:
        here, gone = {"base-url": now.base_url}, {"base-url": "http://127.0.0.1:9"}
        options = ("--test=Never makes up", "--loops=1", "--retries=0")
        run_arms(tmp_path, {"today": here, "next": here, "gone": gone}, *options, code=0)
        last = read_results(tmp_path)["arms"][2]
        assert (last["score"], last["delta"], last["pAdjusted"]) == (None, None, None)
        run_arms(tmp_path, {"gone": gone, "next": here}, *options, code=3)


def test_merge_of_shards_with_two_agents_compares_them_and_fails_for_broken_second(tmp_path):
    with DemoServer() as now, DemoServer(broken=BROKEN) as worse:
        arms = {"today": {"base-url": now.base_url}, "broken": {"base-url": worse.base_url}}
        for part in (1, 2):
            run_arms(tmp_path, arms, f"--shard={part}/2", "--no-gate", f"--output-dir=part{part}")
    options = ("--regression=significant", "--min-score=0")
    exits(1, "merge", "part1", "part2", *options, cwd=tmp_path)
    results = read_results(tmp_path)
    assert [(arm["name"], arm["gated"]) for arm in results["arms"]] == [("today", False), ("broken", True)]
    assert results["comparison"]["method"] == "both-sides"


def test_invalid_arms_are_rejected_with_reason_before_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_suite_without_critical_tests(tmp_path, "demo:retail", SUITE)

    def message_of(arms: str, *options: str, name: str = "arms.yaml") -> str:
        Path(name).write_text(arms)
        return refusal("run", SUITE, *OPTIONS, f"--arms={name}", *options, env=KEYS)

    for arms, message in (
        ("- a\n- b\n", "name at least two agents"),
        ("{}", "name at least two agents"),
        ("one: {base-url: 'http://a'}", "name at least two agents"),
        ("base: {}\nother: {}", "'base' cannot be an agent's name"),
        ("one: {}\n'a  b': {}\n'a b ': {}", "'a b': two agents have this name"),
        ("one: {}\nother: {colour: red}", "'other': 'colour' is unknown"),
        ("one: {}\nother: 7", "'other': write its options as"),
        ("one: {}\nother: {model: [x]}", "'other': write its options as"),
        ("one: {\n", "arms.yaml:"),
        ("one: {}\nother: {agent-key: '${NOT_SET_HERE}'}", "NOT_SET_HERE"),
        ("one: {}\nother: {adapter: nothing}", "'nothing' is not an adapter"),
    ):
        assert message in message_of(arms)
    two = "one: {}\nother: {}"
    assert "Omit one of them" in message_of(two, "--against=base-url=http://127.0.0.1:9")
    assert "ends in none of" in message_of(two, name="arms.txt")
    assert not (tmp_path / "results").exists()


RETURNS = "RETURN_REQUEST"
OFFLINE = ("--provider=offline", "--regression=significant", "--parallel=8", "--min-score=0")
ALWAYS = (*OFFLINE, "--both-sides=always")
HEAD_KEY = {"CI_EVALS_AGENT_KEY": "the-key-of-the-head"}
BASE_KEY = "the-key-of-the-base-agent"


def run_both_sides(folder: Path, head: DemoServer, base: str, *more: str, code: int | None = None):
    options = (f"--base-url={head.base_url}", f"--against=base-url={base}\nagent-key={BASE_KEY}")
    return exits(code, "run", "demo:retail", *ALWAYS, *options, *more, cwd=folder, env=HEAD_KEY)


def test_head_and_base_agents_are_compared_and_replayed_with_the_same_scores(tmp_path):
    with DemoServer(noise=0.05, seed=1) as head, DemoServer(noise=0.05, seed=2) as base:
        run_both_sides(tmp_path, head, base.base_url, "--loops=2", "--record=recorded", code=0)
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
    exits(0, "run", "demo:retail", *options, cwd=tmp_path)
    replayed = read_results(tmp_path)
    assert [arm["score"] for arm in replayed["arms"]] == [head_arm["score"], base_arm["score"]]
    assert replayed["comparison"]["delta"] == comparison["delta"]


def test_rounds_with_base_agent_always_have_3_5_and_7_trials(tmp_path):
    """Whatever numbers are given: the limits are those of 3, 5 and 7 trials a side."""
    with DemoServer() as head, DemoServer() as base:
        run_both_sides(tmp_path, head, base.base_url, "--rounds=2,5", code=0)
    results = read_results(tmp_path)
    assert results["run"]["rounds"] == {"looks": [3, 5, 7], "played": 3}
    (look,) = results["comparison"]["looks"]
    assert (look["trials"], look["decision"]) == (3, "pass")
    assert {arm["counts"]["trials"] for arm in results["arms"]} == {3 * results["counts"]["tests"]}
    completed = ci_evals("odds", "results", cwd=tmp_path)
    assert "Such a run has 6 to 14 trials of each test, those of the base agent included." in completed.stdout


def test_broken_head_agent_fails_gate_and_broken_base_agent_passes_it(tmp_path):
    with DemoServer(noise=0.02, seed=1, broken=[RETURNS]) as broken, DemoServer(noise=0.02, seed=2) as good:
        run_both_sides(tmp_path, broken, good.base_url, "--loops=5", code=1)
        assert read_results(tmp_path)["comparison"]["p"] <= 0.05
        run_both_sides(tmp_path, good, broken.base_url, "--loops=1", code=0)
        assert read_results(tmp_path)["comparison"]["delta"] > 0


def test_unreachable_base_agent_gives_no_verdict_unless_fail_fast_ends_run_first(tmp_path):
    for options in ([], ["--fail-fast"]):
        with DemoServer() as head:
            run_both_sides(tmp_path, head, "http://127.0.0.1:9", "--retries=0", *options, code=3)
        gate = read_results(tmp_path)["gate"]
        assert gate["passed"] is False
        assert "the agent at 127.0.0.1:9 could not be reached" in gate["reasons"][0]
    with DemoServer(broken=[RETURNS]) as head, DemoServer() as base:
        run_both_sides(tmp_path, head, base.base_url, "--fail-fast", "--parallel=1", code=1)


def test_missing_or_invalid_base_agent_is_rejected_with_reason_before_run(tmp_path, monkeypatch):
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


def test_killed_run_with_base_agent_is_resumed_with_trials_of_both_sides(tmp_path):
    with DemoServer() as head, DemoServer() as base:
        options = [*ALWAYS, f"--base-url={head.base_url}", f"--against=base-url={base.base_url}", "--loops=6"]
        process = start("run", "demo:retail", *options, cwd=tmp_path, env=HEAD_KEY)
        for line in process.stderr:
            if line.startswith("[20/"):
                break
        process.kill()
        process.communicate()
        exits(0, "run", "demo:retail", *options, "--resume=results", cwd=tmp_path, env=HEAD_KEY)
    results = read_results(tmp_path)
    assert results["run"]["resumed"]["trials"] >= 20
    assert results["arms"][1]["counts"]["trials"] == results["counts"]["trials"]


def test_shards_of_both_sides_are_merged_unless_one_lacks_the_base_agent(tmp_path):
    """The comparison would be of a part of the tests."""
    with DemoServer(noise=0.05, seed=1) as head, DemoServer(noise=0.05, seed=2) as base:
        for part in (1, 2):
            own = (f"--shard={part}/2", "--loops=2", "--no-gate", f"--output-dir=part{part}")
            ran = run_both_sides(tmp_path, head, base.base_url, *own, code=0)
        other = (*OFFLINE, "--shard=2/2", "--loops=2", "--output-dir=bare", f"--base-url={head.base_url}")
        assert ci_evals("run", "demo:retail", *other, cwd=tmp_path, env=HEAD_KEY).returncode == 0
    bare = exits(3, "merge", "part1", "bare", "--min-score=0", cwd=tmp_path)
    assert "the agent 'base' was not played in bare" in bare.stdout
    options = ("--regression=significant", "--min-score=0", "--output-dir=whole")
    exits(0, "merge", "part1", "part2", *options, cwd=tmp_path)
    results = json.loads((tmp_path / "whole/_results.json").read_text())
    assert results["comparison"]["method"] == "both-sides"
    assert results["comparison"]["tests"] == results["counts"]["tests"]
    assert f"of {results['counts']['tests']} tests" in ran.stderr  # those of the base agent are no others
    head_arm, base_arm = results["arms"]
    assert base_arm["counts"]["trials"] == head_arm["counts"]["trials"] == 2 * results["counts"]["tests"]
