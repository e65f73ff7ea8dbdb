"""The bench still works, and its page tells of what it measures. No time is asserted: machines are shared."""

import re
import subprocess
import sys

import pytest
from doc_pages import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "bench/README.md").read_text()
_NUMBER = re.compile(r"\d[\d.,]*")


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a table by their first cell, in which numbers may vary."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {_NUMBER.sub("N", first): rest for first, *rest in cells}


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    """What a smoke run prints, without the image and Ray, which are not everywhere."""
    measures = ["startup", "processor", "smallest", "traces", "wall", "faults", "memory", "tests", "gate"]
    command = [sys.executable, "-m", "bench", "--smoke", *measures]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return rows(completed.stdout)


def test_every_measure_gives_a_figure(table: dict[str, list[str]]) -> None:
    assert table.pop("measure") == ["floor", "ci-evals", "figure", "goal", "met"]
    assert len(table) >= 12
    for name, (_, _, figure, goal, met) in table.items():
        assert _NUMBER.search(figure), name
        assert (met in {"yes", "**no**"}) if goal else met == "", name


def test_page_lists_every_measure(table: dict[str, list[str]]) -> None:
    assert set(table) <= set(rows(PAGE))


def test_a_measure_that_is_not_there_is_named() -> None:
    command = [sys.executable, "-m", "bench", "speed"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "no such measure: speed" in completed.stderr
