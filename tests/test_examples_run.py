"""Each example is run: its steps with our action as processes, with all that the example gives them."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import github_api
import pytest
import yaml
from commands import action
from doc_pages import ROOT
from github_api import REPOSITORY, TOKEN
from github_runner import Step
from page_files import free_port
from workflow_replay import BASE, HEAD, MERGE, pull_request_payload

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow

EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))
RESULT_FILES = ROOT / "tests/extensions/result_files/files"
OURS = "org/aui-evals-action"
KEY = "a-key-of-the-agent"

VALUES = {
    "secrets.AGENT_KEY": KEY, "secrets.OPENAI_API_KEY": "a-key-of-a-model", "github.token": TOKEN,
    "inputs.base": "main", "inputs.pull-request": "7",
}  # fmt: skip
"""Values that GitHub puts in the place of expressions. A new one in an example needs its value here."""
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_CHOICE = re.compile(r".+ && '([^']*)' \|\| '([^']*)'")

GATED = {
    "gate-deepeval": ("deepeval/shop.json", 3),  # its judge broke in one test
    "gate-inspect": ("inspect/stable.eval", 0),
    "gate-promptfoo": ("promptfoo/shop.json", 1),
    "gate-pytest": ("junit/pytest.xml", 3),  # a fixture broke
}
"""A file of the tool whose results an example gates, and the exit code that follows from it."""
OF_FILES = {"gate-promptfoo": {"arm": "base · plain"}}
"""Inputs that such a file needs beyond those of the example."""
WITHOUT_OURS = {"commands": "tests/test_commands_workflow.py"}
"""Examples without a step of ours, and the tests that run them."""


@dataclass(frozen=True)
class Use:
    given: dict[str, str]
    shard: int = 1


def uses(file: Path) -> list[Use]:
    """Return the steps of an example that use our action, a job of a matrix once for each shard.

    A job that calls our workflow gives its step the same.
    """
    result: list[Use] = []
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        if "uses" in job:
            result.append(Use(job["with"] | job["secrets"]))
            continue
        shards = job.get("strategy", {}).get("matrix", {}).get("shard", [1])
        for shard in shards:
            steps = [step for step in job["steps"] if step.get("uses", "").startswith(OURS)]
            result += [Use({key: str(text) for key, text in step["with"].items()}, shard) for step in steps]
    return result


def filled(text: str, choice: int, values: dict[str, str]) -> str:
    """Return a text with its expressions evaluated; of two alternatives the one of this number."""

    def value_of(match: re.Match[str]) -> str:
        alternatives = _CHOICE.fullmatch(match[1])
        return alternatives[choice + 1] if alternatives else values[match[1]]

    return _EXPRESSION.sub(value_of, text)


RUNS = [
    pytest.param(file, choice, id=f"{file.stem}-{choice}" if "&& '" in str(uses(file)) else file.stem)
    for file in EXAMPLES
    if uses(file)
    for choice in range(
        2 if any(_CHOICE.search(text) for use in uses(file) for text in use.given.values()) else 1
    )
]


def suite(url: str, name: str) -> dict[str, Any]:
    check = {"criterion": "The agent answers", "strict": "regex", "pattern": "\\S"}
    test = {"guidelines": "-", "turns": [{"user": "Hello"}], "maxTurns": 1, "evaluations": [check]}
    tests = [test | {"name": f"{name} {number}", "tags": ["t"]} for number in range(3)]
    return {"name": name, "agentId": "demo-retail", "baseUrl": url, "tests": tests}


class Job:
    """A job of an example: a workspace, in which its steps are run one after the other."""

    def __init__(self, folder: Path, api: Any, url: str) -> None:
        self.step = Step(folder)
        self.workspace = self.step.workspace
        self.api = api
        self.run_id = str(api.add_run(HEAD, event="pull_request")["id"])
        (self.step.folder / "workflow/event.json").write_text(json.dumps(pull_request_payload(7, HEAD)))
        (self.workspace / "evals/billing").mkdir(parents=True)
        (self.workspace / "evals/refunds.json").write_text(json.dumps(suite(url, "Refunds")))
        (self.workspace / "evals/billing/invoices.yaml").write_text(yaml.safe_dump(suite(url, "Invoices")))

    def prepare(self) -> Path:
        """Leave what earlier steps and jobs would: results, a recording, those of a run before."""
        given = {"suites": "evals/", "agent-key": KEY, "llm-key": VALUES["secrets.OPENAI_API_KEY"]}
        done = self.run(given | {"record": "evals/recording", "comment": "never", "baseline": "none"})
        assert done.returncode == 0, done.stdout + done.stderr
        shutil.copytree(self.workspace / "results", self.workspace / "earlier")
        shutil.copytree(self.workspace / "evals/recording", self.workspace / "base/evals/recording")
        return self.workspace

    def run(self, given: dict[str, str]) -> Any:
        arguments = given.pop("args", "").split()
        environment = self.step.variables(self.step.folder, {"github-token": TOKEN} | given)
        variables = {
            "GITHUB_EVENT_NAME": "pull_request", "GITHUB_SHA": MERGE, "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": self.api.url, "GITHUB_RUN_ID": self.run_id,
            "GITHUB_RUN_ATTEMPT": "1",
        }  # fmt: skip
        return action(*arguments, cwd=self.workspace, env=environment | variables)


@contextmanager
def job_at(folder: Path, url: str) -> Iterator[Job]:
    with github_api.serving() as api:
        api.add_commits(BASE)
        api.add_commit(HEAD, BASE)
        api.add_commit(MERGE, BASE, HEAD)
        api.add_pull(7, HEAD)
        yield Job(folder, api, url)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of the agent, and a workspace with what earlier steps and jobs left."""
    with DemoServer() as server, job_at(tmp_path_factory.mktemp("earlier"), server.base_url) as job:
        yield server.base_url, job.prepare()


@pytest.mark.parametrize(("file", "choice"), RUNS)
def test_example_steps_with_their_inputs_exit_with_expected_code(
    file: Path, choice: int, prepared: tuple[str, Path], tmp_path: Path
) -> None:
    url, workspace = prepared
    with job_at(tmp_path, url) as job:
        shutil.copytree(workspace, job.workspace, dirs_exist_ok=True)
        for number, use in enumerate(uses(file)):
            values = VALUES | {"matrix.shard": str(use.shard)}
            given = {key: filled(text, choice, values) for key, text in use.given.items()}
            source, code = GATED.get(file.stem, ("", 0))
            if source:
                written = job.workspace / given["gate"].replace("*", Path(source).name)
                written.parent.mkdir(exist_ok=True)
                shutil.copy(RESULT_FILES / source, written)
            if "resume" in given:  # no run before it was interrupted
                shutil.rmtree(job.workspace / given["resume"])
            done = job.run(served_here(given, url) | OF_FILES.get(file.stem, {}))
            assert done.returncode == code, done.stdout + done.stderr
            if "shard" in given:
                folder = job.workspace / "shards" / str(number)
                folder.mkdir(parents=True)
                shutil.copy(job.workspace / "results/_results.json", folder)


def served_here(given: dict[str, str], url: str) -> dict[str, str]:
    """Return the inputs with the addresses of an example's agent replaced by those of one that is there.

    Where the example gives no key, its suites would name one, or an agent without.
    """
    if "suites" in given:
        given.setdefault("agent-key", KEY)
    if "start" in given:
        port = free_port()
        given["start"] = f"{sys.executable} -m ci_evals demo-agent --port={port}"
        url = f"http://127.0.0.1:{port}"
    for key in ("base-url", "wait-for"):
        if key in given:
            given[key] = url
    return given


def test_every_example_has_a_test() -> None:
    run = {param.values[0].stem for param in RUNS}
    assert {file.stem for file in EXAMPLES} == run | WITHOUT_OURS.keys()
    for stem, test in WITHOUT_OURS.items():
        assert f"examples/{stem}.yml" in (ROOT / test).read_text()
