"""`--help` in groups, a line for each option, and completion in shells."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest
from commands import CLEAN_ENV, ci_evals
from typer.completion import get_completion_script
from typer.main import get_command

from ci_evals.cli.app import app
from ci_evals.cli.settings.help import sections
from ci_evals.cli.settings.run_command import RunSettings

pytestmark = pytest.mark.slow

COMMANDS = get_command(app).commands


def reference(command):
    """The groups of a command's options."""
    found = COMMANDS[command]
    return sections(
        found,
        found.make_context(
            command,
            [],
            get_command(app).make_context("ci-evals", [], resilient_parsing=True),
            resilient_parsing=True,
        ),
    )


def test_every_option_of_run_is_in_a_group():
    """And none but `--help` is left over."""
    groups = reference("run")
    assert list(groups) == [
        "Arguments",
        "Suites and selection",
        "Agent",
        "Models",
        "Repetition",
        "Gate",
        "Baseline",
        "Output",
        "GitHub",
        "Limits",
        "Options",
    ]
    assert [option.name for option in groups["Options"]] == ["-h, --help"]
    options = [option for options in groups.values() for option in options]
    assert len(options) == len(fields(RunSettings)) + 1
    variables = {option.variable for option in options} - {None}
    assert "CI_EVALS_MIN_SCORE" in variables
    assert len(variables) == len(fields(RunSettings)) - 1  # suites are arguments


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_help_fits_the_terminal(tmp_path, columns):
    """And is no wider than can be read; variables stand in the docs."""
    for command in COMMANDS:
        shown = ci_evals(command, "--help", cwd=tmp_path, env={"COLUMNS": str(columns)}).stdout
        assert max(map(len, shown.splitlines())) <= min(columns, 100), command
        assert "CI_EVALS_" not in shown


def test_nearly_every_option_takes_one_line(tmp_path):
    """In a terminal of 100 columns."""
    shown = ci_evals("run", "--help", cwd=tmp_path, env={"COLUMNS": "100"}).stdout
    lines = shown[shown.index("Suites and selection:") :].splitlines()
    more = [line for line in lines if line.startswith(" " * 30)]
    assert len(more) <= 5, more


def test_the_list_of_commands_is_not_cut(tmp_path):
    """Each has a line of its own, in a terminal of 80 columns."""
    shown = ci_evals("--help", cwd=tmp_path, env={"COLUMNS": "80"}).stdout
    assert "..." not in shown.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ci-evals", "rej"], {"rejudge"}),
        (["ci-evals", "run", "--max-d"], {"--max-drop", "--max-duration"}),
        (["ci-evals", "run", "--regression", "s"], {"significant"}),
    ],
)
def test_completion_in_bash(typed, offered):
    """By the script that `--install-completion` installs."""
    program = str(Path(sys.executable).with_name("ci-evals"))
    install = get_completion_script(prog_name="ci-evals", complete_var="_CI_EVALS_COMPLETE", shell="bash")
    tab = f"COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; _ci_evals_completion {program}"
    script = f'{install}\n{tab}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    ran = subprocess.run(["bash", "-c", script], env=CLEAN_ENV, capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == offered, ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_installed_completion_answers_the_tab_key(tmp_path, shell):
    """In an interactive shell with the files that `--install-completion` wrote for it.

    In zsh the first Tab only loads the completion.
    """
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{Path(sys.executable).parent}:{CLEAN_ENV['PATH']}"
    env = CLEAN_ENV | {"HOME": str(tmp_path), "PATH": path, "TERM": "dumb", "ZDOTDIR": str(tmp_path)}
    command = ["-c", "ci-evals --install-completion; true"]
    subprocess.run([found, *command], env=env, capture_output=True, check=True)
    with interactive([found, "-i"], env) as terminal:
        os.write(terminal, b"echo rea''dy\n")
        until(terminal, "ready")
        os.write(terminal, b"ci-evals rej")
        until(terminal, "ci-evals rej")
        until(terminal, "udge", key=b"\t")


@contextmanager
def interactive(command, env):
    """A program that has a terminal; yields the other end of it."""
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


def until(terminal, text, key=b""):
    """Read until the terminal shows a text, pressing a key every two seconds."""
    shown, end = "", time.monotonic() + 60
    while text not in shown:
        assert time.monotonic() < end, shown
        if key:
            os.write(terminal, key)
        while select.select([terminal], [], [], 2)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
            if text in shown:
                return


def test_completion_can_be_installed(tmp_path):
    """For the shell that it is asked from: files in the home folder."""
    command = f"{Path(sys.executable).with_name('ci-evals')} --install-completion; true"
    ran = subprocess.run(
        ["bash", "-c", command],
        env=CLEAN_ENV | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bash completion installed" in ran.stdout, ran.stderr
    assert "_ci_evals_completion" in (tmp_path / ".bash_completions/ci-evals.sh").read_text()
