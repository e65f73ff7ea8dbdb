"""`--arms`: several agents in one run, each compared with the first."""

import json
from pathlib import Path

import pytest
from commands import ci_evals, results_in, write_uncritical

from ci_evals.demo_agent.server import DemoServer

KEYS = {"CI_EVALS_AGENT_KEY": "a-key-of-the-agent", "OTHER_KEY": "another-key-91d2c7"}
SUITE = "shop.json"
OPTIONS = ("--provider=offline", "--parallel=8", "--loops=3", "--min-score=0")


def play(folder: Path, arms: dict | str, *options: str, name: str = "arms.yaml"):
    (folder / name).write_text(arms if isinstance(arms, str) else json.dumps(arms))
    write_uncritical(folder, "demo:retail", SUITE)
    return ci_evals("run", SUITE, *OPTIONS, f"--arms={name}", *options, cwd=folder, env=KEYS)


def test_every_agent_is_played_and_compared_with_the_first(tmp_path):
    """One that is alike, and one that is broken; the table stands in every report."""
    broken = ["RETURN_REQUEST", "ORDER_STATUS"]
    with DemoServer() as now, DemoServer() as same, DemoServer(broken=broken) as worse:
        arms = {
            "today": {"base-url": now.base_url},
            "alike": {"base-url": same.base_url, "agent-key": "${OTHER_KEY}"},
            "broken": {"base-url": worse.base_url},
        }
        ran = play(tmp_path, arms)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = results_in(tmp_path)
    today, alike, other = results["arms"]
    assert [arm["name"] for arm in results["arms"]] == ["today", "alike", "broken"]
    assert (today["score"], today["change"]) == (results["score"], None)
    assert alike["change"]["delta"] == 0
    assert alike["pAdjusted"] == 1
    assert other["change"]["delta"] < 0
    assert other["pAdjusted"] <= 0.05
    assert results["comparison"] is None
    assert "another-key-91d2c7" not in json.dumps(results)
    for report in (ran.stdout, (tmp_path / "results/summary.md").read_text()):
        assert all(name in report for name in ("today", "alike", "broken"))
        assert "Agents" in report
    assert 'name="arm: broken"' in (tmp_path / "results/junit.xml").read_text()
    assert 'id="_agents-title">Agents<' in (tmp_path / "results/report.html").read_text()


def test_an_agent_that_cannot_be_played_is_no_part_of_the_gate(tmp_path):
    """The first one is tested; of the other nothing is claimed."""
    with DemoServer() as now:
        arms = {"today": {"base-url": now.base_url}, "gone": {"base-url": "http://127.0.0.1:9"}}
        ran = play(tmp_path, arms, "--max-failures-in-row=0", "--test=Never makes up", "--loops=1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    gone = results_in(tmp_path)["arms"][1]
    assert (gone["score"], gone["change"]["delta"], gone["pAdjusted"]) == (None, None, None)


@pytest.mark.parametrize(
    ("arms", "says"),
    [
        ("- a\n- b\n", "it takes two agents or more"),
        ("{}", "it takes two agents or more"),
        ("one: {base-url: 'http://a'}", "it takes two agents or more"),
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
def test_a_wrong_file_is_told_before_anything_runs(tmp_path, arms, says):
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
