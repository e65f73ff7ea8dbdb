"""The image, built and run as GitHub's runner does it. Skipped where no container engine runs."""

import json
import socket
import subprocess
import time

import fakes
import pytest
import world
import yaml
from doc_pages import ROOT
from github_runner import Step
from programs import run_captured
from workflow_replay import (
    BASE,
    HEAD,
    MERGE,
    NEXT,
    NEXT_MERGE,
    PRESSURE_TEST,
    Actions,
    demo_agent,
    pull_request_payload,
    push_payload,
    record_baseline,
    repository_with_pull_request,
)

pytestmark = pytest.mark.container

IMAGE = "ci-evals:test"
MOST_BYTES = 180_000_000
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())

SUITE = {
    "name": "Greetings", "adapter": "demo", "agentId": "demo-hr", "maxTurns": 1,
    "tests": [{
        "name": "Hello", "guidelines": "Greet the agent.", "turns": [{"user": "Hello!"}],
        "evaluations": [{"criterion": "It answers", "strict": "regex", "pattern": "."}],
    }],
}  # fmt: skip
PASS = fakes.judge_answer("pass", "It greets.")


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_captured(["docker", *arguments])


@pytest.fixture(scope="module")
def image():
    try:
        engine = docker("info")
    except FileNotFoundError:
        pytest.skip("docker is not installed")
    if engine.returncode:
        pytest.skip("no container engine runs")
    built = docker("build", "--network", "host", "--tag", IMAGE, str(ROOT))
    assert built.returncode == 0, built.stderr
    return IMAGE


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


def options(step: Step, inputs: dict[str, str]) -> list[str]:
    """Arguments between `docker run` and the image: the runner's mounts, folder and variables."""
    mounts = ["--volume", f"{step.folder}:/github", "--workdir", "/github/workspace", "--network", "host"]
    variables = step.variables("/github", inputs).items()
    return [*mounts, *(part for name, value in variables for part in ("--env", f"{name}={value}"))]


def play(image: str, step: Step, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The image as an action; underscores in the names of inputs are dashes."""
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return docker("run", "--rm", *options(step, named), image)


def test_image_runs_as_action_with_inputs_and_is_smaller_than_limit(image, step):
    assert int(docker("image", "inspect", "--format", "{{.Size}}", image).stdout) <= MOST_BYTES
    done = play(image, step, suites="demo:hr\n", provider="offline", parallel="4")
    assert (done.returncode, step.outputs["result"]) == (0, "passed"), done.stderr
    assert set(step.outputs) == set(ACTION["outputs"])
    assert (step.workspace / step.outputs["results-path"]).is_file()
    assert (step.workspace / step.outputs["junit-path"]).is_file()
    assert (step.workspace / step.outputs["report-path"]).read_text().endswith("</html>\n")
    assert step.summary


def test_image_exits_1_if_gate_fails(image, step):
    suite = json.dumps(SUITE).replace('"pattern": "."', '"pattern": "impossible"')
    (step.workspace / "suite.json").write_text(suite)
    done = play(image, step, suites="suite.json", provider="offline")
    assert (done.returncode, step.outputs["result"]) == (1, "failed"), done.stderr


def test_image_runs_any_command_as_any_user(image, tmp_path):
    tmp_path.chmod(0o777)
    mount = ["--volume", f"{tmp_path}:/work", "--workdir", "/work", "--user", "4711:4711"]
    run = ["run", "demo:hr", "--provider=offline", "--no-gate"]
    done = docker("run", "--rm", "--network", "none", *mount, image, *run)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/_results.json").stat().st_uid == 4711


@pytest.mark.parametrize("signal", ["INT", "TERM"])
def test_container_keeps_reports_and_exits_130_if_job_is_cancelled(image, step, signal):
    """GitHub sends SIGINT, then SIGTERM, then kills after ten seconds; process 1 must handle both."""
    (step.workspace / "suite.json").write_text(json.dumps(SUITE | {"adapter": "aui"}))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        inputs = {"suites": "suite.json", "provider": "offline", "base-url": address}
        inputs |= {"agent-key": "k", "agent-id": "a"}
        container = docker("run", "--detach", *options(step, inputs), image).stdout.strip()
        try:
            silent.settimeout(20)
            connection, _ = silent.accept()
            with connection:
                asked = time.monotonic()
                docker("kill", "--signal", signal, container)
                code = docker("wait", container).stdout.strip()
                assert time.monotonic() - asked < 60
            assert code == "130", docker("logs", container).stderr
        finally:
            docker("rm", "--force", container)
    assert step.outputs["result"] == "invalid"
    assert (step.workspace / "results/_results.json").is_file()


class InContainer(Actions):
    """Steps of a container action: only what the runner mounts is there, and GitHub is on the host."""

    def start(self, step, environment, *arguments):
        inside = {
            name: str(value).replace(str(step.folder), "/github") for name, value in environment.items()
        }
        del inside["PATH"]
        mounts = ["--volume", f"{step.folder}:/github", "--workdir", "/github/workspace", "--network", "host"]
        variables = (part for name, value in inside.items() for part in ("--env", f"{name}={value}"))
        inner = [argument.replace(f"{step.folder}/", "/github/") for argument in arguments]
        return docker("run", "--rm", *mounts, *variables, IMAGE, *inner)


def test_image_comments_on_pull_request_and_updates_comment(image, tmp_path):
    with repository_with_pull_request(tmp_path, InContainer) as actions:
        record_baseline(actions)
        with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
            step = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs | {"max-drop": "5"})
        assert step.done.returncode == 1, step.done.stderr
        (comment,) = actions.api.comments[7]
        assert PRESSURE_TEST in comment["body"]
        assert float(step.outputs["delta"]) < -5
        with demo_agent() as inputs:
            step = actions.pull_request_step(7, NEXT, NEXT_MERGE, inputs=inputs)
        assert step.done.returncode == 0, step.done.stderr
        assert [one["id"] for one in actions.api.comments[7]] == [comment["id"]]


def test_image_runs_comment_command_of_step_args(image, tmp_path):
    with repository_with_pull_request(tmp_path, InContainer) as actions:
        with demo_agent() as inputs:
            run = actions.api.add_run(BASE)
            step = actions.step("push", push_payload(), sha=HEAD, run=run, inputs=inputs)
        payload, arguments = pull_request_payload(7, HEAD), ("comment", "results")
        downloads = {"results": step.results_file}
        result = actions.step("pull_request", payload, *arguments, sha=HEAD, run=run, downloads=downloads)
        assert result.done.returncode == 0, result.done.stderr
        assert len(actions.api.comments[7]) == 1


@pytest.mark.parametrize("provider", ["offline", "openai", "anthropic"])
def test_container_start_compiles_no_bytecode(image, step, provider):
    """Python writes what bytecode it does not find: it would be compiled at every start."""
    suite = json.loads(json.dumps(SUITE))
    suite["tests"][0]["evaluations"].append({"criterion": "It greets"})
    (step.workspace / "suite.json").write_text(json.dumps(suite))
    with world.llm(lambda asked: PASS) as models:
        environ = (models.env | {"CI_EVALS_JUDGE_CHECK": "off"}).items()
        variables = (part for name, value in environ for part in ("--env", f"{name}={value}"))
        arguments = ["run", "suite.json", f"--provider={provider}"]
        container = docker("create", *options(step, {}), *variables, image, *arguments).stdout.strip()
        try:
            done = docker("start", "--attach", container)
            changes = docker("diff", container).stdout.split()
        finally:
            docker("rm", container)
    assert done.returncode == 0, done.stderr
    assert bool(models.asked) == (provider != "offline")
    assert [path for path in changes if path.endswith(".pyc")] == []
