"""Workflows that check out code of others: it cannot decide where keys are sent."""

import json
import subprocess
from pathlib import Path

import github_api
import pytest
import world
from commands import action, ci_evals, write_suite
from each_row import each_row
from github_api import FORK, REPOSITORY, TOKEN

pytestmark = pytest.mark.slow
BASE_URL = "baseUrl"
UNTRUSTED_SUITE = "a suite may not read the environment in a checkout"


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
        self, *options: str, event="workflow_dispatch", suites="evals", head=None, base=None, **variables
    ):
        """Run suites; `head` is the repository that pull request 7 comes from, if the event is of one."""
        env = self.job(event, head, base) | {"GITHUB_TOKEN": TOKEN}
        arguments = ("run", suites, "--provider=offline", "--baseline=none", "--comment=never", *options)
        return ci_evals(*arguments, cwd=self.folder, env=env | variables)

    def job(self, event: str, head: str | None = None, base: str | None = None) -> dict[str, str]:
        payload = {"repository": {"full_name": REPOSITORY, "default_branch": "main"}, "inputs": {}}
        if head:
            ends = {"head": {"sha": self.theirs, "ref": "topic", "repo": {"full_name": head}}}
            ends["base"] = {"sha": base or self.own, "ref": "main"}
            payload |= {"number": 7, "pull_request": {"number": 7, **ends}}
        path = self.folder.parent / "event.json"
        path.write_text(json.dumps(payload))
        known = {"ACTIONS": "true", "EVENT_NAME": event, "EVENT_PATH": str(path), "REPOSITORY": REPOSITORY}
        known |= {"SHA": self.own, "REF": "refs/heads/main", "API_URL": self.api.url, "RUN_ID": "99"}
        known |= {"WORKSPACE": str(self.folder)}
        return {f"GITHUB_{name}": value for name, value in known.items()} | {"AGENT_KEY": self.agent.key}

    def check_out_theirs(self) -> Path:
        """Check out the pull request, with a commit more, into a folder of the own checkout."""
        git(self.folder, "worktree", "add", "--quiet", "--detach", "pr", self.theirs)
        git(self.folder / "pr", "commit", "--quiet", "--allow-empty", "--message=More")
        return self.folder / "pr"


@pytest.fixture
def workspace(tmp_path, api, agent):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Workspace(folder, api, agent)


def assert_rejected(ran, agent, *texts: str) -> None:
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert agent.heard == []
    for text in texts:
        assert text in ran.stderr


def test_suite_of_fork_or_unknown_commit_gets_no_key_unless_always_trusted(workspace, agent, tmp_path):
    """It was sent to the `baseUrl` that the fork's own suite named.

    A commit is unknown if the event does not name it, or if nothing can be known of it.
    """
    assert_rejected(workspace.run(), agent, workspace.theirs[:12], "--trust-suites")
    assert_rejected(workspace.run("--pr-number=7"), agent, workspace.theirs[:12])
    assert_rejected(workspace.run(event="repository_dispatch"), agent)
    assert_rejected(workspace.run(event="push"), agent)
    workspace.api.add_pull(7, workspace.theirs, repository=FORK)
    ran = workspace.run("--pr-number=7")
    assert_rejected(ran, agent, f"pull request 7, which comes from {FORK}", "${AGENT_KEY}", BASE_URL)
    (workspace.folder / ".git").rename(tmp_path / "git")
    assert_rejected(workspace.run(), agent, "a workspace without .git")
    assert_rejected(workspace.run("--pr-number=7", event="push"), agent, FORK)
    (tmp_path / "git").rename(workspace.folder / ".git")
    assert workspace.run("--pr-number=7", "--trust-suites=always").returncode == 0


def test_suites_of_own_commits_and_branches_are_trusted_but_no_other_checkout(workspace, agent):
    """So is the base commit of a fork, in a job with secrets."""
    for event in ("workflow_dispatch", "push"):
        assert workspace.run(event=event, GITHUB_SHA=workspace.theirs).returncode == 0
    assert workspace.api.requests == []
    ran = workspace.run(event="pull_request", head=FORK, base=workspace.theirs)
    assert ran.returncode == 0, ran.stderr
    workspace.api.add_pull(7, workspace.theirs)
    assert workspace.run("--pr-number=7").returncode == 0
    own, theirs = workspace.folder, workspace.check_out_theirs()
    assert workspace.run(GITHUB_SHA=workspace.theirs).returncode == 0
    del agent.heard[:]
    (own / "linked").symlink_to("pr/evals")
    (theirs / "back").symlink_to("../evals")
    for suites in ("pr/evals", "linked", "pr/back"):
        assert_rejected(workspace.run(suites=suites, GITHUB_SHA=workspace.theirs), agent)


@each_row(
    ("option", "file"),
    [
        ("--adapter-options", "options.yaml"),
        ("--prices", "prices.yaml"),
        ("--calibration", "calibration.json"),
        ("--baseline", "main.json"),
        ("--replay", "recording"),
    ],
)
def test_option_may_name_file_outside_of_foreign_checkout_but_not_in_it(workspace, agent, option, file):
    """Such a file says where keys go, what may be spent, or what the run is compared with."""
    del agent.heard[:]
    (workspace.folder / file).write_text("{}")
    literal = write_suite(workspace.folder, name="literal.json", apiKey=agent.key)
    ran = workspace.run(f"{option}={file}", f"--base-url={agent.url}", suites=literal)
    assert_rejected(ran, agent, f"{option}: {file} may not be read in a checkout of {workspace.theirs[:12]}")
    outside = workspace.folder.parent / file
    outside.write_text("{}")
    ran = workspace.run(f"{option}={outside}", f"--base-url={agent.url}", suites=literal)
    assert "may not be read" not in ran.stderr


def test_option_naming_program_or_untrusted_file_is_rejected_in_foreign_checkout(workspace, agent):
    (workspace.folder / "agent.sh").write_text("#!/bin/sh\necho $AGENT_KEY > leaked\n")
    for options in (["--adapter=command: sh agent.sh"], ["--start=sh agent.sh", f"--base-url={agent.url}"]):
        ran = workspace.run(*options, suites="demo:hr")
        option = options[0].partition("=")[0]
        assert_rejected(ran, agent, f"{option}: a program may not be named in a checkout of")
    assert not (workspace.folder / "leaked").exists()
    literal = write_suite(workspace.folder, name="literal.json", apiKey=agent.key)
    ran = workspace.run("--baseline=required", f"--base-url={agent.url}", suites=literal)
    assert "may not be read" not in ran.stderr  # it is no file
    assert ran.returncode == 3  # there is none to compare with
    del agent.heard[:]
    (workspace.folder / "theirs.yaml").write_text(ARMS.format(url=agent.url))
    for option in ("--adapter-options=theirs.yaml", "--arms=theirs.yaml"):
        ran = workspace.run(option, f"--base-url={agent.url}", "--trust-suites=never", suites="demo:hr")
        assert_rejected(ran, agent, f"may not be read in a checkout of {workspace.theirs[:12]}")


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
OPTIONS_IN_CHECKOUT = {
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


@each_row(
    ("name", "event"),
    [
        *((name, "pull_request_target") for name in OPTIONS_IN_CHECKOUT),
        ("a file of agents", "workflow_dispatch"),
        ("a file of agents", "issue_comment"),
    ],
)
def test_arms_base_agent_and_earlier_run_options_are_rejected_in_foreign_checkout(
    workspace, agent, name, event
):
    """Such a file says which code runs beside the secrets, and where keys go."""
    options = OPTIONS_IN_CHECKOUT[name]
    outside = workspace.folder.parent
    (outside / "outside.yaml").write_text("{}")
    (workspace.folder / "theirs.yaml").write_text(ARMS.format(url=agent.url))
    (workspace.folder / "theirs.sh").write_text("#!/bin/sh\necho $AGENT_KEY $OTHER_SECRET > leaked\n")
    (workspace.folder / "past").mkdir(exist_ok=True)
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
    assert_rejected(ran, agent, f"in a checkout of {workspace.theirs[:12]}")
    assert not (workspace.folder / "leaked").exists()


def test_folder_named_like_a_number_is_not_read_as_history(workspace, agent):
    """`--history` is 10 by default: a fork's folder of that name would be compared with."""
    literal = write_suite(workspace.folder.parent, name="literal.json", apiKey=agent.key)
    baseline = workspace.folder.parent / "results"
    url = f"--base-url={agent.url}"
    workspace.run(url, f"--output-dir={baseline}", suites=f"../{literal}")
    for name in ("10", "3"):
        (workspace.folder / name).mkdir()
        ran = workspace.run(url, f"--history={name}", f"--baseline={baseline}", suites=f"../{literal}")
        assert ran.returncode == 0, ran.stderr


@pytest.fixture
def nested(workspace):
    """The own checkout with the fork's inside, and links that lead to it or through it."""
    own, theirs = workspace.folder, workspace.check_out_theirs()
    for name in ("theirs.sh", "theirs.py", "theirs.yaml"):
        (theirs / name).write_text("{}")
    (own / "ours.yaml").write_text("{}")
    (own / "linked.sh").symlink_to("pr/theirs.sh")
    (own / "linked.yaml").symlink_to("pr/theirs.yaml")
    (theirs / "back.yaml").symlink_to("../ours.yaml")
    (own / "twice.yaml").symlink_to("pr/back.yaml")
    return workspace


@each_row(
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
def test_options_naming_files_of_nested_foreign_checkout_are_rejected(nested, agent, option):
    ran = nested.run(option, f"--base-url={agent.url}", suites="demo:hr", GITHUB_SHA=nested.theirs)
    assert_rejected(ran, agent, "which may be somebody else's code")


def test_program_and_arms_file_outside_workspace_are_allowed(workspace, agent):
    """Also if the folder of the program is a checkout, as that of pyenv."""
    outside = workspace.folder.parent
    literal = write_suite(outside, name="literal.json", apiKey=agent.key)
    (outside / "arms.yaml").write_text(f"one: {{}}\nother: {{base-url: '{agent.url}'}}\n")
    ran = workspace.run(f"--arms={outside}/arms.yaml", f"--base-url={agent.url}", suites=f"../{literal}")
    assert ran.returncode in {0, 1}, ran.stderr
    assert agent.heard
    tools = outside / "tools"
    tools.mkdir()
    git(tools, "init", "--quiet")
    git(tools, "commit", "--quiet", "--allow-empty", "--message=Tools")
    (tools / "agent.sh").write_text("while read -r line; do echo '\"Hello\"'; done\n")
    adapter = f"--adapter=command: sh {tools}/agent.sh"
    ran = workspace.run(adapter, suites="demo:hr", GITHUB_SHA=workspace.theirs)
    assert "may not be" not in ran.stderr
    assert ran.returncode in {0, 1, 3}, ran.stderr


def test_own_suite_that_starts_program_of_foreign_checkout_is_rejected(workspace, agent):
    """It would run beside the secrets; paths are relative to the folder of the suite."""
    own, theirs = workspace.folder, workspace.check_out_theirs()
    (theirs / "theirs.sh").write_text("make")
    (own / "evals/linked.sh").symlink_to("../pr/theirs.sh")
    for start in ("cd ../pr && make", "make -C $PWD/../pr", "sh linked.sh"):
        write_suite(own / "evals", **{BASE_URL: agent.url, "apiKey": "${AGENT_KEY}", "start": start})
        ran = workspace.run(GITHUB_SHA=workspace.theirs)
        assert_rejected(ran, agent, "evals/suite.json: start: ", " may not be run in a checkout of")


def test_suite_file_named_like_bundled_suite_is_not_trusted(workspace, agent):
    for name in ("demo:hr.json", "quack:more.json"):
        write_suite(workspace.folder, name=name, **{BASE_URL: agent.url, "apiKey": "${AGENT_KEY}"})
        for suites in ("*.json", "."):
            assert_rejected(workspace.run(suites=suites), agent, UNTRUSTED_SUITE)
        (workspace.folder / name).unlink()


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


@each_row(
    ("name", "event"), [*((name, "pull_request") for name in SECRETS), ("AGENT_KEY", "pull_request_review")]
)
def test_fork_is_not_trusted_in_job_with_any_secret(workspace, agent, name, event):
    """Private repositories can pass theirs to pull requests of forks."""
    secrets = {"AGENT_KEY": "", name: SECRETS[name].format(key=agent.key)}
    ran = workspace.run(event=event, head=FORK, **secrets)
    texts = f"pull request 7, which comes from {FORK}, in a job that has secrets ("
    assert_rejected(ran, agent, BASE_URL, texts)
    assert name in ran.stderr or f"--{name.removeprefix('CI_EVALS_').lower().replace('_', '-')}" in ran.stderr
    (workspace.folder / "theirs.yaml").write_text("{}")
    ran = workspace.run("--adapter-options=theirs.yaml", event=event, head=FORK, suites="demo:hr", **secrets)
    assert_rejected(ran, agent, "--adapter-options: theirs.yaml may not be read", texts)


@each_row(
    "variables",
    [
        {},
        {"CI_EVALS_AGENT_KEY": "", "LLM_API_KEY": " "},
        {"OPENAI_API_KEY": "dummy", "DB_PASSWORD": "postgres"},
        {"CI_EVALS_AGENT_HEADERS": "Authorization: Bearer \nX-Tenant: acme"},
        {"ACTIONS_RUNTIME_TOKEN": "9f8e7d6c5b4a", "GH_TOKEN": "ghs_9f8e7d6c5b4a"},
    ],
)
def test_fork_is_tested_in_job_without_secrets(workspace, agent, variables):
    options = {"send": {"body": "{{message}}"}, "reply": {"text": "$"}}
    fields = {"adapter": "http", "agentId": None, BASE_URL: f"{agent.url}/echo", "adapterOptions": options}
    write_suite(workspace.folder / "evals", **fields, apiKey=None)
    ran = workspace.run(event="pull_request", head=FORK, **({"AGENT_KEY": ""} | variables))
    assert "may not" not in ran.stderr
    assert ran.returncode != 2, ran.stderr


def test_action_annotates_untrusted_suite_at_its_line(workspace, agent):
    inputs = {"SUITES": "evals", "PROVIDER": "offline", "PR-NUMBER": "7", "GITHUB-TOKEN": TOKEN}
    inputs |= {"COMMENT": "never"}
    env = workspace.job("workflow_dispatch") | {f"INPUT_{name}": value for name, value in inputs.items()}
    workspace.api.add_pull(7, workspace.theirs, repository=FORK)
    ran = action(cwd=workspace.folder, env=env)
    assert_rejected(ran, agent)
    assert "::error file=evals/suite.json,line=1,col=" in ran.stderr
    assert f"apiKey: ${{AGENT_KEY}}: {UNTRUSTED_SUITE}" in ran.stderr
