"""Nothing but the command's own verdict passes a gate, however the process that does the work ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN_ENV, ci_evals, open_descriptors, read_results, start, write_suite

pytestmark = pytest.mark.slow

KEY = "llm-key-7f2d91c4"
IMPORTS = "import os, signal, subprocess, sys, time\nfrom ci_evals.cli.process.guard import run_command\n"

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


def run_command(work, tmp_path, command="run", **env):
    """Run a command that does `work`, as a step of GitHub Actions."""
    script = tmp_path / "command.py"
    script.write_text(f"{IMPORTS}\ndef work():\n    {work}\nrun_command(work, [{command!r}])")
    env = {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "LLM_API_KEY": KEY} | env
    return ci_evals(cwd=tmp_path, env=env, program=str(script))


LOST = {
    "os._exit(0)": "it exited with status 0 before there was a verdict",
    "os._exit(1)": "it exited with status 1 before there was a verdict",
    "os.kill(os.getpid(), signal.SIGKILL)": "SIGKILL ended it, as if memory had run out",
    "import ctypes; ctypes.string_at(0)": "SIGSEGV ended it",
    "os.closerange(3, 4096)": "it exited with status 0 before there was a verdict",
    "import atexit; atexit.register(os._exit, 1)": "it exited with status 1 before there was a verdict",
}


@pytest.mark.parametrize("command", ["run", "merge", "rejudge", "compare", "validate"])
def test_every_command_that_gates_is_watched(tmp_path, command):
    """Whatever it does, an exit code of 0 that it has not decided on is none."""
    assert run_command("os._exit(0)", tmp_path, command).returncode == 3


@pytest.mark.parametrize("work", LOST)
def test_end_without_a_verdict_is_not_a_pass(tmp_path, work):
    """Exit 3 with one message, and the last outputs of the action say so, whatever was written before."""
    passed = "open(os.environ['GITHUB_OUTPUT'], 'a').write('passed=true\\nresult=passed\\n'); "
    ran = run_command(passed + work, tmp_path)
    assert ran.returncode == 3, ran.stderr
    assert LOST[work] in ran.stderr
    assert ran.stderr.count("ended without a verdict") == 1
    assert "Traceback" not in ran.stderr
    text = (tmp_path / "outputs").read_text()
    assert "passed=true" not in text
    assert "\ninvalid\n" in text
    assert "\nfalse\n" in text


@pytest.mark.parametrize("kind", ["BaseException", "GeneratorExit", "Exception"])
def test_any_exception_at_the_top_is_one_message_without_keys(tmp_path, kind):
    """Exit 70, also for those that are no `Exception`."""
    work = f"raise type('Odd', ({kind},), {{}})(os.environ['LLM_API_KEY'])"
    ran = run_command(work, tmp_path)
    assert ran.returncode == 70
    assert ran.stderr.count("This is a bug in ci-evals") == 1
    assert KEY not in ran.stdout + ran.stderr


@pytest.mark.parametrize("work", ["sys.stdout.close()", "sys.stderr.close()", "os.close(1); os.close(2)"])
def test_closed_streams_change_no_verdict(tmp_path, work):
    """The command decides, not its streams."""
    for code in (0, 1, 3):
        assert run_command(f"{work}; return {code}", tmp_path).returncode == code


DAEMON = (
    "subprocess.Popen([sys.executable, '-c', 'import os, time; os.fork() and os._exit(0); time.sleep(60)'], "
    "start_new_session=True, stdout=open('left', 'w')).wait(); "
)


@linux
@pytest.mark.parametrize("end", ["return 0", "os._exit(0)"])
def test_nothing_that_it_started_outlives_it(tmp_path, end):
    """Also what leads a session of its own and has lost its parent."""
    began = time.monotonic()
    ran = run_command(f"os.chdir({str(tmp_path)!r}); {DAEMON}{end}", tmp_path)
    assert ran.returncode == (0 if end == "return 0" else 3), ran.stderr
    assert time.monotonic() - began < 30
    assert not open_descriptors(tmp_path / "left")


@linux
def test_a_killed_parent_takes_the_work_with_it(tmp_path):
    """Nobody would learn what came of it."""
    work = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    script = tmp_path / "command.py"
    script.write_text(f"{IMPORTS}\nrun_command(lambda: [exec({work!r})], ['run'])")
    process = start(cwd=tmp_path, program=str(script))
    pid = int(wait_for(tmp_path / "pid"))
    assert pid != process.pid
    process.kill()
    process.communicate(timeout=300)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def wait_for(file):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text()):
            return text
        time.sleep(0.01)
    raise AssertionError(f"{file} never came")


WAITING = """
import os, pathlib, time
def reply(message):
    pathlib.Path("began").write_text("now")
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_that_ends_a_run_leaves_its_reports(tmp_path, number):
    """Exit 130: also where the terminal is closed."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the tests were started by nohup, and so is the run")
    (tmp_path / "agent.py").write_text(WAITING)
    suite = write_suite(tmp_path, {}, adapter="python:agent:reply", agentId=None, apiKey=None)
    process = start("run", suite, "--provider=offline", cwd=tmp_path)
    wait_for(tmp_path / "began")
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert read_results(tmp_path)["run"]["status"] == "interrupted"


HANGING = """
import ctypes, pathlib, subprocess, sys
def reply(message):
    code = "left = open('left', 'w'); open('began', 'w').write('now'); import time; time.sleep(60)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    ctypes.PyDLL(None).sleep(60)  # with the interpreter's lock
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_hangs_ends_before_its_runner_kills_it(tmp_path, number):
    """Exit 3 with one message and the outputs of an invalid run, within GitHub's ten seconds."""
    (tmp_path / "agent.py").write_text(HANGING)
    suite = write_suite(tmp_path, {}, adapter="python:agent:reply", agentId=None, apiKey=None)
    env = CLEAN_ENV | {"GITHUB_OUTPUT": str(tmp_path / "outputs")}
    args = ("run", suite, "--provider=offline", "--agent-in-process")
    process = start(*args, cwd=tmp_path, env=env)
    wait_for(tmp_path / "began")
    began = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 3, err
    assert time.monotonic() - began > 8
    assert "it did not end within 8.5 seconds after it was asked to, and was killed" in err
    assert err.count("ended without a verdict") == 1
    assert "\ninvalid\n" in (tmp_path / "outputs").read_text()
    assert not open_descriptors(tmp_path / "left")
    assert read_results(tmp_path)["run"]["status"] == "unfinished"


@linux
@pytest.mark.parametrize("work", ["return 1", "os._exit(0)"])
def test_earlier_processes_keep_running(tmp_path, work):
    """As a server that a step's script has started; also what that starts meanwhile, and leaves an orphan."""
    (tmp_path / "server.py").write_text(
        "import os, pathlib, sys, time\n"
        "while not os.path.exists('working'): time.sleep(0.01)\n"
        "if not os.fork():\n"
        "    if os.fork(): os._exit(0)\n"
        "    held = open('grandchild', 'w'); time.sleep(60)\n"
        "os.wait(); held = open('child', 'w'); time.sleep(60)\n"
    )
    held = [tmp_path / "child", tmp_path / "grandchild"]
    waits = f"while not all(map(os.path.exists, {[*map(str, held)]})): time.sleep(0.01)"
    work = f"open('working', 'w')\n    {waits}\n    {DAEMON}{work}"
    code = f"{IMPORTS}\ndef work():\n    {work}\nrun_command(work, ['run'])"
    ran = subprocess.run(
        ["sh", "-c", f'{sys.executable} server.py & exec "$@"', "sh", sys.executable, "-c", code],
        cwd=tmp_path,
        env=CLEAN_ENV,
        check=False,
        timeout=300,
    )
    left = [link for file in held for link in open_descriptors(file)]
    for link in left:
        os.kill(int(link.parts[2]), signal.SIGKILL)
    assert ran.returncode == (1 if work.endswith("return 1") else 3)
    assert len(left) == 2
    assert not open_descriptors(tmp_path / "left")


@linux
def test_a_signal_reaches_what_has_older_siblings(tmp_path):
    """The process that a script has become by `exec` passes it on."""
    (tmp_path / "agent.py").write_text(WAITING)
    suite = write_suite(tmp_path, {}, adapter="python:agent:reply", agentId=None, apiKey=None)
    script = 'sleep 60 & echo $! > other; exec "$@"'
    command = [sys.executable, "-m", "ci_evals", "run", suite, "--provider=offline"]
    process = subprocess.Popen(["sh", "-c", script, "sh", *command], cwd=tmp_path, env=CLEAN_ENV)
    wait_for(tmp_path / "began")
    process.terminate()
    assert process.wait(30) == 130
    assert read_results(tmp_path)["run"]["status"] == "interrupted"
    os.kill(int((tmp_path / "other").read_text()), signal.SIGKILL)


def test_a_run_under_nohup_outlives_its_terminal(tmp_path):
    """A signal that is ignored at the start stays so."""
    work = "os.kill(os.getppid(), signal.SIGHUP); os.kill(os.getpid(), signal.SIGHUP); return 1"
    code = (
        f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{IMPORTS}\ndef work():\n    {work}\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}run_command(work, ['run'])"], env=CLEAN_ENV, check=False
    )
    assert ran.returncode == 1


def test_an_agent_in_another_folder_moves_no_report(tmp_path):
    """They lie where they were asked for."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "agent.py").write_text(
        "import os\ndef reply(message):\n    os.chdir('elsewhere')\n    return 'Hi'"
    )
    says = {"evaluations": [{"criterion": "Greets", "strict": "contains", "text": "Hi"}]}
    suite = write_suite(tmp_path, says, adapter="python:agent:reply", agentId=None, apiKey=None)
    process = start("run", suite, "--provider=offline", cwd=tmp_path)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    assert json.loads((tmp_path / "results/_results.json").read_text())["counts"]["trials"] == 1
    assert not list((tmp_path / "elsewhere").iterdir())
