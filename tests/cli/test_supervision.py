"""The supervisor of a command: no other exit code than the command's own verdict passes."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN_ENV, ci_evals, open_descriptors, read_results, start, write_suite
from terminals import read_until

pytestmark = pytest.mark.slow

KEY = "llm-key-7f2d91c4"
IMPORTS = "import os, signal, subprocess, sys, time\nfrom ci_evals.cli.process.guard import run_command\n"

linux_only = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
AGENT = {"adapter": "python:agent:reply", "agentId": None, "apiKey": None}


def run_command(work, tmp_path, command="run", before="", **env):
    """Run a command that does `work`, as a step of GitHub Actions."""
    script = tmp_path / "command.py"
    script.write_text(f"{IMPORTS}{before}\ndef work():\n    {work}\nrun_command(work, [{command!r}])")
    env = {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "LLM_API_KEY": KEY} | env
    return ci_evals(cwd=tmp_path, env=env, program=str(script))


ENDS_WITHOUT_VERDICT = {
    "os._exit(0)": "it exited with status 0 before there was a verdict",
    "os._exit(1)": "it exited with status 1 before there was a verdict",
    "os.kill(os.getpid(), signal.SIGKILL)": "SIGKILL ended it, as if memory had run out",
    "import ctypes; ctypes.string_at(0)": "SIGSEGV ended it",
    "os.closerange(3, 4096)": "it exited with status 0 before there was a verdict",
    "import atexit; atexit.register(os._exit, 1)": "it exited with status 1 before there was a verdict",
}


@pytest.mark.parametrize("work", ENDS_WITHOUT_VERDICT)
def test_command_ended_without_verdict_exits_3_and_overrides_outputs(tmp_path, work):
    passed = "open(os.environ['GITHUB_OUTPUT'], 'a').write('passed=true\\nresult=passed\\n'); "
    ran = run_command(passed + work, tmp_path)
    assert (ran.returncode, ENDS_WITHOUT_VERDICT[work] in ran.stderr) == (3, True), ran.stderr
    assert (ran.stderr.count("ended without a verdict"), "Traceback" in ran.stderr) == (1, False)
    outputs = (tmp_path / "outputs").read_text()
    texts = ("passed=true", "\ninvalid\n", "\nfalse\n")
    assert [text in outputs for text in texts] == [False, True, True]


def test_unexpected_exception_exits_70_with_one_message_without_keys(tmp_path):
    for kind in ("BaseException", "GeneratorExit", "Exception"):
        ran = run_command(f"raise type('Odd', ({kind},), {{}})(os.environ['LLM_API_KEY'])", tmp_path)
        assert (ran.returncode, ran.stderr.count("This is a bug in ci-evals")) == (70, 1)
        assert KEY not in ran.stdout + ran.stderr


def test_every_gating_command_exits_3_if_it_ends_without_verdict(tmp_path):
    for command in ("run", "merge", "rejudge", "compare", "validate"):
        assert run_command("os._exit(0)", tmp_path, command).returncode == 3


def test_closed_output_streams_do_not_change_exit_code_of_command(tmp_path):
    for close in ("sys.stdout.close()", "sys.stderr.close()", "os.close(1); os.close(2)"):
        for code in (0, 1, 3):
            assert run_command(f"{close}; return {code}", tmp_path).returncode == code


DAEMON = (
    "subprocess.Popen([sys.executable, '-c', 'import os, time; os.fork() and os._exit(0); time.sleep(3000)'],"
    " start_new_session=True, stdout=open('left', 'w')).wait(); "
)


@linux_only
@pytest.mark.parametrize("end", ["return 0", "os._exit(0)"])
def test_detached_processes_of_command_are_ended_with_it(tmp_path, end):
    began = time.monotonic()
    ran = run_command(f"os.chdir({str(tmp_path)!r}); {DAEMON}{end}", tmp_path)
    assert ran.returncode == (0 if end == "return 0" else 3), ran.stderr
    assert time.monotonic() - began < 300
    assert not open_descriptors(tmp_path / "left")


@linux_only
def test_worker_ends_if_supervisor_is_killed(tmp_path):
    work = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(3000)"
    script = tmp_path / "command.py"
    script.write_text(f"{IMPORTS}\nrun_command(lambda: [exec({work!r})], ['run'])")
    process = start(cwd=tmp_path, program=str(script))
    pid = int(wait_for(tmp_path / "pid"))
    assert pid != process.pid
    process.kill()
    process.communicate(timeout=300)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def wait_until(condition):
    deadline = time.monotonic() + 300
    while not (result := condition()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
    return result


def wait_for(file):
    return wait_until(lambda: file.exists() and file.read_text())


WAITING = """
import os, pathlib, time
def reply(message):
    pathlib.Path("began").write_text("now")
    time.sleep(3000)
"""


def test_closed_terminal_interrupts_run_with_reports(tmp_path):
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        pytest.skip("the tests were started by nohup, and so is the run")
    (tmp_path / "agent.py").write_text(WAITING)
    process = start("run", write_suite(tmp_path, {}, **AGENT), "--provider=offline", cwd=tmp_path)
    wait_for(tmp_path / "began")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=300)
    assert (process.returncode, read_results(tmp_path)["run"]["status"]) == (130, "interrupted")


HANGING = """
import ctypes, pathlib, subprocess, sys
def reply(message):
    code = "left = open('left', 'w'); open('began', 'w').write('now'); import time; time.sleep(3000)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    ctypes.PyDLL(None).sleep(3000)  # with the interpreter's lock
"""


@linux_only
def test_interrupted_run_that_hangs_is_killed_within_ten_seconds(tmp_path):
    """Before GitHub does."""
    (tmp_path / "agent.py").write_text(HANGING)
    env = CLEAN_ENV | {"GITHUB_OUTPUT": str(tmp_path / "outputs")}
    args = ("run", write_suite(tmp_path, {}, **AGENT), "--provider=offline", "--agent-in-process")
    process = start(*args, cwd=tmp_path, env=env)
    wait_for(tmp_path / "began")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, time.monotonic() - began > 8) == (3, True), err
    assert "it did not end within 8.5 seconds after it was asked to, and was killed" in err
    assert err.count("ended without a verdict") == 1
    assert "\ninvalid\n" in (tmp_path / "outputs").read_text()
    assert not open_descriptors(tmp_path / "left")
    assert read_results(tmp_path)["run"]["status"] == "unfinished"


DEAF = """
import os, signal, sys, time
from ci_evals.cli.process.supervision import fork_worker
reason = fork_worker(ending_seconds=0.5)
if reason is None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    print("began", flush=True)
    time.sleep(300)
with open("reason.part", "w") as file:
    file.write(reason)
os.rename("reason.part", "reason")
"""


@linux_only
@pytest.mark.parametrize("ends", ["second Ctrl-C", "closed terminal"])
def test_worker_that_hangs_is_killed_after_second_ctrl_c_or_closed_terminal(tmp_path, ends):
    """The first Ctrl-C only asks: a slow machine has all the time that its user gives it."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        pytest.skip("the tests were started by nohup, and so is the command")
    (tmp_path / "deaf.py").write_text(DEAF)
    process, terminal = pty.fork()
    if not process:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "deaf.py"])
    read_until(terminal, "began\r\n")
    if ends == "second Ctrl-C":
        os.write(terminal, b"\x03")
        read_until(terminal, "^C")
        time.sleep(2)
        assert not (tmp_path / "reason").exists()
        os.write(terminal, b"\x03")
        wait_for(tmp_path / "reason")
    os.close(terminal)
    wait_for(tmp_path / "reason")
    os.waitpid(process, 0)
    reason = "it did not end within 0.5 seconds after it was asked to, and was killed"
    assert (tmp_path / "reason").read_text() == reason


@linux_only
@pytest.mark.parametrize("work", ["return 1", "os._exit(0)"])
def test_processes_started_before_command_keep_running(tmp_path, work):
    """A server that a step's script has started; also what that starts meanwhile, and leaves an orphan."""
    (tmp_path / "server.py").write_text(
        "import os, pathlib, sys, time\n"
        "while not os.path.exists('working'): time.sleep(0.01)\n"
        "if not os.fork():\n"
        "    if os.fork(): os._exit(0)\n"
        "    open_file = open('grandchild', 'w'); time.sleep(3000)\n"
        "os.wait(); open_file = open('child', 'w'); time.sleep(3000)\n"
    )
    open_files = [tmp_path / "child", tmp_path / "grandchild"]
    waits = f"while not all(map(os.path.exists, {[*map(str, open_files)]})): time.sleep(0.01)"
    work = f"open('working', 'w')\n    {waits}\n    {DAEMON}{work}"
    code = f"{IMPORTS}\ndef work():\n    {work}\nrun_command(work, ['run'])"
    command = ["sh", "-c", f'{sys.executable} server.py & exec "$@"', "sh", sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=tmp_path, env=CLEAN_ENV, check=False, timeout=300)
    left = [link for file in open_files for link in open_descriptors(file)]
    for link in left:
        os.kill(int(link.parts[2]), signal.SIGKILL)
    assert ran.returncode == (1 if work.endswith("return 1") else 3)
    assert len(left) == 2
    assert not open_descriptors(tmp_path / "left")


@linux_only
def test_signal_reaches_worker_of_command_started_by_exec(tmp_path):
    (tmp_path / "agent.py").write_text(WAITING)
    script = 'sleep 60 & echo $! > other; exec "$@"'
    suite = write_suite(tmp_path, {}, **AGENT)
    command = [sys.executable, "-m", "ci_evals", "run", suite, "--provider=offline"]
    process = subprocess.Popen(["sh", "-c", script, "sh", *command], cwd=tmp_path, env=CLEAN_ENV)
    wait_for(tmp_path / "began")
    process.terminate()
    assert (process.wait(300), read_results(tmp_path)["run"]["status"]) == (130, "interrupted")
    os.kill(int((tmp_path / "other").read_text()), signal.SIGKILL)


def test_command_under_nohup_ignores_sighup(tmp_path):
    work = "os.kill(os.getppid(), signal.SIGHUP); os.kill(os.getpid(), signal.SIGHUP); return 1"
    ignores = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    assert run_command(work, tmp_path, before=ignores).returncode == 1


def test_agent_that_changes_folder_does_not_move_reports(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    reply = "import os\ndef reply(message):\n    os.chdir('elsewhere')\n    return 'Hi'"
    (tmp_path / "agent.py").write_text(reply)
    greets = {"evaluations": [{"criterion": "Greets", "strict": "contains", "text": "Hi"}]}
    ran = ci_evals("run", write_suite(tmp_path, greets, **AGENT), "--provider=offline", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(tmp_path)["counts"]["trials"] == 1
    assert not list((tmp_path / "elsewhere").iterdir())
