"""Every option that reads a file, given what is no file to read: refused at once, by name.

What hangs is ended by `ci_evals` after a minute.
"""

import json
import os
import socket
import typing
from importlib import import_module
from pathlib import Path

import pytest
import typer
from commands import ci_evals, write_suite

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
    found = set()
    commands_of_extensions = [one for module in installed().parts("commands") for one in module.COMMANDS]
    extensions = {import_module(command.settings().__module__) for command in commands_of_extensions}
    for module in (plan_settings, run_command, result_commands, *extensions):
        for name, form in vars(module).items():
            command = name.removesuffix("Settings").lower()
            if name.endswith("Settings") and command in commands:
                hints = typing.get_type_hints(form)
                found |= {
                    (command, key) for key, hint in hints.items() if "Path" in str(hint) or key in STRINGS
                }
    return {(command, key) for command, key in found if key not in OUTPUTS}


RUN = ["run", "suite.json", "--provider=offline"]
LINES = {
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
    ("mutate", "prices"): ["mutate", "results.json", "--judge", "--prices=BAD", "--llm-key=key-of-a-test"],
    ("mutate", "suites"): ["mutate", "results.json", "--suite=BAD"],
    ("mutate", "apply"): ["mutate", "results.json", "--apply=BAD"],
    ("personas", "suites"): ["personas", "translate", "BAD", "--llm-key=key-of-a-test"],
    ("personas", "prices"): [
        "personas",
        "translate",
        "spoken.json",
        "--prices=BAD",
        "--llm-key=key-of-a-test",
    ],
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
    ("rejudge", "results"): ["rejudge", "BAD", "--llm-key=key-of-a-test"],
    ("rejudge", "baseline"): ["rejudge", "results.json", "--baseline=BAD", "--llm-key=key-of-a-test"],
    ("rejudge", "prices"): ["rejudge", "results.json", "--prices=BAD", "--llm-key=key-of-a-test"],
    ("label", "results"): ["label", "BAD"],
    ("calibrate", "labels"): ["calibrate", "BAD", "--results=results.json"],
    ("label", "spot_check"): ["label", "results.json", "--spot-check=BAD"],
    ("calibrate", "spot_check"): ["calibrate", "labels.csv", "--results=results.json", "--spot-check=BAD"],
    ("calibrate", "results"): ["calibrate", "labels.csv", "--results=BAD"],
    ("prefer", "head"): ["prefer", "BAD", "results.json", "--llm-key=key-of-a-test"],
    ("prefer", "base"): ["prefer", "results.json", "BAD", "--llm-key=key-of-a-test"],
    ("prefer", "prices"): [
        "prefer",
        "results.json",
        "results.json",
        "--prices=BAD",
        "--llm-key=key-of-a-test",
    ],
    ("attack", "results"): ["attack", "BAD", "--llm-key=key-of-a-test"],
    ("attack", "prices"): ["attack", "results.json", "--prices=BAD", "--llm-key=key-of-a-test"],
    ("noise", "suites"): ["noise", "results.json", "BAD", "--provider=offline"],
    ("noise", "results"): ["noise", "BAD", "--llm-key=key-of-a-test"],
    ("noise", "adapter_options"): [
        "noise",
        "results.json",
        "--adapter-options=BAD",
        "--llm-key=key-of-a-test",
    ],
    ("noise", "prices"): ["noise", "results.json", "--prices=BAD", "--llm-key=key-of-a-test"],
}
"""A command line for each of them. A new option needs one here."""


def test_every_option_that_reads_is_tried():
    """None can be forgotten."""
    assert readers() == set(LINES)


OTHERS = (1, 2, 4)
"""The positions, among `bad_files`, of the device, the socket and the folder."""

ENDING = {"suites": ".json", "prices": ".json", "labels": ".csv"}


def bad_files(folder: Path, ending: str):
    """What no file to read is: made anew in a folder, each under its name."""
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
    """A folder with a suite, its results, and a sheet of labels."""
    folder = tmp_path_factory.mktemp("inputs")
    test = {
        "name": "Greets",
        "turns": [{"user": "Hello"}],
        "evaluations": [{"criterion": "Says hi", "strict": "contains", "text": "e"}],
    }
    suite = write_suite(folder, test, adapter="demo", agentId="demo-hr", apiKey=None)
    (folder / suite).rename(folder / "suite.json")
    spoken = json.loads((folder / "suite.json").read_text()) | {"languages": ["de"]}
    (folder / "spoken.json").write_text(json.dumps(spoken))
    judged = [
        test | {"name": name, "evaluations": [*test["evaluations"], {"criterion": "Is kind"}]}
        for name in ("One", "Two")
    ]
    write_suite(folder, *judged, name="judged.json", adapter="demo", agentId="demo-hr", apiKey=None)
    ran = ci_evals("run", "judged.json", "--provider=offline", cwd=folder)
    assert (folder / "results/_results.json").exists(), ran.stderr
    (folder / "results.json").write_bytes((folder / "results/_results.json").read_bytes())
    (folder / "labels.csv").write_text("item,label\n1,pass\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(LINES)))
def test_every_option_refuses_what_is_no_regular_file(folder, tmp_path, number):
    """A pipe that nobody writes to, a file of gigabytes, and one other kind: each option meets three."""
    command, line = sorted(LINES.items())[number]
    for kind, name in enumerate(bad_files(tmp_path, ENDING.get(command[1], ".json"))):
        if not name.startswith(("pipe", "sparse")) and kind != OTHERS[number % len(OTHERS)]:
            continue
        bad = tmp_path / name
        holder = tmp_path / f"of-{name}"
        holder.mkdir()
        (holder / "journal.jsonl").symlink_to(bad)
        arguments = [
            part.replace("BAD", str(bad)).replace("FOLDER/journal.jsonl", str(holder)) for part in line
        ]
        ran = ci_evals(*arguments, cwd=folder)
        assert ran.returncode == 2, (name, ran.returncode, ran.stderr)
        assert name.partition(".")[0] in ran.stderr or holder.name in ran.stderr, (name, ran.stderr)
        assert "Traceback" not in ran.stderr


def test_every_kind_that_is_no_file_is_refused_where_files_are_read(tmp_path):
    """All options read by this function."""
    for name in bad_files(tmp_path, ".json"):
        with pytest.raises(OSError) as refused:  # its message is checked
            input_files.read(tmp_path / name)
        assert refused.value.strerror, name


@pytest.mark.slow
def test_an_event_that_is_no_file_says_nothing(folder, tmp_path):
    """The run goes on without it, as without any event."""
    for name in bad_files(tmp_path, ".json"):
        environ = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(tmp_path / name),
        }
        ran = ci_evals(*RUN, cwd=folder, env=environ)
        assert ran.returncode == 0, (name, ran.stderr)
