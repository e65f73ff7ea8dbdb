"""Files that commands do not overwrite, and reports of a run that was killed."""

import os
import shutil
import socket
import time
from pathlib import Path

import pytest
import world
from commands import ci_evals, read_files, read_results, start, write_suite

pytestmark = pytest.mark.slow

PRICES = "models: {m: {input: 1, output: 5}}\n"
NAMES = ("suite", "hard", "soft")


@pytest.fixture
def run_command(tmp_path):
    """Runs the suite of a folder that has reports of an earlier run."""
    with world.agent(lambda heard: world.message("Hello", workflows=[])) as agent:
        write_suite(tmp_path)
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key}

        def run(*more):
            return ci_evals("run", "suite.json", "--provider=offline", *more, cwd=tmp_path, env=env)

        assert run().returncode == 0
        agent.requests.clear()
        run.agent, run.env = agent, env
        yield run


def assert_rejected(run, folder, *options, text):
    """Assert that the command is rejected before any request, and that no file changed."""
    before = read_files(folder)
    ran = run(*options)
    assert (ran.returncode, run.agent.requests) == (2, []), ran.stderr
    assert text in ran.stderr
    assert read_files(folder) == before


def test_reports_do_not_overwrite_devices_pipes_and_sockets(tmp_path, run_command):
    """A rename by root would put the report in the place of a device."""
    for device in ("/dev/null", "/dev/stdout", "/dev/fd/2", "/proc/self/status"):
        text = "is a system file; name a regular file"
        assert_rejected(run_command, tmp_path, f"--junit={device}", text=text)
    assert not Path("/dev/null").is_file()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
    for name in ("pipe", "link", "s"):
        assert_rejected(run_command, tmp_path, f"--junit={name}", text="a device, a pipe or a socket")
    (tmp_path / "results/summary.md").unlink()
    os.mkfifo(tmp_path / "results/summary.md")
    ran = run_command()
    assert ran.returncode == 2
    assert "--output-dir: 'results/summary.md' is a device, a pipe or a socket" in ran.stderr


def test_junit_file_cannot_be_another_report(tmp_path, run_command):
    for name in ("_results.json", "journal.jsonl", "summary.md", "report.html"):
        assert_rejected(run_command, tmp_path, f"--junit=results/{name}", text="has the name of another")
        os.link(tmp_path / "results" / name, tmp_path / f"hard-{name}.xml")
        (tmp_path / f"soft-{name}.xml").symlink_to(f"results/{name}")
        for link in (f"hard-{name}.xml", f"soft-{name}.xml"):
            text = f"is {name} in the output folder"
            assert_rejected(run_command, tmp_path, f"--junit={link}", text=text)


def test_outputs_do_not_overwrite_files_that_command_reads(tmp_path, run_command):
    (tmp_path / "prices.yaml").write_text(PRICES)
    os.link(tmp_path / "suite.json", tmp_path / "hard.json")
    (tmp_path / "soft.json").symlink_to("suite.json")
    (tmp_path / "new").mkdir()
    os.link(tmp_path / "suite.json", tmp_path / "new/recording.jsonl")
    for options, text in (
        *(([f"--junit={name}.json"], "this command reads it (the suite suite.json)") for name in NAMES),
        (["--prices=prices.yaml", "--junit=prices.yaml"], "command reads it (--prices)"),
        (["--baseline=results"], "'results/_results.json' would be overwritten"),
        (["--record=new"], "--record: 'new/recording.jsonl' would be overwritten"),
    ):
        assert_rejected(run_command, tmp_path, *options, text=text)
    assert run_command("--baseline=results", "--output-dir=other").returncode == 0
    before = read_files(tmp_path)
    for command in (
        ["merge", "results/_results.json", "--output-dir=results"],
        ["calibrate", "labels.csv", "--output=results/_results.json"],
    ):
        ran = ci_evals(*command, cwd=tmp_path)
        assert (ran.returncode, "would be overwritten, but this command reads it" in ran.stderr) == (2, True)
        assert read_files(tmp_path) == before


def test_junit_option_overwrites_only_junit_and_empty_files(tmp_path, run_command):
    (tmp_path / "notes.txt").write_text("to keep")
    text = "exists, is not a JUnit file, and is not overwritten"
    assert_rejected(run_command, tmp_path, "--junit=notes.txt", text=text)
    (tmp_path / "out.xml").touch()
    for _ in range(2):
        assert run_command("--junit=out.xml").returncode == 0
        assert "<testsuites" in (tmp_path / "out.xml").read_text()


def test_journal_with_hard_link_is_not_resumed_or_changed(tmp_path, run_command):
    """It would grow, or be truncated, under its other name too."""
    os.link(tmp_path / "results/journal.jsonl", tmp_path / "kept")
    text = "it is one file with another name (a hard link)"
    assert_rejected(run_command, tmp_path, "--resume=results", text=text)
    assert_rejected(run_command, tmp_path, "--thresholds=suite:Nowhere=90", text="Nowhere")


COMMANDS_THAT_READ_RESULTS = (
    ["report", "results"],
    ["report", "kept", "results"],
    ["comment", "results", "--dry-run"],
    ["odds", "results"],
    ["show", "results"],
    ["rejudge", "results", "--provider=openai", "--llm-key=a-key-of-nobody", "--output-dir=again"],
    ["label", "results"],
    ["prefer", "kept", "results", "--provider=openai", "--llm-key=a-key-of-nobody"],
    ["noise", "results", "--provider=openai", "--llm-key=a-key-of-nobody"],
)


def test_reports_of_killed_run_say_unfinished_and_are_rejected_by_other_commands(tmp_path, run_command):
    (tmp_path / "results/badge.svg").write_text("<svg>100</svg>")
    shutil.copytree(tmp_path / "results", tmp_path / "kept")

    with world.agent(lambda _: time.sleep(20)) as slow:
        env = run_command.env | {"CI_EVALS_BASE_URL": slow.url}
        run = start("run", "suite.json", "--provider=offline", "--junit=out.xml", cwd=tmp_path, env=env)
        while not slow.requests:
            time.sleep(0.05)
        run.kill()
        run.communicate(timeout=300)
    results = read_results(tmp_path)
    assert (results["run"]["status"], results["counts"]["notRun"]) == ("unfinished", 1)
    assert (results["gate"]["passed"], results["gate"]["exitCode"]) == (False, 3)
    left = {path.name for path in (tmp_path / "results").iterdir() if path.is_file()}
    assert left == {"_results.json", "ctrf.json", "summary.md", "journal.jsonl"}
    assert "the run has not finished" in (tmp_path / "results/summary.md").read_text()
    assert 'errors="1"' in (tmp_path / "out.xml").read_text()
    for args, code in (
        (["merge", "results/_results.json", "--output-dir=merged"], 3),
        (["compare", "results", "results"], 2),
        *((args, 2) for args in COMMANDS_THAT_READ_RESULTS),
    ):
        ran = ci_evals(*args, cwd=tmp_path)
        assert ran.returncode == code, (args, ran.stderr)
        assert "has not finished" in ran.stderr or code == 3, (args, ran.stderr)
    ran = run_command("--baseline=results", "--output-dir=other")
    assert (ran.returncode, "has not finished" in ran.stderr) == (2, True)
    assert (run_command().returncode, read_results(tmp_path)["run"]["status"]) == (0, "completed")


@pytest.mark.parametrize("link", ["results/summary.md", "results", "results/Stub", "out.xml", "taped"])
def test_output_that_is_a_link_is_rejected_before_any_trial(tmp_path, run_command, link):
    """Files of a checkout could redirect reports, or keep them from being written at the end."""
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    path = tmp_path / link
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(elsewhere)
    if path.suffix:
        path.unlink()
        (elsewhere / "kept").write_text("<testsuite/>")
        path.symlink_to(elsewhere / "kept")
    options = {"out.xml": "--junit=out.xml", "taped": "--record=taped/here"}
    assert_rejected(run_command, tmp_path, options.get(link, "--quiet"), text="symbolic link")
    assert {file.name for file in elsewhere.iterdir()} <= {"kept"}
