"""Agents that are code, through the command line: from a suite to its results."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN_ENV, action, ci_evals, read_results, start, write_suite
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
        told = {"text": heard["text"], "workflows": ["REFUND"], "params": {"order": "HL-1"}}
        print(json.dumps(told), flush=True)
"""
KEY = "a-key-of-the-agent"
EVALUATIONS = [
    {"criterion": "Refunds", "strict": "tool_used", "toolName": "REFUND"},
    {"criterion": "Knows the order", "strict": "param_equals", "paramName": "order", "paramValue": "HL-1"},
]
TESTS = ({"name": "one", "evaluations": EVALUATIONS}, {"name": "two", "evaluations": EVALUATIONS})


@pytest.fixture
def folder(tmp_path):
    """A repository with an agent of each kind."""
    (tmp_path / "shop.py").write_text(REPLY)
    (tmp_path / "program.py").write_text(PROGRAM)
    info = tmp_path / "site" / "acme_evals-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-evals\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ci_evals.adapters]\nacme = acme:create\n")
    (tmp_path / "site" / "acme.py").write_text(f"{REPLY}\ndef create(config):\n    return reply\n")
    return tmp_path


ADAPTERS = {
    "python": "python:shop:reply",
    "command": f"command: {sys.executable} -I program.py",
    "plug-in": "acme",
}


def played(folder, adapter, *tests, options=(), **fields):
    suite = write_suite(folder, *tests, adapter=adapter, apiKey=KEY, agentId=None, **fields)
    return ci_evals("run", suite, *options, cwd=folder, env={"PYTHONPATH": str(folder / "site")})


@pytest.mark.end_to_end
@pytest.mark.parametrize("kind", ADAPTERS)
def test_a_run_against_code(folder, kind):
    """Several conversations at a time, each by itself; what it tells decides."""
    ran = played(folder, ADAPTERS[kind], *TESTS, options=("--parallel=4", "--loops=3"))
    assert ran.returncode == 0, ran.stderr + ran.stdout
    results = read_results(folder)
    assert (results["score"], results["counts"]["trials"]) == (100, 6)
    turn = results["suites"][0]["tests"][0]["trials"][0]["turns"][0]
    assert (turn["workflows"], turn["params"], turn["rules"]) == (
        ["REFUND"],
        {"order": "HL-1"},
        None,
    )


@pytest.mark.parametrize("kind", ADAPTERS)
def test_code_that_falls_over_is_the_agents_failure(folder, kind):
    """Exit 3, with the reason, and without the key that is in it; no bug of ours."""
    ran = played(folder, ADAPTERS[kind], {"turns": [{"user": "fall"}]})
    assert ran.returncode == 3, ran.stderr
    error = read_results(folder)["suites"][0]["tests"][0]["trials"][0]["error"]
    assert "no order for ***" in error
    assert KEY not in ran.stdout + ran.stderr
    if kind == "python":
        assert error == "python:shop:reply raised LookupError: no order for *** (shop.py:5, in reply)"


@pytest.mark.parametrize(
    ("adapter", "text"),
    [
        ("python:shop:replay", "error: adapter 'python:shop:replay': the module 'shop'"),
        ("command: no-such-program", "there is no program 'no-such-program'"),
        ("acme", "adapter 'acme' of the package 'acme-evals' 1.0: 'acme:create' cannot be imported"),
    ],
)
def test_unusable_code_runs_nothing(folder, adapter, text):
    """Exit 2, in one line."""
    (folder / "site" / "acme.py").write_text("1/0")
    ran = played(folder, adapter, *TESTS)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert text in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (folder / "results").exists()


def test_the_action_finds_the_code_in_the_workspace(folder, tmp_path):
    """Its program lies elsewhere; the current folder is what counts."""
    (tmp_path / "runner").mkdir()
    step = Step(tmp_path / "runner")
    suite = write_suite(folder, *TESTS, adapter="python:shop:reply", agentId=None, apiKey=None)
    done = action(cwd=folder, env=step.variables(step.folder, {"suites": suite}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert step.outputs["result"] == "passed"


def test_the_user_may_name_the_code(folder):
    """In place of the suite's adapter."""
    suite = write_suite(folder, *TESTS, agentId=None, apiKey=None)
    assert ci_evals("run", suite, "--adapter=python:shop:reply", cwd=folder).returncode == 0


def test_no_file_beside_the_agent_is_taken_for_a_package_of_ours(folder):
    """Though the folder comes first on the path: reports are made at the end, with what they need."""
    for name in ("aiohttp", "jinja2", "junit_xml", "rapidfuzz", "six", "tabulate", "yaml"):
        (folder / f"{name}.py").write_text("1/0")
    suite = write_suite(folder, *TESTS, adapter="python:shop:reply", agentId=None, apiKey=None)
    # As the command is installed: only a module that is run puts the folder first by itself.
    command = [sys.executable, "-P", "-m", "ci_evals", "run", suite, "--provider=offline"]
    ran = subprocess.run(
        command, check=False, cwd=folder, env=CLEAN_ENV, capture_output=True, text=True, timeout=300
    )
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
def test_an_interruption_leaves_nothing_behind(folder, kind, number):
    """Exit 130 in under seven seconds with all reports, though nothing of the agent's wants to end."""
    (folder / "shop.py").write_text(BLOCKING if kind == "coroutine" else HANGING)
    (folder / "program.py").write_text(STUBBORN)
    # The shell says which process the run is, and becomes it.
    (folder / "agent.sh").write_text(f"#!/bin/sh\nRUN=$PPID exec {sys.executable} -I program.py\n")
    (folder / "agent.sh").chmod(0o755)
    adapter = "command: ./agent.sh" if kind == "command" else ADAPTERS["python"]
    suite = write_suite(
        folder, {"name": "first"}, {"name": "second"}, adapter=adapter, agentId=None, apiKey=None
    )
    process = start("run", suite, cwd=folder, env={"SIGNAL": str(int(number))})
    process.communicate(timeout=300)
    assert time.time() - (folder / "began").stat().st_mtime < 7
    assert process.returncode == 130
    assert [t["outcome"] for t in read_results(folder)["suites"][0]["tests"]] == ["error", "not_run"]
    for pid in json.loads((folder / "pids").read_text()) if kind == "command" else ():
        assert ended(pid), pid


def test_a_coroutine_that_blocks_holds_up_no_timeout(folder):
    """`requests` in an `async` function is a common slip: the turn ends in time, and so does the run."""
    (folder / "shop.py").write_text(
        "import time\nasync def reply(message):\n    time.sleep(120)\n    return 'Hi'"
    )
    suite = write_suite(
        folder,
        {"name": "blocks", "turns": [{"user": "wait", "timeout": 0.2}]},
        adapter=ADAPTERS["python"],
        agentId=None,
        apiKey=None,
    )
    began = time.monotonic()
    ran = ci_evals("run", suite, "--retries=0", cwd=folder)
    assert time.monotonic() - began < 60
    assert ran.returncode == 3, ran.stderr
    assert "did not answer within 0.2 s" in ran.stdout
    assert read_results(folder)["suites"][0]["tests"][0]["trials"][0]["status"] == "failed"


def test_the_keys_of_the_job_stay_hidden_where_code_shows_its_environment(folder):
    """Also those that no suite names: code reads the environment by itself."""
    (folder / "shop.py").write_text("import os\ndef reply(message):\n    return str(dict(os.environ))\n")
    env = {"AGENT_KEY": "agent-key-3f9c77aa", "GH_TOKEN": "ghs-51d0c7e2aa", "OPENAI_API_KEY": "sk-88bb21cc77"}
    suite = write_suite(folder, {}, adapter=ADAPTERS["python"], agentId=None, apiKey=None)
    ran = ci_evals("run", suite, "--debug", "--verbose", cwd=folder, env=env)
    text = ran.stdout + ran.stderr + (folder / "results/_results.json").read_text()
    assert "AGENT_KEY" in text
    assert not [key for key in env.values() if key in text]


def ended(pid: int) -> bool:
    """Whether a process is gone, or will be once the system looks after it."""
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


ENDING = """
import time
def reply(message):
    if message == "wait":
        time.sleep(30)
    return message
"""
OTHER = {"turns": [{"user": "other"}]}


@pytest.mark.parametrize(
    ("option", "second", "code", "outcomes"),
    [
        ("--fail-fast", OTHER, 1, ["passed", "failed", "not_run", "not_run"]),
        ("--max-duration=1", {"turns": [{"user": "wait"}]}, 3, ["passed", "error", "not_run", "not_run"]),
    ],
)
def test_a_limit_ends_the_run_in_order(folder, option, second, code, outcomes):
    """What had finished is reported; the rest is listed as not run, and the reports name the limit."""
    (folder / "shop.py").write_text(ENDING)
    says = {"evaluations": [{"criterion": "says it", "strict": "contains", "text": "Hello"}]}
    tests = [{"name": str(number)} | says | (second if number == 1 else {}) for number in range(4)]
    suite = write_suite(folder, *tests, adapter=ADAPTERS["python"], agentId=None, apiKey=None)
    began = time.monotonic()
    ran = ci_evals("run", suite, option, "--retries=0", cwd=folder)
    assert time.monotonic() - began < 15
    assert ran.returncode == code, ran.stderr
    results = read_results(folder)
    assert [test["outcome"] for test in results["suites"][0]["tests"]] == outcomes
    assert option.partition("=")[0].removeprefix("--") in results["run"]["stoppedBecause"]
    assert option.partition("=")[0].removeprefix("--") in (folder / "results/summary.md").read_text()
