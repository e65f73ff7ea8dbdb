"""The page "Export results": its commands, and what it says of their output."""

import json
import shlex

import pytest
from commands import ci_evals
from doc_pages import blocks, page

pytestmark = pytest.mark.slow


def test_exporting_page_commands_write_the_documented_files_and_fields(tmp_path):
    printed, results = {}, tmp_path / "results"
    for block in blocks("sh", page("exporting.md")):
        for line in block.splitlines():
            _, *arguments = shlex.split(line)
            done = ci_evals(*arguments, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            printed[arguments[0]] = done.stdout
        if "report" in block:
            for name in ("findings.csv", "badge.svg", "badge.json", "junit.xml", "summary.md"):
                assert (results / name).exists(), name
            head = (results / "findings.csv").read_text().splitlines()[0].lower()
            for column in ("suite", "test", "trial", "criterion", "outcome", "reason", "turn"):
                assert column in head
    run, plan = json.loads(printed["run"]), json.loads(printed["plan"])
    assert run == json.loads((results / "_results.json").read_text())
    assert (run["score"], run["gate"]["passed"], run["gate"]["exitCode"]) == (100, True, 0)
    assert run["suites"][0]["tests"]
    assert plan["suites"][0]["tests"]
    assert {"trials", "turns", "calls", "estimate"} <= plan.keys()
    assert {"tokens", "dollars", "seconds"} <= plan["estimate"].keys()
