"""The bench still works, and its page tells of what it measures. No time is asserted: machines are shared."""

import os
import re
import sys

import pytest
from doc_pages import ROOT
from programs import run_captured

from bench.__main__ import main
from bench.peers.beside import Peer, play_peer
from bench.processes import Field, server

pytestmark = pytest.mark.slow

PAGE = (ROOT / "bench/README.md").read_text()
_NUMBER = re.compile(r"\d[\d.,]*")


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a table by their first cell, in which numbers may vary."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {_NUMBER.sub("N", first): rest for first, *rest in cells}


OTHERS = ["wall", "startup", "processor", "smallest", "traces", "faults", "memory", "tests"]
"""With these all, but the image and Ray, which are not everywhere."""
MEASURES = [
    pytest.param(["gate"], 2, id="some"),
    pytest.param(["gate", *OTHERS], 12, id="all", marks=pytest.mark.endurance),
]


@pytest.mark.parametrize(("measures", "minimum"), MEASURES)
def test_benchmarks_report_number_and_goal_and_page_lists_them(measures: list[str], minimum: int) -> None:
    completed = run_captured([sys.executable, "-m", "bench", "--smoke", *measures], cwd=ROOT)
    assert completed.returncode == 0, completed.stderr
    table = rows(completed.stdout)
    assert table["measure"] == ["floor", "ci-evals", "figure", "goal", "met"]
    figures = {name: row for name, row in table.items() if name != "measure"}
    assert len(figures) >= minimum
    for name, (_, _, figure, goal, met) in figures.items():
        assert _NUMBER.search(figure), name
        assert (met in {"yes", "**no**"}) if goal else met == "", name
    assert set(table) <= set(rows(PAGE))


def test_unknown_measure_is_rejected_by_name(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "speed"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "no such measure: speed" in capsys.readouterr().err


# The scripts for other tools, without these tools: they are installed by who measures them.


@pytest.mark.parametrize("peer", ["inspect_ai", "promptfoo"])
def test_peer_script_help_says_what_is_measured(peer):
    command = [sys.executable, "-m", f"bench.peers.{peer}", "--help"]
    completed = run_captured(command, cwd=ROOT)
    assert completed.returncode == 0, completed.stderr
    assert "Measured are" in completed.stdout
    assert "Not measured are" in completed.stdout


def test_benchmark_rejects_peer_that_skips_calls(tmp_path):
    """It would seem fast."""
    asks_once = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + '/external/tasks')"
    peer = Peer(
        "hasty",
        install=lambda folder: "1",
        command=lambda play: ([sys.executable, "-c", asks_once, play.url], os.environ | {"no_proxy": "*"}),
    )
    with server() as served, pytest.raises(RuntimeError, match="hasty made 1 calls for 2 conversations"):
        play_peer(peer, Field(served, tmp_path), tmp_path, conversations=2, parallel=1)
