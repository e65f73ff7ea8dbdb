"""Whole reports of runs, as they should read.

`REGENERATE=1 pytest tests/reports/test_golden.py` writes them anew; the diff is then for a person to read.
"""

import os
import re
from html import unescape
from pathlib import Path

import cases
import comment_cases
import golden_cases
import pytest
import report_texts

from ci_evals.domain.results.run import Results
from ci_evals.reports import console, junit, report_files
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.page import page
from ci_evals.reports.story.story import story_of

GOLDEN = Path(__file__).parent / "golden"
_UNSEEN = re.compile(r"<(script|style|svg|title)\b.*?</\1>", re.DOTALL)
_ENDS_LINE = re.compile(r"</(p|li|h\d|tr|summary|dd|figcaption|dt|button|label)>|<br>")
_TAG = re.compile(r"<[^>]+>")


def visible_text(html: str) -> str:
    """The text that a reader sees of a page before any test is opened, a line for each paragraph or row."""
    html = _UNSEEN.sub("", html).replace("</td>", " | </td>").replace("</th>", " | </th>")
    text = _ENDS_LINE.sub("\0", html)
    lines = (" ".join(unescape(_TAG.sub("", line)).split()) for line in text.split("\0"))
    return "\n".join(line.removesuffix(" |") for line in lines if line) + "\n"


def layouts(results: Results) -> dict[str, str]:
    """The run in every layout, by the name of the golden file."""
    story = story_of(results)
    return {
        "console.txt": console.render(story), "console-verbose.txt": console.render(story, verbose=True),
        "comment.md": comment.render(story, comment_cases.CONTEXT), "summary.md": documents.summary(story),
        "page.txt": visible_text("".join(page.render(story))), "junit.xml": "".join(junit.render(story)),
    }  # fmt: skip


def exact_reports() -> dict[str, str]:
    """The reports of a comparison, of a suite and of a test."""
    results = golden_cases.EXACT()
    files = report_texts.files_of_run(results)
    story = story_of(results)
    return {
        "comparison.txt": console.comparison(story),
        "comparison.md": documents.comparison(story),
        "suite.md": files["Refunds/2026-11-21T09-30-00Z/_summary.md"],
        "test.md": files["Refunds/2026-11-21T09-30-00Z/Refund-in-time.md"],
    }


def check(name: str, drawn: dict[str, str]) -> None:
    """Compare texts with the files of a folder; with REGENERATE write them first."""
    folder = GOLDEN / name
    if os.environ.get("REGENERATE"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for path, text in drawn.items():
            (folder / path).write_text(text, encoding="utf-8")
    assert drawn == {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.parametrize("name", golden_cases.GOLDEN)
def test_reports_equal_the_golden_files(name):
    check(name, layouts(golden_cases.GOLDEN[name]()))


def test_reports_of_comparison_suite_and_test_equal_the_golden_files():
    check("exact", exact_reports())


def test_comment_on_a_refused_run_equals_the_golden_file():
    check("refused", {"comment.md": comment.refused(comment_cases.REFUSAL, comment_cases.CONTEXT)})


@pytest.mark.parametrize("name", cases.CASES)
def test_reports_of_reloaded_results_are_identical(name):
    results = cases.CASES[name]()
    again = report_files.load(report_texts.results_json_text(results), "_results.json")
    assert report_texts.files_of_run(results) == report_texts.files_of_run(again)
    assert console.render(story_of(results), color=True) == console.render(story_of(again), color=True)
