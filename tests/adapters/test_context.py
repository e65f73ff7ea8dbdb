"""What is read from the events of a workflow."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from each_row import each_row
from github_api import FORK, REPOSITORY
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from ci_evals.adapters.github import context
from ci_evals.adapters.github.context import PULL_REQUEST_EVENTS, Base, Commit, GitHubEvent, WorkflowRun

EVENTS = Path(__file__).parents[1] / "events"
OWN = "c0ffee" + "1" * 34
"""The last commit of a branch of our own repository."""
FOREIGN = "badcafe" + "2" * 33
MAIN = "a11ce" + "3" * 35
BASE = "ba5e" + "0" * 36
MERGE = "e" * 40
"""The commit that GitHub makes of a pull request and its base, to be tested."""
THIS = WorkflowRun(19600000000, 3)


@dataclass(frozen=True)
class Case:
    """An event: its payload's file, its name, where GITHUB_REF and GITHUB_SHA point, and what that means."""

    file: str
    event: str
    ref: str
    sha: str
    head: Commit | None
    base: Base
    number: int | None = None
    foreign: bool = False
    without_secrets: bool = False
    of_pull_request: bool = False
    compared: bool = False
    run: WorkflowRun = THIS
    actor: str = "octocat"

    def read(self) -> GitHubEvent:
        environ = environment(GITHUB_EVENT_NAME=self.event, GITHUB_REF=self.ref, GITHUB_SHA=self.sha)
        environ["GITHUB_ACTOR"] = self.actor
        return context.read(environ, json.loads((EVENTS / f"{self.file}.json").read_text()))


def environment(**more: str) -> dict[str, str]:
    run = {"GITHUB_RUN_ID": str(THIS.id), "GITHUB_RUN_ATTEMPT": str(THIS.attempt)}
    urls = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_API_URL": "https://api.github.com"}
    return {"GITHUB_REPOSITORY": REPOSITORY} | run | urls | more


PULL = {"of_pull_request": True, "compared": True}
REFUNDS, FORK_HEAD = Commit(OWN, REPOSITORY, "refunds"), Commit(FOREIGN, FORK, "main")
ON_MAIN, UPDATE = Commit(MAIN, REPOSITORY, "main"), Commit(OWN, REPOSITORY, "dependabot/pip/httpx-1.0")
ON_BASE, MERGED = Base("main", BASE), Base("main", BASE, merge=MERGE)
IN_QUEUE = f"gh-readonly-queue/main/pr-7-{BASE}"
BOT = {"actor": "dependabot[bot]", "without_secrets": True}
CASES = [
    Case("pull_request", "pull_request", "refs/pull/7/merge", MERGE, REFUNDS, MERGED, 7, **PULL),
    Case("pull_request", "pull_request_review", "refs/pull/7/merge", MERGE, REFUNDS, MERGED, 7, **PULL),
    # What is tested after a merge is the base branch: there is no merge to be undone.
    Case("pull_request", "pull_request", "refs/heads/main", MAIN, REFUNDS, ON_BASE, 7, **PULL),
    Case("pull_request_fork", "pull_request", "refs/pull/8/merge", MERGE, FORK_HEAD, MERGED, 8,
         foreign=True, without_secrets=True, **PULL),
    Case("pull_request_target", "pull_request_target", "refs/heads/main", MAIN, FORK_HEAD, ON_BASE, 8,
         foreign=True, **PULL),
    Case("pull_request_dependabot", "pull_request", "refs/pull/9/merge", MERGE, UPDATE, MERGED, 9,
         **BOT, **PULL),
    # A person who pushes to such a branch, or starts the run anew by a push, brings the secrets along.
    Case("pull_request_dependabot", "pull_request", "refs/pull/9/merge", MERGE, UPDATE, MERGED, 9, **PULL),
    Case("push", "push", "refs/heads/main", MAIN, ON_MAIN, ON_BASE),
    Case("push_new_branch", "push", "refs/heads/topic/#1", OWN, Commit(OWN, REPOSITORY, "topic/#1"),
         Base("topic/#1")),
    Case("push_new_branch", "push", "refs/tags/v1", OWN, Commit(OWN, REPOSITORY), Base()),
    Case("merge_group", "merge_group", f"refs/heads/{IN_QUEUE}", MAIN, Commit(MAIN, REPOSITORY, IN_QUEUE),
         ON_BASE, compared=True),
    Case("workflow_run", "workflow_run", "refs/heads/main", MAIN, REFUNDS, Base(),
         of_pull_request=True, run=WorkflowRun(19500000001, 2)),
    Case("workflow_run_fork", "workflow_run", "refs/heads/main", MAIN, FORK_HEAD, Base(),
         foreign=True, of_pull_request=True, run=WorkflowRun(19500000002, 1)),
    Case("workflow_dispatch", "workflow_dispatch", "refs/heads/refunds", OWN, REFUNDS, Base("refunds", OWN)),
    Case("schedule", "schedule", "refs/heads/main", MAIN, ON_MAIN, Base("main", MAIN)),
    # Head and base of such a pull request are asked for when they are needed.
    Case("issue_comment_pull", "issue_comment", "refs/heads/main", MAIN, None, Base(), 7, **PULL),
    Case("issue_comment_issue", "issue_comment", "refs/heads/main", MAIN, None, Base()),
]  # fmt: skip


@each_row("case", CASES, ids=lambda case: f"{case.event}-{case.file}-{case.ref}")
def test_event_gives_the_tested_commit_and_its_base(case):
    known = case.read()
    assert known == GitHubEvent(
        event=case.event,
        repository=REPOSITORY,
        sha=case.sha,
        ref=case.ref,
        number=case.number,
        head=case.head,
        base=case.base,
        run=case.run,
        own_run=THIS,
        of_dependabot=case.actor == "dependabot[bot]",
        default_branch="main",
    )
    assert (known.foreign, known.without_secrets) == (case.foreign, case.without_secrets)
    assert (known.of_pull_request, known.compared_with_base()) == (case.of_pull_request, case.compared)
    assert known.run_url == f"https://github.com/{REPOSITORY}/actions/runs/{case.run.id}"


def test_deleted_fork_counts_as_foreign_and_pull_number_is_read_from_ref():
    """GitHub then tells null in place of the repository."""
    payload = json.loads((EVENTS / "pull_request_fork.json").read_text())
    payload["pull_request"]["head"]["repo"] = None
    known = context.read(environment(GITHUB_EVENT_NAME="pull_request"), payload)
    assert (known.head, known.foreign) == (Commit(FOREIGN, None, "main"), True)
    assert known.without_secrets
    ref = {"GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": MERGE}
    known = context.read(environment(GITHUB_EVENT_NAME="pull_request", **ref), {})
    assert (known.number, known.head, known.base) == (7, None, Base(merge=MERGE))


def test_urls_of_an_enterprise_server_are_taken_from_the_environment():
    urls = {"GITHUB_SERVER_URL": "https://git.example/", "GITHUB_API_URL": "https://git.example/api/v3/"}
    known = context.read(environment(**urls), {})
    assert known.api_url == "https://git.example/api/v3"
    assert known.run_url == f"https://git.example/{REPOSITORY}/actions/runs/{THIS.id}"


def test_event_outside_actions_is_empty():
    known = context.read({}, None)
    assert known == GitHubEvent(base=Base())
    assert (known.run_url, known.foreign, known.without_secrets, known.of_pull_request) == (
        None,
        *[False] * 3,
    )


@each_row("value", ["", "0", "-1", "1.5", "many", "9" * 5000, "\u0661"])
def test_invalid_run_id_gives_no_run_and_invalid_attempt_the_first(value):
    assert context.read({"GITHUB_RUN_ID": value}, {}).run is None
    assert context.read({"GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": value}, {}).run == WorkflowRun(7, 1)


JSON = json_values()
NAMES = PULL_REQUEST_EVENTS | {"", "push", "workflow_run", "issue_comment", "merge_group", "schedule", "new"}
REFS = ("", "refs/heads/", "refs/heads/\udcff", "refs/pull/0/merge", f"refs/pull/{'9' * 5000}/merge")


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A payload of which one part is something else."""
    payload = json.loads(draw(st.sampled_from(sorted(EVENTS.glob("*.json")))).read_text())
    part = payload
    while True:
        key = draw(st.sampled_from(sorted(part)))
        if not (isinstance(part[key], dict) and part[key]) or draw(st.booleans()):
            part[key] = draw(JSON)
            return payload
        part = part[key]


@given(payload=JSON | damaged(), event=st.sampled_from(sorted(NAMES)), ref=st.sampled_from(REFS))
def test_event_context_from_arbitrary_payload_has_correct_types(payload, event, ref):
    known = context.read(environment(GITHUB_EVENT_NAME=event, GITHUB_REF=ref), payload)
    assert known.number is None or (type(known.number) is int and known.number > 0)
    texts = [known.base.branch, known.base.sha]
    texts += [known.head.sha, known.head.repository, known.head.branch] if known.head else []
    for text in texts:
        assert text is None or (text and text.encode("utf-8"))
    assert isinstance(known.without_secrets, bool)


def test_all_example_events_are_tested():
    assert {case.file for case in CASES} == {path.stem for path in EVENTS.glob("*.json")}
