"""Exit codes and messages of commands that end early: bugs, signals, wrong usage, `--help` and completion."""

import os
import pty
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest
from commands import ACTION_SCRIPT, CLEAN_ENV, ci_evals
from exits import exits, refusal
from terminals import read_until
from typer.completion import get_completion_script
from typer.main import get_command

from ci_evals.cli.app import app, invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.help import sections
from ci_evals.cli.settings.run_command import RunSettings

pytestmark = pytest.mark.slow


def run_program(code, folder, **env):
    script = folder / "program.py"
    script.write_text(code)
    return ci_evals(cwd=folder, env=env, program=str(script))


def files_in(folder):
    """The file of the step's outputs, that of its summary, and the variables that name them."""
    outputs, summary = folder / "outputs", folder / "summary"
    return outputs, summary, {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}


BUG = """
from ci_evals.cli.process.guard import run_command
run_command(lambda: [][1], ["run"])
"""


def test_bug_exits_70_with_traceback_annotation_and_summary_without_secrets(tmp_path):
    (outputs, summary, env), key = files_in(tmp_path), "llm-key-7f2d91c4"
    env |= {"GITHUB_ACTIONS": "true", "LLM_API_KEY": key}
    ran = run_program(BUG.replace("[][1]", f'{{}}["{key} ::error::x"]'), tmp_path, **env)
    assert ran.returncode == 70
    assert "Traceback" in ran.stderr
    assert "This is a bug in ci-evals" in ran.stderr
    assert "invalid" in outputs.read_text()
    (error,) = [line for line in ran.stderr.splitlines() if line.startswith("::")]
    assert error.startswith("::error title=ci-evals::")
    message = summary.read_text()
    assert message.startswith("## ⚠️ Evals ended by a bug in ci-evals\n")
    for text in (error, message):
        assert ("KeyError" in text, "Traceback" in text) == (True, False)
    assert key not in ran.stderr + message
    summary.unlink()
    write = f'workflow.append_summary(Path({str(summary)!r}), "# Results")'  # reports are written already
    code = f"from pathlib import Path\nfrom ci_evals.adapters.github import workflow\n{BUG}"
    ran = run_program(code.replace("[][1]", f"{write} or [][1]"), tmp_path, **env)
    assert (ran.returncode, "::error" in ran.stderr, summary.read_text()) == (70, True, "# Results")


def test_unexpected_error_during_run_exits_70_and_interrupt_130(tmp_path):
    """Only an error found before anything ran is exit 2."""
    imports = "from ci_evals.domain.errors import AgentError\n"
    for error, code in (("AgentError('lost')", 70), ("KeyboardInterrupt", 130)):
        program = imports + BUG.replace("[][1]", f"(_ for _ in ()).throw({error})")
        assert run_program(program, tmp_path).returncode == code


SIGNALED_REPEATEDLY = """
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


def test_interrupted_command_writes_outputs_and_exits_130_despite_repeated_signals(tmp_path):
    """The second one of a cancelled job comes while the outputs are written."""
    outputs, summary, env = files_in(tmp_path)
    ran = run_program(SIGNALED_REPEATEDLY, tmp_path, **env)
    assert ran.returncode == 130
    assert ran.stderr == "interrupted: The run was interrupted before there was anything to report.\n"
    assert "invalid" in outputs.read_text()
    assert "The run was interrupted" in summary.read_text()


SIGNALED_AT_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "ci_evals.cli.app":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Finder())
"""


def test_signal_during_start_of_action_interrupts_it(tmp_path):
    """Process 1 of a container gets no signals for which it has no handler yet."""
    (tmp_path / "sitecustomize.py").write_text(SIGNALED_AT_IMPORT)
    outputs = tmp_path / "outputs"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    env = CLEAN_ENV | {"GITHUB_OUTPUT": str(outputs), "PYTHONPATH": path}
    command = [sys.executable, ACTION_SCRIPT, "run", "demo:hr"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 130, ran.stderr
    assert ran.stderr == "interrupted: The run was interrupted before there was anything to report.\n"
    assert "invalid" in outputs.read_text()


def test_closed_output_pipe_causes_no_error(tmp_path):
    piped = f"{sys.executable} -m ci_evals schema | head -1"
    how = {"env": CLEAN_ENV, "cwd": tmp_path, "capture_output": True, "text": True}
    ran = subprocess.run(piped, shell=True, check=False, **how)
    assert (ran.returncode, ran.stderr) == (0, "")


UNUSABLE_PATH = "x" * 300
"""A name that no folder can hold: like a folder that lets nobody in, it cannot even be looked for."""
RUN = "run demo:hr --provider=offline"


def test_unusable_path_is_named_in_error_of_every_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = ci_evals("run", UNUSABLE_PATH, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, UNUSABLE_PATH in ran.stderr) == (2, "", True), ran.stderr
    assert "Traceback" not in ran.stderr
    for command in (
        f"{RUN} --baseline={UNUSABLE_PATH}",
        f"{RUN} --output-dir={UNUSABLE_PATH}",
        f"{RUN} --junit={UNUSABLE_PATH}/j.xml",
        f"{RUN} --resume={UNUSABLE_PATH}",
        f"run demo:hr --replay={UNUSABLE_PATH}",
        f"report {UNUSABLE_PATH}",
        f"merge {UNUSABLE_PATH}",
        f"rejudge {UNUSABLE_PATH} --provider=claude-code",
        f"comment {UNUSABLE_PATH} --dry-run",
        f"compare {UNUSABLE_PATH} {UNUSABLE_PATH}",
        f"odds {UNUSABLE_PATH}",
        f"init {UNUSABLE_PATH}",
    ):
        assert UNUSABLE_PATH in refusal(*command.split())
        assert not list(tmp_path.iterdir())


def test_usage_error_exits_2_with_invalid_value_but_without_key(tmp_path):
    ran = ci_evals("rn", cwd=tmp_path)
    assert (ran.returncode, "rn" in ran.stderr) == (2, True)
    ran = exits(2, "run", "demo:hr", "--min-score=85%", cwd=tmp_path)
    assert (ran.stdout, ran.stderr[:7], "Traceback" in ran.stderr) == ("", "Usage: ", False)
    assert "Error: Invalid value for '--min-score': '85%'." in ran.stderr
    key = "llm-key-7f2d91c4"
    ran = ci_evals("run", "demo:hr", f"--loops={key}", cwd=tmp_path, env={"LLM_API_KEY": key})
    assert "'***'" in ran.stderr
    assert key not in ran.stderr


@pytest.mark.end_to_end
def test_help_and_version_exit_0_and_missing_command_exits_2(tmp_path):
    for asked, shown in (
        ("--help", "ci-evals"),
        ("--version", "ci-evals 0."),
        ("run -h", "3    no verdict: too many errored trials"),
    ):
        ran = ci_evals(*asked.split(), cwd=tmp_path)
        assert (ran.returncode, shown in ran.stdout, ran.stderr) == (0, True, "")
    ran = ci_evals(cwd=tmp_path)
    assert (ran.returncode, "ci-evals" in ran.stderr, ran.stdout) == (2, True, "")


def test_second_signal_at_terminal_ends_hanging_run():
    """The first one asks for an orderly end; as process 1 no default of the system would end it."""
    code = (
        "import os, signal, time; from ci_evals.cli.process.interruption import Interruption; "
        "from ci_evals.cli.run_context import RunContext; i = Interruption(RunContext()); "
        "os.kill(os.getpid(), signal.SIGINT); print(i.signaled, flush=True); "
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5); print('still here')"
    )
    ours, its = os.openpty()
    try:
        how = {"env": CLEAN_ENV, "stdout": subprocess.PIPE, "stderr": its, "text": True}
        ran = subprocess.run([sys.executable, "-c", code], check=False, **how)
    finally:
        os.close(ours)
        os.close(its)
    assert (ran.returncode, ran.stdout) == (130, "True\n")


COMMANDS = get_command(app).commands


def reference(command):
    program = get_command(app).make_context("ci-evals", [], resilient_parsing=True)
    result = COMMANDS[command]
    return sections(result, result.make_context(command, [], program, resilient_parsing=True))


def test_every_option_of_run_is_in_a_group():
    groups = reference("run")
    agents = ["Arguments", "Suites and selection", "Agent", "Models", "Repetition"]
    assert list(groups) == [*agents, "Gate", "Baseline", "Output", "GitHub", "Limits", "Options"]
    assert [option.name for option in groups["Options"]] == ["-h, --help"]
    options = [option for options in groups.values() for option in options]
    assert len(options) == len(fields(RunSettings)) + 1
    variables = {option.variable for option in options} - {None}
    assert "CI_EVALS_MIN_SCORE" in variables
    assert len(variables) == len(fields(RunSettings)) - 1  # suites are arguments


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_help_fits_terminal_and_100_columns_and_names_every_command(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))

    def help_of(*command):
        assert invoke([*command, "--help"], RunContext({})) == 0
        return capsys.readouterr().out

    for command in COMMANDS:
        shown = help_of(command)
        assert max(map(len, shown.splitlines())) <= min(columns, 100), command
        assert "CI_EVALS_" not in shown
        if (command, columns) == ("run", 100):
            lines = shown[shown.index("Suites and selection:") :].splitlines()
            second_lines = [line for line in lines if line.startswith(" " * 30)]
            assert len(second_lines) <= 5, second_lines
    shown = help_of()
    assert "..." not in shown.replace("[ARGS]...", "")
    assert all(command in shown for command in COMMANDS)


def test_bash_completion_offers_commands_options_and_values():
    program = str(Path(sys.executable).with_name("ci-evals"))
    install = get_completion_script(prog_name="ci-evals", complete_var="_CI_EVALS_COMPLETE", shell="bash")
    for typed, offered in (
        (["ci-evals", "rej"], {"rejudge"}),
        (["ci-evals", "run", "--max-d"], {"--max-drop", "--max-duration"}),
        (["ci-evals", "run", "--regression", "s"], {"significant"}),
    ):
        tab = f"COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; _ci_evals_completion {program}"
        script = f'{install}\n{tab}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
        ran = subprocess.run(
            ["bash", "-c", script], env=CLEAN_ENV, capture_output=True, text=True, check=True
        )
        assert set(ran.stdout.split()) == offered, ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_installed_completion_answers_tab_key(tmp_path, shell):
    """In zsh the first Tab only loads the completion."""
    result = shutil.which(shell)
    if result is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{Path(sys.executable).parent}:{CLEAN_ENV['PATH']}"
    env = CLEAN_ENV | {"HOME": str(tmp_path), "PATH": path, "TERM": "dumb", "ZDOTDIR": str(tmp_path)}
    command = [result, "-c", "ci-evals --install-completion; true"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert f"{shell} completion installed" in ran.stdout, ran.stderr
    with interactive([result, "-i"], env) as terminal:
        os.write(terminal, b"echo rea''dy\n")
        read_until(terminal, "ready")
        os.write(terminal, b"ci-evals rej")
        read_until(terminal, "ci-evals rej")
        read_until(terminal, "udge", key=b"\t")


@contextmanager
def interactive(command, env):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as shell:
        os.close(theirs)
        try:
            yield ours
        finally:
            shell.kill()
            os.close(ours)
