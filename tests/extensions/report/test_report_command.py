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
    "junit": {"junit.xml"}, "ctrf": {"ctrf.json"}, "json": {f"{SUITE}/{RESULTS}"},
    "badge": {"badge.svg", "badge.json"}, "csv": {"findings.csv"},
}  # fmt: skip


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


def report_files(folder: Path) -> set[str]:
    return {name for name in read_files(folder) if name != RESULTS}


def page_in(folder: Path) -> str:
    return report_page.full_text((folder / "report.html").read_text())


def write_reports(*paths: str | Path, **options) -> None:
    report(ReportSettings(results=[Path(path) for path in paths], **options), RunContext())


def test_report_format_writes_only_its_files_also_for_a_run_without_suites(past, capsys):
    for name, files in FORMATS.items():
        folder = save(Path("one", name), run_of("a"))
        write_reports(folder, format=name)
        assert report_files(folder) == files
        line = capsys.readouterr().out
        assert (line.count("\n"), line.endswith(f" written to {folder}\n")) == (1, True)
    write_reports(past / "a", format="html, badge")
    assert report_files(past / "a") == FORMATS["html"] | FORMATS["badge"]
    assert capsys.readouterr().out == "report.html, badge.svg and badge.json written to past/a\n"
    write_reports(past / "b")
    assert report_files(past / "b") == set().union(*FORMATS.values()) - FORMATS["badge"] - FORMATS["csv"]
    assert capsys.readouterr().out == "7 reports written to past/b\n"
    save(Path("empty"), replace(run_of("empty"), suites=()))
    write_reports("empty", format="json")
    write_reports("empty")
    assert capsys.readouterr().out.splitlines() == [f"{number} reports written to empty" for number in (0, 4)]


def test_reports_of_a_linked_results_file_are_next_to_the_link(past, capsys):
    Path("run").mkdir()
    Path("run", RESULTS).symlink_to((past / "a" / RESULTS).resolve())
    write_reports("run", format="html")
    assert capsys.readouterr().out == "report.html written to run\n"
    assert (report_files(Path("run")), report_files(past / "a")) == ({"report.html"}, set())


def test_input_file_of_a_report_is_not_rewritten(past):
    file = past / "a" / RESULTS
    file.write_text(json.dumps(json.loads(file.read_text())))
    before = file.read_bytes()
    write_reports(file)
    assert file.read_bytes() == before
    file.rename(past / "a/mine.json")
    write_reports(past / "a/mine.json")
    assert not file.exists()


def test_report_counts_duplicate_runs_once_and_rewrites_only_first_run(past, capsys):
    save(Path("copy"), run_of("c", day=1))
    write_reports(past / "a", past / "c", past / "c" / RESULTS, "copy", past)
    assert capsys.readouterr().out.endswith(" written to past/a; 2 other runs next to it\n")
    assert report_files(past / "b") == set()


def test_newest_run_of_a_folder_is_shown_with_the_same_text_in_both_badges(past, capsys):
    write_reports(past)
    line = "7 reports written to past/b, the newest of 3 runs; 2 other runs next to it\n"
    assert capsys.readouterr().out == line
    assert [report_files(past / name) for name in "ac"] == [set(), {f"{SUITE}/{RESULTS}"}]
    assert "This is b." in page_in(past / "b")
    write_reports(past, format="badge")
    picture = ET.parse(past / "b/badge.svg").getroot()
    data = json.loads((past / "b/badge.json").read_text())
    assert picture.get("aria-label") == f"{data['label']}: {data['message']}" == "evals: 100.0 passed"


def test_baseline_is_found_or_named_and_a_missing_one_causes_a_warning(past, capsys):
    save(Path("head"), run_of("head", day=3, before="a"))
    write_reports("head", past, baseline="")  # the default, as with `run`
    page = page_in(Path("head"))
    assert [f"This is {name}." in page for name in ("head", "a", "b")] == [True, True, False]
    write_reports("head", past, baseline="none")
    assert "This is a." not in page_in(Path("head"))
    capsys.readouterr()
    write_reports("head", past / "b")
    warning = "report.html lacks the baseline's conversations. Name that run with `baseline="
    assert warning in capsys.readouterr().err
    for options in ({"baseline": "none"}, {"format": "junit"}, {"baseline": "past/a"}):
        write_reports("head", **options)
        shown = capsys.readouterr()
        assert (shown.err, "next to" in shown.out) == ("", False)
    assert "This is a." in page_in(Path("head"))
    write_reports(past / "b", baseline="past/c")
    assert "This is c." in page_in(past / "b")


def test_invalid_formats_baselines_and_results_are_refused_before_any_report(past):
    message = r"unknown format 'pdf'\. Formats: html, markdown, junit, ctrf, json, badge"
    with pytest.raises(UsageError, match=message):
        write_reports(past / "a", format="html,pdf")
    with pytest.raises(UsageError, match=r"`open=`: only report\.html can be opened"):
        write_reports(past / "a", format="junit", open=True)
    assert report_files(past / "a") == set()
    save(Path("head"), run_of("head", day=3, before="a"))
    for baseline, message in (
        ("past/b", f"head/{RESULTS} was compared with one of 2026-11-21 09:30:00 UTC"),
        ("head", "this is the run to show"),
        ("nowhere", "nowhere: cannot be read"),
    ):
        with pytest.raises(UsageError, match="`baseline=") as refused:
            write_reports("head", baseline=baseline)
        assert message in str(refused.value)
    assert report_files(Path("head")) == set()
    for options in ({"format": "html"}, {"format": "markdown,badge"}, {"open": True}, {"baseline": "past/a"}):
        with pytest.raises(UsageError, match="the results of one suite have only Markdown reports"):
            write_reports(past / "c" / SUITE, **options)
    write_reports(past / "c" / SUITE, baseline="auto")
    assert report_files(past / "c" / SUITE) == {"_summary.md", "Refund-for-a-cancelled-order.md"}
    (past / "b" / RESULTS).write_text("{")
    before = read_files(Path())
    with pytest.raises(UsageError) as refused:
        write_reports(past / "a", past, "nowhere", past / "notes")
    reasons = (f"past/b/{RESULTS}: not a results file", "nowhere: no such file or folder")
    for text in (*reasons, "past/notes: contains no"):
        assert text in str(refused.value)
    assert read_files(Path()) == before


@pytest.mark.slow
def test_page_is_opened_in_browser_or_its_path_printed(past, tmp_path):
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


def test_keys_of_the_environment_are_redacted_in_reports(past, monkeypatch):
    key = "sk-" + "q7" * 12
    monkeypatch.setenv("LLM_API_KEY", key)
    save(Path("head"), run_of("head", day=3, before="base", says=f"Your key: {key}"))
    save(Path("base"), run_of("base", says=f"My key: {key}"))
    write_reports("head", "base", format="html,markdown,badge")
    page = page_in(Path("head"))
    assert "Your key: ***" in page
    assert "My key: ***" in page
    texts = [page, *(data.decode() for name, data in read_files(Path("head")).items() if name != RESULTS)]
    assert not [text for text in texts if key in text]


@pytest.mark.slow
def test_rewritten_summary_equals_the_summary_of_the_run(tmp_path):
    github = {
        "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/shop", "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_RUN_ID": "7041", "GITHUB_SHA": "a" * 40, "GITHUB_EVENT_NAME": "push",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"),
    }  # fmt: skip
    (tmp_path / "step.md").touch()
    options = ("--test=Refuses", "--provider=offline", "--no-gate")
    ran = ci_evals("run", "demo:hr", *options, cwd=tmp_path, env=github)
    assert ran.returncode == 0, ran.stderr
    report_files = (tmp_path / "results/summary.md").read_bytes()
    assert b"runs/7041" not in report_files
    assert "runs/7041" in (tmp_path / "step.md").read_text()
    again = ci_evals("report", "results", "--format=markdown", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "results/summary.md").read_bytes() == report_files


@pytest.mark.slow
def test_help_of_report_lists_formats_and_the_default(tmp_path):
    helped = " ".join(ci_evals("report", "--help", cwd=tmp_path).stdout.split())
    assert [name for name in (*FORMATS, "Default: all but badge") if name not in helped] == []
