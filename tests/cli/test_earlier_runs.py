"""Earlier runs in the output folder, for the trend."""

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import builders as build
import pytest
from each_row import each_row

from ci_evals.cli.files.earlier_runs import MOST_RUNS, earlier_runs
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.run import Origin
from ci_evals.library.runs import load_results, write_reports
from ci_evals.reports.names import RESULTS, folders_for
from ci_evals.scoring.suite_results import joined, of_suite

BEGIN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
SECRET = "shop-key-8d21f0"


def make_run(number, *suites, **info):
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


def earlier(folder, shown, most=MOST_RUNS, **environ):
    context = RunContext({**environ})
    context.hide([SECRET])
    return {run.id: run for run in earlier_runs(folder, shown, context, most)}


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        write_reports(make_run(number), tmp_path)
    return tmp_path


def test_latest_earlier_runs_of_same_suites_are_read_with_score_and_outcomes(folder):
    runs = earlier(folder, make_run(3))
    assert runs.keys() == {"run-0", "run-1", "run-2"}
    assert runs["run-1"].score == make_run(1).score == pytest.approx(50)
    assert runs["run-1"].interval
    assert (runs["run-1"].label, len(runs["run-1"].outcomes)) == ("11-20 10:30", 3)
    assert earlier(folder, make_run(3), most=2).keys() == {"run-1", "run-2"}  # a folder may have thousands


def test_joined_suite_results_equal_results_of_run():
    """The score is that of all tests, not of all suites."""
    run = make_run(0)
    whole = joined([of_suite(run, one, None) for one in run.suites])
    assert (whole.score, whole.suites) == (run.score, run.suites)
    assert (whole.counts.tests, whole.counts.played_trials) == (3, 3)


OTHER_RUNS = {
    "another suite": make_run(9, suite("Others", 1)),
    "one of the suites": make_run(9, suite("Refunds", 1)),
    "some of the tests": make_run(9, config={"test": "Refunds 0"}),
    "cut off": make_run(9, status="interrupted"),
    "a replay": make_run(9, origin=Origin(how="replayed", run="run-0", started_at=BEGIN)),
    "the run itself": make_run(3),
}


@each_row("other", OTHER_RUNS.values(), ids=OTHER_RUNS.keys())
def test_runs_of_other_tests_or_incomplete_runs_are_not_earlier_runs(folder, other):
    write_reports(other, folder)
    assert earlier(folder, make_run(3)).keys() == {"run-0", "run-1", "run-2"}


HOSTILE = {
    "no JSON": lambda file: file.write_text("{"),
    "something else": lambda file: file.write_text('{"schemaVersion": 99}'),
    "not UTF-8": lambda file: file.write_bytes(b"\xff\xfe"),
    "a pipe": os.mkfifo,
    "a folder": lambda file: file.mkdir(),
    "a link": lambda file: file.symlink_to("/dev/zero"),
    "a broken link": lambda file: file.symlink_to("nowhere"),
}


def test_linked_folders_and_results_tracked_by_git_in_ci_are_no_earlier_runs(folder, tmp_path_factory):
    """Whoever opens a pull request could have written what git tracks."""
    other = tmp_path_factory.mktemp("other")
    write_reports(make_run(7), other)
    for name in ("Refunds", "Billing"):
        (folder / f"linked-{name}").symlink_to(other / name)
    assert "run-7" not in earlier(folder, make_run(3))
    for command in (["init", "--quiet"], ["add", "--force", "Refunds"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    assert (earlier(folder, make_run(3), CI="true"), len(earlier(folder, make_run(3)))) == ({}, 3)


def test_secrets_in_names_of_earlier_results_are_redacted(folder):
    """An earlier run may not have known the secrets."""
    file = next(Path(folder).glob("Refunds/*/" + RESULTS))
    file.write_text(file.read_text().replace("Refunds 0", f"Refunds {SECRET}"))
    outcomes = {name for run in earlier(folder, make_run(3)).values() for name in run.outcomes}
    assert not any(SECRET in part for name in outcomes for part in name)
    assert load_results(file.parent).suites[0].tests[0].name == f"Refunds {SECRET}"


def test_unreadable_earlier_results_are_named_and_skipped(folder, capsys):
    for name, make in HOSTILE.items():
        (folder / "Refunds" / name).mkdir()
        make(folder / "Refunds" / name / RESULTS)
        assert earlier(folder, make_run(3)).keys() == {"run-0", "run-1", "run-2"}
        assert f"{name}/{RESULTS}" in capsys.readouterr().err
