"""The action without a container: it declares what the action declares, and hands everything over."""

import json
import os
import runpy
import shutil
import sys

import pytest
import test_get_started
import yaml
from doc_pages import ROOT
from github_runner import Step
from page_files import free_port, write_files
from programs import run_captured

from docsite import action

pytestmark = pytest.mark.slow

START = ROOT / "run/start.py"
ACTION = yaml.safe_load(action.COMPOSITE.read_text())


def start(folder, step, inputs, **variables):
    """`start.py` as the last step of `run/action.yml` calls it."""
    environ = os.environ | step.variables(step.folder, {}) | {"RUNNER_TEMP": str(folder)} | variables
    return run_captured(
        [sys.executable, START], cwd=step.workspace, env=environ | {"CI_EVALS_INPUTS": json.dumps(inputs)}
    )


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


@pytest.fixture
def installed(tmp_path):
    """A runner's folder where an earlier step has installed ci-evals: here that of the tests."""
    home = tmp_path / "temp" / runpy.run_path(str(START))["environment_name"]()
    home.mkdir(parents=True)
    (home / "bin").symlink_to(ROOT / ".venv/bin" if (ROOT / ".venv").exists() else sys.prefix + "/bin")
    (home / "lib").symlink_to(sys.prefix + "/lib")
    shutil.copy(f"{sys.prefix}/pyvenv.cfg", home)
    (home / "installed").touch()
    return home.parent


def test_composite_action_declares_inputs_and_outputs_of_container():
    assert action.CONTAINER.read_text() == action.container()
    assert action.COMPOSITE.read_text() == action.composite()
    container = yaml.safe_load((ROOT / "action.yml").read_text())
    assert ACTION["inputs"].keys() - container["inputs"].keys() == {"python"}
    outputs = {name: f"${{{{ steps.run.outputs.{name} }}}}" for name in container["outputs"]}
    assert {name: entry["value"] for name, entry in ACTION["outputs"].items()} == outputs


def test_example_without_model_key_passes_and_notices_worse_agent(step, installed):
    """All inputs of the step come with their defaults. Judged criteria stay undecided."""
    workflow = yaml.safe_load((ROOT / "examples/no-model-key.yml").read_text())
    (given,) = [one["with"] for one in workflow["jobs"]["evals"]["steps"] if one.get("id") == "evals"]
    inputs = {name: entry["default"] for name, entry in ACTION["inputs"].items()} | given
    port = free_port()
    test_get_started.starter(step.workspace)
    (step.workspace / ".git").rmdir()  # as in a checkout by download
    write_files(test_get_started.PAGE, step.workspace, port)
    here = {"start": f"{sys.executable} agent.py", "base-url": f"http://127.0.0.1:{port}"}
    run = start(installed, step, inputs | here)
    assert (run.returncode, step.outputs["result"], step.outputs["score"]) == (0, "passed", "100.0"), run
    assert "No judge was configured: 4 criteria are left out of the score" in run.stdout
    assert (step.workspace / "results/report.html").exists()
    (step.workspace / "results").rename(step.workspace / "main")
    agent = step.workspace / "agent.py"
    agent.write_text(agent.read_text().replace("order_status", "order_state"))
    run = start(installed, step, inputs | here | {"baseline": "main"})
    assert (run.returncode, step.outputs["result"]) == (1, "failed"), run.stdout
    assert "1 test fails that passed in the baseline" in run.stdout


@pytest.mark.parametrize(
    ("inputs", "variables", "message"),
    [
        ({"suites": "", "python": "/none"}, {"INPUT_SUITES": "demo:hr"}, "input 'suites' is empty"),
        ({"suites": "demo:hr", "min-scor": "90"}, {}, "did you mean 'min-score'?"),
    ],
)
def test_job_variable_is_not_read_as_input_and_misspelled_one_is_rejected(
    step, installed, inputs, variables, message
):
    """The runner itself only warns."""
    run = start(installed, step, inputs, **variables)
    assert run.returncode == 2
    assert message in run.stderr + run.stdout


def test_failed_installation_exits_3_with_annotation(step, tmp_path):
    variables = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0"}
    run = start(tmp_path / "temp", step, {"suites": "demo:hr"}, **variables)
    assert run.returncode == 3
    assert "::error title=ci-evals::Installing ci-evals failed" in run.stdout
    assert "passed" not in step.outputs


@pytest.mark.frameworks
def test_packages_are_installed_once_for_all_steps(step, tmp_path):
    inputs = {"suites": "demo:hr", "provider": "offline"}
    first = start(tmp_path / "temp", step, inputs)
    assert (first.returncode, step.outputs["result"]) == (0, "passed")
    again = start(tmp_path / "temp", step, inputs)
    assert (again.returncode, "Installing" in first.stdout, "Installing" in again.stdout) == (0, True, False)


def find_python(tmp_path, named="", path=""):
    """The step that looks for a Python, by the shell that runs it."""
    script = ACTION["runs"]["steps"][0]["run"]
    output = tmp_path / "output"
    environ = {
        "NAMED": named, "PATH": path, "GITHUB_OUTPUT": str(output), "GITHUB_ACTION_PATH": str(ROOT / "run"),
        "RUNNER_TEMP": r"D:\a\_temp", "RUNNER_TOOL_CACHE": str(tmp_path / "tools"),
    }  # fmt: skip
    run = run_captured([shutil.which("bash"), "-eo", "pipefail", "-c", script], env=environ)
    lines = output.read_text().splitlines() if output.exists() else []
    return run, dict(line.split("=", 1) for line in lines)


def test_python_on_path_or_else_in_tool_cache_is_used(tmp_path):
    """Older images have none on the path. The cache is keyed by its version and by what is installed."""
    run, outputs = find_python(tmp_path, path=f"{sys.prefix}/bin")
    assert (run.returncode, outputs["path"]) == (0, "python3")
    assert outputs["version"] == ".".join(map(str, sys.version_info[:3]))
    assert (outputs["cache"], len(outputs["packages"])) == ("D:/a/_temp/ci-evals-pip", 64)
    kept = tmp_path / "tools/Python/3.13.1/x64/bin"
    kept.mkdir(parents=True)
    (kept / "python3").symlink_to(sys.executable)
    run, outputs = find_python(tmp_path)
    assert (run.returncode, outputs["path"]) == (0, str(kept / "python3"))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("/none/python", "input 'python' is '/none/python', which is not Python 3.11"),
        ("", "Add actions/setup-python"),
    ],
)
def test_missing_python_exits_2_with_advice(tmp_path, named, message):
    run, outputs = find_python(tmp_path, named)
    assert (run.returncode, outputs) == (2, {})
    assert message in run.stdout
