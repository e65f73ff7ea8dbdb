"""Runs whose agent reports evidence for some replies only."""

import json
import sys

import pytest
from commands import ci_evals, read_results, write_suite
from exits import exits

pytestmark = pytest.mark.slow
IN_PROCESS = ("--provider=offline", "--agent-in-process")
PYTHON = """
import json, sys
SCRIPT = json.load(open("script.json"))

def reply(message, session):
    number = session.state["number"] = session.state.get("number", 0) + 1
    return SCRIPT[number - 1]
"""
PROGRAM = """
import json, sys
script = json.load(open("script.json"))
for line in sys.stdin:
    if json.loads(line)["type"] == "message":
        answer = script.pop(0)
        if answer is None:
            sys.exit("gone")
        print(json.dumps(answer), flush=True)
"""
ADAPTERS = {"python": "python:shop:reply", "command": f"command: {sys.executable} -I program.py"}
REFUNDED = {"text": "I have refunded 49.90 dollars."}
NOTHING = {"workflows": [], "params": {}, "rules": [], "integrations": [], "error": False}
BYE = {"text": "Bye"} | NOTHING
NEGATIVE = (
    {"criterion": "No refund", "strict": "tool_not_used", "toolName": "REFUND"},
    {"criterion": "No refund at first", "strict": "tool_not_used", "toolName": "REFUND", "beforeTurn": 2},
    {"criterion": "No rule for refunds", "strict": "rule_not_triggered", "ruleCode": "refund-window"},
    {"criterion": "No amount", "strict": "param_not_exists", "paramName": "amount"},
    {"criterion": "No hand-over", "strict": "not_escalated"},
    {"criterion": "No error", "strict": "not_escalated_due_to_error"},
)
TURNS = [{"user": "I want my money back."}, {"user": "Thanks, bye."}]


def run(folder, adapter, replies, evaluations, *options):
    for name, text in {"shop.py": PYTHON, "program.py": PROGRAM, "script.json": json.dumps(replies)}.items():
        (folder / name).write_text(text)
    test = {"name": "refund", "critical": True, "turns": TURNS, "maxTurns": 2, "evaluations": evaluations}
    suite = write_suite(folder, test, adapter=ADAPTERS[adapter], apiKey="a-key-of-the-agent", agentId=None)
    ran = ci_evals("run", suite, *IN_PROCESS, *options, cwd=folder, env={"PYTHONPATH": "."})
    assert ran.returncode != 2, ran.stderr
    return ran, read_results(folder)["suites"][0]["tests"][0]["trials"][0]["findings"]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_negative_checks_pass_only_if_every_reply_reports_evidence(tmp_path, adapter):
    """Whatever the replies after one without evidence report."""
    ran, findings = run(tmp_path, adapter, [REFUNDED | NOTHING, BYE], NEGATIVE)
    assert ran.returncode == 0, ran.stdout
    assert {finding["outcome"] for finding in findings} == {"passed"}
    ran, findings = run(tmp_path, adapter, [REFUNDED, BYE], NEGATIVE)
    assert ran.returncode == 3, ran.stdout
    assert {(one["outcome"], one["cause"]) for one in findings} == {("undecided", "no_evidence")}
    assert all(one["evidence"] == [1] for one in findings)
    first, before_turn_2, *others = (one["reason"] for one in findings)
    no_report = "the reply in turn 1 does not report"
    assert first == f"{no_report} workflows; in the other turns REFUND was not executed; seen: none"
    assert before_turn_2 == "before turn 2 no reply reports workflows"
    assert all(no_report in reason for reason in others)


MOSTLY_FAILING = """
def reply(message):
    with open("asked", "a+") as asked:
        asked.write(".")
        asked.seek(0)
        wrong = len(asked.read()) == 2
    return {"text": "All done." if wrong else "An error.", "error": not wrong, "workflows": []}
"""


def test_expected_error_passes_and_counts_toward_score(tmp_path):
    (tmp_path / "fragile.py").write_text(MOSTLY_FAILING)
    errs = {"criterion": "Errs", "strict": "escalated_due_to_error"}
    fields = {"adapter": "python:fragile:reply", "apiKey": "a-key-of-the-agent", "agentId": None}
    suite = write_suite(tmp_path, {"name": "broken", "evaluations": [errs, NEGATIVE[0]]}, **fields)
    options = ("--provider=offline", "--loops=5", "--min-score=90")
    exits(0, "run", suite, *options, cwd=tmp_path, env={"PYTHONPATH": "."})
    results = read_results(tmp_path)
    assert (results["score"], results["counts"]["scoredTrials"], results["counts"]["errors"]) == (90, 5, 0)


def test_checks_are_undecided_if_last_message_got_no_reply(tmp_path):
    """An agent that exits at a message may have done anything before."""
    first = {"text": "One moment."} | NOTHING
    checks = [one for one in NEGATIVE if "beforeTurn" not in one] + [
        {"criterion": "Promises nothing", "strict": "not_contains", "text": "refunded"},
        {"criterion": "Never promises", "strict": "not_contains", "text": "refunded", "turn": "any"},
        {"criterion": "Short", "strict": "max_agent_turns", "turns": 2},
        {"criterion": "Quick", "strict": "max_latency", "seconds": 60},
    ]
    ran, findings = run(tmp_path, "command", [first, None], checks, "--retries=0", "--max-errors=1")
    assert ran.returncode == 3, ran.stdout
    assert {finding["outcome"] for finding in findings} == {"undecided"}
    assert all("message 2 got no reply" in finding["reason"] for finding in findings)
