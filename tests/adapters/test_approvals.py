"""Who approves weakened suites: people with write access, by a comment that nobody else can forge."""

from collections.abc import Iterator

import github_api
import pytest
from github_api import BOT, REPOSITORY, TOKEN, Answer, GitHubApi

from ci_evals.adapters.github import approvals
from ci_evals.adapters.github.api import GitHub
from ci_evals.domain.errors import GitHubError
from ci_evals.domain.results.weakened import Approval

PLAIN = "/evals approve suite"
CODE = "0123456789" * 2 + "abcdef" * 3 + "01"
COMMAND = f"{PLAIN} {CODE}"
ANN = {"login": "ann", "type": "User", "id": 1}
EVE = {"login": "eve", "type": "User", "id": 2}
HEAD = "c" * 40


@pytest.fixture
def api() -> Iterator[GitHubApi]:
    with github_api.serving() as serving:
        serving.rights |= {"eve": "read", "tess": "triage", "gone": None}
        yield serving


async def found(api: GitHubApi) -> tuple[Approval, ...]:
    async with GitHub(api.url, TOKEN) as hub:
        return await approvals.find(hub, REPOSITORY, 7, HEAD)


async def test_a_writer_approves_what_a_code_names(api):
    """Recorded with the last commit. GitHub compares commands without case, and people leave blanks."""
    comment = api.add_comment(7, f" /Evals Approve Suite {CODE.upper()}\r\n", ANN)
    (approval,) = await found(api)
    assert (approval.by, approval.code, approval.commit) == ("ann", CODE, HEAD)
    assert (approval.url, approval.at.isoformat()) == (comment["html_url"], "2026-11-21T09:00:00+00:00")


@pytest.mark.parametrize(
    "author",
    [
        EVE,
        {"login": "tess", "type": "User"},
        {"login": "gone", "type": "User"},
        BOT,
        {"login": "dependabot[bot]", "type": "Bot"},
        {"login": "octo", "type": "Organization"},
    ],
)
async def test_nobody_else_approves(api, author):
    """Not people who may only read or triage, who are gone, nor bots, whatever may make them speak."""
    api.add_comment(7, COMMAND, author)
    assert await found(api) == ()


async def test_a_comment_of_a_deleted_account_approves_nothing(api):
    api.add_comment(7, COMMAND, ANN)["user"] = None
    assert await found(api) == ()


async def test_an_app_does_not_approve_in_the_name_of_a_person(api):
    api.add_comment(7, COMMAND, ANN)["performed_via_github_app"] = {"slug": "assistant"}
    assert await found(api) == ()


@pytest.mark.parametrize(
    "body",
    [
        f"> {COMMAND}",
        f"Please do not {COMMAND}",
        f"{COMMAND}\n\nfor a friend",
        f"`{COMMAND}`",
        PLAIN,
        f"{PLAIN} {CODE[:16]}",
        f"{PLAIN} {CODE[:-1]}",
        f"{PLAIN} {CODE}0",
        f"{PLAIN} {CODE} {CODE}",
        f"{PLAIN}s",
        f"{PLAIN}\u200b",
        "/evals approve",
    ],
)
async def test_a_comment_that_is_not_the_command_alone_approves_nothing(api, body):
    """As where it is quoted or explained. Without a code nobody knows which suites its author has seen."""
    api.add_comment(7, body, ANN)
    assert await found(api) == ()


async def test_a_comment_of_another_pull_request_approves_nothing_here(api):
    api.add_comment(8, COMMAND, ANN)
    assert await found(api) == ()


async def test_a_comment_counts_as_it_stands_now(api):
    """One that was edited away approves no more; what its author made of it is his."""
    mine, other = api.add_comment(7, COMMAND, ANN), api.add_comment(7, "Looks fine", EVE)
    mine["body"] = "I take it back"
    other["body"] = COMMAND
    assert await found(api) == ()


async def test_who_may_write_no_longer_approves_no_longer(api):
    api.add_comment(7, COMMAND, ANN)
    assert len(await found(api)) == 1
    api.rights["ann"] = "read"
    assert await found(api) == ()


@pytest.mark.parametrize("path", ["issues/7/comments", "collaborators/ann"])
@pytest.mark.parametrize("status", [401, 403, 500])
async def test_what_github_refuses_is_an_error_and_no_approval(api, path, status):
    api.add_comment(7, COMMAND, ANN)
    api.fail(path, *[Answer(status, {"message": "x"})] * 9)
    with pytest.raises(GitHubError):
        await found(api)


async def test_comments_on_later_pages_count(api):
    for number in range(120):
        api.add_comment(7, f"Comment {number}", EVE)
    api.add_comment(7, COMMAND, ANN)
    assert [approval.by for approval in await found(api)] == ["ann"]


async def test_an_answer_of_another_form_approves_nothing(api):
    api.fail("collaborators", Answer(200, ["write"]))
    api.add_comment(7, COMMAND, ANN)
    assert await found(api) == ()
