"""Nothing but the command's own verdict passes a gate, however the process that does the work ends."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN, results_in, start, write_suite

KEY = "llm-key-7f2d91c4"
GUARDED = "import os, signal, subprocess, sys, time\nfrom ci_evals.cli.outcome import guarded\n"

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


def guarded(work, tmp_path, command="run", **env):
    """What comes of a command that does `work`, as a step of GitHub Actions."""
    env = CLEAN | {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "LLM_API_KEY": KEY} | env
    return subprocess.run(
        [sys.executable, "-c", f"{GUARDED}\ndef work():\n    {work}\nguarded(work, [{command!r}])"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


LOST = {
    "os._exit(0)": "it exited with status 0 before it had decided",
    "os._exit(1)": "it exited with status 1 before it had decided",
    "os.kill(os.getpid(), signal.SIGKILL)": "it was ended by SIGKILL, as when memory runs out",
    "import ctypes; ctypes.string_at(0)": "it was ended by SIGSEGV",
    "os.closerange(3, 4096)": "it exited with status 0 before it had decided",
    "import atexit; atexit.register(os._exit, 1)": "it exited with status 1 before it had decided",
}


@pytest.mark.parametrize("command", ["run", "merge", "rejudge", "compare", "validate"])
def test_every_command_that_gates_is_watched(tmp_path, command):
    """Whatever it does, an exit code of 0 that it has not decided on is none."""
    assert guarded("os._exit(0)", tmp_path, command).returncode == 3


@pytest.mark.parametrize("work", LOST)
def test_what_ends_without_a_verdict_has_not_passed(tmp_path, work):
    """Exit 3 with one message, and the last outputs of the action say so, whatever was written before."""
    passed = "open(os.environ['GITHUB_OUTPUT'], 'a').write('passed=true\\nresult=passed\\n'); "
    ran = guarded(passed + work, tmp_path)
    assert ran.returncode == 3, ran.stderr
    assert LOST[work] in ran.stderr
    assert ran.stderr.count("ended without a verdict") == 1
    assert "Traceback" not in ran.stderr
    said = (tmp_path / "outputs").read_text()
    assert "passed=true" not in said
    assert "\ninvalid\n" in said
    assert "\nfalse\n" in said


@pytest.mark.parametrize("kind", ["BaseException", "GeneratorExit", "Exception"])
def test_any_exception_at_the_top_is_one_message_without_keys(tmp_path, kind):
    """Exit 70, also for those that are no `Exception`."""
    work = f"raise type('Odd', ({kind},), {{}})(os.environ['LLM_API_KEY'])"
    ran = guarded(work, tmp_path)
    assert ran.returncode == 70
    assert ran.stderr.count("This is a bug in ci-evals") == 1
    assert KEY not in ran.stdout + ran.stderr


@pytest.mark.parametrize("work", ["sys.stdout.close()", "sys.stderr.close()", "os.close(1); os.close(2)"])
def test_closed_streams_change_no_verdict(tmp_path, work):
    """The command decides, not its streams."""
    for code in (0, 1, 3):
        assert guarded(f"{work}; return {code}", tmp_path).returncode == code


DAEMON = (
    "subprocess.Popen([sys.executable, '-c', 'import os, time; os.fork() and os._exit(0); time.sleep(60)'], "
    "start_new_session=True, stdout=open('left', 'w')).wait(); "
)


@linux
@pytest.mark.parametrize("end", ["return 0", "os._exit(0)"])
def test_nothing_that_it_started_outlives_it(tmp_path, end):
    """Also what leads a session of its own and has lost its parent."""
    began = time.monotonic()
    ran = guarded(f"os.chdir({str(tmp_path)!r}); {DAEMON}{end}", tmp_path)
    assert ran.returncode == (0 if end == "return 0" else 3), ran.stderr
    assert time.monotonic() - began < 30
    assert not holders(tmp_path / "left")


def holders(file):
    """Processes that have the file open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == file:
                found.append(link)
        except OSError:
            continue
    return found


@linux
def test_a_killed_parent_takes_the_work_with_it(tmp_path):
    """Nobody would learn what came of it."""
    work = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{GUARDED}\nguarded(lambda: [exec({work!r})], ['run'])"]
    )
    pid = int(wait_for(tmp_path / "pid"))
    assert pid != process.pid
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def wait_for(file):
    deadline = time.monotonic() + 30
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
    (tmp_path / "agent.py").write_text(WAITING)
    suite = write_suite(tmp_path, {}, adapter="python:agent:reply", agentId=None, apiKey=None)
    process = start("run", suite, "--provider=offline", cwd=tmp_path)
    wait_for(tmp_path / "began")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert results_in(tmp_path)["run"]["status"] == "interrupted"


def test_a_run_under_nohup_outlives_its_terminal(tmp_path):
    """A signal that is ignored at the start stays so."""
    work = "os.kill(os.getppid(), signal.SIGHUP); os.kill(os.getpid(), signal.SIGHUP); return 1"
    code = (
        f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{GUARDED}\ndef work():\n    {work}\n"
    )
    ran = subprocess.run([sys.executable, "-c", f"{code}guarded(work, ['run'])"], env=CLEAN, check=False)
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
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert json.loads((tmp_path / "results/_results.json").read_text())["counts"]["trials"] == 1
    assert not list((tmp_path / "elsewhere").iterdir())
