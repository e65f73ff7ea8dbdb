"""How the program ends when something other than a run ends it."""

import os
import subprocess
import sys

import pytest
from commands import ACTION_SCRIPT, CLEAN_ENV, ci_evals

pytestmark = pytest.mark.slow


def run_program(code, folder, **env):
    """Run a program in a process of its own."""
    script = folder / "program.py"
    script.write_text(code)
    return ci_evals(cwd=folder, env=env, program=str(script))


BUG = """
from ci_evals.cli.process.guard import run_command
run_command(lambda: [][1], ["run"])
"""


def test_bug_of_ours_has_its_own_exit_code(tmp_path):
    """Exit 70, with a traceback, without secrets, and with every output of the action."""
    outputs = tmp_path / "outputs"
    code = BUG.replace("[][1]", '{}["llm-key-7f2d91c4"]')
    ran = run_program(code, tmp_path, GITHUB_OUTPUT=str(outputs), LLM_API_KEY="llm-key-7f2d91c4")
    assert ran.returncode == 70
    assert "KeyError" in ran.stderr
    assert "This is a bug in ci-evals" in ran.stderr
    assert "llm-key-7f2d91c4" not in ran.stderr
    assert "invalid" in outputs.read_text()


def test_an_error_that_is_not_the_users_is_a_bug(tmp_path):
    """Only what was found before anything ran is exit 2."""
    code = BUG.replace("[][1]", "(_ for _ in ()).throw(AgentError('lost'))").replace(
        "from ci_evals.cli", "from ci_evals.domain.errors import AgentError\nfrom ci_evals.cli", 1
    )
    assert run_program(code, tmp_path).returncode == 70


def test_an_interrupted_command_exits_130(tmp_path):
    """As a shell expects it."""
    code = BUG.replace("[][1]", "(_ for _ in ()).throw(KeyboardInterrupt)")
    assert run_program(code, tmp_path).returncode == 130


IMPATIENT = """
import os, signal, time
from typer import Typer
from ci_evals.cli.process.guard import run_command
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if not os.fork():
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.01)
        os.kill(parent, signal.SIGTERM)
    os._exit(0)
app = Typer()
app.command()(lambda: time.sleep(60))
run_command(lambda: app(args=[], standalone_mode=False), ["run"])
"""


def test_more_signals_do_not_disturb_the_ending(tmp_path):
    """The second one of a cancelled job comes while the outputs are written: there is no traceback."""
    outputs, summary = tmp_path / "outputs", tmp_path / "summary"
    files = {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    ran = run_program(IMPATIENT, tmp_path, **files)
    assert ran.returncode == 130
    assert ran.stderr == "interrupted: The run was interrupted before there was anything to report.\n"
    assert "invalid" in outputs.read_text()
    assert "The run was interrupted" in summary.read_text()


EARLY = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "ci_evals.cli.app":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Finder())
"""


def test_a_signal_is_heard_while_the_action_starts(tmp_path):
    """As process 1 of a container, a program does not hear those that it has no handler for yet."""
    (tmp_path / "sitecustomize.py").write_text(EARLY)
    outputs = tmp_path / "outputs"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    ran = subprocess.run(
        [sys.executable, ACTION_SCRIPT, "run", "demo:hr"],
        env=CLEAN_ENV | {"GITHUB_OUTPUT": str(outputs), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 130, ran.stderr
    assert ran.stderr == "interrupted: The run was interrupted before there was anything to report.\n"
    assert "invalid" in outputs.read_text()


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    """`ci-evals schema | head -1`."""
    piped = f"{sys.executable} -m ci_evals schema | head -1"
    ran = subprocess.run(
        piped, shell=True, env=CLEAN_ENV, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_usage_errors_exit_2(tmp_path):
    """An unknown command."""
    ran = ci_evals("rn", cwd=tmp_path)
    assert ran.returncode == 2
    assert "rn" in ran.stderr


UNREACHABLE = "x" * 300
"""A name that no folder can hold: like a folder that lets nobody in, it cannot even be looked for."""
PLAYED = "run demo:hr --provider=offline"


@pytest.mark.parametrize(
    "command",
    [
        f"run {UNREACHABLE}",
        f"{PLAYED} --baseline={UNREACHABLE}",
        f"{PLAYED} --output-dir={UNREACHABLE}",
        f"{PLAYED} --junit={UNREACHABLE}/j.xml",
        f"{PLAYED} --resume={UNREACHABLE}",
        f"run demo:hr --replay={UNREACHABLE}",
        f"report {UNREACHABLE}",
        f"merge {UNREACHABLE}",
        f"rejudge {UNREACHABLE} --provider=claude-code",
        f"comment {UNREACHABLE} --dry-run",
        f"compare {UNREACHABLE} {UNREACHABLE}",
        f"odds {UNREACHABLE}",
        f"init {UNREACHABLE}",
    ],
)
def test_a_path_that_cannot_be_looked_at_is_no_bug(command, tmp_path):
    """It is refused by its name before anything runs, whatever the path is for."""
    ran = ci_evals(*command.split(), cwd=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert UNREACHABLE in ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_wrong_value_is_shown(tmp_path):
    """After how the command is written; a key that went astray is not."""
    ran = ci_evals("run", "demo:hr", "--min-score=85%", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith("Usage: ")
    assert "Error: Invalid value for '--min-score': '85%'." in ran.stderr
    key = "llm-key-7f2d91c4"
    ran = ci_evals("run", "demo:hr", f"--loops={key}", cwd=tmp_path, env={"LLM_API_KEY": key})
    assert "'***'" in ran.stderr
    assert key not in ran.stderr


def test_early_ends_keep_their_codes(tmp_path):
    """Help and version are no errors, no command is one."""
    for asked, stream, code in (("--help", "out", 0), ("--version", "out", 0), (None, "err", 2)):
        ran = ci_evals(*filter(None, [asked]), cwd=tmp_path)
        assert ran.returncode == code
        text, silent = (ran.stdout, ran.stderr) if stream == "out" else (ran.stderr, ran.stdout)
        assert "ci-evals" in text
        assert silent == ""


def test_bug_is_reported_to_github(tmp_path):
    """As an annotation, and in the summary without the traceback; both without secrets."""
    summary, key = tmp_path / "summary", "llm-key-7f2d91c4"
    code = BUG.replace("[][1]", f'{{}}["{key} ::error::x"]')
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary), "LLM_API_KEY": key}
    ran = run_program(code, tmp_path, **env)
    assert ran.returncode == 70
    assert "Traceback" in ran.stderr
    (error,) = [line for line in ran.stderr.splitlines() if line.startswith("::")]
    assert error.startswith("::error title=ci-evals::")
    assert "KeyError" in error
    message = summary.read_text()
    assert message.startswith("## ⚠️ Evals ended by a bug in ci-evals\n")
    assert "KeyError" in message
    assert "Traceback" not in message
    assert key not in ran.stderr + message


def test_a_bug_after_the_reports_leaves_them_their_summary(tmp_path):
    """What was published stands."""
    summary = tmp_path / "summary"
    write = f'workflow.append_summary(Path({str(summary)!r}), "# Results")'
    code = BUG.replace("[][1]", f"{write} or [][1]")
    code = f"from pathlib import Path\nfrom ci_evals.adapters.github import workflow\n{code}"
    ran = run_program(code, tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert ran.returncode == 70
    assert "::error" in ran.stderr
    assert summary.read_text() == "# Results"


def test_a_second_signal_at_a_terminal_ends_a_run_that_hangs():
    """The first one asks for an orderly end; as process 1 no default of the system would end it."""
    code = (
        "import os, signal, time; from ci_evals.cli.process.interruption import Interruption; "
        "from ci_evals.cli.run_context import RunContext; i = Interruption(RunContext()); "
        "os.kill(os.getpid(), signal.SIGINT); print(i.signaled, flush=True); "
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5); print('still here')"
    )
    ours, its = os.openpty()
    try:
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env=CLEAN_ENV,
            stdout=subprocess.PIPE,
            stderr=its,
            text=True,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(its)
    assert (ran.returncode, ran.stdout) == (130, "True\n")
