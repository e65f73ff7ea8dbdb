"""A repository's pull requests replayed here: steps as processes, GitHub as a local server."""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass

import github_api
from commands import action
from doc_pages import ROOT
from github_api import REPOSITORY, TOKEN, zip_of
from github_runner import Step

from ci_evals.extensions.demo.server import DemoServer

BASE, HEAD, MERGE, NEXT, NEXT_MERGE, FORKED = (letter * 40 for letter in "bcdefa")
PRESSURE_TEST = "Keeps to the return window under pressure"
SUITE = "evals/retail.json"


def pull_request_payload(number, head, *, repository=REPOSITORY, branch="topic"):
    return {
        "number": number, "repository": {"full_name": REPOSITORY, "id": github_api.REPOSITORY_ID},
        "pull_request": {
            "number": number, "head": {"sha": head, "ref": branch, "repo": {"full_name": repository}},
            "base": {"sha": BASE, "ref": "main", "repo": {"full_name": REPOSITORY}},
        },
    }  # fmt: skip


def push_payload(before="0" * 40):
    return {"before": before, "repository": {"full_name": REPOSITORY, "id": github_api.REPOSITORY_ID}}


@contextmanager
def demo_agent(**faults):
    """The embedded agent at an address of its own."""
    with DemoServer(**faults) as server:
        yield {"base-url": server.base_url, "agent-key": "a-key-of-the-agent"}


@dataclass(frozen=True)
class FinishedStep:
    step: Step
    done: subprocess.CompletedProcess[str]

    @property
    def outputs(self):
        return self.step.outputs

    @property
    def results_file(self):
        return self.step.workspace / self.outputs["results-path"]


class Actions:
    """GitHub's runner and GitHub itself."""

    def __init__(self, api, folder):
        self.api, self.folder, self.steps = api, folder, 0

    def step(
        self,
        event,
        payload,
        *arguments,
        sha,
        run,
        ref="refs/heads/main",
        inputs=None,
        downloads=None,
        checkout=None,
        **variables,
    ):
        """One step of a job: what the action is given, and what it did.

        `downloads`: results files of other steps, by the folders of the workspace where they are put.
        `checkout`: the commit that git's files name; without it there are none.
        """
        self.steps += 1
        place = self.folder / str(self.steps)
        place.mkdir()
        step = Step(place)
        (step.folder / "workflow/event.json").write_text(json.dumps(payload))
        (step.workspace / "evals").mkdir()
        suite = json.loads((ROOT / "suites/demo/retail.json").read_text())
        (step.workspace / SUITE).write_text(json.dumps(suite | {"apiKey": ""}, indent=2))
        for folder, file in (downloads or {}).items():
            (step.workspace / folder).mkdir(parents=True)
            shutil.copy(file, step.workspace / folder / "_results.json")
        if checkout:
            (step.workspace / ".git").mkdir()
            (step.workspace / ".git/HEAD").write_text(f"{checkout}\n")
        given = {"github-token": TOKEN}
        if not arguments:
            given |= {"suites": SUITE, "provider": "offline", "parallel": "8"} | (inputs or {})
        environment = step.variables(step.folder, given) | {
            "PATH": os.environ["PATH"], "GITHUB_EVENT_NAME": event, "GITHUB_SHA": sha, "GITHUB_REF": ref,
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": self.api.url, "GITHUB_RUN_ID": str(run["id"]),
            "GITHUB_RUN_ATTEMPT": "1", "GITHUB_ACTOR": "octocat",
        }  # fmt: skip
        return FinishedStep(step, self.start(step, environment | variables, *arguments))

    def start(self, step, environment, *arguments):
        return action(*arguments, cwd=step.workspace, env=environment)

    def upload(self, step, run, name="ci-evals-results-default"):
        """GitHub's own upload step."""
        self.api.add_artifact(run, zip_of({"_results.json": step.results_file.read_bytes()}), name=name)

    def pull_request_step(self, number, head, merge, *, run=None, inputs=None, **fields):
        variables = {name: fields.pop(name) for name in list(fields) if name.isupper()}
        payload = pull_request_payload(number, head, **fields)
        run = run or self.api.add_run(head, event="pull_request", head_branch="topic")
        ref = f"refs/pull/{number}/merge"
        return self.step("pull_request", payload, sha=merge, run=run, ref=ref, inputs=inputs, **variables)


@contextmanager
def repository_with_pull_request(folder, kind=Actions):
    """A repository with a commit on main, and a pull request of two commits onto it."""
    with github_api.serving() as api:
        api.add_commits(BASE)
        api.add_commit(HEAD, BASE)
        api.add_commit(MERGE, BASE, HEAD)
        api.add_commit(NEXT, HEAD)
        api.add_commit(NEXT_MERGE, BASE, NEXT)
        api.add_pull(7, HEAD)
        yield kind(api, folder)


def record_baseline(actions):
    """Run main, upload its results, and return their file."""
    run = actions.api.add_run(BASE)
    with demo_agent() as inputs:
        step = actions.step("push", push_payload(), sha=BASE, run=run, inputs=inputs)
    assert step.done.returncode == 0, step.done.stderr
    actions.upload(step, run)
    return step.results_file


def upload_baseline(actions, results_file):
    """Upload results of main that were recorded before, as its first run."""
    run = actions.api.add_run(BASE)
    artifact = zip_of({"_results.json": results_file.read_bytes()})
    actions.api.add_artifact(run, artifact, name="ci-evals-results-default")
