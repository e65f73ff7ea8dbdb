"""The runs that an output folder still has: the trend needs no option."""

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import builders as build
import pytest

from ci_evals.cli.files.earlier_runs import MOST_RUNS, earlier_runs
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.run import Origin
from ci_evals.library.runs import load_results, write_reports
from ci_evals.reports.names import RESULTS, folders_for
from ci_evals.scoring.suite_results import joined, of_suite

BEGIN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
SECRET = "shop-key-8d21f0"


def a_run(number, *suites, **info):
    """A run that began `number` hours after the first."""
    began = BEGIN + timedelta(hours=number)
    suites = suites or (suite("Refunds", 1), suite("Billing", 0.5, 0))
    folders = folders_for([one.name for one in suites], began)
    suites = [replace(one, folder=folder) for one, folder in zip(suites, folders, strict=True)]
    config = {"test": None, "tag": None} | info.pop("config", {})
    run = build.run_info(id=f"run-{number}", started_at=began, config=config, **info)
    return replace(build.with_process(build.results(*suites)), run=run)


def suite(name, *shares):
    tests = []
    for number, share in enumerate(shares):
        findings = [build.finding("passed" if share >= limit else "failed") for limit in (0.5, 1)]
        trial = build.trial_result(findings=tuple(findings))
        tests.append(build.test_result(f"{name} {number}", trials=(trial,)))
    return build.suite_result(name, *tests)


def found(folder, shown, most=MOST_RUNS, **environ):
    context = RunContext({**environ})
    context.hide([SECRET])
    return {run.id: run for run in earlier_runs(folder, shown, context, most)}


@pytest.fixture
def folder(tmp_path):
    """An output folder with three runs in it."""
    for number in range(3):
        write_reports(a_run(number), tmp_path)
    return tmp_path


def test_runs_of_the_same_suites_are_found_whole(folder):
    """With the score and the outcomes of the run, although each suite has a file of its own."""
    runs = found(folder, a_run(3))
    assert runs.keys() == {"run-0", "run-1", "run-2"}
    whole = a_run(1)
    assert runs["run-1"].score == whole.score == pytest.approx(50)
    assert runs["run-1"].interval
    assert runs["run-1"].label == "11-20 10:30"
    assert len(runs["run-1"].outcomes) == 3


def test_the_results_of_all_suites_make_the_run_again():
    """Their score is that of all tests, not of all suites."""
    run = a_run(0)
    whole = joined([of_suite(run, one, None) for one in run.suites])
    assert (whole.score, whole.suites) == (run.score, run.suites)
    assert (whole.counts.tests, whole.counts.played_trials) == (3, 3)


UNLIKE = {
    "another suite": a_run(9, suite("Others", 1)),
    "one of the suites": a_run(9, suite("Refunds", 1)),
    "some of the tests": a_run(9, config={"test": "Refunds 0"}),
    "cut off": a_run(9, status="interrupted"),
    "a replay": a_run(9, origin=Origin(how="replayed", run="run-0", started_at=BEGIN)),
    "the run itself": a_run(3),
}


@pytest.mark.parametrize("other", UNLIKE.values(), ids=UNLIKE.keys())
def test_runs_that_played_something_else_are_no_earlier_ones(folder, other):
    """Their scores would show as a trend of the agent."""
    write_reports(other, folder)
    assert found(folder, a_run(3)).keys() == {"run-0", "run-1", "run-2"}


HOSTILE = {
    "no JSON": lambda file: file.write_text("{"),
    "something else": lambda file: file.write_text('{"schemaVersion": 99}'),
    "not UTF-8": lambda file: file.write_bytes(b"\xff\xfe"),
    "a pipe": os.mkfifo,
    "a folder": lambda file: file.mkdir(),
    "a link": lambda file: file.symlink_to("/dev/zero"),
    "a broken link": lambda file: file.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_cannot_be_read_is_said_and_left_out(folder, make, capsys):
    """Anything may lie in the folder; no run ends for it."""
    (folder / "Refunds/odd").mkdir()
    make(folder / "Refunds/odd" / RESULTS)
    assert found(folder, a_run(3)).keys() == {"run-0", "run-1", "run-2"}
    assert "note: left out of the trend" in capsys.readouterr().err


def test_links_to_other_folders_are_not_followed(folder, tmp_path_factory):
    """Whatever they lead to was no run of this folder."""
    other = tmp_path_factory.mktemp("other")
    write_reports(a_run(7), other)
    for name in ("Refunds", "Billing"):
        (folder / f"linked-{name}").symlink_to(other / name)
    assert "run-7" not in found(folder, a_run(3))


def test_only_the_newest_runs_are_read(folder):
    """A folder may have thousands."""
    assert found(folder, a_run(3), most=2).keys() == {"run-1", "run-2"}


def test_in_ci_no_committed_file_counts(folder):
    """Whoever opens a pull request could have written it."""
    for command in (["init", "--quiet"], ["add", "--force", "Refunds"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    assert found(folder, a_run(3), CI="true") == {}
    assert len(found(folder, a_run(3))) == 3


def test_secrets_of_this_run_are_taken_out(folder):
    """An earlier run may not have known them."""
    file = next(Path(folder).glob("Refunds/*/" + RESULTS))
    file.write_text(file.read_text().replace("Refunds 0", f"Refunds {SECRET}"))
    outcomes = {name for run in found(folder, a_run(3)).values() for name in run.outcomes}
    assert not any(SECRET in part for name in outcomes for part in name)
    assert load_results(file.parent).suites[0].tests[0].name == f"Refunds {SECRET}"
