"""Runs whose agent reports what it did for some replies alone."""

import json
import sys

import pytest
from commands import ci_evals, read_results, write_suite

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
        told = script.pop(0)
        if told is None:
            sys.exit("gone")
        print(json.dumps(told), flush=True)
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


@pytest.fixture
def folder(tmp_path):
    """A repository with an agent of each kind."""
    (tmp_path / "shop.py").write_text(PYTHON)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def run(folder, adapter, replies, evaluations, *options):
    """The exit code, and the findings of the one trial."""
    (folder / "script.json").write_text(json.dumps(replies))
    test = {"name": "refund", "critical": True, "turns": TURNS, "maxTurns": 2, "evaluations": evaluations}
    suite = write_suite(folder, test, adapter=ADAPTERS[adapter], apiKey="a-key-of-the-agent", agentId=None)
    ran = ci_evals("run", suite, *IN_PROCESS, *options, cwd=folder, env={"PYTHONPATH": "."})
    assert ran.returncode != 2, ran.stderr
    return ran, read_results(folder)["suites"][0]["tests"][0]["trials"][0]["findings"]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_reply_that_reports_nothing_earns_no_pass(folder, adapter):
    """Whatever the replies after it report."""
    ran, findings = run(folder, adapter, [REFUNDED, BYE], NEGATIVE)
    assert ran.returncode == 3, ran.stdout
    assert {(one["outcome"], one["cause"]) for one in findings} == {("undecided", "no_evidence")}
    assert all(one["evidence"] == [1] for one in findings)
    first, before_turn_2, *others = (one["reason"] for one in findings)
    assert first == (
        "the reply in turn 1 does not report workflows; "
        "in the other turns REFUND was not executed; seen: none"
    )
    assert before_turn_2 == "before turn 2 no reply reports workflows"
    assert all("the reply in turn 1 does not report" in reason for reason in others)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_replies_that_report_everything_decide(folder, adapter):
    """The same checks, the same words of the agent."""
    ran, findings = run(folder, adapter, [REFUNDED | NOTHING, BYE], NEGATIVE)
    assert ran.returncode == 0, ran.stdout
    assert {finding["outcome"] for finding in findings} == {"passed"}


FRAGILE = """
def reply(message):
    with open("asked", "a+") as asked:
        asked.write(".")
        asked.seek(0)
        wrong = len(asked.read()) == 2
    return {"text": "All done." if wrong else "An error.", "error": not wrong, "workflows": []}
"""


def test_a_test_that_wants_an_error_is_scored_by_its_right_trials_too(folder):
    """Four of five right ones, each of two criteria."""
    (folder / "fragile.py").write_text(FRAGILE)
    evaluations = [
        {"criterion": "Errs", "strict": "escalated_due_to_error"},
        {"criterion": "No refund", "strict": "tool_not_used", "toolName": "REFUND"},
    ]
    suite = write_suite(
        folder,
        {"name": "broken", "evaluations": evaluations},
        adapter="python:fragile:reply",
        apiKey="a-key-of-the-agent",
        agentId=None,
    )
    options = ("--provider=offline", "--loops=5", "--min-score=90")
    ran = ci_evals("run", suite, *options, cwd=folder, env={"PYTHONPATH": "."})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(folder)
    assert (results["score"], results["counts"]["scoredTrials"], results["counts"]["errors"]) == (90, 5, 0)


def test_nothing_passes_where_the_last_message_got_no_reply(folder):
    """An agent that dies over a message may have done anything before; errors allowed or not."""
    first = {"text": "One moment."} | NOTHING
    checks = [one for one in NEGATIVE if "beforeTurn" not in one] + [
        {"criterion": "Promises nothing", "strict": "not_contains", "text": "refunded"},
        {"criterion": "Never promises", "strict": "not_contains", "text": "refunded", "turn": "any"},
        {"criterion": "Short", "strict": "max_agent_turns", "turns": 2},
        {"criterion": "Quick", "strict": "max_latency", "seconds": 60},
    ]
    ran, findings = run(folder, "command", [first, None], checks, "--retries=0", "--max-errors=1")
    assert ran.returncode == 3, ran.stdout
    assert {finding["outcome"] for finding in findings} == {"undecided"}
    assert all("message 2 got no reply" in finding["reason"] for finding in findings)
