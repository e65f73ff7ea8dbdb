"""`--help` in groups, a line for each option, and completion in shells."""

import os
import pty
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest
from commands import CLEAN_ENV
from terminals import read_until
from typer.completion import get_completion_script
from typer.main import get_command

from ci_evals.cli.app import app, invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.help import sections
from ci_evals.cli.settings.run_command import RunSettings

pytestmark = pytest.mark.slow
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
def test_help_fits_terminal_and_readable_width(columns, monkeypatch, capsys):
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
