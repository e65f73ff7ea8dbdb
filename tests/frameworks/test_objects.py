"""Agents that are objects of real frameworks, named by `python:`: only `make frameworks` runs these."""

import json
import os
import re
import subprocess
from pathlib import Path

import commands
import pytest
from doc_pages import ROOT, page
from environments import environment

pytestmark = pytest.mark.frameworks
OBJECTS = Path(__file__).parent / "objects"
FRAMEWORKS = {
    "pydantic_ai_agents": ["pydantic-ai-slim==2.68.0"], "langgraph_agents": ["langgraph==1.2.22"],
    "openai_agents_agents": ["openai-agents==0.24.0"], "adk_agents": ["google-adk==2.13.0"],
}  # fmt: skip
REFUND = {"toolName": "refund", "args": {"order": "A-1", "amount": 42}}
CHECKS = {
    "the right refund": {"strict": "tool_called", **REFUND, "times": 1, "turn": 2},
    "not before it was asked for": {"strict": "tool_not_used", "toolName": "refund", "beforeTurn": 2},
    "a memory": {"strict": "contains", "text": "This was message 3.", "turn": 3},
}
SUITE = {
    "name": "Refunds",
    "tests": [{
        "name": "Refund", "userInfo": {"name": "Ida"}, "guidelines": "You want order A-1 refunded.",
        "turns": [{"user": "Hello"}, {"user": "Please refund order A-1"}, {"user": "Thanks"}],
        "evaluations": [{"criterion": name, **check} for name, check in CHECKS.items()],
    }],
}  # fmt: skip


def run(module, attribute, folder, *args, suite=SUITE, **environ):
    """Play the suite by the real command in the framework's environment."""
    python = environment([*FRAMEWORKS[module], "-e", str(ROOT)]) / "bin/python"
    (folder / "suite.json").write_text(json.dumps(suite | {"adapter": f"python:{module}:{attribute}"}))
    (folder / f"{module}.py").write_text((OBJECTS / f"{module}.py").read_text())
    command = [python, "-m", "ci_evals", "run", "suite.json", "--provider=offline", "--retries=0", *args]
    own = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=own | environ, capture_output=True, text=True, check=False, timeout=600
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


PROGRAMS = dict(zip(
    ("pydantic_ai_agents", "langgraph_agents", "openai_agents_agents", "adk_agents"),
    re.findall(r"```python\n(import .+?)```", page("python-frameworks.md"), re.DOTALL),
    strict=True,
))  # fmt: skip


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_docs_program_serves_agent_from_another_python_environment(module, tmp_path):
    python = environment(FRAMEWORKS[module]) / "bin/python"
    (tmp_path / "serve.py").write_text(PROGRAMS[module])
    source = (OBJECTS / f"{module}.py").read_text()
    (tmp_path / "shop.py").write_text(source.replace(", deps_type=Deps", "").replace("ctx.deps.name", "0"))
    (tmp_path / "suite.json").write_text(json.dumps(SUITE | {"adapter": f"command: {python} serve.py"}))
    for amount, code in (("42", 0), ("24", 1)):
        env = {"AMOUNT": amount}
        done = commands.ci_evals("run", "suite.json", "--provider=offline", cwd=tmp_path, env=env)
        assert done.returncode == code, done.stdout + done.stderr


def trial_in(folder) -> dict:
    results = json.loads((folder / "results/_results.json").read_text())
    return results["suites"][0]["tests"][0]["trials"][0]


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_framework_agent_passes_with_calls_memory_and_tokens(module, tmp_path):
    done = run(module, "agent", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    turns = trial_in(tmp_path)["turns"]
    first = "One moment.\n\n" if module == "langgraph_agents" else ""  # said with its call
    assert [turn["agent"] for turn in turns] == [
        "This was message 1.", f"{first}42 dollars are on their way.", "This was message 3.",
    ]  # fmt: skip
    (call,) = [call for call in turns[1]["toolCalls"] if call["name"] == "refund"]
    assert call["arguments"] == REFUND["args"]
    assert call["result"] == ("posted" if module == "langgraph_agents" else {"refunded": 42, "to": "Ida"})
    assert all(turn["inputTokens"] > 0 and turn["outputTokens"] > 0 for turn in turns)


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_framework_agent_continues_from_a_history(module, tmp_path):
    turns = [{"user": "Hello"}, {"assistant": "This was message 1."}, {"user": "Hi"}]
    memory = {"criterion": "c", "strict": "contains", "text": "This was message 2."}
    tests = [SUITE["tests"][0] | {"turns": turns, "maxTurns": 1, "evaluations": [memory]}]
    done = run(module, "agent", tmp_path, suite=SUITE | {"tests": tests})
    assert done.returncode == 0, done.stdout + done.stderr
    assert [turn["agent"] for turn in trial_in(tmp_path)["turns"]] == ["This was message 2."]


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_framework_agent_with_a_wrong_amount_fails(module, tmp_path):
    done = run(module, "agent", tmp_path, AMOUNT="24")
    assert done.returncode == 1, done.stdout + done.stderr
    outcomes = [finding["outcome"] for finding in trial_in(tmp_path)["findings"]]
    assert outcomes == ["failed", "passed", "passed"]


def test_calls_of_a_graph_inside_a_tool_are_read_with_tokens(tmp_path):
    run("langgraph_agents", "agent", tmp_path)
    refunding = trial_in(tmp_path)["turns"][1]
    assert [call["name"] for call in refunding["toolCalls"]] == ["refund", "post"]
    assert (refunding["inputTokens"], refunding["outputTokens"]) == (20, 8)


def test_built_in_tools_of_adk_models_are_calls(tmp_path):
    run("adk_agents", "hosted", tmp_path)
    (call,) = trial_in(tmp_path)["turns"][0]["toolCalls"]
    assert (call["name"], call["arguments"]) == ("google_search_web", {"query": "refunds"})
    assert call["result"] == {"pages": 3}


@pytest.mark.parametrize(("name", "code"), [("Ida", 0), ("Bob", 1)])
def test_adk_session_state_is_checked(name, code, tmp_path):
    state = {"criterion": "c", "strict": "state", "probe": "agent_state", "path": "$.name", "equals": name}
    suite = SUITE | {"tests": [SUITE["tests"][0] | {"evaluations": [state]}]}
    done = run("adk_agents", "agent", tmp_path, suite=suite)
    assert done.returncode == code, done.stdout + done.stderr


WAITING = {
    "pydantic_ai_agents": "the run waits for the outcome of the tools 'delete'",
    "langgraph_agents": "the graph stopped at an interrupt, 'May I delete A-1?'",
    "openai_agents_agents": "the run waits for approval of the tools 'delete'",
    "adk_agents": "the run waits for a person or a long process, at the tools 'delete'",
}
FAULTS = [
    *((module, "waiting", f"is no text: {clause}") for module, clause in WAITING.items()),
    *((module, "failing", "ConnectionError: no model at http://") for module in FRAMEWORKS),
    *((module, "silent", "has no text: ") for module in FRAMEWORKS if module != "pydantic_ai_agents"),
    ("pydantic_ai_agents", "silent", "UnexpectedModelBehavior: Exceeded maximum output retries"),
]


@pytest.mark.parametrize(("module", "attribute", "message"), FAULTS)
def test_exception_interrupt_or_missing_text_errors_the_trial(module, attribute, message, tmp_path):
    done = run(module, attribute, tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    trial = trial_in(tmp_path)
    assert message in trial["error"]
    assert {finding["outcome"] for finding in trial["findings"]} == {"undecided"}


def test_uncompiled_graph_is_refused_before_the_run(tmp_path):
    done = run("langgraph_agents", "uncompiled", tmp_path)
    assert done.returncode == 2
    assert "is a LangGraph graph that is not compiled: name graph.compile()" in done.stderr
