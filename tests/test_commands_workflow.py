"""examples/commands.yml: its script, as GitHub's runner starts it, against a stand-in of GitHub's API."""

import json
import os

import github_api
import pytest
import yaml
from commands import ci_evals
from doc_pages import ROOT
from github_api import FORK, HANG_UP, REPOSITORY, TOKEN, Answer

pytestmark = pytest.mark.slow

WORKFLOW = yaml.safe_load((ROOT / "examples/commands.yml").read_text())
(STEP,) = [step for step in WORKFLOW["jobs"]["command"]["steps"] if "run" in step]
DISPATCHED = yaml.safe_load((ROOT / "examples/command-evals.yml").read_text())
COMMANDS = ("/evals rerun failed", "/evals confirm", "/evals refresh baseline")
SHA = "a" * 40
ASKED = {"pull-request": "7", "base": "main"}


class CommentedPullRequest:
    def __init__(self, api, folder):
        self.api, self.folder = api, folder
        self.pull = api.add_pull(7, SHA)
        self.run = api.add_run(SHA, event="pull_request", head_branch="topic")

    def say(self, body, /, **edits):
        """Start the script as for a new comment; returns its exit code and what it printed."""
        comment = self.api.add_comment(7, body, {"login": "ann", "type": "User", "id": 1})
        event = {"comment": dict(comment), "issue": {"number": 7, "pull_request": {}}}
        comment |= edits
        file = self.folder / "event.json"
        file.write_text(json.dumps(event))
        names = STEP["env"] | {"TOKEN": self.api.token}
        env = {"PATH": os.environ["PATH"], "GITHUB_EVENT_PATH": str(file), "GITHUB_REPOSITORY": REPOSITORY}
        env |= names | {"GITHUB_API_URL": self.api.url}
        script = self.folder / "script.py"
        script.write_text(STEP["run"])
        done = ci_evals(cwd=self.folder, env=env, program=str(script))
        assert done.stderr == ""
        assert TOKEN not in done.stdout
        return done.returncode, done.stdout

    @property
    def reactions(self):
        return [request.body["content"] for request in self.api.requests_to("POST .*/reactions$")]

    @property
    def started(self):
        asked = self.api.requests_to("POST .*/dispatches$")
        return [(r.path.split("/")[-2], r.body["ref"], r.body.get("inputs")) for r in asked]


@pytest.fixture
def played(tmp_path):
    with github_api.serving() as api:
        api.permissions |= {"actions: write"}
        yield CommentedPullRequest(api, tmp_path)


@pytest.mark.parametrize(
    ("body", "workflow", "ref", "inputs"),
    [
        ("/evals rerun failed", "command-evals.yml", "topic", ASKED | {"command": "rerun failed"}),
        ("/evals confirm", "command-evals.yml", "topic", ASKED | {"command": "confirm"}),
        ("/Evals Refresh Baseline", "pull-request.yml", "main", None),
    ],
)
def test_command_starts_its_workflow_and_gets_rocket_reaction(played, body, workflow, ref, inputs):
    """GitHub compares without case."""
    code, output = played.say(body)
    if "failed" in body:
        inputs = inputs | {"run-id": str(played.run["id"])}
    assert (code, output) == (0, "::notice::started\n")
    assert (played.started, played.reactions) == ([(workflow, ref, inputs)], ["rocket"])


@pytest.mark.parametrize("permission", ["read", "none", "triage", None])
def test_command_without_write_access_starts_nothing_and_gets_thumbs_down(played, permission):
    played.api.rights["ann"] = permission
    assert (played.say("/evals confirm")[0], played.started, played.reactions) == (0, [], ["-1"])


@pytest.mark.parametrize(
    ("head", "fields", "why"),
    [
        ({"repo": {"full_name": FORK}}, {}, "is of a fork"),
        ({"repo": None}, {}, "is of a fork"),  # one that was deleted
        ({}, {"state": "closed", "merged": True}, "closed or merged"),
    ],
)
def test_command_on_fork_or_merged_pull_request_is_rejected(played, head, fields, why):
    played.pull["head"] |= head
    played.pull |= fields
    code, output = played.say("/evals confirm")
    assert (code, played.started, played.reactions) == (0, [], ["-1"])
    assert why in output


CODE = "0123456789" * 2 + "abcdef" * 3 + "01"


@pytest.mark.parametrize("repository", [REPOSITORY, FORK])
def test_approval_reruns_failed_job(played, repository):
    """Also of a fork, whose code gets no more rights by it. That run decides whether the comment approves."""
    played.pull["head"] |= {"repo": {"full_name": repository}}
    code, output = played.say(f"/evals approve suite {CODE}")
    assert (code, output) == (0, "::notice::started\n")
    (request,) = played.api.requests_to("POST .*/rerun-failed-jobs$")
    assert request.path.endswith(f"/actions/runs/{played.run['id']}/rerun-failed-jobs")
    assert (played.started, played.reactions) == ([], ["rocket"])


@pytest.mark.parametrize("rest", ["", "s", " 12", f" {CODE[:16]}", f" {CODE} x"])
def test_approval_without_valid_code_starts_nothing(played, rest):
    """Nor does one by somebody who may not write."""
    code, text = played.say(f"/evals approve suite{rest}")
    assert (code, text.startswith("::notice::copy the line with its code from the report")) == (0, True)
    played.api.rights["ann"] = "read"
    played.say(f"/evals approve suite {CODE}")
    assert played.api.requests_to("POST .*/rerun-failed-jobs$") == []
    assert played.reactions == ["confused", "-1"]


def test_edited_or_deleted_comment_starts_nothing(played):
    code, text = played.say("/evals confirm", body="/evals refresh baseline")
    assert (code, played.started, played.reactions) == (0, [], [])
    assert "deleted or edited" in text
    played.api.fail("GET .*/issues/comments/", Answer(404, {"message": "Not Found"}))
    assert (played.say("/evals confirm")[0], played.started, played.reactions) == (0, [], [])


@pytest.mark.parametrize(
    ("run", "body", "why"),
    [
        ({"status": "in_progress"}, f"/evals approve suite {CODE}", "comment again when it has"),
        ({"head_sha": "b" * 40}, "/evals rerun failed", "no run of this commit has ended yet"),
    ],
)
def test_command_without_finished_run_of_its_commit_is_rejected_with_reason(played, run, body, why):
    played.run |= run
    code, text = played.say(body)
    assert (code, played.started, played.reactions) == (1, [], ["confused"])
    assert why in text


HTML = Answer(200, None, raw=b"<html>Sign in</html>")


@pytest.mark.parametrize("path", ["collaborators", "GET .*/pulls", "GET .*/runs", "dispatches"])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        *((Answer(s, {"message": "x"}), f"status {s}: ") for s in (401, 403, 409, 422, 429, 500, 503)),
        (Answer(502, None, raw=b"<html>Bad gateway</html>"), "status 502: try again later"),
        (HTML, "the answer is no JSON"),
        (HANG_UP, "no answer"),
        (Answer(200, []), "not of the form"),
    ],
)
def test_github_error_gives_one_message_and_confused_reaction(played, path, answer, why):
    played.api.fail(path, answer)
    code, text = played.say("/evals rerun failed")
    if path == "dispatches" and answer.status == 200 and answer.body == []:
        assert code == 0  # it is started: what else the answer says is not looked at
        return
    assert (code, text.count("::error::"), text.count("\n"), played.reactions) == (1, 1, 1, ["confused"])
    assert why in text
    assert len(played.started) == (path == "dispatches")


def test_failed_reaction_is_a_warning_and_missing_token_permission_an_error(played):
    played.api.fail("reactions", Answer(403, {"message": "x"}))
    code, text = played.say("/evals confirm")
    assert (code, len(played.started)) == (0, 1)
    assert "::warning::no reaction: POST" in text
    played.api.permissions -= {"actions: write"}
    code, text = played.say("/evals confirm")
    assert (code, len(played.started), played.reactions[1:]) == (1, 2, ["confused"])
    assert "the job needs actions: write and pull-requests: write" in text


def test_job_starts_for_exact_commands_and_outsiders_have_their_own_group():
    """The author's association gives no rights, and nothing is checked out.

    GitHub keeps one waiting run of a group, the newest: an outsider's would displace a command that waits.
    """
    text = (ROOT / "examples/commands.yml").read_text()
    job = WORKFLOW["jobs"]["command"]
    assert WORKFLOW[True] == {"issue_comment": {"types": ["created"]}}
    phrases = json.dumps([*COMMANDS])
    exact = f"(contains(fromJSON('{phrases}'), github.event.comment.body)"
    approves = "|| startsWith(github.event.comment.body, '/evals approve suite'))"
    for condition in (job["if"], WORKFLOW["concurrency"]["group"]):
        assert (exact in condition, approves in condition) == (True, True)
    assert "author_association" not in job["if"] + STEP["run"]
    assert "checkout" not in text
    assert job["permissions"] == {"actions": "write", "pull-requests": "write"}
    assert not WORKFLOW["concurrency"]["cancel-in-progress"]
    group = " ".join(WORKFLOW["concurrency"]["group"].split())
    known = """fromJSON('["OWNER", "MEMBER", "COLLABORATOR"]'), github.event.comment.author_association"""
    assert f"-${{{{ contains({known}) && (contains(" in group
    assert group.endswith(") && github.event.issue.number || github.run_id }}")


def test_command_workflow_has_options_and_reads_results_of_pull_request_workflow():
    """Its comment replaces the one of that run. Its job has another name: a check that is required stays."""
    first = yaml.safe_load((ROOT / "examples" / STEP["env"]["EVALS"]).read_text())
    options = [
        step["with"]
        for workflow in (first, DISPATCHED)
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "aui-evals-action" in step.get("uses", "") and "args" not in step["with"]
    ]
    of_pull_request, of_command = options
    assert of_pull_request.items() <= of_command.items()
    assert of_pull_request["weakened"] == "fail"
    assert not first["jobs"].keys() & DISPATCHED["jobs"].keys()
    inputs = DISPATCHED[True]["workflow_dispatch"]["inputs"]
    assert inputs["command"]["options"] == [c.removeprefix("/evals ") for c in COMMANDS[:2]]
    assert set(inputs) == {"command", "pull-request", "base", "run-id"}
    for name in ("EVALS", "COMMAND_EVALS"):
        assert (ROOT / "examples" / STEP["env"][name]).is_file()
    assert "workflow_dispatch" in first[True]
    steps = first["jobs"]["evals"]["steps"]
    kept = [step["with"]["name"] for step in steps if "upload" in step.get("uses", "")]
    (job,) = DISPATCHED["jobs"].values()
    (taken,) = [step["with"]["name"] for step in job["steps"] if "download" in step.get("uses", "")]
    assert taken in kept
