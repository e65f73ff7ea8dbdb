"""What `validate --format=sarif` prints, read by Microsoft's validator and by `sarif-tools`."""

import json
import subprocess

import commands
import pytest
from environments import environment

pytestmark = pytest.mark.frameworks
SUITE = """name: Shop
adapter: demo
minScore: 0.8
tests:
  - name: Refunds
    guidelines: You want a refund.
    turns: [{ user: Refund order seven }]
    evaluations: [{ criterion: It is kind and helps }]
"""


@pytest.fixture
def logs(tmp_path):
    """A log with warnings, and one with errors, of a suite that is none and of a file that is missing."""
    (tmp_path / "weak.yaml").write_text(SUITE)
    (tmp_path / "broken.yaml").write_text(SUITE.replace("user:", "usr:"))
    result = {}
    for name, code, args in (
        ("warnings", 0, ("--strict", "weak.yaml")),
        ("errors", 2, ("broken.yaml", "missing.yaml")),
    ):
        done = commands.ci_evals("validate", "--format=sarif", *args, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        result[name] = tmp_path / f"{name}.sarif"
        result[name].write_text(done.stdout)
    return result


def multitool(log):
    """What Microsoft's validator finds in a log: the levels and rules."""
    folder = environment(["@microsoft/sarif-multitool@5.7.0"], node=True)
    program = folder / "node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
    program.chmod(0o755)
    output = log.with_suffix(".checked.sarif")
    options = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning", "--log", "ForceOverwrite"]
    command = [program, "validate", log, "--output", output, *options]
    subprocess.run(command, check=False, capture_output=True, timeout=300)
    (run,) = json.loads(output.read_text(encoding="utf-8-sig"))["runs"]
    return {(result.get("level", "warning"), result["ruleId"]) for result in run.get("results", ())}


def test_microsoft_sarif_validator_accepts_the_logs(logs):
    """It refuses one with an impossible region, so that its silence says something."""
    for log in logs.values():
        assert multitool(log) == set()
    broken = json.loads(logs["errors"].read_text())
    broken["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    logs["errors"].write_text(json.dumps(broken))
    assert any(level == "error" for level, _ in multitool(logs["errors"]))


def test_sarif_tools_package_counts_as_many_results_as_the_log_has(logs):
    folder = environment(["sarif-tools==3.0.5"])
    for name, kind in (("warnings", "warning"), ("errors", "error")):
        summary = subprocess.run(
            [folder / "bin/sarif", "summary", logs[name]], capture_output=True, text=True, check=True
        ).stdout
        count = sum(
            result["level"] == kind for result in json.loads(logs[name].read_text())["runs"][0]["results"]
        )
        assert count > 0
        assert f"{kind}: {count}" in summary
