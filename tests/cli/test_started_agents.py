"""`--start`: the agent's server runs as long as the run, however the run ends."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from itertools import zip_longest
from pathlib import Path

import pytest
from commands import action, ci_evals, open_descriptors, read_results, start, write_suite

from ci_evals.agents.started.program import AgentProgram
from ci_evals.domain.errors import Exit
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, evaluate
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.selection import Selection, plan
from ci_evals.runner import Options
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import RunAgents
from ci_evals.wiring.connections import Connections

pytestmark = pytest.mark.slow

linux_only = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")

KEY = "agent-key-5b1c77d0e2"
SERVER = '''
"""An agent that forks: one child in its group, one in a session of its own whose parent has ended."""
import json, os, signal, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

held = open("held", "a")
if os.name == "posix":
    os.set_inheritable(held.fileno(), True)
    sleep = [sys.executable, "-c", "import time; time.sleep(120)"]
    subprocess.Popen(sleep, close_fds=False)
    lost = "import os, time; os.setsid(); os.fork() and os._exit(0); time.sleep(120)"
    subprocess.Popen([sys.executable, "-c", lost], close_fds=False).wait()


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print("asked:", asked["text"])
        open("asked", "w").close()
        if asked["text"] == "die" and not os.path.exists("mended"):
            print("no memory left for", os.environ.get("AGENT_KEY"), file=sys.stderr)
            os._exit(7)
        if asked["text"] == "hang":
            time.sleep(120)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"reply": os.environ.get(asked["text"], "Hello")}).encode())

    def log_message(self, *_):
        pass


with open("starts", "a") as starts:
    starts.write(" ".join(sys.argv[1:]) + "\\n")
print("key:", os.environ.get("AGENT_KEY"))
if os.path.exists("slow"):
    signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), print("saved its work"), os._exit(0)))
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
'''


LISTENS = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); time.sleep(600)"
OPTIONS = {"send": {"path": "/chat", "body": {"text": "{{message}}"}}, "reply": {"text": "$.reply"}}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def suite(folder: Path, port: int, *messages: str, texts: tuple[str, ...] = (), **fields) -> str:
    """Write a suite of one test for each message; each passes if the reply holds its text, or "Hello"."""
    tests = [
        {
            "name": f"Test {index}",
            "turns": [{"user": message}],
            "evaluations": [{"criterion": "It greets", "strict": "contains", "text": text or "Hello"}],
        }
        for index, (message, text) in enumerate(zip_longest(messages or ("Hello",), texts))
    ]
    given = {"adapter": "http", "baseUrl": f"http://127.0.0.1:{port}", "start": f"python server.py {port}"}
    given |= {"adapterOptions": OPTIONS, "agentId": None}
    return write_suite(folder, *tests, **given | fields)


def run(folder: Path, *args: str, code: int = Exit.PASSED, **variables: str):
    """A run that ends with this exit code; no key is in its output."""
    ran = ci_evals("run", *args, "--provider=offline", cwd=folder, env={"AGENT_KEY": KEY, **variables})
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert KEY not in ran.stdout + ran.stderr
    return ran


def log_of(folder: Path) -> str:
    return (folder / "results/agent.log").read_text()


def stop_reason(folder: Path) -> str:
    return read_results(folder)["run"]["stoppedBecause"]


def no_process_left(folder: Path) -> bool:
    return not open_descriptors(folder / "held")


@linux_only
@pytest.mark.parametrize(("text", "code"), [("Hello", Exit.PASSED), ("Goodbye", Exit.FAILED)])
def test_started_agent_ends_with_run_and_its_output_is_kept_without_key(folder, port, text, code):
    run(folder, suite(folder, port, texts=(text,)), code=code)
    assert no_process_left(folder)
    log = log_of(folder)
    assert ("key: ***" in log, "asked: Hello" in log, KEY in log) == (True, True, False)


@linux_only
@pytest.mark.parametrize("command", ["python server.py {}", "true && python server.py {}"])
def test_stopped_agent_gets_time_to_save_its_work(folder, port, command):
    (folder / "slow").touch()
    run(folder, suite(folder, port, start=command.format(port)))
    assert "saved its work" in log_of(folder)
    assert no_process_left(folder)


def test_start_command_runs_in_folder_of_suite_and_start_option_in_current_folder(folder, port):
    """The option `--start` runs where ci-evals does, for every suite."""
    evals = folder / "evals"
    evals.mkdir()
    (folder / "server.py").rename(evals / "server.py")
    suite(evals, port)
    run(folder, "evals/suite.json")
    assert (evals / "starts").exists()
    run(folder, "evals/suite.json", f"--start=python evals/server.py {port}", "--output-dir=there")
    assert (folder / "starts").exists()
    (evals / "server.py").unlink()
    run(folder, "evals/suite.json", code=Exit.INVALID)
    why = stop_reason(folder)
    assert f"before anything answered at http://127.0.0.1:{port}, in the folder 'evals'" in why
    assert str(folder) not in why.partition(" (its output")[0]


def test_agent_is_shared_by_suites_with_same_start_command_in_same_folder(folder, port):
    other = free_port()
    names = [suite(folder, port, name="a.json"), suite(folder, port, name="b.json")]
    names.append(suite(folder, other, name="c.json"))
    run(folder, *names)
    assert sorted((folder / "starts").read_text().split()) == sorted([str(port), str(other)])
    assert f"==> the agent started by 'python server.py {other}' <==" in log_of(folder)
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "server.py").write_text(SERVER)
        port = free_port()
        (folder / name / "port").write_text(str(port))
        suite(folder / name, port, start="python server.py $(cat port)")
    run(folder, "one", "two")
    assert ((folder / "one/starts").exists(), (folder / "two/starts").exists()) == (True, True)


def test_agent_that_exits_at_start_stops_run_with_its_output(folder, port):
    command = f"echo starting; python -c \"raise SystemExit('no model for {KEY}')\""
    ran = run(folder, suite(folder, port, startTimeout=300), f"--start={command}", code=Exit.INVALID)
    why = stop_reason(folder)
    assert f"ended with exit code 1 before anything answered at http://127.0.0.1:{port}" in why
    assert "(its output, in agent.log, ends: starting no model for ***)" in why
    assert why in ran.stdout
    assert "no model for ***" in log_of(folder)
    assert read_results(folder)["counts"]["trials"] == 0
    run(folder, suite(folder, port, start=f"python server.py {port} &"), code=Exit.INVALID)
    assert "exit code 0 before anything answered" in stop_reason(folder)
    assert "has to keep running in the foreground" in stop_reason(folder)
    assert no_process_left(folder)


def test_agent_that_does_not_answer_in_time_is_reported_with_its_port(folder, port):
    command = f'echo loading; python -c "{LISTENS}"'
    run(folder, suite(folder, port, startTimeout=5, start=command), code=Exit.INVALID)
    why = stop_reason(folder)
    assert f"did not answer at http://127.0.0.1:{port} within 5 s" in why
    if Path("/proc/self/stat").exists():
        assert re.search(r"; the program listens on \d+\). Correct baseUrl", why)
    assert "Correct baseUrl, name another address with wait-for, or raise startTimeout" in why
    assert "ends: loading)" in why


def test_wait_for_rejects_socks_proxy(folder, port):
    name = suite(folder, port, start=None)
    proxy = {"HTTP_PROXY": "socks5://127.0.0.1:1"}
    ran = run(folder, name, "--wait-for=http://agent.invalid/", code=Exit.USAGE, **proxy)
    assert "only http and https proxies are supported" in ran.stderr


@linux_only
def test_agent_that_exits_during_run_stops_run_which_can_be_resumed(folder, port):
    name = suite(folder, port, "Hello", "die", *["Hello"] * 3)
    run(folder, name, "--max-errors=9", "--min-score=0", code=Exit.INVALID)
    assert "ended with exit code 7 in the middle of the run" in stop_reason(folder)
    assert "no memory left for ***)" in stop_reason(folder)
    assert read_results(folder)["counts"]["passed"] == 1
    assert no_process_left(folder)
    (folder / "mended").touch()
    assert "1 of 5 trials had finished" in run(folder, name, "--resume=results").stderr
    assert no_process_left(folder)


@linux_only
def test_trial_error_has_last_output_of_agent(folder, port):
    """Also if what was started lives on: a shell, or a server whose worker died."""
    name = suite(folder, port, "die", start=f"python server.py {port}; sleep 60")
    ran = run(folder, name, "--retries=0", code=Exit.INVALID)
    (trial,) = read_results(folder)["suites"][0]["tests"][0]["trials"]
    assert trial["status"] == "failed"
    assert re.search(
        r"^the connection to the agent at \S+ broke: .*; the agent started by .* still runs "
        r"\(its output, in agent\.log, ends: .*no memory left for \*\*\*\)$",
        trial["error"],
    )
    assert "no memory left for ***" in ran.stdout
    assert no_process_left(folder)


@linux_only
def test_agent_is_ended_if_run_is_out_of_time_or_its_worker_is_killed(folder, port):
    run(folder, suite(folder, port, "hang"), "--max-duration=2", code=Exit.INVALID)
    assert no_process_left(folder)
    (folder / "asked").unlink(missing_ok=True)
    command = ("run", suite(folder, port, "hang"), "--provider=offline")
    process = start(*command, cwd=folder, env={"AGENT_KEY": KEY})
    wait_until((folder / "asked").exists)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert process.returncode == Exit.INVALID
    assert "SIGKILL ended it" in err
    assert no_process_left(folder)


def test_port_in_use_stops_run_before_start(folder, port):
    """Another agent would be tested; also one that listens and answers nobody."""
    with socket.create_server(("127.0.0.1", port)):
        for awaited, address in ((port, f"port {port}"), (free_port(), f"127.0.0.1:{port}")):
            run(folder, suite(folder, port), f"--wait-for={awaited}", code=Exit.INVALID)
            assert f"{address} is in use: something answers there before the agent" in stop_reason(folder)
            assert not (folder / "starts").exists()


def test_wait_for_without_start_waits_for_running_agent_until_start_timeout(folder, port):
    theirs = subprocess.Popen([sys.executable, "server.py", str(port)], cwd=folder)
    try:
        run(folder, suite(folder, port, start=None), f"--wait-for={port}")
        assert theirs.poll() is None
    finally:
        theirs.kill()
        theirs.wait()
        for holder in open_descriptors(folder / "held"):
            os.kill(int(holder.parts[2]), signal.SIGKILL)
    name = suite(folder, port, start=None, startTimeout=1)
    run(folder, name, f"--wait-for={port}", code=Exit.INVALID)
    assert stop_reason(folder).startswith(f"the agent did not answer at port {port} within 1 s")


@linux_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("while_", ["playing", "starting"])
def test_signal_ends_agent_with_run(folder, port, number, while_):
    options = [f"--start=python server.py {port}", "--wait-for=1"] if while_ == "starting" else []
    name = suite(folder, port, "hang")
    process = start("run", name, "--provider=offline", *options, cwd=folder, env={"AGENT_KEY": KEY})
    wait_until((folder / "starts").exists)
    if while_ == "playing":
        wait_until((folder / "asked").exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == Exit.INTERRUPTED, out + err
    assert no_process_left(folder)
    assert "key: ***" in log_of(folder)


@linux_only
def test_agent_is_ended_if_event_listener_raises(folder, port):
    name = suite(folder, port, apiKey=None, start=f"cd {folder} && python server.py {port}")
    loaded = load((folder / name).read_text(), name, Reading())
    job = Job(plan([loaded], Selection(), 1), Policy(), Options(), Redactor())

    def listen(event):
        raise ZeroDivisionError

    stop = Stop()
    asyncio.run(evaluate(job, Connections(provider="offline"), listen=listen, stop=stop))
    assert isinstance(stop.bug, ZeroDivisionError)
    assert (folder / "starts").exists()
    assert no_process_left(folder)


def test_started_agent_gets_otlp_address_of_run_instead_of_inherited_collector(folder, port):
    otlp = "OTEL_EXPORTER_OTLP"
    variables = (f"{otlp}_ENDPOINT", "OTEL_BSP_SCHEDULE_DELAY", f"{otlp}_TRACES_ENDPOINT")
    name = suite(folder, port, *variables, texts=("http://127.0.0.1:", "200", "Hello"))
    collector = "http://collector.invalid:4318"
    elsewhere = {f"{otlp}_ENDPOINT": collector, f"{otlp}_TRACES_ENDPOINT": f"{collector}/v1/traces"}
    run(folder, name, "--otlp", "--otlp-port=0", "--parallel=3", **elsewhere)


def test_action_inputs_start_agent(folder, port):
    inputs = {"SUITES": suite(folder, port, start=None), "PROVIDER": "offline", "AGENT-KEY": KEY}
    inputs |= {"START": f"python server.py {port}", "WAIT-FOR": str(port)}
    env = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(folder), "AGENT_KEY": KEY}
    ran = action(cwd=folder, env=env | {f"INPUT_{name}": value for name, value in inputs.items()})
    assert ran.returncode == Exit.PASSED, ran.stdout + ran.stderr
    assert "key: ***" in log_of(folder)


def test_started_agent_does_not_get_keys_of_ci_evals(folder, port):
    secrets = ("LLM_API_KEY", "GITHUB_TOKEN", "CI_EVALS_AGENT_KEY")
    run(folder, suite(folder, port, *secrets), **dict.fromkeys(secrets, "ours-91d2c7aa40"))


async def test_reason_is_reported_while_waiting_for_started_agent(folder, port):
    name = suite(folder, port, apiKey=None, start="sleep 60", waitFor=port)
    program = "the agent started by 'sleep 60'"
    loaded = load((folder / name).read_text(), name, Reading())
    async with AsyncExitStack() as stack:
        agents = RunAgents(Connections(provider="offline"), Redactor(), stack)
        [planned] = plan([loaded], Selection(), loops=1).suites
        agents.agent(planned)
        starting = asyncio.create_task(agents.start_programs())
        while not (wait := dict(agents.waits())[program]):  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.01)
        assert wait.reason == f"nothing answers at port {port} yet"
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        assert dict(agents.waits())[program] is None


@linux_only
async def test_wait_for_agent_names_port_on_which_it_listens(port):
    """Also if a shell is in between, or the program has left its process group."""
    command = f'true && setsid "{sys.executable}" -c "{LISTENS}"'
    program = AgentProgram(command, Redactor())
    program.serve(str(port), None)
    await program.start(os.environ)
    waiting = asyncio.create_task(program.wait_until_up())
    try:
        stop_reason = ""
        while "listens" not in stop_reason:
            assert not waiting.done()
            await asyncio.sleep(0.01)
            stop_reason = program.waiting.reason if program.waiting else ""
        assert re.fullmatch(rf"nothing answers at port {port} yet; the program listens on \d+", stop_reason)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await program.end()


INVALID_OPTIONS = {
    "--wait-for=8o80": "--wait-for: '8o80' is neither an http(s):// address nor a port, 1 to 65535",
    "--wait-for=70000": "--wait-for: '70000' is neither",
    "--wait-for=http://": "--wait-for: 'http://' is neither",
    "--adapter=demo": "start: the embedded demo agent needs no start and no wait",
}


def test_invalid_start_options_are_rejected_with_reason_before_start(folder, port):
    for option, message in INVALID_OPTIONS.items():
        fields = {"baseUrl": None} if option == "--adapter=demo" else {}
        ran = run(folder, suite(folder, port, **fields), option, code=Exit.USAGE)
        assert (message in ran.stderr, "Traceback" in ran.stderr) == (True, False), option
    assert not (folder / "starts").exists()


def test_start_command_needs_valid_address_to_wait_for_unless_adapter_has_one(folder):
    ran = run(folder, write_suite(folder, start="python server.py 1"), code=Exit.USAGE)
    assert "waitFor: is missing, and so is baseUrl" in ran.stderr
    for adapter in ("adk", "rasa"):  # their servers have an address of their own
        name = write_suite(folder, adapter=adapter, agentId="app", start="python absent.py")
        run(folder, name, code=Exit.INVALID)
    name = write_suite(folder, start="python server.py 1", waitFor=8080)
    assert ci_evals("validate", name, cwd=folder, env={"AGENT_KEY": KEY}).returncode == Exit.PASSED
    name = write_suite(folder, start="python server.py 1", waitFor=0)
    ran = ci_evals("validate", name, cwd=folder, env={"AGENT_KEY": KEY})
    assert "suite.json:1:" in ran.stderr
    assert "waitFor: '0' is neither an http(s):// address nor a port, 1 to 65535" in ran.stderr


def test_untrusted_suite_cannot_start_program_but_option_can(folder, port):
    name = suite(folder, port, baseUrl=None, adapterOptions=None, apiKey=None, waitFor=port)
    ran = run(folder, name, "--trust-suites=never", code=Exit.USAGE)
    assert "start: a suite may not name a program to run with --trust-suites=never; use --start" in ran.stderr
    assert "waitFor: a suite may not name an endpoint with --trust-suites=never; use --wait-for" in ran.stderr
    (folder / "options.json").write_text(json.dumps(OPTIONS))
    name = suite(folder, port, baseUrl=None, adapterOptions=None, apiKey=None, start=None)
    given = ("--adapter-options=options.json", f"--base-url=http://127.0.0.1:{port}")
    run(folder, name, "--trust-suites=never", *given, f"--start=python server.py {port}")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(condition) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
