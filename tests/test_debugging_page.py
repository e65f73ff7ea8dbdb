"""The page "Debug a failing test", followed step by step with an agent that grants a late refund."""

import shlex
import signal

import pytest
from commands import ci_evals, read_results, start
from doc_pages import blocks, page

pytestmark = pytest.mark.slow

AGENT = """
def reply(message):
    refunds = "late" in message
    return {"text": "Done." if refunds else "Hello.", "toolCalls": [{"name": "refund"}] if refunds else []}
"""
SUITE = """
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


def test_commands_of_debugging_page_lead_to_cause_of_failure(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/refunds.yaml").write_text(SUITE)
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
