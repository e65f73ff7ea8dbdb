"""Whole reports of runs, as they should read.

`REGENERATE=1 pytest tests/reports/test_golden.py` writes them anew; the diff is then for a person to read.
"""

import os
from pathlib import Path

import cases
import comment_cases
import pytest
import report_texts

from ci_evals.reports import console, report_files
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.story.story import story_of

GOLDEN = Path(__file__).parent / "golden"


def reports(name: str) -> dict[str, str]:
    """All Markdown and XML of a case, and its console texts, by the name of the golden file."""
    results = cases.CASES[name]()
    files = {
        path: text
        for path, text in report_texts.files(results).items()
        if not path.endswith((".json", ".html"))
    }
    if name == "invalid":
        # Six of its tests are alike.
        files = {path: text for path, text in files.items() if "Lost-order-" not in path or "-1.md" in path}
    if name in cases.COMPARED:
        files = {path: text for path, text in files.items() if is_told_of(path)}
        files["comparison.md"] = documents.comparison(story_of(results))
        files["comparison.txt"] = console.comparison(story_of(results))
    else:
        files["console-verbose.txt"] = console.render(story_of(results), verbose=True)
    files["console.txt"] = console.render(story_of(results))
    return {path.replace("/2026-11-21T09-30-00Z/", "."): text for path, text in files.items()}


def is_told_of(path: str) -> bool:
    """Whether a baseline makes a difference in the file; of the tests' own reports one is enough."""
    return path.endswith(("summary.md", "Refund-too-late.md")) or path == "junit.xml"


@pytest.mark.parametrize("name", cases.CASES)
def test_reports_read_as_they_should(name):
    """Every report of the run is, letter for letter, the file under golden/."""
    drawn = reports(name)
    folder = GOLDEN / name
    if os.environ.get("REGENERATE"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for path, text in drawn.items():
            (folder / path).write_text(text, encoding="utf-8")
    assert drawn == {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.parametrize("name", comment_cases.COMMENTS)
def test_comments_read_as_they_should(name):
    """The comment of each kind of pull request is, letter for letter, the file under golden/comments/."""
    text = comment.render(story_of(comment_cases.COMMENTS[name]()), comment_cases.CONTEXT)
    path = GOLDEN / "comments" / f"{name}.md"
    if os.environ.get("REGENERATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_a_refusal_reads_as_it_should():
    """The comment of a run that was refused is, letter for letter, golden/comments/refused.md."""
    text = comment.refused(comment_cases.REFUSAL, comment_cases.CONTEXT)
    path = GOLDEN / "comments/refused.md"
    if os.environ.get("REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", cases.CASES)
def test_the_same_results_make_the_same_bytes(name):
    """A report depends on the results alone, whether they were just made or read from a file."""
    results = cases.CASES[name]()
    again = report_files.load(report_texts.dump(results), "_results.json")
    assert report_texts.files(results) == report_texts.files(again)
    assert console.render(story_of(results), color=True) == console.render(story_of(again), color=True)
