"""Which pull requests a run belongs to."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import github_api
import pytest
from github_api import FORK, REPOSITORY, TOKEN, Answer, GitHubApi

from ci_evals.adapters.github import context, pulls
from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.context import Base, Commit, GitHubEvent
from ci_evals.domain.errors import GitHubError

EVENTS = Path(__file__).parents[1] / "events"
OWN = "c0ffee" + "1" * 34
FOREIGN = "badcafe" + "2" * 33
MOVED = "f" * 40
OURS = {"ref": "main", "sha": "b" * 40, "repo": {"full_name": REPOSITORY}}


@pytest.fixture
def api() -> Iterator[GitHubApi]:
    with github_api.serving() as serving:
        yield serving


async def numbers(api: GitHubApi, known: GitHubEvent, *, pushed: bool = False) -> tuple[int, ...]:
    async with GitHub(api.url, TOKEN) as hub:
        return await pulls.numbers_of(hub, known, pushed=pushed)


async def located(api: GitHubApi, known: GitHubEvent) -> GitHubEvent:
    async with GitHub(api.url, TOKEN) as hub:
        return await pulls.located(hub, known)


def event(file: str, name: str | None = None, **environ: str) -> GitHubEvent:
    """The context of one of the examples."""
    known = {"GITHUB_EVENT_NAME": name or file, "GITHUB_REPOSITORY": REPOSITORY} | environ
    return context.read(known, json.loads((EVENTS / f"{file}.json").read_text()))


def after(repository: str | None = FORK, branch: str = "topic", sha: str = FOREIGN) -> GitHubEvent:
    """After a run of that commit."""
    return GitHubEvent("workflow_run", REPOSITORY, head=Commit(sha, repository, branch))


def pushed_to(branch: str, sha: str, event: str = "push") -> GitHubEvent:
    return GitHubEvent(event, REPOSITORY, sha=sha, head=Commit(sha, REPOSITORY, branch))


# -- by the event's number


@pytest.mark.parametrize(
    ("file", "name", "number"),
    [
        ("pull_request", "pull_request", 7),
        ("pull_request_fork", "pull_request", 8),
        ("pull_request_target", "pull_request_target", 8),
        ("issue_comment_pull", "issue_comment", 7),
    ],
)
async def test_an_event_that_names_its_pull_request_is_believed(api, file, name, number):
    """GitHub is not even asked."""
    assert await numbers(api, event(file, name), pushed=True) == (number,)
    assert api.requests == []


async def test_after_another_run_a_number_is_believed_only_with_its_commit(api):
    """It may have been read from what a stranger uploaded."""
    table(api)
    assert await numbers(api, replace(after(), number=1)) == (1,)
    for wrong in (3, 4, 5, 6, 7, 9, 10):
        assert await numbers(api, replace(after(), number=wrong)) == (), wrong
    with pytest.raises(GitHubError):
        await numbers(api, replace(after(), number=99))


# -- after another run


def table(api: GitHubApi) -> None:
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


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(after(), (1, 2), id="two to different bases"),
        pytest.param(after(branch="other"), (8,), id="another branch at the same commit"),
        pytest.param(after(branch="moved"), (), id="a newer push"),
        pytest.param(after(branch="Topic"), (), id="no such branch"),
        pytest.param(after(repository="mallory/agent"), (5,), id="a branch of the same name in another fork"),
        pytest.param(after(repository="eve/other"), (4,), id="another repository of the same owner"),
        pytest.param(after(REPOSITORY, sha=OWN), (7,), id="our own branch"),
        pytest.param(after(REPOSITORY, sha=FOREIGN), (), id="our branch is not the fork's"),
        pytest.param(after(repository="octo/fork"), (11,), id="a fork of our own"),
        pytest.param(after(repository=None, branch="gone"), (), id="a deleted fork"),
        pytest.param(after(repository="eve/renamed"), (), id="a renamed fork"),
        pytest.param(GitHubEvent("workflow_run", REPOSITORY), (), id="nothing known"),
        pytest.param(after(branch=""), (), id="no branch"),
    ],
)
async def test_a_finished_run_belongs_to_the_pull_requests_of_its_very_commit(api, known, expected):
    """Open, into this repository, from the same repository, at the same commit: a name alone is nobody's."""
    table(api)
    assert await numbers(api, known, pushed=True) == expected


async def test_a_run_of_a_fork_is_asked_for_by_owner_and_branch(api):
    """With the event as GitHub sends it: it names no pull request of a fork."""
    api.add_pull(8, FOREIGN, repository=FORK, branch="main")
    assert await numbers(api, event("workflow_run_fork", "workflow_run")) == (8,)
    (request,) = api.requests
    assert str(request) == f"GET /repos/{REPOSITORY}/pulls"
    assert request.query == {"head": "eve:main", "state": "open", "per_page": "100"}


async def test_the_payloads_own_list_is_not_believed(api):
    """It holds pull requests into other repositories too, and those that have moved on."""
    api.add_pull(7, MOVED, branch="refunds")
    assert await numbers(api, event("workflow_run")) == ()


@pytest.mark.parametrize("branch", ["fix/#12", "a?b", "a b", "a&state=closed", "100%", "a+b", "ünïcode/…"])
async def test_any_name_of_a_branch_is_asked_for_as_it_is(api, branch):
    """None ends the query, and none adds to it."""
    api.add_pull(1, FOREIGN, repository=FORK, branch=branch)
    assert await numbers(api, after(branch=branch)) == (1,)
    assert api.requests[0].query["head"] == f"eve:{branch}"
    assert api.requests[0].query["state"] == "open"


async def test_every_page_is_read(api):
    """Somebody may propose one branch many times, to other bases."""
    for number in range(1, 131):
        api.add_pull(number, FOREIGN, repository=FORK)
    assert len(await numbers(api, after())) == 130


# -- after a push


@pytest.mark.parametrize("name", ["push", "workflow_dispatch", "schedule"])
async def test_a_pushed_commit_belongs_to_the_pull_requests_that_end_with_it(api, name):
    """Only those of this repository, only open ones, and only where that commit is still the last."""
    api.add_pull(1, OWN)
    api.add_pull(2, OWN, base=OURS | {"ref": "release"})
    api.add_pull(3, OWN, state="closed")
    api.add_pull(4, OWN, repository=FORK)
    api.add_pull(5, OWN, base=OURS | {"repo": {"full_name": "octo/other"}})
    api.passed_by[OWN] = [api.add_pull(6, MOVED)]
    assert await numbers(api, pushed_to("topic", OWN, name), pushed=True) == (1, 2)
    (request,) = api.requests
    assert str(request) == f"GET /repos/{REPOSITORY}/commits/{OWN}/pulls"


@pytest.mark.parametrize("name", ["push", "workflow_dispatch", "schedule"])
async def test_a_pushed_commit_is_looked_for_only_if_that_is_wanted(api, name):
    """A run of the branch by itself is no business of a pull request's."""
    api.add_pull(1, OWN)
    assert await numbers(api, pushed_to("topic", OWN, name), pushed=False) == ()
    assert api.requests == []


@pytest.mark.parametrize(
    "known",
    [
        pushed_to("gh-readonly-queue/main/pr-7-abc", OWN, "merge_group"),
        pushed_to("main", OWN, "release"),
        event("issue_comment_issue", "issue_comment"),
        GitHubEvent("push", REPOSITORY),
        GitHubEvent(),
    ],
    ids=["merge_group", "release", "issue", "no commit", "nothing"],
)
async def test_other_events_belong_to_none(api, known):
    """A merge queue tests several pull requests at once."""
    api.add_pull(1, OWN)
    assert await numbers(api, known, pushed=True) == ()
    assert api.requests == []


# -- head and base of a number


async def test_a_number_is_given_its_commits(api):
    """A comment that starts a run comes with no more than the number."""
    api.add_pull(7, FOREIGN, repository=FORK)
    known = event("issue_comment_pull", "issue_comment", GITHUB_REF="refs/heads/main", GITHUB_SHA="a" * 40)
    assert await located(api, known) == replace(
        known, head=Commit(FOREIGN, FORK, "topic"), base=Base("main", "b" * 40)
    )


async def test_a_number_that_the_user_gave_is_located_too(api):
    """The pull request is then what is tested, and not the branch that the event is of."""
    api.add_pull(7, OWN)
    known = replace(pushed_to("main", MOVED, "workflow_dispatch"), number=7, base=Base("main", MOVED))
    assert await located(api, known) == replace(
        known, head=Commit(OWN, REPOSITORY, "topic"), base=Base("main", "b" * 40)
    )


async def test_what_a_finished_run_tested_stays_what_it_was(api):
    """Whoever named the number: another head would make a fork's results ours."""
    api.add_pull(7, OWN)
    known = replace(after(), number=7)
    assert await located(api, known) == replace(known, base=Base("main", "b" * 40))


@pytest.mark.parametrize(
    "known",
    [
        event("pull_request", GITHUB_REF="refs/pull/7/merge", GITHUB_SHA="e" * 40),
        event("push", GITHUB_REF="refs/heads/main", GITHUB_SHA="a" * 40),
        event("workflow_run"),
        event("merge_group"),
        GitHubEvent(),
    ],
    ids=lambda known: known.event,
)
async def test_what_the_event_tells_stays(api, known):
    """Nothing is asked."""
    assert await located(api, known) is known
    assert api.requests == []


@pytest.mark.parametrize(
    "answer", [{}, [], None, "x", {"head": {"sha": 7}}, {"head": {"sha": OWN}, "base": []}]
)
async def test_unreadable_pull_request_is_reported(api, answer):
    """It would be compared with nothing, without a word."""
    api.fail("/pulls/7", Answer(200, answer))
    with pytest.raises(GitHubError, match="GitHub does not list the commits of pull request 7"):
        await located(api, replace(GitHubEvent("issue_comment", REPOSITORY), number=7))


@pytest.mark.parametrize(
    "ask",
    [
        lambda api: located(api, replace(GitHubEvent("issue_comment", REPOSITORY), number=7)),
        lambda api: numbers(api, after()),
        lambda api: numbers(api, pushed_to("topic", OWN), pushed=True),
    ],
)
async def test_a_missing_permission_is_named(api, ask):
    """Reading is all that these ask for."""
    api.permissions.clear()
    with pytest.raises(GitHubError, match="the token lacks the permission 'pull-requests: read'"):
        await ask(api)


HEAD = {"sha": FOREIGN, "ref": "topic", "repo": {"full_name": FORK}}


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        {},
        {"number": 1},
        {"number": 1, "state": "open", "head": [], "base": 7},
        {"number": 1, "state": "open", "head": HEAD, "base": {"repo": None}},
        {"number": "1", "state": "open", "head": HEAD, "base": OURS},
    ],
)
async def test_what_is_no_pull_request_is_passed_over(api, odd):
    """And the others are still found."""
    right = api.add_pull(2, FOREIGN, repository=FORK)
    api.fail("/pulls", Answer(200, [odd, right]))
    assert await numbers(api, after()) == (2,)
