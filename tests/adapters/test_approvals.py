"""Who approves weakened suites: people with write access, by a comment that nobody else can forge."""

from collections.abc import Iterator

import github_api
import pytest
from github_api import BOT, REPOSITORY, Answer, GitHubApi
from hubs import hub_of

from ci_evals.adapters.github import approvals
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


async def find_approvals(api: GitHubApi) -> tuple[Approval, ...]:
    async with hub_of(api) as hub:
        return await approvals.find(hub, REPOSITORY, 7, HEAD)


async def test_comment_of_a_writer_with_a_code_is_an_approval(api):
    """Recorded with the last commit. GitHub compares commands without case, and people leave blanks."""
    comment = api.add_comment(7, f" /Evals Approve Suite {CODE.upper()}\r\n", ANN)
    (approval,) = await find_approvals(api)
    assert (approval.by, approval.code, approval.commit) == ("ann", CODE, HEAD)
    assert (approval.url, approval.at.isoformat()) == (comment["html_url"], "2026-11-21T09:00:00+00:00")


async def test_comment_by_non_writer_bot_or_app_does_not_approve(api):
    people = [{"login": name, "type": "User"} for name in ("tess", "gone")]
    others = [{"login": "dependabot[bot]", "type": "Bot"}, {"login": "octo", "type": "Organization"}]
    for author in (EVE, *people, BOT, *others, None):
        api.add_comment(7, COMMAND, ANN)["user"] = author
    api.add_comment(7, COMMAND, ANN)["performed_via_github_app"] = {"slug": "assistant"}
    assert await find_approvals(api) == ()


async def test_comment_that_differs_from_approval_command_does_not_approve(api):
    """It may be quoted or explained. Without a code nobody knows which suites its author has seen."""
    for body in (
        f"> {COMMAND}", f"Please do not {COMMAND}", f"{COMMAND}\n\nfor a friend", f"`{COMMAND}`", PLAIN,
        f"{PLAIN} {CODE[:16]}", f"{PLAIN} {CODE[:-1]}", f"{PLAIN} {CODE}0", f"{PLAIN} {CODE} {CODE}",
        f"{PLAIN}s", f"{PLAIN}\u200b", "/evals approve",
    ):  # fmt: skip
        api.add_comment(7, body, ANN)
    assert await find_approvals(api) == ()


async def test_approval_expires_if_comment_is_edited_or_author_loses_write_access(api):
    mine, other = api.add_comment(7, COMMAND, ANN), api.add_comment(7, "Looks fine", EVE)
    api.add_comment(8, COMMAND, ANN)
    assert len(await find_approvals(api)) == 1
    api.rights["ann"] = "read"
    assert await find_approvals(api) == ()
    del api.rights["ann"]
    mine["body"], other["body"] = "I take it back", COMMAND
    assert await find_approvals(api) == ()


async def test_refused_request_for_approvals_is_an_error_not_a_missing_approval(api):
    api.add_comment(7, COMMAND, ANN)
    for path in ("issues/7/comments", "collaborators/ann"):
        for status in (401, 403, 500):
            api.faults.clear()
            api.fail(path, *[Answer(status, {"message": "x"})] * 9)
            with pytest.raises(GitHubError):
                await find_approvals(api)


async def test_approval_on_later_page_counts_unless_permission_is_malformed(api):
    for number in range(120):
        api.add_comment(7, f"Comment {number}", EVE)
    api.add_comment(7, COMMAND, ANN)
    assert [approval.by for approval in await find_approvals(api)] == ["ann"]
    api.fail("collaborators", Answer(200, ["write"]))
    api.add_comment(7, COMMAND, ANN)
    assert await find_approvals(api) == ()
