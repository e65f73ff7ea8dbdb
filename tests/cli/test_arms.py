"""`--arms`: several agents in one run, each compared with the first; the gate is about the second."""

import json
import re
from pathlib import Path

import pytest
from commands import ci_evals, read_results, write_suite_without_critical_tests

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow

KEYS = {"CI_EVALS_AGENT_KEY": "a-key-of-the-agent", "OTHER_KEY": "another-key-91d2c7"}
SUITE = "shop.json"
OPTIONS = ("--provider=offline", "--parallel=8", "--loops=3", "--min-score=0")


def play(folder: Path, arms: dict | str, *options: str, name: str = "arms.yaml"):
    (folder / name).write_text(arms if isinstance(arms, str) else json.dumps(arms))
    write_suite_without_critical_tests(folder, "demo:retail", SUITE)
    return ci_evals("run", SUITE, *OPTIONS, f"--arms={name}", *options, cwd=folder, env=KEYS)


BROKEN = ["RETURN_REQUEST", "ORDER_STATUS"]


def test_every_agent_is_played_and_compared_with_the_first(tmp_path):
    """One that is alike, which is gated, and one that is broken; the table stands in every report."""
    with DemoServer() as now, DemoServer() as same, DemoServer(broken=BROKEN) as worse:
        arms = {
            "today": {"base-url": now.base_url},
            "alike": {"base-url": same.base_url, "agent-key": "${OTHER_KEY}"},
            "broken": {"base-url": worse.base_url},
        }
        ran = play(tmp_path, arms, "--regression=significant")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    today, alike, other = results["arms"]
    assert [arm["name"] for arm in results["arms"]] == ["today", "alike", "broken"]
    assert [arm["gated"] for arm in results["arms"]] == [False, True, False]
    assert (today["delta"], today["p"], today["pAdjusted"]) == (None, None, None)
    assert (alike["score"], alike["suites"]) == (results["score"], [])
    assert (alike["delta"], alike["p"], alike["pAdjusted"]) == (0, 1, 1)
    assert other["deltaInterval"]["low"] < other["delta"] < other["deltaInterval"]["high"] < 0
    assert other["p"] < other["pAdjusted"] <= 0.05
    assert results["comparison"]["method"] == "both-sides"
    assert results["comparison"]["delta"] == 0
    assert "another-key-91d2c7" not in json.dumps(results)
    for report in (ran.stdout, (tmp_path / "results/summary.md").read_text()):
        assert all(name in report for name in ("today", "alike", "broken"))
        assert "Agents" in report
    assert "(36 of “alike”)" in ran.stdout
    assert 'name="arm: broken"' in (tmp_path / "results/junit.xml").read_text()
    assert 'id="_agents-title">Agents<' in (tmp_path / "results/report.html").read_text()


def test_the_gate_is_about_the_agent_that_is_named(tmp_path):
    """Its drop from the first fails; the first itself has none, and is compared with the baseline alone."""
    with DemoServer() as now, DemoServer(broken=BROKEN) as worse:
        arms = {
            "today": {"base-url": now.base_url},
            "broken": {"base-url": worse.base_url},
            "again": {"base-url": now.base_url},
        }
        second = play(tmp_path, arms, "--regression=significant", "--loops=1", "--rounds=auto")
        assert second.returncode == 1, second.stdout + second.stderr
        assert re.search("Evals failed: [0-9]+ tests broke in “broken” compared with “today”", second.stdout)
        assert "base agent" not in second.stdout + (tmp_path / "results/summary.md").read_text()
        results = read_results(tmp_path)
        assert results["run"]["rounds"]["looks"] == [3, 5, 7]
        assert results["comparison"]["looks"][-1]["decision"] == "fail"
        assert results["score"] == results["arms"][1]["score"] < results["arms"][0]["score"]
        third = play(tmp_path, arms, "--regression=significant", "--loops=1", "--gate-arm=again")
        assert third.returncode == 0, third.stdout + third.stderr
        assert [arm["name"] for arm in read_results(tmp_path)["arms"]] == ["today", "again", "broken"]
        first = play(tmp_path, arms, "--regression=significant", "--loops=1", "--gate-arm=today")
    assert first.returncode == 0, first.stdout + first.stderr
    assert read_results(tmp_path)["comparison"] is None
    wrong = play(tmp_path, arms, "--gate-arm=nobody")
    assert (wrong.returncode, "Agents: today, broken, again." in wrong.stderr) == (2, True)
    alone = ci_evals("run", SUITE, *OPTIONS, "--gate-arm=today", cwd=tmp_path, env=KEYS)
    assert (alone.returncode, "--arms, which is not given" in alone.stderr) == (2, True)


def test_an_agent_that_cannot_be_played_is_no_part_of_the_gate(tmp_path):
    """Of a third one nothing is claimed; without the first there is no verdict."""
    with DemoServer() as now:
        here, gone = {"base-url": now.base_url}, {"base-url": "http://127.0.0.1:9"}
        options = ("--test=Never makes up", "--loops=1")
        ran = play(tmp_path, {"today": here, "next": here, "gone": gone}, *options)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        last = read_results(tmp_path)["arms"][2]
        assert (last["score"], last["delta"], last["pAdjusted"]) == (None, None, None)
        ran = play(tmp_path, {"gone": gone, "next": here}, *options)
    assert ran.returncode == 3, ran.stdout + ran.stderr


def test_shards_of_several_agents_are_merged(tmp_path):
    """In their order, with the gate about the same one."""
    with DemoServer() as now, DemoServer(broken=BROKEN) as worse:
        arms = {"today": {"base-url": now.base_url}, "broken": {"base-url": worse.base_url}}
        for part in (1, 2):
            play(tmp_path, arms, f"--shard={part}/2", "--no-gate", f"--output-dir=part{part}")
    options = ("--regression=significant", "--min-score=0")
    merged = ci_evals("merge", "part1", "part2", *options, cwd=tmp_path)
    assert merged.returncode == 1, merged.stdout + merged.stderr
    results = read_results(tmp_path)
    assert [(arm["name"], arm["gated"]) for arm in results["arms"]] == [("today", False), ("broken", True)]
    assert results["comparison"]["method"] == "both-sides"


@pytest.mark.parametrize(
    ("arms", "says"),
    [
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
    ],
)
def test_wrong_file_is_reported_before_anything_runs(tmp_path, arms, says):
    """With what to write."""
    ran = play(tmp_path, arms)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert says in ran.stderr
    assert not (tmp_path / "results").exists()


def test_other_options_for_the_same_are_refused(tmp_path):
    """A base agent is something else; a file of another kind too."""
    ran = play(tmp_path, "one: {}\nother: {}", "--against=base-url=http://127.0.0.1:9")
    assert (ran.returncode, "Omit one of them" in ran.stderr) == (2, True)
    ran = play(tmp_path, "one: {}\nother: {}", name="arms.txt")
    assert (ran.returncode, "ends in none of" in ran.stderr) == (2, True)
