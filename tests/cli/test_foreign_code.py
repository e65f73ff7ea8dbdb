"""Workflows that check out somebody else's code: what it says does not decide where keys go."""

import json
import subprocess
from pathlib import Path

import github_api
import pytest
import world
from commands import action, ci_evals, write_suite
from github_api import FORK, REPOSITORY, TOKEN

pytestmark = pytest.mark.slow

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

    def run(
        self,
        *options: str,
        event: str = "workflow_dispatch",
        suites: str = "evals",
        head: str | None = None,
        base: str | None = None,
        **variables,
    ):
        """Run suites; `head` is the repository that pull request 7 comes from, if the event is of one."""
        payload = {"repository": {"full_name": REPOSITORY, "default_branch": "main"}, "inputs": {}}
        if head:
            payload |= {
                "number": 7,
                "pull_request": {
                    "number": 7,
                    "head": {"sha": self.theirs, "ref": "topic", "repo": {"full_name": head}},
                    "base": {"sha": base or self.own, "ref": "main"},
                },
            }
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


ARMS = """
first:
  adapter: http
  adapter-options: outside.yaml
  base-url: {url}
second:
  base-url: {url}
  agent-key: ${{OTHER_SECRET}}
"""
OTHER = "other-secret-77c1f0"

AGENTS_OF_THEIRS = {
    "a file of agents": ["--arms=theirs.yaml"],
    "its options of an adapter": ["--against=adapter-options=theirs.yaml"],
    "its options with dashes": ["--against=base-url={url}\n--adapter-options = theirs.yaml"],
    "its program": ["--against=adapter=command: sh theirs.sh"],
    "its module": ["--against=adapter=python:theirs:reply"],
    "its server": ["--against=start=sh theirs.sh\nbase-url={url}"],
    "our file of agents that names its options": ["--arms={outside}/options.yaml"],
    "our file of agents that names its program": ["--arms={outside}/program.yaml"],
    "our file of agents that names its server": ["--arms={outside}/start.yaml"],
    "a folder of earlier runs": ["--history=past", "--baseline=none"],
    "a run to resume": ["--resume=past"],
    "a run of which tests passed": ["--only-failed=past"],
}


@pytest.mark.parametrize(
    ("name", "event"),
    [
        *((name, "pull_request_target") for name in AGENTS_OF_THEIRS),
        ("a file of agents", "workflow_dispatch"),
        ("a file of agents", "issue_comment"),
    ],
)
def test_agents_of_a_run_name_nothing_of_a_foreign_checkout(workspace, agent, name, event):
    """Such a file says which code runs beside the secrets, and where keys go."""
    options = AGENTS_OF_THEIRS[name]
    outside = workspace.folder.parent
    (outside / "outside.yaml").write_text("{}")
    (workspace.folder / "theirs.yaml").write_text(ARMS.format(url=agent.url))
    (workspace.folder / "theirs.sh").write_text("#!/bin/sh\necho $AGENT_KEY $OTHER_SECRET > leaked\n")
    (workspace.folder / "past").mkdir()
    for name, line in {
        "options": "adapter-options: theirs.yaml",
        "program": "'adapter': 'command: sh theirs.sh'",
        "start": "start: sh theirs.sh",
    }.items():
        (outside / f"{name}.yaml").write_text(f"one: {{{line}}}\nother: {{base-url: '{agent.url}'}}\n")
    given = [option.format(url=agent.url, outside=outside) for option in options]
    variables = {"OTHER_SECRET": OTHER, "CI_EVALS_AGENT_KEY": agent.key}
    literal = write_suite(outside, name="literal.json", apiKey=agent.key)
    ran = workspace.run(*given, f"--base-url={agent.url}", suites=f"../{literal}", event=event, **variables)
    refused(ran, agent, f"in a checkout of {workspace.theirs[:12]}")
    assert not (workspace.folder / "leaked").exists()


def test_an_agent_of_our_own_is_played_beside_it(workspace, agent):
    """What lies outside of the checkout was written by an earlier step."""
    outside = workspace.folder.parent
    literal = write_suite(outside, name="literal.json", apiKey=agent.key)
    (outside / "arms.yaml").write_text(f"one: {{}}\nother: {{base-url: '{agent.url}'}}\n")
    ran = workspace.run(f"--arms={outside}/arms.yaml", f"--base-url={agent.url}", suites=f"../{literal}")
    assert ran.returncode in {0, 1}, ran.stderr
    assert agent.heard


@pytest.mark.parametrize("name", ["10", "3"])
def test_a_folder_with_the_name_of_a_number_is_no_history(workspace, agent, name):
    """`--history` is 10 by default: a fork's folder of that name would be compared with."""
    (workspace.folder / name).mkdir()
    literal = write_suite(workspace.folder.parent, name="literal.json", apiKey=agent.key)
    baseline = workspace.folder.parent / "results"
    options = (f"--base-url={agent.url}", f"--output-dir={baseline}")
    workspace.run(*options, suites=f"../{literal}")
    ran = workspace.run(options[0], f"--history={name}", f"--baseline={baseline}", suites=f"../{literal}")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("option", ["--adapter-options=theirs.yaml", "--arms=theirs.yaml"])
def test_never_is_no_weaker_than_auto(workspace, agent, option):
    """`--trust-suites=never` is about suites; files of a foreign checkout are still refused."""
    (workspace.folder / "theirs.yaml").write_text(ARMS.format(url=agent.url))
    ran = workspace.run(option, f"--base-url={agent.url}", "--trust-suites=never", suites="demo:hr")
    refused(ran, agent, f"may not be read in a checkout of {workspace.theirs[:12]}")


@pytest.mark.parametrize(
    "option",
    [
        "--start=sh pr/theirs.sh",
        "--start=cd pr && sh theirs.sh",
        "--start=sh -c 'cd pr; sh theirs.sh'",
        "--start=make --directory=pr serve",
        "--start=PYTHONPATH=pr python3 -m theirs",
        "--start=python3 -m pr.theirs",
        "--start=sh $GITHUB_WORKSPACE/pr/theirs.sh",
        "--start=sh linked.sh",
        "--adapter=command: sh pr/theirs.sh",
        "--adapter=python:pr.theirs:reply",
        "--against=start=sh pr/theirs.sh",
        "--against=adapter=command: sh pr/theirs.sh",
        "--adapter-options=pr/theirs.yaml",
        "--adapter-options=linked.yaml",
        "--adapter-options=pr/back.yaml",
        "--adapter-options=twice.yaml",
        "--adapter-options=evals/../pr/theirs.yaml",
    ],
)
def test_our_own_checkout_names_nothing_of_theirs_inside_it(workspace, agent, option):
    """The fork is checked out into a folder of ours, and links lead to it or through it."""
    ours = workspace.folder
    git(ours, "worktree", "add", "--quiet", "--detach", "pr", workspace.theirs)
    git(ours / "pr", "commit", "--quiet", "--allow-empty", "--message=More")
    for name in ("theirs.sh", "theirs.py", "theirs.yaml"):
        (ours / "pr" / name).write_text("{}")
    (ours / "ours.yaml").write_text("{}")
    (ours / "linked.sh").symlink_to("pr/theirs.sh")
    (ours / "linked.yaml").symlink_to("pr/theirs.yaml")
    (ours / "pr/back.yaml").symlink_to("../ours.yaml")
    (ours / "twice.yaml").symlink_to("pr/back.yaml")
    ran = workspace.run(option, f"--base-url={agent.url}", suites="demo:hr", GITHUB_SHA=workspace.theirs)
    refused(ran, agent, "which may be somebody else's code")


def test_a_program_outside_of_the_workspace_is_installed(workspace, agent):
    """Also where its folder is a checkout, as that of pyenv."""
    tools = workspace.folder.parent / "tools"
    tools.mkdir()
    git(tools, "init", "--quiet")
    git(tools, "commit", "--quiet", "--allow-empty", "--message=Tools")
    (tools / "agent.sh").write_text("while read -r line; do echo '\"Hello\"'; done\n")
    ran = workspace.run(
        f"--adapter=command: sh {tools}/agent.sh", suites="demo:hr", GITHUB_SHA=workspace.theirs
    )
    assert "may not be" not in ran.stderr
    assert ran.returncode in {0, 1, 3}, ran.stderr


@pytest.mark.parametrize("start", ["cd ../pr && make", "make -C $PWD/../pr", "sh linked.sh"])
def test_a_suite_of_ours_starts_nothing_of_theirs(workspace, agent, start):
    """A program of the fork would run beside the secrets, whoever names it: from the suite's folder."""
    ours = workspace.folder
    git(ours, "worktree", "add", "--quiet", "--detach", "pr", workspace.theirs)
    git(ours / "pr", "commit", "--quiet", "--allow-empty", "--message=More")
    (ours / "pr/theirs.sh").write_text("make")
    (ours / "evals/linked.sh").symlink_to("../pr/theirs.sh")
    write_suite(ours / "evals", **{BASE_URL: agent.url, "apiKey": "${AGENT_KEY}", "start": start})
    ran = workspace.run(GITHUB_SHA=workspace.theirs)
    refused(ran, agent, "evals/suite.json: start: ")
    assert " may not be run in a checkout of" in ran.stderr


@pytest.mark.parametrize("name", ["demo:hr.json", "quack:more.json"])
def test_a_file_is_no_bundled_suite_by_its_name(workspace, agent, name):
    """Bundled suites are trusted everywhere; a fork may call its own like one."""
    write_suite(workspace.folder, name=name, **{BASE_URL: agent.url, "apiKey": "${AGENT_KEY}"})
    refused(workspace.run(suites="*.json"), agent, "a suite may not read the environment in a checkout")
    refused(workspace.run(suites="."), agent, "a suite may not read the environment in a checkout")


SECRETS = {
    "AGENT_KEY": "{key}",
    "CI_EVALS_AGENT_KEY": "{key}",
    "CI_EVALS_LLM_KEY": "sk-5f8a1c0e7d",
    "ANTHROPIC_API_KEY": "sk-ant-5f8a1c0e7d",
    "STAGING_PASSWORD": "9f8e7d6c5b-4a",
    "DATABASE_URL": "postgres://app:9f8e7d6c5b4a@db.example.com/app",
    "CI_EVALS_AGENT_HEADERS": "Authorization: Bearer 9f8e7d6c5b4a",
    "CI_EVALS_AGAINST": "agent-key=9f8e7d6c5b4a",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-team=9f8e7d6c5b4a",
    "GITHUB_TOKEN": "ghp_9f8e7d6c5b4a",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "9f8e7d6c5b4a",
}


@pytest.mark.parametrize(
    ("name", "event"),
    [*((name, "pull_request") for name in SECRETS), ("AGENT_KEY", "pull_request_review")],
)
def test_a_fork_is_untrusted_in_every_job_that_has_secrets(workspace, agent, name, event):
    """Private repositories can pass theirs to pull requests of forks."""
    secrets = {"AGENT_KEY": "", name: SECRETS[name].format(key=agent.key)}
    ran = workspace.run(event=event, head=FORK, **secrets)
    says = f"pull request 7, which comes from {FORK}, in a job that has secrets ("
    refused(ran, agent, BASE_URL, says)
    assert name in ran.stderr or f"--{name.removeprefix('CI_EVALS_').lower().replace('_', '-')}" in ran.stderr
    (workspace.folder / "theirs.yaml").write_text("{}")
    ran = workspace.run("--adapter-options=theirs.yaml", event=event, head=FORK, suites="demo:hr", **secrets)
    refused(ran, agent, "--adapter-options: theirs.yaml may not be read", says)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"CI_EVALS_AGENT_KEY": "", "LLM_API_KEY": " "},
        {"OPENAI_API_KEY": "dummy", "DB_PASSWORD": "postgres"},
        {"CI_EVALS_AGENT_HEADERS": "Authorization: Bearer \nX-Tenant: acme"},
        {"ACTIONS_RUNTIME_TOKEN": "9f8e7d6c5b4a", "GH_TOKEN": "ghs_9f8e7d6c5b4a"},
    ],
)
def test_a_fork_without_secrets_tests_its_own_agent(workspace, agent, variables):
    """As ever: nothing can be lost there."""
    write_suite(workspace.folder / "evals", adapter="http", agentId=None, **{BASE_URL: f"{agent.url}/echo"})
    options = workspace.folder / "evals/suite.json"
    suite = json.loads(options.read_text())
    suite.pop("apiKey", None)
    suite["adapterOptions"] = {"send": {"body": "{{message}}"}, "reply": {"text": "$"}}
    options.write_text(json.dumps(suite))
    ran = workspace.run(event="pull_request", head=FORK, **({"AGENT_KEY": ""} | variables))
    assert "may not" not in ran.stderr
    assert ran.returncode != 2, ran.stderr


def test_the_base_of_a_fork_is_trusted_where_there_are_secrets(workspace, agent):
    """The workflow checks out the base: `ref: ${{ github.event.pull_request.base.sha }}`."""
    ran = workspace.run(event="pull_request", head=FORK, base=workspace.theirs)
    assert ran.returncode == 0, ran.stderr


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
