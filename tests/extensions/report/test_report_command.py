"""`ci-evals report`: which run is shown, what stands beside it, what is written, and what is refused."""

import json
import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import builders as build
import pytest
import report_page
import report_texts
from commands import ci_evals, read_files

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.comparison import Baseline, Comparison
from ci_evals.extensions.report.rewriting import report
from ci_evals.extensions.report.settings import ReportSettings
from ci_evals.reports.names import RESULTS

SUITE = "Refunds/2026-11-21T09-30-00Z"
FORMATS = {
    "html": {"report.html"},
    "markdown": {"summary.md", f"{SUITE}/_summary.md", f"{SUITE}/Refund-for-a-cancelled-order.md"},
    "junit": {"junit.xml"},
    "ctrf": {"ctrf.json"},
    "json": {f"{SUITE}/{RESULTS}"},
    "badge": {"badge.svg", "badge.json"},
    "csv": {"findings.csv"},
}


def run_of(name: str, *, day: int = 0, before: str | None = None, says: str | None = None):
    """The run `name`, so many days after the first; compared with the run `before`."""
    trial = build.trial_result(turns=(build.turn(agent=says or f"This is {name}."),))
    info = build.run_info(id=name, started_at=build.STARTED_AT + timedelta(days=day))
    compared = None
    if before:
        baseline = Baseline(score=100, at=build.STARTED_AT, run_id=before, tests=1, trials=1)
        compared = Comparison(comparable=True, baseline=baseline, tests=1, base=100, head=100, delta=0)
    suite = build.suite_result("Refunds", build.test_result(trials=(trial,)))
    return build.results(suite, run=info, comparison=compared)


def save(folder: Path, results) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_text(report_texts.results_json_text(results))
    return folder


@pytest.fixture
def past(tmp_path, monkeypatch) -> Path:
    """Runs of three days, the newest neither first nor last by name; something else lies beside them."""
    monkeypatch.chdir(tmp_path)
    for name, day in (("a", 0), ("b", 2), ("c", 1)):
        save(Path("past", name), run_of(name, day=day))
    save(Path("past/c", SUITE), run_of("c", day=1))
    Path("past/notes").mkdir()
    return Path("past")


def written(folder: Path) -> set[str]:
    return {name for name in read_files(folder) if name != RESULTS}


def page_in(folder: Path) -> str:
    return report_page.full_text((folder / "report.html").read_text())


def redraw(*paths: str | Path, **options) -> None:
    report(ReportSettings(results=[Path(path) for path in paths], **options), RunContext())


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_alone_writes_only_its_files(past, name, capsys):
    """And says so in one line."""
    redraw(past / "a", format=name)
    assert written(past / "a") == FORMATS[name]
    captured = capsys.readouterr().out
    assert captured.count("\n") == 1
    assert captured.endswith(" written to past/a\n")


def test_formats_may_be_listed(past, capsys):
    """With commas; by default they are all but badge and CSV, which no run writes."""
    redraw(past / "a", format="html, badge")
    assert written(past / "a") == FORMATS["html"] | FORMATS["badge"]
    assert capsys.readouterr().out == "report.html, badge.svg and badge.json written to past/a\n"
    redraw(past / "b")
    assert written(past / "b") == set().union(*FORMATS.values()) - FORMATS["badge"] - FORMATS["csv"]
    assert capsys.readouterr().out == "7 reports written to past/b\n"


def test_the_file_that_is_read_is_not_written(past):
    """Nor is a `_results.json` beside a file of another name."""
    file = past / "a" / RESULTS
    file.write_text(json.dumps(json.loads(file.read_text())))
    before = file.read_bytes()
    redraw(file)
    assert file.read_bytes() == before
    file.rename(past / "a/mine.json")
    redraw(past / "a/mine.json")
    assert not file.exists()


def test_reports_lie_beside_a_link(past, capsys):
    """As of results that are kept in a store of their own: nobody looks for reports there."""
    Path("run").mkdir()
    Path("run", RESULTS).symlink_to((past / "a" / RESULTS).resolve())
    redraw("run", format="html")
    assert capsys.readouterr().out == "report.html written to run\n"
    assert (written(Path("run")), written(past / "a")) == ({"report.html"}, set())


def test_of_a_folder_of_runs_the_newest_is_shown(past, capsys):
    """The others stand beside it; a suite's own results deeper down are no run."""
    redraw(past)
    assert (
        capsys.readouterr().out
        == "7 reports written to past/b, the newest of 3 runs; 2 other runs next to it\n"
    )
    assert [written(past / name) for name in "ac"] == [set(), {f"{SUITE}/{RESULTS}"}]
    assert "This is b." in page_in(past / "b")


def test_the_first_is_shown_and_others_stand_beside_it(past, capsys):
    """In any form, and each run once: by its file, its folder, a copy of it, within a folder of many."""
    save(Path("copy"), run_of("c", day=1))
    redraw(past / "a", past / "c", past / "c" / RESULTS, "copy", past)
    assert capsys.readouterr().out.endswith(" written to past/a; 2 other runs next to it\n")
    assert written(past / "b") == set()


def test_the_baseline_among_the_others_is_found(past):
    """By the id that the comparison names; no conversation of another run is on the page."""
    save(Path("head"), run_of("head", day=3, before="a"))
    redraw("head", past, baseline="")  # the default, as with `run`
    page = page_in(Path("head"))
    assert "This is head." in page
    assert "This is a." in page
    assert "This is b." not in page
    redraw("head", past, baseline="none")
    assert "This is a." not in page_in(Path("head"))


def test_missing_baseline_is_reported(past, capsys):
    """Once `run` had it on the page; to do without it is an answer too."""
    save(Path("head"), run_of("head", day=3, before="a"))
    redraw("head", past / "b")
    assert (
        "report.html lacks the baseline's conversations. Name that run with `baseline="
        in capsys.readouterr().err
    )
    for options in ({"baseline": "none"}, {"format": "junit"}, {"baseline": "past/a"}):
        redraw("head", **options)
        assert capsys.readouterr().err == ""


def test_a_baseline_may_be_named(past, capsys):
    """Then no other run is beside it; a run that was compared with none has any at its side."""
    save(Path("head"), run_of("head", day=3, before="a"))
    redraw("head", baseline="past/a")
    assert "This is a." in page_in(Path("head"))
    assert "next to" not in capsys.readouterr().out
    redraw(past / "b", baseline="past/c")
    assert "This is c." in page_in(past / "b")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("past/b", "head was compared with one of 2026-11-21 09:30:00 UTC"),
        ("head", "this is the run to show"),
        ("nowhere", "nowhere: cannot be read"),
    ],
)
def test_a_baseline_that_is_none_is_refused(past, asked, message):
    """A page must not show one run's conversations beside another's numbers."""
    save(Path("head"), run_of("head", day=3, before="a"))
    with pytest.raises(UsageError, match="`baseline=") as refused:
        redraw("head", baseline=asked)
    assert message.replace("head was", f"head/{RESULTS} was") in str(refused.value)
    assert written(Path("head")) == set()


def test_all_unreadable_files_are_reported_at_once(past):
    """And nothing is written."""
    (past / "b" / RESULTS).write_text("{")
    before = read_files(Path())
    with pytest.raises(UsageError) as refused:
        redraw(past / "a", past, "nowhere", past / "notes")
    for text in (
        f"past/b/{RESULTS}: not a results file",
        "nowhere: no such file or folder",
        "past/notes: contains no",
    ):
        assert text in str(refused.value)
    assert read_files(Path()) == before


@pytest.mark.parametrize(
    "options", [{"format": "html"}, {"format": "markdown,badge"}, {"open": True}, {"baseline": "past/a"}]
)
def test_one_suites_results_have_markdown_alone(past, options):
    """Their page is that of the run; in Markdown they are redrawn as ever."""
    with pytest.raises(UsageError, match="the results of one suite have only Markdown reports"):
        redraw(past / "c" / SUITE, **options)
    redraw(past / "c" / SUITE, baseline="auto")
    assert written(past / "c" / SUITE) == {"_summary.md", "Refund-for-a-cancelled-order.md"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "html,pdf"}, "unknown format 'pdf'. Formats: html, markdown, junit, ctrf, json, badge"),
        ({"format": "junit", "open": True}, "`open=`: only report.html can be opened"),
    ],
)
def test_wrong_options_are_refused(past, options, message):
    with pytest.raises(UsageError) as refused:
        redraw(past / "a", **options)
    assert message in str(refused.value)
    assert written(past / "a") == set()


@pytest.mark.slow
def test_the_page_is_opened_in_the_browser(past, tmp_path):
    """In whichever the system names; not in CI, and where there is none its path is printed."""
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > "$0.asked"\n')
    browser.chmod(0o755)
    page = tmp_path / "past/a/report.html"
    text = f"Open in a browser: {page}\n"
    for env, printed in (
        ({"BROWSER": f"{browser} %s", "CI": "true"}, text),
        ({"BROWSER": str(tmp_path / "none"), "PATH": os.devnull}, text),
        ({"BROWSER": f"{browser} %s"}, ""),
    ):
        assert not (tmp_path / "browser.asked").exists()
        ran = ci_evals("report", "past/a", "--open", "--format=html", cwd=tmp_path, env=env)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout == f"report.html written to past/a\n{printed}"
    assert (tmp_path / "browser.asked").read_text().strip() == page.as_uri()


def test_keys_of_this_environment_are_in_none_of_the_files(past, monkeypatch):
    """Nor are they where whoever wrote the others did not know them."""
    key = "sk-" + "q7" * 12
    monkeypatch.setenv("LLM_API_KEY", key)
    save(Path("head"), run_of("head", day=3, before="base", says=f"Your key: {key}"))
    save(Path("base"), run_of("base", says=f"My key: {key}"))
    redraw("head", "base", format="html,markdown,badge")
    page = page_in(Path("head"))
    assert "Your key: ***" in page
    assert "My key: ***" in page
    texts = [page, *(data.decode() for name, data in read_files(Path("head")).items() if name != RESULTS)]
    assert not [text for text in texts if key in text]


def test_a_run_without_suites_has_reports_too(past, capsys):
    """What nobody wrote so can still be read."""
    save(Path("empty"), replace(run_of("empty"), suites=()))
    redraw("empty", format="json")
    redraw("empty")
    captured = capsys.readouterr().out.splitlines()
    assert captured == [
        "0 reports written to empty",
        "4 reports written to empty",
    ]


def test_the_badge_is_a_picture_and_data(past):
    """Well-formed, and of one mind."""
    redraw(past, format="badge")
    picture = ET.parse(past / "b/badge.svg").getroot()
    data = json.loads((past / "b/badge.json").read_text())
    assert picture.get("aria-label") == f"{data['label']}: {data['message']}" == "evals: 100.0 passed"


@pytest.mark.slow
def test_help_names_every_format(tmp_path):
    """And what is written where nothing is asked."""
    helped = " ".join(ci_evals("report", "--help", cwd=tmp_path).stdout.split())
    for name in FORMATS:
        assert name in helped
    assert "Default: all but badge" in helped


@pytest.mark.slow
def test_reports_drawn_again_elsewhere_are_the_same(tmp_path):
    """`summary.md` has no links to the job that wrote it: those are in comment and step summary."""
    github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_RUN_ID": "7041",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"),
    }
    (tmp_path / "step.md").touch()
    ran = ci_evals("run", "demo:hr", "--provider=offline", "--no-gate", cwd=tmp_path, env=github)
    assert ran.returncode == 0, ran.stderr
    written = (tmp_path / "results/summary.md").read_bytes()
    assert b"runs/7041" not in written
    assert "runs/7041" in (tmp_path / "step.md").read_text()
    again = ci_evals("report", "results", "--format=markdown", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "results/summary.md").read_bytes() == written
