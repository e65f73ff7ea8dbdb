"""A check against a baseline that cannot be made: one rule for `run`, `gate` and `compare`.

If the command line names the baseline, there is no verdict; if it is to be found, reports warn at the top.
"""

import json
import os
from pathlib import Path

import pytest

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext

# One trial of one test: a drop cannot be told from chance.
BEFORE, AFTER = "test,passed\na,true\n", "test,passed\na,false\n"
OTHER = "test,passed\nb,true\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("before", BEFORE), ("after", AFTER), ("other", OTHER)):
        Path(f"{name}.csv").write_text(text)
        command("gate", f"{name}.csv", "--min-score=0", f"--output-dir={name}")
    return tmp_path


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        invoke([*arguments], RunContext({"PATH": os.environ["PATH"]}))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("base", "check"),
    [
        ("before", "--regression=significant"),  # too few trials
        ("other", "--regression=significant"),  # nothing in common
        ("other", "--regression=any"),
        ("other", "--max-drop=5"),
        ("other", "--max-drop=test:a=5"),
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_impossible_check_against_named_baseline_exits_3(folder, base, check, kind):
    named = f"--baseline={base}.csv" if kind == "file" else f"--baseline={base}"
    assert command("gate", "after.csv", "--min-score=0", named, check) == 3
    results = json.loads(Path("results/_results.json").read_text())
    assert "was not checked" in results["gate"]["reasons"][0]
    assert command("compare", "after", base, check) == 3


def test_unusable_named_baseline_without_check_is_only_shown(folder):
    assert command("gate", "after.csv", "--min-score=0", "--baseline=other.csv") == 0
    assert command("compare", "after", "other") == 0
    Path("arms.csv").write_text("test,passed,model\na,true,new\nb,true,old\n")
    options = ("--arm=new", "--baseline-arm=old", "--min-score=0")
    assert command("gate", "arms.csv", *options) == 0
    assert command("gate", "arms.csv", *options, "--max-drop=5") == 3


@pytest.mark.parametrize("option", ["--baseline=auto", "--baseline=none"])
def test_missing_automatic_baseline_is_a_warning_near_top_of_reports(folder, option):
    assert command("gate", "after.csv", "--min-score=0", option, "--max-drop=5") == 0
    summary = Path("results/summary.md").read_text().splitlines()
    assert any("max-drop was not checked" in line for line in summary[:15])
    assert "max-drop was not checked" in Path("results/report.html").read_text()
