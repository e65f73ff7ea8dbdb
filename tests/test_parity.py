"""Each command that docs/parity.md names runs, and each test that it names exists."""

import json
import re
import shlex

import fakes
import pytest
import world
from commands import ci_evals, write_suite
from doc_pages import ROOT, code

from ci_evals import load_suite

PAGE = (ROOT / "docs/parity.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| its README"))
]
SHOWN_BY = list(dict.fromkeys(code(row[-1]) for row in ROWS))
COMMANDS = [shown for shown in SHOWN_BY if shown.startswith("aui-evals ")]
TESTS = [shown for shown in SHOWN_BY if "::" in shown]

CUSTOMER_SUPPORT = {
    "name": "Customer Support Evaluations", "agentId": "your-agent-id", "apiKey": "your-api-key",
    "tests": [{
        "name": "Basic support request — should resolve without escalation",
        "userInfo": {"name": "Jane Doe", "subscription_status": "active", "last_amount_charged": "29.99"},
        "guidelines": "You are a user with a billing question. Be polite and cooperative.",
        "turns": [{"user": "Hi, I have a question about my last charge."}, {"user": "auto"}],
        "evaluations": [
            {"criterion": "No escalation", "strict": "not_escalated", "category": "accuracy", "weight": 2},
            {"criterion": "Billing", "strict": "tool_used", "toolName": "BILLING_INQUIRY"},
            {
                "criterion": "Eligibility check rule should fire", "strict": "rule_triggered",
                "ruleCode": "check-billing-eligibility", "aui_logic": ["R1_billing_check"],
            },
            {"criterion": "Type", "strict": "param_exists", "paramName": "inquiry-type"},
            {"criterion": "Agent maintained a friendly and professional tone", "weight": 1},
            {"criterion": "No error", "strict": "not_escalated_due_to_error", "category": "safety"},
        ],
        "tags": ["billing", "no-escalation"],
    }],
}  # fmt: skip
"""A suite with every trait of the example in the other tool's README."""


def answers(asked: world.ModelRequest) -> str:
    return fakes.judge_answer("pass", "Yes.") if asked.wants_json else "###STOP###"


@pytest.fixture
def folder(tmp_path):
    """The files that the commands name."""
    ours = {"adapter": "demo", "agentId": "demo-hr", "apiKey": "k-123456"}
    test = {"name": "refund, please", "tags": ["critical"], "evaluations": [{"criterion": "polite"}]}
    for name in ("my-suite.json", "suite.json"):
        write_suite(tmp_path, test, name=name, **ours)
    (tmp_path / "customer-support.json").write_text(json.dumps(CUSTOMER_SUPPORT))
    return tmp_path


def test_every_parity_row_names_command_or_existing_test():
    assert len(ROWS) > 50
    assert set(SHOWN_BY) == {*COMMANDS, *TESTS}
    for named in TESTS:
        file, _, name = named.partition("::")
        text = (ROOT / file).read_text()
        assert re.search(rf"^(?:async )?def {name}\(", text, flags=re.MULTILINE), named


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_parity_command_succeeds(command, folder):
    """One test of a bundled suite is enough: `test_bundled_suites` plays them whole."""
    with world.llm(answers) as models:
        env = {"OPENAI_BASE_URL": models.openai_url, "ANTHROPIC_BASE_URL": models.url}
        arguments = shlex.split(command.replace("=KEY", f"={models.key}"))[1:]
        if re.fullmatch(r"aui-evals run (demo|quack):\S+ --provider=offline", command):
            (test, *_) = load_suite(arguments[1]).suite.tests
            arguments.append(f"--test={test.name}")
        done = ci_evals(*arguments, cwd=folder, env=env)
        if "--llm-key" in command:
            assert models.asked
    assert done.returncode == 0, done.stdout + done.stderr
