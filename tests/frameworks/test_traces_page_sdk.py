"""docs/traces.md as it stands, with the SDK of OpenTelemetry that it installs."""

import os
import re

import pytest
from commands import ci_evals, results_in
from papers import blocks
from test_traces import SDK, environment
from test_traces_page import PAGE, WRONG, failed, write_pages_files

pytestmark = pytest.mark.frameworks


def play(folder, *suites):
    path = f"{environment(SDK) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return ci_evals(
        "run", *suites, "--provider=offline", "--otlp-port=0", cwd=folder, env={"PATH": path}
    ).returncode


def test_the_page_can_be_followed(tmp_path):
    """Its agent passes; those that are wrong in one way fail for that."""
    assert {each.partition("==")[0] for each in SDK} <= {*re.split(r"\s", "".join(blocks("sh", PAGE)))}
    assert play(tmp_path, *(write_pages_files(tmp_path, wrong) for wrong in WRONG)) == 1
    assert failed(tmp_path) == {wrong: criteria for wrong, (_, criteria) in WRONG.items()}


def test_a_lost_trace_is_undecided(tmp_path):
    """Of its calls; the order's row is still looked up."""
    name = write_pages_files(tmp_path)
    lines = (tmp_path / "tracing.py").read_text()
    (tmp_path / "tracing.py").write_text(lines.replace("propagate.extract(headers)", "None"))
    assert play(tmp_path, name) == 3
    (trial,) = results_in(tmp_path)["suites"][0]["tests"][0]["trials"]
    assert [(each["outcome"], each["cause"]) for each in trial["findings"]] == [
        *[("undecided", "no_trace")] * 3,
        ("passed", None),
    ]
