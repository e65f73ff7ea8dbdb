"""Which pull requests a run belongs to, and the files that changed in a comparison of commits."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from each_row import each_row
from github_api import FORK, HANG_UP, REPOSITORY, Answer, GitHubApi
from hubs import hub_of

from ci_evals.adapters.github import context, pulls
from ci_evals.adapters.github.changes import changed_files
from ci_evals.adapters.github.context import Base, Commit, GitHubEvent
from ci_evals.domain.errors import GitHubError

EVENTS = Path(__file__).parents[1] / "events"
OWN = "c0ffee" + "1" * 34
FOREIGN = "badcafe" + "2" * 33
MOVED = "f" * 40
OURS = {"ref": "main", "sha": "b" * 40, "repo": {"full_name": REPOSITORY}}


async def pull_numbers(api: GitHubApi, known: GitHubEvent, *, pushed: bool = False) -> tuple[int, ...]:
    async with hub_of(api) as hub:
        return await pulls.numbers_of(hub, known, pushed=pushed)


async def locate(api: GitHubApi, known: GitHubEvent) -> GitHubEvent:
    async with hub_of(api) as hub:
        return await pulls.located(hub, known)


def event(file: str, name: str | None = None, **environ: str) -> GitHubEvent:
    """The context of one of the examples."""
    known = {"GITHUB_EVENT_NAME": name or file, "GITHUB_REPOSITORY": REPOSITORY} | environ
    return context.read(known, json.loads((EVENTS / f"{file}.json").read_text()))


def after_run_of(repository: str | None = FORK, branch: str = "topic", sha: str = FOREIGN) -> GitHubEvent:
    """After a run of that commit."""
    return GitHubEvent("workflow_run", REPOSITORY, head=Commit(sha, repository, branch))


def pushed_to(branch: str, sha: str, event: str = "push") -> GitHubEvent:
    return GitHubEvent(event, REPOSITORY, sha=sha, head=Commit(sha, REPOSITORY, branch))


async def test_pull_request_named_by_the_event_is_used_without_an_api_request(api):
    for file, name, number in (
        ("pull_request", "pull_request", 7),
        ("pull_request_fork", "pull_request", 8),
        ("pull_request_target", "pull_request_target", 8),
        ("issue_comment_pull", "issue_comment", 7),
    ):
        assert await pull_numbers(api, event(file, name), pushed=True) == (number,)
    assert api.requests == []


async def test_pull_number_after_workflow_run_is_accepted_only_for_same_commit(api):
    """It may have been read from what a stranger uploaded."""
    add_similar_pulls(api)
    assert await pull_numbers(api, replace(after_run_of(), number=1)) == (1,)
    for wrong in (3, 4, 5, 6, 7, 9, 10):
        assert await pull_numbers(api, replace(after_run_of(), number=wrong)) == (), wrong
    with pytest.raises(GitHubError):
        await pull_numbers(api, replace(after_run_of(), number=99))


def add_similar_pulls(api: GitHubApi) -> None:
    """Pull requests that are easily mistaken for one another."""
    api.add_pull(1, FOREIGN, repository=FORK)
    api.add_pull(2, FOREIGN, repository=FORK, base=OURS | {"ref": "release"})
    api.add_pull(3, FOREIGN, repository=FORK, state="closed")
    api.add_pull(4, FOREIGN, repository="eve/other")
    api.add_pull(5, FOREIGN, repository="mallory/agent")
    api.add_pull(6, MOVED, repository=FORK, branch="moved")
    api.add_pull(7, OWN)
    api.add_pull(8, FOREIGN, repository=FORK, branch="other")
    api.add_pull(9, FOREIGN, repository=FORK, base=OURS | {"repo": {"full_name": "octo/other"}})
    api.add_pull(10, FOREIGN, branch="gone")["head"]["repo"] = None
    api.add_pull(11, FOREIGN, repository="octo/fork", branch="topic")


@pytest.mark.parametrize(("known", "expected"), [
    pytest.param(after_run_of(), (1, 2), id="two to different bases"),
    pytest.param(after_run_of(branch="other"), (8,), id="another branch at the same commit"),
    pytest.param(after_run_of(branch="moved"), (), id="a newer push"),
    pytest.param(after_run_of(branch="Topic"), (), id="no such branch"),
    pytest.param(after_run_of("mallory/agent"), (5,), id="a branch of the same name in another fork"),
    pytest.param(after_run_of(repository="eve/other"), (4,), id="another repository of the same owner"),
    pytest.param(after_run_of(REPOSITORY, sha=OWN), (7,), id="our own branch"),
    pytest.param(after_run_of(REPOSITORY, sha=FOREIGN), (), id="our branch is not the fork's"),
    pytest.param(after_run_of(repository="octo/fork"), (11,), id="a fork of our own"),
    pytest.param(after_run_of(repository=None, branch="gone"), (), id="a deleted fork"),
    pytest.param(after_run_of(repository="eve/renamed"), (), id="a renamed fork"),
    pytest.param(GitHubEvent("workflow_run", REPOSITORY), (), id="nothing known"),
    pytest.param(after_run_of(branch=""), (), id="no branch"),
])  # fmt: skip
async def test_finished_run_belongs_to_open_pull_requests_of_its_commit(api, known, expected):
    add_similar_pulls(api)
    assert await pull_numbers(api, known, pushed=True) == expected


async def test_pull_request_of_a_fork_is_searched_by_owner_and_branch(api):
    """With the event as GitHub sends it: it names no pull request of a fork."""
    api.add_pull(8, FOREIGN, repository=FORK, branch="main")
    assert await pull_numbers(api, event("workflow_run_fork", "workflow_run")) == (8,)
    (request,) = api.requests
    assert str(request) == f"GET /repos/{REPOSITORY}/pulls"
    assert request.query == {"head": "eve:main", "state": "open", "per_page": "100"}
    # Others that the event lists are not trusted: some are into other repositories, or have moved on.
    api.add_pull(7, MOVED, branch="refunds")
    assert await pull_numbers(api, event("workflow_run")) == ()


async def test_special_characters_of_a_branch_are_escaped_in_the_query(api):
    for branch in ("fix/#12", "a?b", "a b", "a&state=closed", "100%", "a+b", "ünïcode/…"):
        api.pulls.clear()
        api.add_pull(1, FOREIGN, repository=FORK, branch=branch)
        assert await pull_numbers(api, after_run_of(branch=branch)) == (1,)
        query = api.requests[-1].query
        assert (query["head"], query["state"]) == (f"eve:{branch}", "open")


async def test_all_pages_of_pull_requests_are_read(api):
    for number in range(1, 131):
        api.add_pull(number, FOREIGN, repository=FORK)
    assert len(await pull_numbers(api, after_run_of())) == 130


async def test_pushed_commit_matches_open_pull_requests_with_that_head(api):
    """Only those of this repository, and only if asked for: a run of a branch belongs to no pull request."""
    api.add_pull(1, OWN)
    api.add_pull(2, OWN, base=OURS | {"ref": "release"})
    api.add_pull(3, OWN, state="closed")
    api.add_pull(4, OWN, repository=FORK)
    api.add_pull(5, OWN, base=OURS | {"repo": {"full_name": "octo/other"}})
    api.passed_by[OWN] = [api.add_pull(6, MOVED)]
    for name in ("push", "workflow_dispatch", "schedule"):
        api.requests.clear()
        assert await pull_numbers(api, pushed_to("topic", OWN, name), pushed=False) == ()
        assert api.requests == []
        assert await pull_numbers(api, pushed_to("topic", OWN, name), pushed=True) == (1, 2)
        assert [str(request) for request in api.requests] == [f"GET /repos/{REPOSITORY}/commits/{OWN}/pulls"]


async def test_merge_queue_release_and_issue_events_have_no_pull_request(api):
    """A merge queue tests several pull requests at once."""
    api.add_pull(1, OWN)
    for known in (
        pushed_to("gh-readonly-queue/main/pr-7-abc", OWN, "merge_group"),
        pushed_to("main", OWN, "release"),
        event("issue_comment_issue", "issue_comment"),
        *(GitHubEvent("push", REPOSITORY), GitHubEvent()),
    ):
        assert await pull_numbers(api, known, pushed=True) == (), known.event
    assert api.requests == []


async def test_head_and_base_are_fetched_for_pull_request_number(api):
    """A comment has no more than the number; if a user gives one, it is tested, not the event's branch."""
    base = Base("main", "b" * 40)
    api.add_pull(7, FOREIGN, repository=FORK)
    known = event("issue_comment_pull", "issue_comment", GITHUB_REF="refs/heads/main", GITHUB_SHA="a" * 40)
    assert await locate(api, known) == replace(known, head=Commit(FOREIGN, FORK, "topic"), base=base)
    api.pulls.clear()
    api.add_pull(7, OWN)
    known = replace(pushed_to("main", MOVED, "workflow_dispatch"), number=7, base=Base("main", MOVED))
    assert await locate(api, known) == replace(known, head=Commit(OWN, REPOSITORY, "topic"), base=base)
    # After another run only the base is completed: another head would make a fork's results ours.
    known = replace(after_run_of(), number=7)
    assert await locate(api, known) == replace(known, base=base)


async def test_commits_known_from_event_need_no_api_request(api):
    for known in (
        event("pull_request", GITHUB_REF="refs/pull/7/merge", GITHUB_SHA="e" * 40),
        event("push", GITHUB_REF="refs/heads/main", GITHUB_SHA="a" * 40),
        *(event("workflow_run"), event("merge_group"), GitHubEvent()),
    ):
        assert await locate(api, known) is known, known.event
    assert api.requests == []


async def test_pull_request_without_readable_commits_is_an_error_with_its_number(api):
    """It would be compared with nothing, without a word."""
    for answer in ({}, [], None, "x", {"head": {"sha": 7}}, {"head": {"sha": OWN}, "base": []}):
        api.fail("/pulls/7", Answer(200, answer))
        with pytest.raises(GitHubError, match="GitHub does not list the commits of pull request 7"):
            await locate(api, replace(GitHubEvent("issue_comment", REPOSITORY), number=7))


async def test_missing_permission_to_read_pull_requests_is_named(api):
    api.permissions.clear()
    for ask in (
        lambda: locate(api, replace(GitHubEvent("issue_comment", REPOSITORY), number=7)),
        lambda: pull_numbers(api, after_run_of()),
        lambda: pull_numbers(api, pushed_to("topic", OWN), pushed=True),
    ):
        with pytest.raises(GitHubError, match="the token lacks the permission 'pull-requests: read'"):
            await ask()


HEAD = {"sha": FOREIGN, "ref": "topic", "repo": {"full_name": FORK}}


OPEN = {"number": 1, "state": "open", "head": HEAD}
MALFORMED = [{"number": 1}, OPEN | {"head": [], "base": 7}, OPEN | {"base": {"repo": None}}]


async def test_malformed_pull_request_in_the_list_is_skipped(api):
    right = api.add_pull(2, FOREIGN, repository=FORK)
    for odd in (None, 7, {}, *MALFORMED, OPEN | {"number": "1", "base": OURS}):
        api.fail("/pulls", Answer(200, [odd, right]))
        assert await pull_numbers(api, after_run_of()) == (2,), odd


async def compare(api, base="origin/main"):
    async with hub_of(api) as hub:
        return await changed_files(hub, REPOSITORY, base, "d" * 40)


async def test_changed_files_include_old_paths_of_renamed_ones(api):
    renamed = {"filename": "new.md", "previous_filename": "old.md"}
    api.changes["main", "d" * 40] = [{"filename": "src/a.py"}, renamed]
    assert await compare(api) == {"src/a.py", "new.md", "old.md"}
    api.changes["topic/1", "d" * 40] = []
    assert await compare(api, "topic/1") == set()


REFUSED = (401, 403, 404, 409, 422, 500, 503)


@each_row(("answer", "why"), [
    *((Answer(status, {"message": "No"}), f"GitHub answered {status}") for status in REFUSED),
    (Answer(200, {"files": [{"filename": str(n)} for n in range(300)]}), "300 changed files"),
    (Answer(200, {"files": [{}]}), "a changed file without its name"),
    (Answer(200, []), "GitHub lists no files"),
    (Answer(200, raw=b"<html>"), "JSON"),
    (HANG_UP, "cannot be reached"),
])  # fmt: skip
async def test_incomplete_or_refused_comparison_is_an_error_with_the_reason(api, answer, why):
    api.faults.clear()
    api.fail("/compare/", *[answer] * 9)
    with pytest.raises(GitHubError, match=why):
        await compare(api)
