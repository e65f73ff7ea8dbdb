"""examples/gate-pytest.yml on main and on a worse pull request: real files, GitHub as a server."""

import subprocess
import sys

import pytest
import yaml
from papers import ROOT
from replay import BASE, HEAD, MERGE, Actions, push, repository

STEPS = yaml.safe_load((ROOT / "examples/gate-pytest.yml").read_text())["jobs"]["gate"]["steps"]
(GATE,) = [step["with"] for step in STEPS if step.get("id") == "evals"]
(KEPT,) = [step["with"] for step in STEPS if step.get("with", {}).get("path") == "results/_results.json"]
TESTS = """
import pytest

def test_refund_window():
    assert 30 == {days}

@pytest.mark.parametrize("order", range(7))
def test_orders(order):
    assert order >= 0
"""


class Gated(Actions):
    """A job whose tests know how long a refund takes."""

    days = 30

    def start(self, step, environment, *arguments):
        (step.workspace / "test_shop.py").write_text(TESTS.format(days=self.days))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
        subprocess.run(
            [*command, f"--rootdir={step.workspace}", f"--junitxml={GATE['gate']}"],
            cwd=step.workspace,
            capture_output=True,
            check=False,
        )
        return super().start(step, environment, *arguments)


@pytest.fixture
def jobs(tmp_path):
    with repository(tmp_path, Gated) as jobs:
        yield jobs


def inputs():
    """What the example gives the action, and nothing else."""
    return {"suites": "", "provider": "openai", "parallel": "1"} | GATE


def test_what_broke_since_main_is_named_in_the_comment(jobs):
    """Main leaves the artifact that a pull request finds by the comment's key."""
    run = jobs.api.add_run(BASE)
    main = jobs.step("push", push(), sha=BASE, run=run, inputs=inputs())
    assert main.done.returncode == 0, main.done.stderr
    jobs.upload(main, run, KEPT["name"])
    jobs.days = 14
    head = jobs.of_pull_request(7, HEAD, MERGE, inputs=inputs())
    assert (head.done.returncode, head.outputs["result"], head.outputs["delta"]) == (1, "failed", "-12.5")
    (comment,) = jobs.api.comments[7]
    assert "Evals failed: 1 test broke in this PR" in comment["body"]
    assert "**❌ test\\_shop › test\\_refund\\_window** (100 → 0)" in comment["body"]
    assert "assert 30 == 14" in comment["body"]
    assert f"The baseline is commit `{BASE[:7]}` of main, the base commit" in comment["body"]
