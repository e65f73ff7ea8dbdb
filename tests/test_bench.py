"""The bench still works, and its page tells of what it measures. No time is asserted: machines are shared."""

import re
import sys

import pytest
from doc_pages import ROOT
from programs import run_captured

pytestmark = pytest.mark.slow

PAGE = (ROOT / "bench/README.md").read_text()
Table = dict[str, list[str]]
_NUMBER = re.compile(r"\d[\d.,]*")


def rows(text: str) -> Table:
    """The rows of a table by their first cell, in which numbers may vary."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {_NUMBER.sub("N", first): rest for first, *rest in cells}


SOME = ["wall", "gate"]
"""What plays next to bare calls, and what only computes."""
OTHERS = ["startup", "processor", "smallest", "traces", "faults", "memory", "tests"]
"""With these all, but the image and Ray, which are not everywhere."""
MEASURES = [
    pytest.param((SOME, 4), id="some"),
    pytest.param((SOME + OTHERS, 12), id="all", marks=pytest.mark.endurance),
]


@pytest.fixture(scope="module", params=MEASURES)
def smoke(request: pytest.FixtureRequest) -> tuple[Table, int]:
    """Return what a smoke run prints, and how many rows it has at least."""
    measures, minimum = request.param
    command = [sys.executable, "-m", "bench", "--smoke", *measures]
    completed = run_captured(command, cwd=ROOT)
    assert completed.returncode == 0, completed.stderr
    return rows(completed.stdout), minimum


def test_every_benchmark_reports_a_number_and_whether_its_goal_is_met(smoke: tuple[Table, int]) -> None:
    table, minimum = smoke
    assert table["measure"] == ["floor", "ci-evals", "figure", "goal", "met"]
    figures = {name: row for name, row in table.items() if name != "measure"}
    assert len(figures) >= minimum
    for name, (_, _, figure, goal, met) in figures.items():
        assert _NUMBER.search(figure), name
        assert (met in {"yes", "**no**"}) if goal else met == "", name


def test_benchmark_page_lists_every_measure(smoke: tuple[Table, int]) -> None:
    table, _ = smoke
    assert set(table) <= set(rows(PAGE))


def test_unknown_measure_is_rejected_by_name() -> None:
    command = [sys.executable, "-m", "bench", "speed"]
    completed = run_captured(command, cwd=ROOT)
    assert completed.returncode == 2
    assert "no such measure: speed" in completed.stderr
