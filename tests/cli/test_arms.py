"""`--arms`: several agents in one run, each compared with the first; the gate decides on the second."""

import json
import re
from pathlib import Path

import pytest
from commands import ci_evals, read_results, write_suite_without_critical_tests
from refusals import refusal

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow
KEYS = {"CI_EVALS_AGENT_KEY": "a-key-of-the-agent", "OTHER_KEY": "another-key-91d2c7"}
SUITE = "shop.json"
OPTIONS = ("--provider=offline", "--parallel=8", "--loops=3", "--min-score=0")


def run_arms(folder: Path, arms: dict, *options: str):
    (folder / "arms.yaml").write_text(json.dumps(arms))
    write_suite_without_critical_tests(folder, "demo:retail", SUITE)
    return ci_evals("run", SUITE, *OPTIONS, "--arms=arms.yaml", *options, cwd=folder, env=KEYS)


BROKEN = ["RETURN_REQUEST", "ORDER_STATUS"]


def test_every_agent_is_compared_with_the_first_in_every_report(tmp_path):
    with DemoServer() as now, DemoServer() as same, DemoServer(broken=BROKEN) as worse:
        alike = {"base-url": same.base_url, "agent-key": "${OTHER_KEY}"}
        arms = {"today": {"base-url": now.base_url}, "alike": alike, "broken": {"base-url": worse.base_url}}
        ran = run_arms(tmp_path, arms, "--regression=significant")
    assert ran.returncode == 0, ran.stdout + ran.stderr
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


def test_gate_arm_is_compared_with_first_arm(tmp_path):
    with DemoServer() as now, DemoServer(broken=BROKEN) as worse:
        servers = {"today": now, "broken": worse, "again": now}
        arms = {name: {"base-url": server.base_url} for name, server in servers.items()}
        second = run_arms(tmp_path, arms, "--regression=significant", "--loops=1", "--rounds=auto")
        assert second.returncode == 1, second.stdout + second.stderr
        assert re.search("Evals failed: [0-9]+ tests broke in “broken” compared with “today”", second.stdout)
        assert "base agent" not in second.stdout + (tmp_path / "results/summary.md").read_text()
        results = read_results(tmp_path)
        assert results["run"]["rounds"]["looks"] == [3, 5, 7]
        assert results["comparison"]["looks"][-1]["decision"] == "fail"
        assert results["score"] == results["arms"][1]["score"] < results["arms"][0]["score"]
        one = ("--regression=significant", "--loops=1", "--test=Never makes up")
        third = run_arms(tmp_path, arms, *one, "--gate-arm=again")
        assert third.returncode == 0, third.stdout + third.stderr
        assert [arm["name"] for arm in read_results(tmp_path)["arms"]] == ["today", "again", "broken"]
        first = run_arms(tmp_path, arms, *one, "--gate-arm=today")
    assert first.returncode == 0, first.stdout + first.stderr
    assert read_results(tmp_path)["comparison"] is None
    wrong = run_arms(tmp_path, arms, "--gate-arm=nobody")
    assert (wrong.returncode, "Agents: today, broken, again." in wrong.stderr) == (2, True)
    alone = ci_evals("run", SUITE, *OPTIONS, "--gate-arm=today", cwd=tmp_path, env=KEYS)
    assert (alone.returncode, "--arms, which is not given" in alone.stderr) == (2, True)


def test_unreachable_arm_affects_gate_only_if_it_is_compared(tmp_path):
    with DemoServer() as now:
        here, gone = {"base-url": now.base_url}, {"base-url": "http://127.0.0.1:9"}
        options = ("--test=Never makes up", "--loops=1", "--retries=0")
        ran = run_arms(tmp_path, {"today": here, "next": here, "gone": gone}, *options)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        last = read_results(tmp_path)["arms"][2]
        assert (last["score"], last["delta"], last["pAdjusted"]) == (None, None, None)
        ran = run_arms(tmp_path, {"gone": gone, "next": here}, *options)
    assert ran.returncode == 3, ran.stdout + ran.stderr


def test_shards_of_several_agents_are_merged(tmp_path):
    with DemoServer() as now, DemoServer(broken=BROKEN) as worse:
        arms = {"today": {"base-url": now.base_url}, "broken": {"base-url": worse.base_url}}
        for part in (1, 2):
            run_arms(tmp_path, arms, f"--shard={part}/2", "--no-gate", f"--output-dir=part{part}")
    options = ("--regression=significant", "--min-score=0")
    merged = ci_evals("merge", "part1", "part2", *options, cwd=tmp_path)
    assert merged.returncode == 1, merged.stdout + merged.stderr
    results = read_results(tmp_path)
    assert [(arm["name"], arm["gated"]) for arm in results["arms"]] == [("today", False), ("broken", True)]
    assert results["comparison"]["method"] == "both-sides"


def test_invalid_arms_are_rejected_before_run(tmp_path, monkeypatch):
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
