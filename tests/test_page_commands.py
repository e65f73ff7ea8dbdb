"""Pages of the documentation whose commands are followed step by step."""

import json
import re
import shlex
import signal

import pytest
import yaml
from commands import ci_evals, read_results, start
from doc_pages import blocks, code, page, table

from ci_evals.domain.world import KINDS, FileRead, HttpCall, SqlQuery, Step
from ci_evals.extensions.chat.chatting import HELP

CHAT_PAGE = page("chat.md")
SECONDS = re.compile(r"[\d.]+ s$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_chat_page_lists_every_command_and_examples_give_the_shown_output(tmp_path):
    listed = [line for line in HELP.splitlines() if not line.startswith("//")]
    described = [code(cell) for cell, _ in table("command", CHAT_PAGE)]
    assert all(line.startswith(command) for line, command in zip(listed, described, strict=True))
    [shown] = blocks("text", CHAT_PAGE)
    lines = [line.removeprefix("you>   ") for line in shown.splitlines() if line.startswith("you>")]
    done = ci_evals("chat", "demo:hr", cwd=tmp_path, typed="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    assert SECONDS.sub("1 s", done.stdout) == SECONDS.sub("1 s", shown)
    [_, script] = [block for block in blocks("sh", CHAT_PAGE) if "printf" in block or "--test" in block]
    typed = script.partition("'")[2].partition("'")[0].encode().decode("unicode_escape")
    assert ci_evals("chat", "demo:hr", cwd=tmp_path, typed=typed).returncode == 0
    assert yaml.safe_load((tmp_path / "evals/day-off.yaml").read_text())["agentId"] == "demo-hr"
    done = ci_evals("run", "evals/day-off.yaml", "--provider=offline", "--quiet", cwd=tmp_path)
    assert done.returncode == 0


DEBUG_AGENT = """
def reply(message):
    refunds = "late" in message
    return {"text": "Done." if refunds else "Hello.", "toolCalls": [{"name": "refund"}] if refunds else []}
"""
DEBUG_SUITE = """
name: Refunds
adapter: python:agent:reply
tests:
  - name: Greets
    guidelines: g
    turns: [{ user: Hello }]
    maxTurns: 1
    evaluations: [{ criterion: It greets, strict: contains, text: Hello, turn: 1 }]
  - name: Refund after 30 days
    guidelines: g
    turns: [{ user: I am late for a refund }]
    maxTurns: 1
    evaluations: [{ criterion: Nothing is refunded, strict: max_tool_calls, calls: 0, toolName: refund }]
"""
TALK = "I am late for a refund\n/evaluate\n/quit\n"


def watched_until_played(arguments, folder):
    """Run what watches files until it waits for a change, and return the exit code."""
    process = start(*arguments, cwd=folder)
    assert any(line.startswith("Watching 2 files.") for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    return process.returncode


@pytest.mark.slow
def test_commands_of_debugging_page_lead_to_cause_of_failure(tmp_path):
    (tmp_path / "agent.py").write_text(DEBUG_AGENT)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/refunds.yaml").write_text(DEBUG_SUITE)
    assert ci_evals("run", "evals/refunds.yaml", "--provider=offline", cwd=tmp_path).returncode == 1
    printed = []
    for block in blocks("sh", page("debugging.md")):
        for line in block.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "ci-evals"
            if "--watch" in arguments:
                assert watched_until_played(arguments, tmp_path) == 130
                continue
            done = ci_evals(*arguments, cwd=tmp_path, typed=TALK)
            assert done.returncode in {0, 1}, done.stderr
            printed.append(done.stdout)
    failed, one, ten, _all, rest, chat, debugged, _recorded, replayed = printed
    assert "Refund after 30 days" in failed
    assert "Greets" not in failed
    assert "refund" in one
    assert "0 of 10" in ten
    assert "Greets" in rest
    assert "Nothing is refunded" in chat
    assert "Refund after 30 days" in debugged
    assert "Refund after 30 days" in replayed
    assert read_results(tmp_path)["counts"]["trials"] == 2


@pytest.mark.slow
def test_exporting_page_commands_write_the_documented_files_and_fields(tmp_path):
    printed, results = {}, tmp_path / "results"
    for block in blocks("sh", page("exporting.md")):
        for line in block.splitlines():
            _, *arguments = shlex.split(line)
            done = ci_evals(*arguments, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            printed[arguments[0]] = done.stdout
        if "report" in block:
            for name in ("findings.csv", "badge.svg", "badge.json", "junit.xml", "summary.md"):
                assert (results / name).exists(), name
            head = (results / "findings.csv").read_text().splitlines()[0].lower()
            for column in ("suite", "test", "trial", "criterion", "outcome", "reason", "turn"):
                assert column in head
    run, plan = json.loads(printed["run"]), json.loads(printed["plan"])
    assert run == json.loads((results / "_results.json").read_text())
    assert (run["score"], run["gate"]["passed"], run["gate"]["exitCode"]) == (100, True, 0)
    assert run["suites"][0]["tests"]
    assert plan["suites"][0]["tests"]
    assert {"trials", "turns", "calls", "estimate"} <= plan.keys()
    assert {"tokens", "dollars", "seconds"} <= plan["estimate"].keys()


WORLDS_PAGE = page("worlds.md")


@pytest.fixture
def worlds_folder(tmp_path):
    (agent,), (suite,) = blocks("python", WORLDS_PAGE), blocks("yaml", WORLDS_PAGE)
    (tmp_path / "agent.py").write_text(agent)
    (tmp_path / "refunds.yaml").write_text(suite)
    return tmp_path


@pytest.mark.slow
def test_commands_of_worlds_page_pass_and_fail_as_shown(worlds_folder):
    shell = blocks("sh", WORLDS_PAGE)[0]
    reason = re.search(r"# fails: (.+)", shell)[1]
    arguments = ["run", "refunds.yaml", "--provider=offline"]
    assert shell.count(f"ci-evals {' '.join(arguments)} ") == 2
    passed = ci_evals(*arguments, cwd=worlds_folder)
    failed = ci_evals(*arguments, cwd=worlds_folder, env={"ONLY_CLAIMS": "1"})
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert failed.returncode == 1
    (trial,) = read_results(worlds_folder)["suites"][0]["tests"][0]["trials"]
    assert [finding["reason"] for finding in trial["findings"] if finding["outcome"] == "failed"] == [reason]


@pytest.mark.slow
def test_demo_agent_of_worlds_page_that_only_claims_fails(worlds_folder):
    served, played = map(shlex.split, blocks("sh", WORLDS_PAGE)[1].splitlines())
    (address,) = [word for word in played if word.startswith("--base-url=")]
    help_text = ci_evals("demo-agent", "--help", cwd=worlds_folder).stdout
    port = re.search(r"--port .*?default:\s+(\d+)", help_text, re.DOTALL)
    assert address == f"--base-url=http://127.0.0.1:{port[1]}"
    agent = start(*served[1:], "--port=0", cwd=worlds_folder, env={})
    try:
        url = re.search(r"http://127\.0\.0\.1:\d+", agent.stdout.readline())[0]
        arguments = [word for word in played[1:] if word != address]
        ci_evals(*arguments, f"--base-url={url}", cwd=worlds_folder)
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.communicate(timeout=300)
    tests = read_results(worlds_folder)["suites"][0]["tests"]
    findings = [finding for test in tests for finding in test["trials"][0]["findings"]]
    reasons = [finding["reason"] for finding in findings if finding["outcome"] == "failed"]
    assert reasons
    assert all("is absent, expected" in reason for reason in reasons)


@pytest.mark.slow
def test_worlds_page_lists_every_step_field():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", WORLDS_PAGE, re.MULTILINE))
    assert [*rows] == [*KINDS] == [name for name in Step.model_fields if name != "timeout"]
    for kind, model in (("http", HttpCall), ("sql", SqlQuery), ("file", FileRead)):
        names = {info.alias or name for name, info in model.model_fields.items()}
        assert names <= {*re.findall(r"`(\w+)`", rows[kind])}
