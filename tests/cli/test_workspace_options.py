"""Every option of every command says what it names in the workspace, and is held to the rule for it."""

import json
import subprocess
from pathlib import Path

import pytest
import typer
from github_api import FORK, REPOSITORY

from ci_evals.cli.app import app, invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.table import options_of
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Names
from ci_evals.planning.arms import ARM_KEYS

COMMANDS = typer.main.get_command(app).commands
SETTINGS = {
    name: command.callback.settings()
    for name, command in COMMANDS.items()
    if hasattr(command.callback, "settings")
}
OPTIONS = {
    command: {option.name: option for option in options_of(settings)}
    for command, settings in SETTINGS.items()
}
HELD = {Names.INPUT, Names.PROGRAM, Names.EVIDENCE}
"""What may not be in a foreign checkout."""

ARGUMENTS = {
    "run": ["demo:hr"],
    "validate": ["demo:hr"],
    "plan": ["demo:hr"],
    "chat": ["demo:hr"],
    "gate": ["../none.xml"],
    "merge": ["../none"],
    "rejudge": ["../none"],
    "compare": ["../none", "../none"],
    "attack": ["../none"],
    "prefer": ["../none", "../none"],
    "noise": ["../none"],
    "mutate": ["../none"],
    "backtest": ["../none"],
    "mcp": [],
    "personas": ["translate", "demo:hr"],
}
"""What a command cannot do without: nothing of the checkout."""

POSITIONAL = {
    ("gate", "files"): ["{}"],
    ("merge", "results"): ["{}"],
    ("rejudge", "results"): ["{}"],
    ("compare", "head"): ["{}", "../none"],
    ("compare", "base"): ["../none", "{}"],
}

PROGRAMS = {"adapter": "command: sh theirs.sh", "start": "sh theirs.sh"}


def test_every_command_is_listed_here():
    """Those that take no settings have no option of text."""
    for name in COMMANDS.keys() - SETTINGS.keys():
        params = COMMANDS[name].get_params(typer.Context(COMMANDS[name]))
        assert all(param.is_flag for param in params), f"{name}: declare its options in settings"


@pytest.mark.parametrize("command", sorted(SETTINGS))
def test_every_option_declares_what_it_names(command):
    """A new option of text or paths needs `names` in its declaration."""
    options = OPTIONS[command].values()
    missing = [option.name for option in options if option.is_text and option.names is None]
    assert not missing, f"{command}: declare what {', '.join(missing)} names in the workspace"


def test_options_of_further_agents_are_those_of_run():
    """An agent in `--against` or `--arms` is held to the rule of the option of that name."""
    assert {key for key in ARM_KEYS if key.replace("-", "_") not in OPTIONS["run"]} == {"model"}


@pytest.mark.parametrize("command", sorted(SETTINGS))
def test_there_is_a_way_out_where_options_are_refused(command):
    """The refusal names `--trust-suites`."""
    held = HELD & {option.names for option in OPTIONS[command].values()}
    assert not held or "trust_suites" in OPTIONS[command]


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """The context of a job for which a fork's commit is checked out."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    for name in ("theirs.yaml", "theirs.json", "theirs.sh"):
        (folder / name).write_text("{}")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=Theirs")
    monkeypatch.chdir(folder)
    head = git(folder, "rev-parse", "HEAD")
    payload = {
        "number": 7,
        "repository": {"full_name": REPOSITORY, "default_branch": "main"},
        "pull_request": {
            "number": 7,
            "head": {"sha": head, "ref": "topic", "repo": {"full_name": FORK}},
            "base": {"sha": "3" * 40, "ref": "main"},
        },
    }
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload))
    return RunContext(
        {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "pull_request_target",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SHA": "3" * 40,
            "GITHUB_WORKSPACE": str(folder),
        }
    )


def held_options(*, positional: bool = True) -> list:
    options = []
    for command in sorted(OPTIONS):
        for field, option in OPTIONS[command].items():
            if option.names in HELD and (positional or (command, field) not in POSITIONAL):
                options.append(pytest.param(command, field, id=f"{command} {field}"))
    return options


def command_line(command: str, field: str) -> list[str]:
    value = PROGRAMS.get(field, "theirs.json")
    if (command, field) in POSITIONAL:
        return [command, *(part.format(value) for part in POSITIONAL[command, field])]
    return [command, *ARGUMENTS[command], f"{OPTIONS[command][field].label}={value}"]


@pytest.mark.parametrize(("command", "field"), held_options())
def test_an_option_names_nothing_of_a_foreign_checkout(foreign, command, field):
    """Whichever command and option it is."""
    with pytest.raises(UsageError) as refused:
        invoke(command_line(command, field), foreign)
    message = str(refused.value)
    assert message.startswith(f"{OPTIONS[command][field].setting}: ")
    assert FORK in message or "git tracks" in message


@pytest.mark.parametrize(("command", "field"), held_options(positional=False))
def test_the_variable_of_an_option_is_no_way_around(foreign, monkeypatch, command, field):
    """`CI_EVALS_ARMS` is `--arms`."""
    monkeypatch.setenv(f"CI_EVALS_{field.upper()}", PROGRAMS.get(field, "theirs.json"))
    with pytest.raises(UsageError, match=f"^{OPTIONS[command][field].setting}: "):
        invoke([command, *ARGUMENTS[command]], foreign)
