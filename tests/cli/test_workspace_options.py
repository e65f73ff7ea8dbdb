"""Options that name files or programs of the workspace: each is rejected for foreign checkouts."""

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
CALLBACKS = {name: command.callback for name, command in COMMANDS.items()}
SETTINGS = {name: call.settings() for name, call in CALLBACKS.items() if hasattr(call, "settings")}
OPTIONS = {name: {option.name: option for option in options_of(each)} for name, each in SETTINGS.items()}
RESTRICTED = {Names.INPUT, Names.PROGRAM, Names.EVIDENCE}
"""Paths that may not be in a foreign checkout."""

ARGUMENTS = {name: ["demo:hr"] for name in ("run", "validate", "plan", "chat")}
ARGUMENTS |= {name: ["../none"] for name in ("merge", "rejudge", "attack", "noise", "mutate", "backtest")}
ARGUMENTS |= {name: ["../none", "../none"] for name in ("compare", "prefer")}
ARGUMENTS |= {"gate": ["../none.xml"], "mcp": [], "personas": ["translate", "demo:hr"]}
"""Required arguments of each command, none in the checkout."""

POSITIONAL = {
    ("gate", "files"): ["{}"],
    ("merge", "results"): ["{}"],
    ("rejudge", "results"): ["{}"],
    ("compare", "head"): ["{}", "../none"],
    ("compare", "base"): ["../none", "{}"],
}

PROGRAMS = {"adapter": "command: sh theirs.sh", "start": "sh theirs.sh"}


def test_every_option_declares_which_workspace_path_it_names():
    """An agent in `--against` or `--arms` follows the rule of the option of that name."""
    for name in COMMANDS.keys() - SETTINGS.keys():
        params = COMMANDS[name].get_params(typer.Context(COMMANDS[name]))
        assert all(param.is_flag for param in params), f"{name}: declare its options in settings"
    for command, options in OPTIONS.items():
        missing = [option.name for option in options.values() if option.is_text and option.names is None]
        assert not missing, f"{command}: declare what {', '.join(missing)} names in the workspace"
        restricted = RESTRICTED & {option.names for option in options.values()}
        assert not restricted or "trust_suites" in options, f"{command}: the rejection names it"
    assert {key for key in ARM_KEYS if key.replace("-", "_") not in OPTIONS["run"]} == {"model"}


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def foreign_checkout(tmp_path, monkeypatch):
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
    ends = {"head": {"sha": head, "ref": "topic", "repo": {"full_name": FORK}}}
    ends["base"] = {"sha": "3" * 40, "ref": "main"}
    repository = {"full_name": REPOSITORY, "default_branch": "main"}
    payload = {"number": 7, "repository": repository, "pull_request": {"number": 7, **ends}}
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload))
    job = {"ACTIONS": "true", "EVENT_NAME": "pull_request_target", "EVENT_PATH": str(event)}
    job |= {"REPOSITORY": REPOSITORY, "SHA": "3" * 40, "WORKSPACE": str(folder)}
    return RunContext({f"GITHUB_{name}": value for name, value in job.items()})


def restricted_options(*, positional: bool = True) -> list:
    options = []
    for command in sorted(OPTIONS):
        for field, option in OPTIONS[command].items():
            if option.names in RESTRICTED and (positional or (command, field) not in POSITIONAL):
                options.append(pytest.param(command, field, id=f"{command} {field}"))
    return options


def command_line(command: str, field: str) -> list[str]:
    value = PROGRAMS.get(field, "theirs.json")
    if (command, field) in POSITIONAL:
        return [command, *(part.format(value) for part in POSITIONAL[command, field])]
    return [command, *ARGUMENTS[command], f"{OPTIONS[command][field].label}={value}"]


@pytest.mark.parametrize(("command", "field"), restricted_options())
def test_restricted_option_naming_file_of_foreign_checkout_is_rejected(foreign_checkout, command, field):
    with pytest.raises(UsageError) as refused:
        invoke(command_line(command, field), foreign_checkout)
    message = str(refused.value)
    assert message.startswith(f"{OPTIONS[command][field].setting}: ")
    assert FORK in message or "git tracks" in message


@pytest.mark.parametrize(("command", "field"), restricted_options(positional=False))
def test_option_variable_naming_file_of_foreign_checkout_is_rejected(
    foreign_checkout, monkeypatch, command, field
):
    """`CI_EVALS_ARMS` is `--arms`."""
    monkeypatch.setenv(f"CI_EVALS_{field.upper()}", PROGRAMS.get(field, "theirs.json"))
    with pytest.raises(UsageError, match=f"^{OPTIONS[command][field].setting}: "):
        invoke([command, *ARGUMENTS[command]], foreign_checkout)
