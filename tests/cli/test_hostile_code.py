"""Hostile agent code: it cannot make a run pass, read keys or leave processes behind."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from commands import CLEAN_ENV, ci_evals, open_descriptors, read_files, read_results, start, write_suite
from exits import exits

from ci_evals.agents.python.hosting.host import Host
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import UsageError
from ci_evals.support.redaction import Redactor

pytestmark = pytest.mark.slow
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
AGENT = {"adapter": "python:agent:reply", "agentId": None, "apiKey": None}
NEVER = {"evaluations": [{"criterion": "No", "strict": "contains", "text": "Never"}]}
KEY = "agent-key-3f9c77aa51"
HEAD = """
import ctypes, gc, json, os, signal, subprocess, sys, threading, time
KEY = os.environ.get("AGENT_KEY", "")

class Items(dict):
    def items(self):
        sys.exit(0)
    keys = values = __iter__ = items

class Shown(Exception):
    def __str__(self):
        os._exit(0)

class Leaving(Exception):
    def __str__(self):
        sys.exit(0)

class Odd(BaseException):
    pass

class Named(type):
    __name__ = property(lambda _: sys.exit(0))

class Unnamed(Exception, metaclass=Named):
    pass

def setsid():
    code = "import os, time; os.setsid(); os.fork() and os._exit(0); open('left', 'w'); time.sleep(60)"
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", code.replace("open('left', 'w')", "f = open('left', 'w')")])
    while not os.path.exists("left"):
        time.sleep(0.01)

def endless():
    while True:
        print(KEY, "::error::owned", "#" * 4000)

def deep():
    return deep()

def forge():
    child = next(one for one in gc.get_objects() if type(one).__name__ == "_Child")
    for number in range(50):
        error = {"kind": "usage", "words": ["forged", "", ""]}
        child._write(json.dumps({"id": number, "error": error}).encode() + b"\\n")
"""
PROCESS_ENDED = "the agent's process ended (exit status 0) in the middle of a reply"
TRICKS = {
    "exit": ("os._exit(0)", PROCESS_ENDED),
    "sys.exit": ("sys.exit(0)", "raised SystemExit: 0"),
    "sys.exit while the reply is read": ("return Items(text='Hi')", "raised SystemExit: 0"),
    "exit while the error is shown": ("raise Shown", PROCESS_ENDED),
    "sys.exit while the error is shown": ("raise Leaving", "raised Leaving"),
    "sys.exit while the error is named": ("raise Unnamed", "raised Unnamed"),
    "no Exception": ("raise Odd(KEY)", "raised Odd: ***"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
    "GeneratorExit": ("raise GeneratorExit", "raised GeneratorExit"),
    "a crash in C": ("ctypes.string_at(0)", "the agent's process ended (signal 11)"),
    "an abort": ("os.abort()", "the agent's process ended (signal 6)"),
    "a kill": ("os.kill(os.getpid(), signal.SIGKILL)", "the agent's process ended (signal 9)"),
    "recursion": ("return deep()", "raised RecursionError"),
    "all descriptors closed": ("os.closerange(0, 4096); time.sleep(60)", "the agent's process"),
    "last words": (
        "print('::error::', KEY); os._exit(7)",
        "(exit status 7) in the middle of a reply; its last",
    ),
    "endless output": ("endless()", "did not answer within 2 s"),
    "a hang": ("time.sleep(60)", "did not answer within 2 s"),
    "a stop": ("os.kill(os.getpid(), signal.SIGSTOP)", "did not answer within 2 s"),
    "a huge reply": ("return 'x' * 40_000_000", "is longer than 16 MB"),
    "an answer in our name": ("forge()", "python:agent:reply: forged"),
    "no JSON": ("return {'text': 'Hi', 'trace': 10**5000}", "contains a value that is not JSON"),
}


TOGETHER = 8
"""Tricks of one run: ten trials in a row that error would end it."""
TRICKS_OF_RUNS = [
    dict(islice(TRICKS.items(), start, start + TOGETHER)) for start in range(0, len(TRICKS), TOGETHER)
]


def run_reply(folder, work, *options, tests=1, kind="def", code=None):
    (folder / "agent.py").write_text(f"{HEAD}\n{kind} reply(message):\n    {work}\n")
    names = [f"test {number}" for number in range(tests)]
    return run_of(folder, dict.fromkeys(names, "Hello"), *options, code=code)


def run_of(folder, messages, *options, code=None):
    """Run tests of one turn with the agent in a folder; `messages` are their turns by their names."""
    evaluations = [{"criterion": "Greets", "strict": "contains", "text": "Hello"}]
    each = [
        {"name": name, "turns": [{"user": message, "timeout": 2}], "evaluations": evaluations}
        for name, message in messages.items()
    ]
    suite = write_suite(folder, *each, **AGENT)
    given = ("run", suite, "--provider=offline", "--retries=0", *options)
    return exits(code, *given, cwd=folder, env={"AGENT_KEY": KEY, "GITHUB_ACTIONS": "true"})


def suite_tests(folder):
    return read_results(folder)["suites"][0]["tests"]


def run_apart(folder, suite, *prefix, **variables):
    """Run in a process that is not forked from one that has imported everything."""
    command = [*prefix, sys.executable, "-m", "ci_evals", "run", suite, "--provider=offline"]
    env = CLEAN_ENV | variables
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("tricks", TRICKS_OF_RUNS, ids=lambda tricks: next(iter(tricks)))
def test_hostile_agent_code_errors_its_trial_and_reports_are_written_without_key(tmp_path, tricks):
    functions = [
        f"def trick_{number}(message):\n    {work}" for number, (work, _) in enumerate(tricks.values())
    ]
    reply = "def reply(message):\n    return globals()[message](message)"
    (tmp_path / "agent.py").write_text("\n\n".join([HEAD, *functions, reply]))
    messages = {name: f"trick_{number}" for number, name in enumerate(tricks)}
    ran = run_of(tmp_path, messages, "--parallel=1", code=3)
    errors = {test["name"]: test["trials"][0]["error"] for test in suite_tests(tmp_path)}
    assert errors.keys() == tricks.keys()
    for name, (_, reason) in tricks.items():
        assert errors[name], name
        assert reason in errors[name]
    outputs = {name: data.decode() for name, data in read_files(tmp_path / "results").items()}
    assert {"_results.json", "report.html", "junit.xml", "summary.md"} <= outputs.keys()
    for text in (*outputs.values(), (ran.stdout + ran.stderr).replace(f"::add-mask::{KEY}", "")):
        assert KEY not in text
        assert "\n::error::owned" not in text


@pytest.mark.parametrize(
    "name", ["exit", "sys.exit while the reply is read", "no Exception", "KeyboardInterrupt"]
)
def test_hostile_agent_code_in_process_of_run_exits_3(tmp_path, name):
    """`--agent-in-process` is for debugging."""
    ran = run_reply(tmp_path, TRICKS[name][0], "--agent-in-process", code=3)
    assert KEY not in (ran.stdout + ran.stderr).replace(f"::add-mask::{KEY}", "")


def test_agent_that_kills_the_run_or_exits_at_import_prevents_a_verdict(tmp_path):
    ran = run_reply(tmp_path, "return message\nprint('no room'); os._exit(0)", code=2)
    reason = "the agent's process ended (exit status 0) while it loaded; its last output: no room"
    assert reason in ran.stdout + ran.stderr
    ran = run_reply(tmp_path, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)")
    assert (ran.returncode, "SIGKILL ended it" in ran.stdout + ran.stderr) == (3, True)


def test_exited_or_blocked_agent_process_is_replaced_until_ten_failures_in_a_row(tmp_path):
    work = "if os.path.exists('died'): return message\n    open('died', 'w').close(); os._exit(0)"
    ran = run_reply(tmp_path, work, tests=3, code=3)
    assert [test["outcome"] for test in suite_tests(tmp_path)] == ["error", "passed", "passed"]
    ran = run_reply(tmp_path, "os._exit(0)", "--parallel=1", tests=11, code=3)
    assert read_results(tmp_path)["run"]["stoppedBecause"].startswith("10 trials in a row errored")
    work = "if os.path.exists('blocked'): return message\n    open('blocked', 'w').close(); time.sleep(600)"
    ran = run_reply(tmp_path, work, tests=6, kind="async def")
    outcomes = [test["outcome"] for test in suite_tests(tmp_path)]
    assert (ran.returncode, outcomes[0], outcomes[-1]) == (3, "error", "passed")


@needs_proc
@pytest.mark.parametrize("options", [(), ("--agent-in-process",)])
def test_detached_processes_of_agent_are_ended_with_run(tmp_path, options):
    """Although they lead sessions of their own, and have lost their parents."""
    run_reply(tmp_path, "setsid(); return message", *options, code=0)
    assert not open_descriptors(tmp_path / "left")


@needs_proc
def test_detached_processes_of_agent_are_ended_if_run_is_killed(tmp_path):
    """The process of the agent sees its pipe close."""
    reply = "def reply(message):\n    setsid(); open('began', 'w'); time.sleep(60)\n"
    (tmp_path / "agent.py").write_text(f"{HEAD}\n{reply}")
    process = start("run", write_suite(tmp_path, {}, **AGENT), "--provider=offline", cwd=tmp_path)
    until = time.monotonic() + 300
    while not (tmp_path / "began").exists() and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=300)
    assert process.returncode == -9
    until = time.monotonic() + 300
    while open_descriptors(tmp_path / "left") and time.monotonic() < until:
        time.sleep(0.1)
    assert not open_descriptors(tmp_path / "left")


@needs_proc
def test_detached_processes_of_program_are_ended_with_conversation(tmp_path):
    loop = "for line in sys.stdin:\n    if 'message' in line: print('\"Hello\"', flush=True)\n"
    (tmp_path / "program.py").write_text(f"{HEAD}\nsetsid()\n{loop}")
    greets = {"evaluations": [{"criterion": "Greets", "strict": "contains", "text": "Hello"}]}
    suite = write_suite(tmp_path, greets, **AGENT | {"adapter": f"command: {sys.executable} program.py"})
    exits(0, "run", suite, "--provider=offline", cwd=tmp_path)
    assert not open_descriptors(tmp_path / "left")


def test_agent_output_is_only_in_agent_log_without_keys_and_runner_commands(tmp_path):
    ran = run_reply(
        tmp_path, "print('::error::owned', KEY); sys.stderr.write('more'); return message", code=0
    )
    log = (tmp_path / "results/agent.log").read_text()
    assert "owned ***" in log
    assert "more" in log
    assert "\n::error::" not in f"\n{log}"
    assert "owned" not in ran.stdout + ran.stderr


def test_run_passes_although_agent_closes_stdout_changes_folder_and_suspends_run(tmp_path):
    """The supervisor hears of a stop on Linux."""
    stop = "os.kill(os.getppid(), signal.SIGSTOP); " if sys.platform == "linux" else ""
    ran = run_reply(tmp_path, f"sys.stdout.close(); os.chdir('/'); {stop}return message", tests=2, code=0)
    assert "2 of 2 tests pass" in ran.stdout


NO_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
SNOOPING_AGENT = """
import os

def parent_of(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])

def attempt(path, mode):
    try:
        with open(path, mode) as file:
            if "w" in mode:
                file.write(b"\\n::error::owned\\n")
            return file.read().decode(errors="replace") if mode == "rb" else "opened"
    except OSError:
        return ""

def reply(message):
    worker = parent_of(os.getpid())
    texts = []
    for pid in (worker, parent_of(worker)):
        texts += [attempt(f"/proc/{pid}/{name}", mode) for name, mode in
                  (("environ", "rb"), ("mem", "rb+"), ("fd/1", "wb"), ("fd/2", "wb"))]
    open("found", "w").write("".join(texts))
    return message
"""


@needs_proc
def test_agent_cannot_read_keys_or_write_streams_of_run_through_proc(tmp_path):
    """Although it has the same user, also if that is root."""
    is_root = os.geteuid() == 0
    if is_root and not shutil.which("setpriv"):
        pytest.skip("nothing takes root's capabilities away, as a container does")
    (tmp_path / "agent.py").write_text(SNOOPING_AGENT)
    suite = write_suite(tmp_path, {}, **AGENT)
    prefix = NO_CAPABILITIES if is_root else ()
    ran = run_apart(tmp_path, suite, *prefix, CI_EVALS_LLM_KEY=KEY, GITHUB_ACTIONS="true")
    assert "owned" not in ran.stdout + ran.stderr
    assert not (tmp_path / "found").read_text()


FORGED = "passed=true\\nresult=passed\\nrest<<false\\n"


def outputs_of(tmp_path, work):
    """The exit code and the step's outputs of a run whose agent did `work`."""
    for name in ("outputs", "variables"):
        (tmp_path / name).write_text("before=1\n")
    (tmp_path / "agent.py").write_text(f"{HEAD}\nFORGED = '{FORGED}'\n{work}\n")
    suite = write_suite(tmp_path, NEVER, **AGENT)
    env = {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "GITHUB_ENV": str(tmp_path / "variables")}
    ran = ci_evals("run", suite, "--provider=offline", cwd=tmp_path, env=env)
    assert (tmp_path / "variables").read_text() == "before=1\n"
    return ran.returncode, (tmp_path / "outputs").read_text()


def test_action_outputs_forged_by_agent_are_removed(tmp_path):
    """It finds the runner's files, whose names it is not given."""
    work = "[open(name, 'a').write(FORGED) for name in ('outputs', 'variables')]"
    code, outputs = outputs_of(tmp_path, f"def reply(message):\n    {work}\n    return message")
    assert code == 1
    assert "passed=true" not in outputs
    assert outputs.startswith("before=1\npassed<<")
    (tmp_path / "refused").mkdir()
    code, outputs = outputs_of(tmp_path / "refused", f"{work}\nos._exit(0)")
    assert code == 2
    assert "passed=true" not in outputs
    assert "\ninvalid\n" in outputs


LURKING_PROGRAM = """
import json, os, time
os.setsid()
os.fork() and os._exit(0)
open("lurks", "w").close()
end = time.time() + 20
while time.time() < end:
    try:
        if json.load(open("results/_results.json"))["run"]["status"] != "unfinished":
            open("too-late", "w").close()
    except OSError:
        pass
"""


@needs_proc
def test_processes_of_agent_are_ended_before_reports_are_written(tmp_path):
    """It has left its session, its parent and its environment."""
    (tmp_path / "lurker.py").write_text(LURKING_PROGRAM)
    work = "def reply(message):\n    subprocess.Popen([sys.executable, 'lurker.py'], env={})\n"
    work += "    while not os.path.exists('lurks'): time.sleep(0.01)\n    return message"
    code, _ = outputs_of(tmp_path, work)
    assert code == 1
    assert not (tmp_path / "too-late").exists()


def test_agent_that_does_not_load_in_time_is_rejected(tmp_path, monkeypatch):
    (tmp_path / "hanging.py").write_text("import time\ntime.sleep(600)")
    monkeypatch.chdir(tmp_path)

    async def started():
        host = Host(os.environ, Redactor(), loading_seconds=0.5)
        host.agent("python:hanging:reply", AgentSettings())
        try:
            await host.start()
        finally:
            await host.end()

    with pytest.raises(UsageError, match=r"adapter 'python:hanging:reply' did not load within 0.5 s"):
        asyncio.run(started())


USURPING_MODULE = """import os
from ci_evals.cli.process import supervision
supervision.send_exit_code(0)
os._exit(0)
"""
USURPED_MODULES = ("jinja2", "junit_xml", "pickle", "six", "svg", "tabulate", "wcwidth", "yaml")
"""Modules that only reports need."""


def test_run_does_not_import_modules_that_agent_writes(tmp_path):
    """Neither from the folder that is tested nor from Python's path: one would decide the verdict."""
    (tmp_path / "libraries").mkdir()
    work = f"[open(f'{{where}}/{{name}}.py', 'w').write({USURPING_MODULE!r}) "
    work += f"for name in {USURPED_MODULES} for where in ('.', 'libraries')]"
    (tmp_path / "agent.py").write_text(f"def reply(message):\n    {work}\n    return message")
    suite = write_suite(tmp_path, NEVER, **AGENT)
    ran = run_apart(tmp_path, suite, PYTHONPATH=str(tmp_path / "libraries"))
    assert (tmp_path / "svg.py").exists()
    assert (tmp_path / "libraries/svg.py").exists()
    assert ran.returncode == 1, ran.stdout + ran.stderr


CODE = """
import json, os, sys

def tell(name):
    with open(name + ".env", "w") as file:
        json.dump(dict(os.environ), file)
    return True

def reply(message): return str(tell("agent"))
def step(): return tell("python step")
def check(): return tell("python check")

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "told":
        open("told", "w").write(sys.argv[2])
    elif len(sys.argv) > 1:
        print(json.dumps(tell("command " + sys.argv[1])))
    else:
        for line in sys.stdin:
            if json.loads(line)["type"] == "message":
                print(json.dumps(str(tell("command agent"))), flush=True)
"""
PYTHON = sys.executable
OWN_KEYS = dict.fromkeys(("LLM_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN"), KEY)
OWN_KEYS |= dict.fromkeys(("CI_JOB_TOKEN", "CI_EVALS_GITLAB_TOKEN", "INPUT_AGENT-KEY", "INPUT_LLM-KEY"), KEY)
OWN_KEYS |= dict.fromkeys(("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITLAB_TOKEN"), KEY)
OWN_KEYS |= {"CI_EVALS_LLM_KEY": KEY, "GITHUB_ENV": "a-file-of-the-runner"}
OWN_KEYS["CI_REPOSITORY_URL"] = f"https://gitlab-ci-token:{KEY}@gitlab.example.com/shop.git"
OWN_KEYS["ACTIONS_RESULTS_URL"] = f"https://results.example.com/?token={KEY}"
"""Keys that no code gets."""
PROVIDER_KEYS = dict.fromkeys(("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"), KEY)
PROVIDER_KEYS |= dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"), KEY)
PROVIDER_KEYS |= {"COPILOT_GITHUB_TOKEN": KEY, "OTEL_EXPORTER_OTLP_HEADERS": f"x-team={KEY}"}
"""Keys that an agent may need, and a step or a check does not."""
JOB_VARIABLES = {
    "AGENT_KEY": "agent-key-4471",
    "DATABASE_URL": "postgres://app@db/app",
    "GITHUB_SHA": "1" * 40,
}


def test_suite_code_gets_no_keys_but_those_it_names_and_agent_gets_provider_keys(tmp_path):
    (tmp_path / "shop.py").write_text(CODE)
    program = [PYTHON, "shop.py"]
    check = {"criterion": "Checked", "strict": "python", "function": "shop:check"}
    setup = [{"command": [*program, "setup"]}, {"command": [*program, "told", "${GITHUB_TOKEN}"]}]
    probes = {"seen": {"python": "shop:step"}, "counted": {"command": [*program, "probe"]}}
    steps = {"setup": setup, "probes": probes, "teardown": [{"command": [*program, "teardown"]}]}
    for adapter in ("python:shop:reply", f"command: {PYTHON} shop.py"):
        fields = {"adapter": adapter, "agentId": None, "apiKey": None}
        suite = write_suite(tmp_path, {"evaluations": [check]}, **fields, **steps)
        env = OWN_KEYS | PROVIDER_KEYS | JOB_VARIABLES
        exits(0, "run", suite, "--provider=offline", cwd=tmp_path, env=env)
    result = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.env")}
    steps = {"python step", "python check", "command setup", "command probe", "command teardown"}
    assert result.keys() == {"agent", "command agent", *steps}
    for name, environ in result.items():
        lacking = OWN_KEYS.keys() | (PROVIDER_KEYS.keys() if name in steps else set())
        assert not lacking & environ.keys(), name
        assert JOB_VARIABLES.items() <= environ.items(), name
        assert environ["PATH"] == os.environ["PATH"], name
        if name not in steps:
            assert PROVIDER_KEYS.items() <= environ.items(), name
    assert (tmp_path / "told").read_text() == KEY
    assert KEY not in (tmp_path / "results/_results.json").read_text()
    assert read_results(tmp_path)["run"]["status"] == "completed"
