"""docs/traces.md as it stands, with the SDK of OpenTelemetry that it installs."""

import os
import re
import shutil
import subprocess

import pytest
from commands import ci_evals, read_results
from doc_pages import blocks
from test_traces import SDK, environment
from test_traces_page import PAGE, WRONG, failed, write_pages_files

pytestmark = pytest.mark.frameworks


def play(folder, *suites):
    path = f"{environment(SDK) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return ci_evals(
        "run", *suites, "--provider=offline", "--otlp-port=0", cwd=folder, env={"PATH": path}
    ).returncode


def test_agent_of_the_traces_page_passes_and_its_wrong_variants_fail(tmp_path):
    assert {each.partition("==")[0] for each in SDK} <= {*re.split(r"\s", "".join(blocks("sh", PAGE)))}
    assert play(tmp_path, *(write_pages_files(tmp_path, wrong) for wrong in WRONG)) == 1
    assert failed(tmp_path) == {wrong: criteria for wrong, (_, criteria) in WRONG.items()}


def test_agent_of_the_traces_page_passes_in_the_container(tmp_path):
    """By the page's commands for it. Needs `make image`."""
    seen = ["docker", "image", "inspect", "ci-evals"]
    if not shutil.which("docker") or subprocess.run(seen, check=False).returncode:
        pytest.skip("there is no image ci-evals: make image")
    (lines,) = [block for block in blocks("sh", PAGE) if "docker run" in block]
    lines = lines.replace("ghcr.io/org/aui-evals-action:1", "ci-evals")
    for wrong in WRONG:
        name = write_pages_files(tmp_path, wrong)
        script = lines.replace("refunds.yaml", name)
        ended = subprocess.run(["bash", "-ec", script], check=False, cwd=tmp_path)
        assert ended.returncode == (wrong != "good")
        assert failed(tmp_path) == {wrong: WRONG[wrong][1]}


def test_agent_without_trace_propagation_leaves_tool_checks_undecided(tmp_path):
    name = write_pages_files(tmp_path)
    lines = (tmp_path / "tracing.py").read_text()
    (tmp_path / "tracing.py").write_text(lines.replace("propagate.extract(headers)", "None"))
    assert play(tmp_path, name) == 3
    (trial,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"]
    assert [(each["outcome"], each["cause"]) for each in trial["findings"]] == [
        *[("undecided", "no_trace")] * 3,
        ("passed", None),
    ]
