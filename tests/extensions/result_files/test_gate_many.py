"""`ci-evals gate` on more results than anybody reads: reports list some, and say how many they leave out."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gate_command import run_gate, saved_results

from ci_evals.reports import console, junit, report_files, results_json
from ci_evals.reports.story import listed_tests
from ci_evals.reports.story.story import story_of

MOST = 30


def write_rows(name: str, passed: list[Any]) -> str:
    rows = [
        ok if isinstance(ok, dict) else {"test": f"case-{i:04}", "passed": ok, "reason": "" if ok else "why"}
        for i, ok in enumerate(passed)
    ]
    Path(name).write_text("\n".join(map(json.dumps, rows)))
    return name


@pytest.fixture
def gated(tmp_path, monkeypatch, capsys):
    """Gates these outcomes against those of a baseline, and returns what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(listed_tests, "MOST_TESTS", MOST)

    def run(head, base):
        files = write_rows("head.jsonl", head), f"--baseline={write_rows('base.jsonl', base)}"
        return run_gate(capsys, *files)[1]

    return run


def test_changed_and_failed_tests_are_listed_before_passed_ones(gated):
    passed = [True] * (MOST + 10)
    printed = gated([*passed[:-3], False, False, True], [*passed[:-2], False, False])
    broke, failed, fixed = (f"case-{len(passed) - i:04}" for i in (3, 2, 1))
    page, summary = (Path("results", name).read_text() for name in ("report.html", "summary.md"))
    for name in (broke, failed, fixed):
        assert f"{name}</a></th>" in page
        assert re.search(rf"^\| {name} ", summary, re.MULTILINE)
    assert len(re.findall(r"case-\d+</a></th>", page)) == MOST
    note = "10 tests not listed: 10 passed. All tests are in _results.json."
    assert (note in page, note in summary) == (True, True)
    assert ("and 10 more tests" in summary, "and 10 more tests" in printed) == (True, True)
    assert len(saved_results()["suites"][0]["tests"]) == len(passed)
    assert Path("results/junit.xml").read_text().count("<testcase ") == len(passed)


def test_regressions_beyond_the_listed_ones_are_counted(gated):
    count = MOST + 50
    printed = gated([False] * count, [True] * count)
    page, summary = (Path("results", name).read_text() for name in ("report.html", "summary.md"))
    broke = f"{count:,} tests broke since the baseline"
    assert broke in printed
    dropped = f"{count:,} tests dropped, 0 rose"
    for text in (broke, dropped, "and 49 more in _results.json", "50 tests not listed: 50 failed."):
        assert text in page
    assert "and 50 more tests" in summary
    assert Path("results/junit.xml").read_text().count("<failure ") == count


def test_results_of_many_tests_round_trip_and_shared_trials_change_no_report(gated):
    tests = MOST + 10
    gated([False, *[True] * (tests - 1)], [True] * tests)
    text = Path("results/_results.json").read_text()
    results = report_files.load(text, "_results.json")
    assert sum('"name":"case-' in line for line in text.splitlines()) == tests
    assert "".join(results_json.render(results)) == text
    names = ["it's <b>", 'a "&quot;" b', "c > d"]
    outcomes = [{"passed": True}, {"passed": False, "reason": "why"}, {"passed": "skip"}, {"error": "gone"}]
    rows = [{"test": f"{names[i % 3]} {i}", **outcomes[i % 4]} for i in range(4 * MOST)]
    base = [{**row, "passed": number % 8 < 4} for number, row in enumerate(rows)]
    printed = gated(rows, base)
    results = report_files.load(Path("results/_results.json").read_text(), "_results.json")
    shared = Path("results/junit.xml").read_text()
    assert "".join(junit.render(story_of(results))) == shared
    assert shared.count("It passed in the baseline") == MOST // 2
    assert console.render(story_of(results), color=False) in printed
