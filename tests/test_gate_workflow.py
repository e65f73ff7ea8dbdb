"""The examples that gate other tools, on main and on a worse pull request: real files, GitHub as a server."""

import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from doc_pages import ROOT
from programs import run_captured
from workflow_replay import BASE, HEAD, MERGE, Actions, push_payload, repository_with_pull_request

pytestmark = pytest.mark.slow

FILES = ROOT / "tests/extensions/result_files/files"
TESTS = """
import pytest

def test_refund_window():
    assert 30 == {days}

@pytest.mark.parametrize("order", range(7))
def test_orders(order):
    assert order >= 0
"""


def write_junit_of_pytest(workspace: Path, file: Path, days: int) -> None:
    (workspace / "test_shop.py").write_text(TESTS.format(days=days))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    run_captured([*command, f"--rootdir={workspace}", f"--junitxml={file}"], cwd=workspace)


class Gated(Actions):
    """A job that runs a tool's evals, then gates the file that it wrote."""

    def of_tool(self, tool: str) -> dict[str, str]:
        """The inputs that the example gives the action, and nothing else."""
        steps = yaml.safe_load((ROOT / f"examples/gate-{tool}.yml").read_text())["jobs"]["gate"]["steps"]
        (given,) = [step["with"] for step in steps if step.get("id") == "evals"]
        uploads = [step["with"] for step in steps if "with" in step]
        (kept,) = [upload for upload in uploads if upload.get("path") == "results/_results.json"]
        self.file, self.kept = given["gate"], kept["name"]
        return {"suites": "", "provider": "openai", "parallel": "1"} | given

    def start(self, step, environment, *arguments):
        self.written(step.workspace)
        return super().start(step, environment, *arguments)

    def keeps(self, name: str) -> None:
        def written(workspace: Path) -> None:
            target = workspace / self.file.replace("*", Path(name).stem)
            target.parent.mkdir(exist_ok=True)
            shutil.copy(FILES / name, target)

        self.written = written

    def days(self, number: int) -> None:
        self.written = lambda workspace: write_junit_of_pytest(workspace, workspace / self.file, number)


@pytest.fixture
def jobs(tmp_path):
    with repository_with_pull_request(tmp_path, Gated) as jobs:
        yield jobs


def run_main_then_pull_request(jobs, inputs, before, after):
    """Main leaves the artifact that a pull request finds by the comment's key."""
    before()
    run = jobs.api.add_run(BASE)
    main = jobs.step("push", push_payload(), sha=BASE, run=run, inputs=inputs)
    ended = (main.done.returncode, main.outputs["result"])
    assert ended in {(0, "passed"), (1, "failed")}, main.done.stderr  # it is kept if the gate failed too
    assert {*main.outputs} == {*yaml.safe_load((ROOT / "action.yml").read_text())["outputs"]}
    jobs.upload(main, run, jobs.kept)
    after()
    head = jobs.pull_request_step(7, HEAD, MERGE, inputs=inputs)
    assert (head.done.returncode, head.outputs["result"]) == (1, "failed"), head.done.stderr
    (comment,) = jobs.api.comments[7]
    # Trials may prove that it broke; a single one proves nothing.
    proven, unproven = "1 test broke in this PR", "1 test fails that passed on main"
    assert re.search(f"Evals failed: ({proven}|{unproven})", comment["body"])
    assert f"The baseline is commit `{BASE[:7]}` of main, the base commit" in comment["body"]
    return head, comment["body"]


def test_comment_names_pytest_test_that_broke_since_main(jobs):
    inputs = jobs.of_tool("pytest")
    head, comment = run_main_then_pull_request(jobs, inputs, lambda: jobs.days(30), lambda: jobs.days(14))
    assert head.outputs["delta"] == "-12.5"
    assert "**❌ test\\_shop › test\\_refund\\_window** (100 → 0)" in comment
    assert "assert 30 == 14" in comment


@pytest.mark.parametrize(
    ("tool", "files", "more", "broken"),
    [
        ("inspect", ("stable.eval", "broke.eval"), {}, "window"),
        ("promptfoo", ("shop.json", "worse.json"), {"arm": "base · plain", "min-score": "0"}, "shipping"),
        ("deepeval", ("shop.json", "worse.json"), {"max-errors": "50", "min-score": "0"}, "returns"),
    ],
)
def test_comment_names_broken_test_of_other_tool(jobs, tool, files, more, broken):
    inputs = jobs.of_tool(tool) | more
    before, after = ((lambda name=name: jobs.keeps(f"{tool}/{name}")) for name in files)
    _, comment = run_main_then_pull_request(jobs, inputs, before, after)
    assert f"**❌ {broken}** (100 → " in comment
