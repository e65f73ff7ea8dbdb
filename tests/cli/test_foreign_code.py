"""Workflows that check out somebody else's code: what it says does not decide where keys go."""

import json
import subprocess
from pathlib import Path

import github_api
import pytest
import world
from commands import action, ci_evals, write_suite
from github_api import FORK, REPOSITORY, TOKEN

BASE_URL = "baseUrl"


@pytest.fixture
def api():
    with github_api.serving() as served:
        yield served


@pytest.fixture
def agent():
    """A server that the suite names as its agent; it could be anybody's."""
    with world.agent(lambda heard: world.message(f"Hello, {heard.text}", workflows=[])) as served:
        yield served


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Workspace:
    """A checkout: `own` is the commit of main that the workflow runs for, `theirs` that of pull request 7."""

    def __init__(self, folder: Path, api, agent) -> None:
        self.folder, self.api, self.agent = folder, api, agent
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "--message=Base")
        self.own = git(folder, "rev-parse", "HEAD")
        (folder / "evals").mkdir()
        write_suite(folder / "evals", **{BASE_URL: agent.url, "apiKey": "${AGENT_KEY}"})
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message=Their suite")
        self.theirs = git(folder, "rev-parse", "HEAD")
        git(folder, "checkout", "--quiet", "--detach")

    def run(self, *options: str, event: str = "workflow_dispatch", suites: str = "evals", **variables):
        payload = {"repository": {"full_name": REPOSITORY, "default_branch": "main"}, "inputs": {}}
        (self.folder.parent / "event.json").write_text(json.dumps(payload))
        env = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(self.folder.parent / "event.json"),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SHA": self.own,
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": self.api.url,
            "GITHUB_WORKSPACE": str(self.folder),
            "GITHUB_RUN_ID": "99",
            "AGENT_KEY": self.agent.key,
        }
        arguments = ("run", suites, "--provider=offline", "--baseline=none", "--comment=never", *options)
        return ci_evals(*arguments, cwd=self.folder, env=env | variables)


@pytest.fixture
def workspace(tmp_path, api, agent):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Workspace(folder, api, agent)


def refused(ran, agent, *says: str) -> None:
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert agent.heard == []
    for text in says:
        assert text in ran.stderr


def test_a_run_by_hand_for_a_pull_request_of_a_fork_sends_its_suite_no_key(workspace, agent):
    """It was sent to the `baseUrl` that the fork's own suite named."""
    workspace.api.add_pull(7, workspace.theirs, repository=FORK)
    ran = workspace.run("--pr-number=7")
    refused(ran, agent, f"pull request 7, which comes from {FORK}", "${AGENT_KEY}", BASE_URL)
    assert workspace.run("--pr-number=7", "--trust-suites=always").returncode == 0


def test_nor_without_the_number_or_without_git(workspace, agent, tmp_path):
    """A checkout of any commit that the event does not name, and one of which nothing can be known."""
    refused(workspace.run(), agent, workspace.theirs[:12], "--trust-suites")
    refused(workspace.run("--pr-number=7"), agent, workspace.theirs[:12])
    refused(workspace.run(event="repository_dispatch"), agent)
    refused(workspace.run(event="push"), agent)
    (workspace.folder / ".git").rename(tmp_path / "git")
    refused(workspace.run(), agent, "a workspace without .git")
    workspace.api.add_pull(7, workspace.theirs, repository=FORK)
    refused(workspace.run("--pr-number=7", event="push"), agent, FORK)


def test_our_own_code_is_trusted_as_ever(workspace):
    """The commit of the event, and a pull request of a branch of this repository."""
    assert workspace.run(GITHUB_SHA=workspace.theirs).returncode == 0
    assert workspace.run(event="push", GITHUB_SHA=workspace.theirs).returncode == 0
    assert workspace.api.requests == []
    workspace.api.add_pull(7, workspace.theirs)
    assert workspace.run("--pr-number=7").returncode == 0


def test_the_checkout_that_a_suite_lies_in_decides(workspace, agent):
    """Our suites beside a checkout of the fork are trusted; the fork's are not, not even by way of a link."""
    ours = workspace.folder
    git(ours, "worktree", "add", "--quiet", "--detach", "pr", workspace.theirs)
    assert workspace.run(GITHUB_SHA=workspace.theirs).returncode == 0
    git(ours / "pr", "commit", "--quiet", "--allow-empty", "--message=More")
    del agent.heard[:]
    refused(workspace.run(suites="pr/evals", GITHUB_SHA=workspace.theirs), agent)
    (ours / "linked").symlink_to("pr/evals")
    refused(workspace.run(suites="linked", GITHUB_SHA=workspace.theirs), agent)
    (ours / "pr/back").symlink_to("../evals")
    refused(workspace.run(suites="pr/back", GITHUB_SHA=workspace.theirs), agent)


@pytest.mark.parametrize(
    ("option", "file"),
    [
        ("--adapter-options", "options.yaml"),
        ("--prices", "prices.yaml"),
        ("--calibration", "calibration.json"),
        ("--baseline", "main.json"),
        ("--replay", "recording"),
    ],
)
def test_options_name_no_file_of_a_foreign_checkout(workspace, agent, option, file):
    """Such a file says where keys go, what may be spent, or what the run is compared with."""
    (workspace.folder / file).write_text("{}")
    literal = write_suite(workspace.folder, name="literal.json", apiKey=agent.key)
    ran = workspace.run(f"{option}={file}", f"--base-url={agent.url}", suites=literal)
    refused(ran, agent, f"{option}: {file} may not be read in a checkout of {workspace.theirs[:12]}")
    outside = workspace.folder.parent / file
    outside.write_text("{}")
    ran = workspace.run(f"{option}={outside}", f"--base-url={agent.url}", suites=literal)
    assert "may not be read" not in ran.stderr


def test_a_required_baseline_is_no_file(workspace, agent):
    """It is one of the words, as `auto` is: no checkout holds it."""
    literal = write_suite(workspace.folder, name="literal.json", apiKey=agent.key)
    ran = workspace.run("--baseline=required", f"--base-url={agent.url}", suites=literal)
    assert "may not be read" not in ran.stderr
    assert ran.returncode == 3  # there is none to compare with


def test_options_name_no_program_of_a_foreign_checkout(workspace, agent):
    """It would run beside the keys."""
    (workspace.folder / "agent.sh").write_text("#!/bin/sh\necho $AGENT_KEY > leaked\n")
    ran = workspace.run("--adapter=command: sh agent.sh", suites="demo:hr")
    refused(ran, agent, "--adapter: a program may not be named in a checkout of")
    ran = workspace.run("--start=sh agent.sh", f"--base-url={agent.url}", suites="demo:hr")
    refused(ran, agent, "--start: a program may not be named in a checkout of")
    assert not (workspace.folder / "leaked").exists()


def test_the_action_says_so_at_the_lines_of_the_suite(workspace, agent):
    """With the file, the line, and the variable's name, which is no secret."""
    payload = {"repository": {"full_name": REPOSITORY, "default_branch": "main"}}
    (workspace.folder.parent / "event.json").write_text(json.dumps(payload))
    env = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "workflow_dispatch",
        "GITHUB_EVENT_PATH": str(workspace.folder.parent / "event.json"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_SHA": workspace.own,
        "GITHUB_API_URL": workspace.api.url,
        "GITHUB_WORKSPACE": str(workspace.folder),
        "AGENT_KEY": agent.key,
        "INPUT_SUITES": "evals",
        "INPUT_PROVIDER": "offline",
        "INPUT_PR-NUMBER": "7",
        "INPUT_GITHUB-TOKEN": TOKEN,
        "INPUT_COMMENT": "never",
    }
    workspace.api.add_pull(7, workspace.theirs, repository=FORK)
    ran = action(cwd=workspace.folder, env=env)
    assert ran.returncode == 2
    assert agent.heard == []
    assert "::error file=evals/suite.json,line=1,col=" in ran.stderr
    assert "apiKey: ${AGENT_KEY}: a suite may not read the environment in a checkout" in ran.stderr
