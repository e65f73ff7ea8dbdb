"""Every option that reads a file, given what is no regular file: rejected at once, by name."""

import json
import os
import socket
import typing
from importlib import import_module
from pathlib import Path

import pytest
import typer
from commands import ci_evals, write_suite
from exits import refusal

from ci_evals.adapters import input_files
from ci_evals.cli.app import app
from ci_evals.cli.settings import plan_settings, result_commands, run_command
from ci_evals.extension_registry import installed

OUTPUTS = {"output", "output_dir", "junit", "record", "folder"}
STRINGS = {"baseline", "suites"}
"""Fields that may hold a path among other things."""


def readers() -> set[tuple[str, str]]:
    """Each command with each of its fields that names something to read."""
    commands = typer.main.get_command(app).commands
    result = set()
    commands_of_extensions = [one for module in installed().parts("commands") for one in module.COMMANDS]
    extensions = {import_module(command.settings().__module__) for command in commands_of_extensions}
    for module in (plan_settings, run_command, result_commands, *extensions):
        for name, form in vars(module).items():
            command = name.removesuffix("Settings").lower()
            if name.endswith("Settings") and command in commands:
                hints = typing.get_type_hints(form)
                result |= {
                    (command, key) for key, hint in hints.items() if "Path" in str(hint) or key in STRINGS
                }
    return {(command, key) for command, key in result if key not in OUTPUTS}


RUN = ["run", "suite.json", "--provider=offline"]
KEY = "--llm-key=key-of-a-test"
COMMAND_LINES = {
    ("run", "suites"): ["run", "BAD", "--provider=offline"],
    ("run", "adapter_options"): [*RUN, "--adapter-options=BAD"],
    ("run", "prices"): [*RUN, "--prices=BAD"],
    ("run", "baseline"): [*RUN, "--baseline=BAD"],
    ("run", "arms"): [*RUN, "--arms=BAD"],
    ("run", "calibration"): [*RUN, "--calibration=BAD"],
    ("run", "replay"): [*RUN, "--replay=BAD"],
    ("run", "only_failed"): [*RUN, "--only-failed=BAD"],
    ("run", "resume"): [*RUN, "--resume=FOLDER/journal.jsonl"],
    ("validate", "suites"): ["validate", "BAD"],
    ("validate", "adapter_options"): ["validate", "suite.json", "--adapter-options=BAD"],
    ("validate", "probe"): ["validate", "suite.json", "--probe=BAD"],
    ("plan", "suites"): ["plan", "BAD"],
    ("plan", "adapter_options"): ["plan", "suite.json", "--adapter-options=BAD"],
    ("plan", "arms"): ["plan", "suite.json", "--arms=BAD"],
    ("plan", "prices"): ["plan", "suite.json", "--prices=BAD"],
    ("chat", "adapter_options"): ["chat", "suite.json", "--adapter-options=BAD"],
    ("mcp", "adapter_options"): ["mcp", "--adapter-options=BAD"],
    ("mutate", "results"): ["mutate", "BAD"],
    ("mutate", "prices"): ["mutate", "results.json", "--judge", "--prices=BAD", KEY],
    ("mutate", "suites"): ["mutate", "results.json", "--suite=BAD"],
    ("mutate", "apply"): ["mutate", "results.json", "--apply=BAD"],
    ("personas", "suites"): ["personas", "translate", "BAD", KEY],
    ("personas", "prices"): ["personas", "translate", "spoken.json", "--prices=BAD", KEY],
    ("import", "file"): ["import", "csv", "BAD"],
    ("report", "results"): ["report", "BAD"],
    ("report", "baseline"): ["report", "results.json", "--baseline=BAD"],
    ("compare", "head"): ["compare", "BAD", "results.json"],
    ("compare", "base"): ["compare", "results.json", "BAD"],
    ("comment", "results"): ["comment", "BAD", "--pr-number=1", "--github-token=token-of-a-test"],
    ("odds", "results"): ["odds", "BAD"],
    ("backtest", "settings"): ["backtest", "FOLDER", "--settings=BAD"],
    ("show", "results"): ["show", "BAD"],
    ("merge", "results"): ["merge", "BAD", "results.json"],
    ("merge", "baseline"): ["merge", "results.json", "--baseline=BAD"],
    ("rejudge", "results"): ["rejudge", "BAD", KEY],
    ("rejudge", "baseline"): ["rejudge", "results.json", "--baseline=BAD", KEY],
    ("rejudge", "prices"): ["rejudge", "results.json", "--prices=BAD", KEY],
    ("label", "results"): ["label", "BAD"],
    ("calibrate", "labels"): ["calibrate", "BAD", "--results=results.json"],
    ("label", "spot_check"): ["label", "results.json", "--spot-check=BAD"],
    ("calibrate", "spot_check"): ["calibrate", "labels.csv", "--results=results.json", "--spot-check=BAD"],
    ("calibrate", "results"): ["calibrate", "labels.csv", "--results=BAD"],
    ("prefer", "head"): ["prefer", "BAD", "results.json", KEY],
    ("prefer", "base"): ["prefer", "results.json", "BAD", KEY],
    ("prefer", "prices"): ["prefer", "results.json", "results.json", "--prices=BAD", KEY],
    ("attack", "results"): ["attack", "BAD", KEY],
    ("attack", "prices"): ["attack", "results.json", "--prices=BAD", KEY],
    ("noise", "suites"): ["noise", "results.json", "BAD", "--provider=offline"],
    ("noise", "results"): ["noise", "BAD", KEY],
    ("noise", "adapter_options"): ["noise", "results.json", "--adapter-options=BAD", KEY],
    ("noise", "prices"): ["noise", "results.json", "--prices=BAD", KEY],
}
"""A command line for each of them. A new option needs one here."""


def test_every_file_reading_option_is_covered_by_these_tests():
    assert readers() == set(COMMAND_LINES)


OTHER_KINDS = (1, 2, 4)
"""The positions, among `bad_files`, of the device, the socket and the folder."""
SUFFIXES = {"suites": ".json", "prices": ".json", "labels": ".csv"}


def bad_files(folder: Path, ending: str):
    """Create what cannot be read as a file, one of each kind, and yield its name."""
    os.mkfifo(folder / f"pipe{ending}")
    yield f"pipe{ending}"
    (folder / f"zero{ending}").symlink_to("/dev/zero")
    yield f"zero{ending}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / f"socket{ending}"))
        yield f"socket{ending}"
    with (folder / f"sparse{ending}").open("wb") as file:
        file.truncate(2 << 30)
    yield f"sparse{ending}"
    (folder / f"folder{ending}").mkdir()
    yield f"folder{ending}"
    if os.getuid():
        (folder / f"closed{ending}").touch(mode=0)
        yield f"closed{ending}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    check = {"criterion": "Says hi", "strict": "contains", "text": "e"}
    demo = {"adapter": "demo", "agentId": "demo-hr", "apiKey": None}
    write_suite(folder, {"evaluations": [check]}, **demo)
    spoken = json.loads((folder / "suite.json").read_text()) | {"languages": ["de"]}
    (folder / "spoken.json").write_text(json.dumps(spoken))
    judged = {"evaluations": [check, {"criterion": "Is kind"}]}
    write_suite(folder, judged | {"name": "One"}, judged | {"name": "Two"}, name="judged.json", **demo)
    ran = ci_evals("run", "judged.json", "--provider=offline", cwd=folder)
    assert (folder / "results/_results.json").exists(), ran.stderr
    (folder / "results.json").write_bytes((folder / "results/_results.json").read_bytes())
    (folder / "labels.csv").write_text("item,label\n1,pass\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(COMMAND_LINES)))
def test_option_that_reads_a_file_rejects_irregular_files(folder, tmp_path, number, monkeypatch):
    """A pipe that nobody writes to, a file of gigabytes, and one other kind: each option meets three."""
    monkeypatch.chdir(folder)
    command, line = sorted(COMMAND_LINES.items())[number]
    for kind, name in enumerate(bad_files(tmp_path, SUFFIXES.get(command[1], ".json"))):
        if not name.startswith(("pipe", "sparse")) and kind != OTHER_KINDS[number % len(OTHER_KINDS)]:
            continue
        bad, holder = tmp_path / name, tmp_path / f"of-{name}"
        holder.mkdir()
        (holder / "journal.jsonl").symlink_to(bad)
        replaced = [part.replace("FOLDER/journal.jsonl", str(holder)) for part in line]
        args = [part.replace("BAD", str(bad)) for part in replaced]
        if name.startswith("pipe"):  # in a process of its own, which may hang
            ran = ci_evals(*args, cwd=folder)
            assert (ran.returncode, "Traceback" in ran.stderr) == (2, False), ran.stderr
            message = ran.stderr
        else:
            message = refusal(*args, silent=command[0] != "validate")  # it lists valid suites first
        assert name.partition(".")[0] in message or holder.name in message, (name, message)


def test_reading_irregular_file_fails_with_reason(tmp_path):
    """All options read by this function."""
    for name in bad_files(tmp_path, ".json"):
        with pytest.raises(OSError) as refused:  # its message is checked
            input_files.read(tmp_path / name)
        assert refused.value.strerror, name


@pytest.mark.slow
def test_run_passes_despite_irregular_event_file(folder, tmp_path):
    for name in bad_files(tmp_path, ".json"):
        env = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push"}
        ran = ci_evals(*RUN, cwd=folder, env=env | {"GITHUB_EVENT_PATH": str(tmp_path / name)})
        assert ran.returncode == 0, (name, ran.stderr)
