"""What commands must not write over, and what reports say of a run that was killed."""

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


@pytest.fixture
def played(tmp_path):
    """A folder with a suite and the reports of a run of it, and what a command there needs to run."""
    with world.agent(lambda heard: world.message("Hello", workflows=[])) as agent:
        write_suite(tmp_path)
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key}

        def run(*more):
            return ci_evals("run", "suite.json", "--provider=offline", *more, cwd=tmp_path, env=env)

        assert run().returncode == 0
        agent.requests.clear()
        run.agent, run.env = agent, env
        yield run


def refused(run, folder, *options, says):
    """The command is refused before a request was sent, and every file is as it was."""
    before = read_files(folder)
    ran = run(*options)
    assert (ran.returncode, run.agent.requests) == (2, []), ran.stderr
    assert says in ran.stderr
    assert read_files(folder) == before


@pytest.mark.parametrize("device", ["/dev/null", "/dev/stdout", "/dev/fd/2", "/proc/self/status"])
def test_a_file_of_the_system_is_replaced_by_no_report(tmp_path, played, device):
    """As root a rename would put the report in its place."""
    refused(played, tmp_path, f"--junit={device}", says="is a system file; name a regular file")
    assert not Path("/dev/null").is_file()


def test_what_is_no_regular_file_is_no_place_for_a_report(tmp_path, played):
    """A pipe, a socket, a link to a device, and a report's own name that was made one."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
    for name in ("pipe", "link", "s"):
        refused(played, tmp_path, f"--junit={name}", says="a device, a pipe or a socket")
    (tmp_path / "results/summary.md").unlink()
    os.mkfifo(tmp_path / "results/summary.md")
    ran = played()
    assert ran.returncode == 2
    assert "--output-dir: 'results/summary.md' is a device, a pipe or a socket" in ran.stderr


@pytest.mark.parametrize("name", ["_results.json", "journal.jsonl", "summary.md", "report.html"])
def test_no_report_takes_the_place_of_another(tmp_path, played, name):
    """Neither by its name nor by a link to it."""
    refused(played, tmp_path, f"--junit=results/{name}", says="has the name of another")
    os.link(tmp_path / "results" / name, tmp_path / "hard.xml")
    (tmp_path / "soft.xml").symlink_to(f"results/{name}")
    for link in ("hard.xml", "soft.xml"):
        refused(played, tmp_path, f"--junit={link}", says=f"is {name} in the output folder")


def test_nothing_that_the_run_reads_is_written_over(tmp_path, played):
    """The suite, the baseline, the prices, the calibration, the recording; by name and by links."""
    (tmp_path / "prices.yaml").write_text(PRICES)
    os.link(tmp_path / "suite.json", tmp_path / "hard.json")
    (tmp_path / "soft.json").symlink_to("suite.json")
    for name in ("suite.json", "hard.json", "soft.json"):
        refused(played, tmp_path, f"--junit={name}", says="this command reads it (the suite suite.json)")
    refused(
        played, tmp_path, "--prices=prices.yaml", "--junit=prices.yaml", says="command reads it (--prices)"
    )
    refused(played, tmp_path, "--baseline=results", says="'results/_results.json' would be overwritten")
    (tmp_path / "new").mkdir()
    os.link(tmp_path / "suite.json", tmp_path / "new/recording.jsonl")
    refused(played, tmp_path, "--record=new", says="--record: 'new/recording.jsonl' would be overwritten")
    assert played("--baseline=results", "--output-dir=other").returncode == 0


def test_a_file_of_somebody_else_is_not_taken_for_a_junit_file(tmp_path, played):
    """One of an earlier run is written over, and so is an empty one."""
    (tmp_path / "notes.txt").write_text("to keep")
    refused(played, tmp_path, "--junit=notes.txt", says="exists, is not a JUnit file, and is not overwritten")
    (tmp_path / "out.xml").touch()
    for _ in range(2):
        assert played("--junit=out.xml").returncode == 0
        assert "<testsuites" in (tmp_path / "out.xml").read_text()


def test_a_journal_that_is_linked_does_not_grow(tmp_path, played):
    """It would grow, or be cut, under its other name too."""
    os.link(tmp_path / "results/journal.jsonl", tmp_path / "kept")
    refused(played, tmp_path, "--resume=results", says="it is one file with another name (a hard link)")


@pytest.mark.parametrize("command", ["merge", "calibrate"])
def test_other_commands_keep_to_it_too(tmp_path, played, command):
    """Results that are merged, and the files of a study."""
    options = {
        "merge": ["results/_results.json", "--output-dir=results"],
        "calibrate": ["labels.csv", "--output=results/_results.json"],
    }[command]
    before = read_files(tmp_path)
    ran = ci_evals(command, *options, cwd=tmp_path)
    assert ran.returncode == 2
    assert "would be overwritten, but this command reads it" in ran.stderr
    assert read_files(tmp_path) == before


READERS = (
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


def test_a_killed_run_leaves_no_green_reports_of_an_earlier_one(tmp_path, played):
    """They say that it has not finished, to people and to every command that reads them."""
    (tmp_path / "results/badge.svg").write_text("<svg>100</svg>")

    shutil.copytree(tmp_path / "results", tmp_path / "kept")

    def hang(_):
        time.sleep(20)

    with world.agent(hang) as slow:
        env = played.env | {"CI_EVALS_BASE_URL": slow.url}
        run = start("run", "suite.json", "--provider=offline", "--junit=out.xml", cwd=tmp_path, env=env)
        while not slow.requests:
            time.sleep(0.05)
        run.kill()
        run.communicate(timeout=300)
    results = read_results(tmp_path)
    assert results["run"]["status"] == "unfinished"
    assert (results["gate"]["passed"], results["gate"]["exitCode"]) == (False, 3)
    assert results["counts"]["notRun"] == 1
    left = {path.name for path in (tmp_path / "results").iterdir() if path.is_file()}
    assert left == {"_results.json", "ctrf.json", "summary.md", "journal.jsonl"}
    assert "the run has not finished" in (tmp_path / "results/summary.md").read_text()
    assert 'errors="1"' in (tmp_path / "out.xml").read_text()
    for args, code in (
        (["merge", "results/_results.json", "--output-dir=merged"], 3),
        (["compare", "results", "results"], 2),
        *((args, 2) for args in READERS),
    ):
        ran = ci_evals(*args, cwd=tmp_path)
        assert ran.returncode == code, (args, ran.stderr)
        assert "has not finished" in ran.stderr or code == 3, (args, ran.stderr)
    ran = played("--baseline=results", "--output-dir=other")
    assert ran.returncode == 2
    assert "has not finished" in ran.stderr
    assert played().returncode == 0
    assert read_results(tmp_path)["run"]["status"] == "completed"


def test_a_run_that_is_refused_leaves_earlier_reports_alone(tmp_path, played):
    """Nothing was begun, so nothing is unfinished."""
    refused(played, tmp_path, "--thresholds=suite:Nowhere=90", says="Nowhere")


@pytest.mark.parametrize("link", ["results/summary.md", "results", "results/Stub", "out.xml", "taped"])
def test_an_output_that_is_a_link_is_refused_before_anything_is_played(tmp_path, played, link):
    """What a checkout brings would lead reports elsewhere, or keep them from being written at the end."""
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    place = tmp_path / link
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(elsewhere)
    if place.suffix:
        place.unlink()
        (elsewhere / "kept").write_text("<testsuite/>")
        place.symlink_to(elsewhere / "kept")
    options = {"out.xml": "--junit=out.xml", "taped": "--record=taped/here"}
    refused(played, tmp_path, options.get(link, "--quiet"), says="symbolic link")
    assert {file.name for file in elsewhere.iterdir()} <= {"kept"}
