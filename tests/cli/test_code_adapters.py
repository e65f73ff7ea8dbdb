"""Agents that are code, on the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN_ENV, action, ci_evals, read_results, start, write_suite
from exits import exits
from github_runner import Step

pytestmark = pytest.mark.slow
REPLY = """
def reply(message, session):
    number = session.state["number"] = session.state.get("number", 0) + 1
    if message == "fall":
        raise LookupError(f"no order for {session.api_key}")
    return {"text": f"{number}: {message}", "workflows": ["REFUND"], "params": {"order": "HL-1"}}
"""
PROGRAM = """
import json, os, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        if heard["text"] == "fall":
            sys.exit(f"no order for {os.environ['AGENT_KEY']}")
        answer = {"text": heard["text"], "workflows": ["REFUND"], "params": {"order": "HL-1"}}
        print(json.dumps(answer), flush=True)
"""
KEY = "a-key-of-the-agent"
EVALUATIONS = [
    {"criterion": "Refunds", "strict": "tool_used", "toolName": "REFUND"},
    {"criterion": "Knows the order", "strict": "param_equals", "paramName": "order", "paramValue": "HL-1"},
]
TESTS = ({"name": "one", "evaluations": EVALUATIONS}, {"name": "two", "evaluations": EVALUATIONS})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shop.py").write_text(REPLY)
    (tmp_path / "program.py").write_text(PROGRAM)
    info = tmp_path / "site" / "acme_evals-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-evals\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ci_evals.adapters]\nacme = acme:create\n")
    (tmp_path / "site" / "acme.py").write_text(f"{REPLY}\ndef create(config):\n    return reply\n")
    return tmp_path


ADAPTERS = {"python": "python:shop:reply", "command": f"command: {sys.executable} -I program.py"}
ADAPTERS |= {"plug-in": "acme"}
PYTHON_AGENT = {"adapter": "python:shop:reply", "agentId": None, "apiKey": None}


def run_with_adapter(folder, adapter, *tests, options=(), **fields):
    suite = write_suite(folder, *tests, adapter=adapter, apiKey=KEY, agentId=None, **fields)
    return ci_evals("run", suite, *options, cwd=folder, env={"PYTHONPATH": str(folder / "site")})


@pytest.mark.end_to_end
@pytest.mark.parametrize("kind", ADAPTERS)
def test_agent_of_each_code_adapter_runs_and_its_exception_is_redacted(folder, kind):
    ran = run_with_adapter(folder, ADAPTERS[kind], *TESTS, options=("--parallel=4", "--loops=3"))
    assert ran.returncode == 0, ran.stderr + ran.stdout
    results = read_results(folder)
    assert (results["score"], results["counts"]["trials"]) == (100, 6)
    tests = results["suites"][0]["tests"]
    assert [[trial["index"] for trial in test["trials"]] for test in tests] == [[1, 2, 3]] * 2
    turn = tests[0]["trials"][0]["turns"][0]
    assert (turn["workflows"], turn["params"], turn["rules"]) == (["REFUND"], {"order": "HL-1"}, None)
    ran = run_with_adapter(folder, ADAPTERS[kind], {"turns": [{"user": "fall"}]})
    assert ran.returncode == 3, ran.stderr
    error = read_results(folder)["suites"][0]["tests"][0]["trials"][0]["error"]
    assert "no order for ***" in error
    assert KEY not in ran.stdout + ran.stderr
    if kind == "python":
        assert error == "python:shop:reply raised LookupError: no order for *** (shop.py:5, in reply)"


def test_agent_code_that_cannot_be_loaded_exits_2(folder):
    (folder / "site" / "acme.py").write_text("1/0")
    for adapter, text in (
        ("python:shop:replay", "error: adapter 'python:shop:replay': the module 'shop'"),
        ("command: no-such-program", "there is no program 'no-such-program'"),
        ("acme", "adapter 'acme' of the package 'acme-evals' 1.0: 'acme:create' cannot be imported"),
    ):
        ran = run_with_adapter(folder, adapter, *TESTS)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert text in ran.stderr
        assert "Traceback" not in ran.stderr
    assert not (folder / "results").exists()


def test_action_and_adapter_option_find_agent_in_current_folder(folder, tmp_path):
    (tmp_path / "runner").mkdir()
    step = Step(tmp_path / "runner")
    suite = write_suite(folder, *TESTS, **PYTHON_AGENT)
    done = action(cwd=folder, env=step.variables(step.folder, {"suites": suite}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert step.outputs["result"] == "passed"
    suite = write_suite(folder, *TESTS, agentId=None, apiKey=None)
    assert ci_evals("run", suite, "--adapter=python:shop:reply", cwd=folder).returncode == 0


def test_files_beside_agent_do_not_shadow_packages_of_ci_evals(folder):
    """Although the folder comes first on the path: reports are made at the end, with what they need."""
    for name in ("aiohttp", "jinja2", "junit_xml", "rapidfuzz", "six", "tabulate", "yaml"):
        (folder / f"{name}.py").write_text("1/0")
    suite = write_suite(folder, *TESTS, **PYTHON_AGENT)
    # As the command is installed: only a module that is run puts the folder first by itself.
    command = [sys.executable, "-P", "-m", "ci_evals", "run", suite, "--provider=offline"]
    ran = subprocess.run(command, check=False, cwd=folder, env=CLEAN_ENV, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (folder / "results" / "junit.xml").exists()


STUBBORN = """
import json, os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); "
    "time.sleep(60)"
)
other = subprocess.Popen([sys.executable, "-Ic", child], stdout=subprocess.PIPE)
other.stdout.readline()
sys.stdin.readline(); sys.stdin.readline()
with open("pids", "w") as file:
    json.dump([os.getpid(), other.pid], file)
open("began", "w").close()
os.kill(int(os.environ["RUN"]), int(os.environ["SIGNAL"]))
time.sleep(60)
"""
HANGING = """
import os, time
def reply(message):
    open("began", "w").close()
    os.kill(os.getppid(), int(os.environ["SIGNAL"]))
    time.sleep(60)
"""
BLOCKING = HANGING.replace("def reply", "async def reply")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["python", "coroutine", "command"])
def test_interrupted_run_ends_agent_that_ignores_signals(folder, kind, number):
    (folder / "shop.py").write_text(BLOCKING if kind == "coroutine" else HANGING)
    (folder / "program.py").write_text(STUBBORN)
    # The shell says which process the run is, and becomes it.
    (folder / "agent.sh").write_text(f"#!/bin/sh\nRUN=$PPID exec {sys.executable} -I program.py\n")
    (folder / "agent.sh").chmod(0o755)
    adapter = "command: ./agent.sh" if kind == "command" else ADAPTERS["python"]
    suite = write_suite(folder, {"name": "first"}, {"name": "second"}, **PYTHON_AGENT | {"adapter": adapter})
    process = start("run", suite, cwd=folder, env={"SIGNAL": str(int(number))})
    process.communicate(timeout=300)
    assert time.time() - (folder / "began").stat().st_mtime < 7
    assert process.returncode == 130
    assert [t["outcome"] for t in read_results(folder)["suites"][0]["tests"]] == ["error", "not_run"]
    for pid in json.loads((folder / "pids").read_text()) if kind == "command" else ():
        assert has_ended(pid), pid


def test_timeout_of_turn_holds_although_coroutine_blocks(folder):
    """`requests` in an `async` function is a common slip."""
    reply = "import time\nasync def reply(message):\n    time.sleep(3000)\n    return 'Hi'"
    (folder / "shop.py").write_text(reply)
    test = {"name": "blocks", "turns": [{"user": "wait", "timeout": 0.2}]}
    ran = ci_evals("run", write_suite(folder, test, **PYTHON_AGENT), "--retries=0", cwd=folder)
    assert (ran.returncode, "did not answer within 0.2 s" in ran.stdout) == (3, True), ran.stderr
    assert read_results(folder)["suites"][0]["tests"][0]["trials"][0]["status"] == "failed"


def test_keys_in_environment_are_redacted_if_agent_returns_them(folder):
    """Also those that no suite names: code reads the environment by itself."""
    (folder / "shop.py").write_text("import os\ndef reply(message):\n    return str(dict(os.environ))\n")
    env = {"AGENT_KEY": "agent-key-3f9c77aa", "GH_TOKEN": "ghs-51d0c7e2aa", "OPENAI_API_KEY": "sk-88bb21cc77"}
    suite = write_suite(folder, {}, **PYTHON_AGENT)
    ran = ci_evals("run", suite, "--debug", "--verbose", cwd=folder, env=env)
    text = ran.stdout + ran.stderr + (folder / "results/_results.json").read_text()
    assert "AGENT_KEY" in text
    assert not [key for key in env.values() if key in text]


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        os.sched_yield()
    return False


WAITING_AGENT = """
import time
def reply(message):
    if message == "wait":
        time.sleep(3000)
    return message
"""


def test_fail_fast_and_max_duration_end_run_and_are_named_in_reports(folder):
    (folder / "shop.py").write_text(WAITING_AGENT)
    repeats = {"evaluations": [{"criterion": "says it", "strict": "contains", "text": "Hello"}]}
    for option, second, code, outcome in (
        ("--fail-fast", "other", 1, "failed"),
        ("--max-duration=1", "wait", 3, "error"),
    ):
        tests = [{"name": str(number)} | repeats for number in range(4)]
        tests[1]["turns"] = [{"user": second}]
        exits(code, "run", write_suite(folder, *tests, **PYTHON_AGENT), option, "--retries=0", cwd=folder)
        results = read_results(folder)
        outcomes = [test["outcome"] for test in results["suites"][0]["tests"]]
        assert outcomes == ["passed", outcome, "not_run", "not_run"]
        limit = option.partition("=")[0].removeprefix("--")
        assert limit in results["run"]["stoppedBecause"]
        assert limit in (folder / "results/summary.md").read_text()
