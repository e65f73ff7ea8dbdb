"""Runs with personas on the command line: what the results keep of them."""

import json

import pytest
from commands import ci_evals

pytestmark = pytest.mark.slow
SUITE = """
name: Shop
adapter: python:agent:reply
personaMatrix: true
personas:
  rushed: { traits: [impatient] }
tests:
  - name: Refund
    guidelines: You want a refund.
    turns: [{ user: auto }]
    evaluations: [{ criterion: It answers, strict: contains, text: refund }]
  - name: Address
    guidelines: You want to change your address.
    turns: [{ user: auto }]
    evaluations: [{ criterion: It answers, strict: contains, text: refund }]
"""


def counts_in(folder):
    (suite,) = json.loads((folder / "_results.json").read_text())["studies"]["personas"]["suites"]
    assert {user["score"] for user in suite["personas"] if user["name"]} == {None}
    return {user["name"]: (user["tests"], user["passed"]) for user in suite["personas"]}


def test_merged_shards_and_rewritten_reports_keep_personas(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "agent.py").write_text("def reply(message): return 'Your refund is on its way.'")
    whole = ci_evals("run", "suite.yaml", "--provider=offline", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert "Nobody played the personas of this run" in whole.stdout
    expected = {None: (2, 2), "rushed": (2, 0)}
    assert counts_in(tmp_path / "results") == expected
    for shard, exit_code in (("1", 0), ("2", 3)):  # the second has personas alone, which nobody played
        options = (f"--shard={shard}/2", f"--output-dir=shard{shard}")
        played = ci_evals("run", "suite.yaml", "--provider=offline", *options, cwd=tmp_path)
        assert played.returncode == exit_code, played.stderr
    merged = ci_evals("merge", "shard1", "shard2", "--output-dir=merged", cwd=tmp_path)
    assert merged.returncode == 0, merged.stderr
    assert counts_in(tmp_path / "merged") == expected
    again = ci_evals("report", "merged", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "Nobody played the personas of this run" in (tmp_path / "merged/summary.md").read_text()


LANGUAGES = """
name: Shop
adapter: python:agent:reply
maxTurns: 1
languages: [de]
tests:
  - name: Refund
    guidelines: You want a refund.
    turns: [{ user: "I want a refund." }]
    evaluations: [{ criterion: It names the order, strict: contains, text: "4812" }]
"""
LOCK = """
translations:
  de: [{ line: I want a refund., text: Ich will mein Geld zurück. }]
"""


def test_run_reports_failed_language_and_missing_lock_file(tmp_path):
    (tmp_path / "shop.yaml").write_text(LANGUAGES)
    agent = "def reply(message): return '4812' if 'refund' in message else 'What?'"
    (tmp_path / "agent.py").write_text(agent)
    missing = ci_evals("run", "shop.yaml", "--provider=offline", cwd=tmp_path)
    assert missing.returncode == 2
    assert "run `ci-evals personas translate shop.yaml`" in missing.stderr
    assert not (tmp_path / "results").exists()
    (tmp_path / "shop.lock.yaml").write_text(LOCK)
    played = ci_evals("run", ".", "--provider=offline", "--min-score=100", cwd=tmp_path)
    assert played.returncode == 1, played.stderr
    assert "Languages" in played.stdout
    results = json.loads((tmp_path / "results/_results.json").read_text())
    (suite,) = results["studies"]["personas"]["suites"]
    assert [(user["name"], user["score"]) for user in suite["languages"]] == [(None, 100), ("de", 0)]
    _, german = results["suites"][0]["tests"]
    assert german["name"] == "Refund (de)"
    assert german["trials"][0]["turns"][0]["user"] == "Ich will mein Geld zurück."
    summary = (tmp_path / "results/summary.md").read_text()
    assert "The agent did not pass in “de” (1 of 1 tests)." in summary


UNPLAYED = """
name: Shop
adapter: python:agent:reply
maxTurns: 1
personas:
  fraudster: { traits: [hostile] }
  noted: { note: You are in a hurry. }
languages: [de]
tests:
  - name: Refund
    personas: [fraudster, noted]
    critical: true
    minScore: 100
    guidelines: You want a refund.
    turns: [{ user: auto }]
    evaluations:
      - { criterion: It answers, strict: contains, text: refund }
      - { criterion: It is kind }
"""


def test_offline_run_leaves_persona_tests_and_their_limits_undecided(tmp_path):
    (tmp_path / "suite.yaml").write_text(UNPLAYED)
    (tmp_path / "agent.py").write_text("def reply(message): return 'Your refund is on its way.'")
    parts = ("persona:fraudster", "persona:noted", "language:de")
    options = [f"--thresholds={','.join(f'tag:{part}=100' for part in parts)}", "--min-score=100"]
    played = ci_evals("run", "suite.yaml", "--provider=offline", *options, cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    results = json.loads((tmp_path / "results/_results.json").read_text())
    (suite,) = results["suites"]
    as_written, *others = suite["tests"]
    assert (as_written["outcome"], as_written["score"]) == ("passed", 100)
    assert {(test["outcome"], test["score"]) for test in others} == {("undecided", None)}
    findings = [finding for test in others for trial in test["trials"] for finding in trial["findings"]]
    assert {finding["cause"] for finding in findings} == {"no_user"}
    checks = {check["name"]: check.get("holds") for check in results["gate"]["checks"]}
    open_checks = {name for name, passed in checks.items() if passed is None}
    floors = {f"tag:{part}" for part in parts}
    tests = {f"{kind}:{test['name']}" for kind in ("critical", "test") for test in others}
    assert open_checks >= floors | tests, checks
    assert checks["critical:Refund"] is True
    junit = (tmp_path / "results/junit.xml").read_text()
    assert junit.count("nobody played the simulated user") >= len(others)
    groups = {group["name"]: group["score"] for group in suite["tags"]}
    assert {groups[part] for part in parts} == {None}
    unplayed = ci_evals("run", "suite.yaml", "--provider=offline", f"--tag={parts[0]}", cwd=tmp_path)
    assert unplayed.returncode == 3, unplayed.stderr
