"""A new column is one line in one module, and every report shows it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ci_evals

pytestmark = pytest.mark.slow

_TABLES = "reports/story/tables.py"
_BEFORE = (
    '    Column("result", words=True, marked=True, show=lambda row: test_words.test_result(row.test)),\n'
)
_NEW = '    Column("line", show=lambda row: f"L{row.test.line}"),\n'
_SHOW = """
import builders as build
from ci_evals.reports import console
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.story.story import story_of

results = build.results(build.suite_result("Refunds", build.test_result("Refund")))
story = story_of(results)
reports = [console.render(story), documents.summary(story), "".join(page.render(story))]
print("<<next>>".join(reports))
"""


def test_table_column_added_in_one_place_appears_in_every_report(tmp_path: Path):
    source = Path(ci_evals.__file__).parent
    copy = tmp_path / "ci_evals"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    tables = copy / _TABLES
    text = tables.read_text(encoding="utf-8")
    assert text.count(_BEFORE) == 1
    tables.write_text(text.replace(_BEFORE, _BEFORE + _NEW), encoding="utf-8")
    paths = [str(tmp_path), *[path for path in sys.path if path and Path(path) != source.parent]]
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{_SHOW}"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for report in shown.split("<<next>>"):
        assert "line" in report
        assert "L1" in report
