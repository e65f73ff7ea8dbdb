"""The one comment on a pull request: found, written, left alone."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import github_api
import pytest
from each_row import each_row
from github_api import BOT, REPOSITORY, TOKEN, Answer, GitHubApi
from hubs import hub_of
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.adapters.github import comments
from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.comments import Comment, Posted
from ci_evals.adapters.github.context import WorkflowRun
from ci_evals.domain.errors import GitHubError, UsageError

LACKS = "the token lacks the permission 'pull-requests: write'"
SHA = "c0ffee" + "1" * 34
PERSON = {"login": "octocat", "type": "User", "id": 583231}
OTHER_BOT = {"login": "evals-app[bot]", "type": "Bot", "id": 777}
MARKER = "<!-- ci-evals comment: default -->"
PASSED = Comment("default", "## Passed\n\nAll is well.", WorkflowRun(500, 2), SHA)
NOT_FOUND = Answer(404, {"message": "Not Found"})


async def post(api: GitHubApi, comment: Comment = PASSED, number: int = 7, *, create: bool = True) -> Posted:
    async with hub_of(api) as hub:
        return await comments.post(hub, REPOSITORY, number, comment, create=create)


async def post_error(api: GitHubApi, comment: Comment = PASSED) -> str:
    """The error of posting, after its constant beginning."""
    with pytest.raises(GitHubError) as caught:
        await post(api, comment)
    beginning, _, cause = str(caught.value).partition(" was not written: ")
    assert beginning == "the comment on #7"
    return cause


def bodies(api: GitHubApi, number: int = 7) -> list[str]:
    return [comment["body"] for comment in api.comments.get(number, [])]


def write_methods(api: GitHubApi) -> list[str]:
    """The methods of the requests that changed something, which a question to GraphQL does not."""
    return [request.method for request in api.requests_to("^(?!GET|POST /graphql)")]


def comment_of(run: WorkflowRun | None, text: str = "Hello", key: str = "default") -> Comment:
    return Comment(key, text, run)


def updated(comment: github_api.Json) -> Posted:
    return Posted(comments.CommentStatus.UPDATED, comment["html_url"])


async def test_comment_is_created_by_the_first_run_and_only_updated_without_create(api):
    """If nothing was posted before, nothing is taken back."""
    assert await post(api, create=False) == Posted(comments.CommentStatus.ABSENT, None)
    assert bodies(api) == []
    posted = await post(api)
    (comment,) = api.comments[7]
    assert comment["body"] == PASSED.body
    assert posted == Posted(comments.CommentStatus.CREATED, comment["html_url"])
    assert write_methods(api) == ["POST"]
    assert (await post(api, comment_of(WorkflowRun(501), "Refused"), create=False)).status == "updated"
    assert "Refused" in bodies(api)[0]


FIRST_ATTEMPT = "<!-- ci-evals run: 500 attempt: 1 -->"


@each_row(("run", "commit", "second"), [
    (WorkflowRun(500, 2), SHA, f"<!-- ci-evals run: 500 attempt: 2 commit: {SHA} -->"),
    (WorkflowRun(500), None, FIRST_ATTEMPT),
    (None, SHA, f"<!-- ci-evals commit: {SHA} -->"),
    (None, None, None),
    (None, "--> @everybody", None),
    (WorkflowRun(500), "main", FIRST_ATTEMPT),
    (WorkflowRun(500), f"{SHA}\n", FIRST_ATTEMPT),
])  # fmt: skip
def test_comment_begins_with_hidden_lines_of_key_run_and_commit_and_is_utf_8(run, commit, second):
    """The first finds it again, the second tells a slow run that it is late. No foreign text is hidden.

    Nor is half of a surrogate pair sent, which is in what models say, and is not in UTF-8.
    """
    head = "\n".join(line for line in (MARKER, second) if line)
    assert Comment("default", "Text \ud83d", run, commit).body == f"{head}\n\nText \ufffd"


def test_invalid_comment_key_is_rejected():
    """It stands in a hidden line and in the names of artifacts."""
    for key in ("default", "a", "A.b_c-9", "x" * 64, "--"):
        assert comments.check_key(key) == key
        assert Comment(key, "").marker == f"<!-- ci-evals comment: {key} -->"
    for key in ("", "a b", "a/b", "ä", "a\n", "-->", "x" * 65, "a:b", "١"):
        with pytest.raises(UsageError) as caught:
            comments.check_key(key)
        assert str(caught.value) == (
            f"`comment_key=` is {key!r}: "
            "only the letters a to z, digits, '.', '_' and '-' are allowed, 64 of them at most"
        )
        with pytest.raises(UsageError):
            _ = Comment(key, "").body


@pytest.mark.parametrize("before", [0, 29, 30, 99, 100, 250])
async def test_existing_comment_is_updated_on_any_page_of_comments(api, before):
    for index in range(before):
        api.add_comment(7, f"Comment {index}", PERSON)
    old = api.add_comment(7, comment_of(WorkflowRun(499)).body)
    api.add_comment(7, "The last word", PERSON)
    assert await post(api) == updated(old)
    assert (old["body"], write_methods(api)) == (PASSED.body, ["PATCH"])
    assert len(api.comments[7]) == before + 2


@pytest.mark.parametrize("kept", [
    PASSED.body,
    PASSED.body.replace("\n", "\r\n"),
    f"{PASSED.body}\n\n ",
    PASSED.body.replace("Passed", "Passed  "),
    PASSED.body.replace("\n\n", "\n \t\n"),
])  # fmt: skip
async def test_unchanged_comment_is_not_written_again(api, kept):
    """But for line ends and white space, which GitHub changes: an edit would show as one."""
    old = api.add_comment(7, kept)
    assert await post(api) == Posted(comments.CommentStatus.UNCHANGED, old["html_url"])
    assert (write_methods(api), old["body"]) == ([], kept)


async def test_each_key_has_its_own_comment(api):
    keys = ("a", "ab", "A", "a.b", "a-b")
    for text, status in (("Hello", "created"), ("New", "updated")):
        for key in keys:
            assert (await post(api, comment_of(None, text, key=key))).status == status
    assert bodies(api) == [comment_of(None, "New", key=key).body for key in keys]


@pytest.mark.parametrize(("body", "author"), [
    pytest.param(PASSED.body, PERSON, id="copied by a person"),
    pytest.param(f"> {MARKER}\n\nNo.", BOT, id="quoted"),
    pytest.param(f"Look:\n{MARKER}\n", BOT, id="on another line"),
    pytest.param(f" {MARKER}\n", BOT, id="indented"),
    pytest.param(f"{MARKER} and more", BOT, id="not alone on its line"),
    pytest.param("<!-- ci-evals comment: default2 -->\n", BOT, id="another key"),
    pytest.param(PASSED.body, None, id="of a deleted account"),
    pytest.param("", BOT, id="empty"),
    pytest.param(None, BOT, id="null"),
])  # fmt: skip
async def test_comments_of_others_are_never_changed(api, body, author):
    """A token that may write could change everybody's comments."""
    theirs = api.add_comment(7, "", PERSON)
    theirs |= {"body": body, "user": author}
    assert (await post(api)).status == "created"
    assert api.comments[7][0] is theirs
    assert (theirs["body"], bodies(api)[1:]) == (body, [PASSED.body])


@pytest.mark.parametrize("graphql", [True, False])
async def test_forged_comment_by_other_bot_is_ignored_and_left_unchanged(api, graphql):
    """It may carry our marker, and forge that a newer run wrote it."""
    api.graphql = graphql
    forged = api.add_comment(7, comment_of(WorkflowRun(999999999999)).body, OTHER_BOT)
    before = forged["body"]
    assert (await post(api)).status == "created"
    assert (await post(api, comment_of(WorkflowRun(501)))).status == "updated"
    assert bodies(api) == [before, comment_of(WorkflowRun(501)).body]


async def test_app_finds_its_comment_by_graphql_name_or_by_posting_and_keeping_the_older(api):
    """An app cannot ask for its user; the job's own bot has another name."""
    of_the_job = api.add_comment(7, comment_of(None).body, BOT)
    own = api.add_comment(7, comment_of(None).body, OTHER_BOT)
    api.bot = OTHER_BOT
    assert (await post(api), api.requests_to("/user")) == (updated(own), [])
    assert of_the_job["body"] == comment_of(None).body
    # Without a known name two comments become one, the older.
    api.graphql = False
    api.comments[7].clear()
    own = api.add_comment(7, comment_of(None).body, OTHER_BOT)
    assert (await post(api), api.comments[7]) == (updated(own), [own])


@each_row(("login", "app", "known"), [
    ("github-actions[bot]", True, "github-actions[bot]"),
    ("evals-app", True, "evals-app[bot]"),
    ("octocat", False, "octocat"),
    ("", True, None),
    (None, True, None),
    (7, True, None),
])  # fmt: skip
async def test_viewer_is_the_login_in_rest_api_form_or_unknown(api, login, app, known):
    api.token = TOKEN if app else "ghp_personal"
    api.fail("graphql", Answer(200, {"data": {"viewer": {"login": login}}}))
    async with hub_of(api) as hub:
        assert await hub.viewer() == known
        api.fail("graphql", Answer(403), Answer(200, {"errors": []}), Answer(200, ["x"]))
        assert [await hub.viewer() for _ in range(3)] == [None] * 3


async def test_enterprise_server_graphql_url_is_derived_from_rest_api_url(api):
    async with GitHub(f"{api.url}/api/v3", TOKEN) as hub:
        await hub.viewer()
    assert [request.path for request in api.requests] == ["/api/graphql"]


async def test_personal_token_finds_its_comment_by_user_id(api):
    """Names change; another person's copy and a bot's are not ours."""
    api.token, api.user = "ghp_personal", PERSON
    others = [api.add_comment(7, PASSED.body, BOT), api.add_comment(7, PASSED.body, PERSON | {"id": 1})]
    others.append(api.add_comment(7, "", BOT) | {"user": None})
    assert (await post(api)).status == "created"
    own = api.comments[7][-1]
    own["user"] = PERSON | {"login": "renamed"}
    assert await post(api, comment_of(None)) == updated(own)
    assert [one["body"] for one in others[:2]] == [PASSED.body] * 2
    assert len(api.requests_to("/user")) == 2


async def test_token_without_user_is_treated_as_app_token(api):
    """Such as an app's on an older server, which looks like a person's."""
    api.token = "0123456789abcdef" * 2
    old = api.add_comment(7, comment_of(None).body)
    api.add_comment(7, comment_of(None).body, PERSON)
    assert await post(api) == updated(old)
    for user in ({}, [], {"id": "x"}):
        old["body"] = comment_of(None).body
        api.fail("/user", Answer(200, user))
        assert await post(api) == updated(old), user


@pytest.mark.parametrize(("status", "message"), [(401, "Bad credentials"), (403, "API rate limit exceeded")])
async def test_no_comment_is_written_if_token_owner_lookup_fails(api, status, message):
    """Our comment would not be found, and posted twice."""
    api.token = "ghp_personal"
    api.fail("/user", *[Answer(status, {"message": message})] * 3)
    assert (await post_error(api)).startswith("GitHub answered 40")
    assert write_methods(api) == []


@pytest.mark.parametrize(("theirs", "ours", "late"), [
    (WorkflowRun(501), WorkflowRun(500, 2), True),
    (WorkflowRun(500, 3), WorkflowRun(500, 2), True),
    (WorkflowRun(500, 10), WorkflowRun(500, 9), True),
    (WorkflowRun(1000), WorkflowRun(999, 5), True),
    (WorkflowRun(500, 2), WorkflowRun(500, 2), False),
    (WorkflowRun(500, 1), WorkflowRun(500, 2), False),
    (WorkflowRun(499, 9), WorkflowRun(500, 1), False),
    (None, WorkflowRun(500), False),
    (WorkflowRun(501), None, False),
    (None, None, False),
])  # fmt: skip
async def test_comment_of_a_newer_run_is_not_overwritten(api, theirs, ours, late):
    """By id and attempt, as numbers. What is not known is never newer."""
    kept = api.add_comment(7, comment_of(theirs, "Theirs").body.replace("\n", "\r\n"))
    status = comments.CommentStatus.STALE if late else comments.CommentStatus.UPDATED
    assert await post(api, comment_of(ours, "Ours")) == Posted(status, kept["html_url"])
    assert kept["body"].endswith("Theirs" if late else "Ours")
    assert write_methods(api) == ([] if late else ["PATCH"])


@pytest.mark.parametrize(("theirs", "exists", "believed"), [
    (WorkflowRun(501), {"workflow_id": 1, "run_attempt": 1}, True),
    (WorkflowRun(501, 2), {"workflow_id": 1, "run_attempt": 1}, False),
    (WorkflowRun(501), {"workflow_id": 2, "run_attempt": 1}, False),
    (WorkflowRun(501), None, False),
    (WorkflowRun(500, 2), None, False),
])  # fmt: skip
async def test_comment_counts_as_newer_only_if_its_run_is_of_same_workflow(api, theirs, exists, believed):
    """Other workflows write as the same bot, and may quote a line that a stranger wrote."""
    api.runs[500] = {"id": 500, "workflow_id": 1, "run_attempt": 1}
    if exists:
        api.runs[501] = {"id": 501} | exists
    api.add_comment(7, comment_of(theirs, "Theirs").body)
    posted = await post(api, comment_of(WorkflowRun(500), "Ours"))
    assert posted.status == ("stale" if believed else "updated")


@pytest.mark.parametrize("second", [
    "", "<!-- ci-evals run: 999 -->", "<!-- ci-evals run: x attempt: 1 -->", "> quoted",
    f"<!-- ci-evals run: {'9' * 5000} attempt: 1 -->", "<!-- ci-evals run: 999 attempt: 1 --> more",
    "text\n<!-- ci-evals run: 999 attempt: 1 -->", f"<!-- ci-evals run: {10**17} attempt: 1 -->",
])  # fmt: skip
async def test_malformed_or_far_future_run_line_does_not_block_an_update(api, second):
    """Only the second line counts, as we write it; if runs cannot be looked up, its number must be near."""
    if str(10**17) in second:
        api.permissions.remove("actions: read")
    api.add_comment(7, f"{MARKER}\n{second}\n\nOld")
    assert (await post(api)).status == "updated"


async def test_oldest_duplicate_comment_is_kept_and_others_are_deleted(api):
    """A crash may leave several. If one cannot be deleted, the next run sees to it."""
    oldest = api.add_comment(7, comment_of(WorkflowRun(400)).body)
    api.add_comment(7, "Why two?", PERSON)
    api.add_comment(7, comment_of(WorkflowRun(401)).body)
    api.add_comment(7, comment_of(WorkflowRun(402)).body)
    api.fail("DELETE", Answer(403, {"message": "Resource not accessible by integration"}))
    assert (await post(api), len(api.comments[7])) == (updated(oldest), 3)
    assert ((await post(api)).status, bodies(api)) == ("unchanged", [PASSED.body, "Why two?"])


@pytest.mark.parametrize(("other", "status", "left"), [
    (WorkflowRun(499), "updated", PASSED),
    (WorkflowRun(501), "stale", comment_of(WorkflowRun(501))),
    (None, "updated", PASSED),
])  # fmt: skip
async def test_newer_duplicate_comment_is_removed_and_older_one_kept(api, other, status, left):
    """Another job created one between our look and our post: theirs is older, and says what is newer."""
    api.before.append(("POST", lambda: api.add_comment(7, comment_of(other).body)))
    posted = await post(api)
    assert bodies(api) == [left.body]
    assert posted == Posted(comments.CommentStatus(status), api.comments[7][0]["html_url"])


@pytest.mark.parametrize("other", [WorkflowRun(499), WorkflowRun(501)])
async def test_older_comment_of_two_concurrent_writers_is_kept(api, other):
    """A newer run moves its text to ours itself, so nothing of it is deleted before."""
    theirs = comment_of(other).body
    late_comer = ("GET .*comments", lambda: api.add_comment(7, theirs))
    api.before.append(("POST", lambda: api.before.append(late_comer)))
    posted = await post(api)
    newer = other.id > 500
    assert bodies(api) == ([PASSED.body, theirs] if newer else [PASSED.body])
    assert posted.status == ("stale" if newer else "created")


async def test_comment_deleted_during_update_is_recreated_until_retries_run_out(api):
    """Between our look and our change it is; whoever deletes it at once does not want it."""
    api.add_comment(7, comment_of(None).body)
    api.before.append(("PATCH", api.comments[7].clear))
    assert ((await post(api)).status, bodies(api)) == ("created", [PASSED.body])
    api.comments[7].clear()
    tidied = ("GET .*comments", api.comments[7].clear)
    api.before.append(("POST", lambda: api.before.append(tidied)))
    assert (await post(api)).status == "created"
    assert (bodies(api), write_methods(api)) == ([], ["PATCH", "POST", "POST"])
    api.add_comment(7, comment_of(None).body)
    api.fail("PATCH", *[NOT_FOUND] * 99)
    before = len(api.requests)
    assert await post_error(api) == "somebody deletes it as often as it is written"
    assert len(api.requests) - before < 20


@pytest.mark.parametrize("step", ["GET .*comments", "PATCH"])
async def test_error_after_comment_creation_does_not_fail_posting(api, step):
    """A failure at that moment leaves two comments at most."""

    def other() -> None:
        api.add_comment(7, comment_of(WorkflowRun(499)).body)
        api.fail(step, *[Answer(502)] * 9)

    api.before.append(("POST", other))
    assert ((await post(api)).status, bodies(api)[-1]) == ("created", PASSED.body)


@dataclass
class Page:
    """A pull request's comments, as GitHub keeps them, and a hand that says who is next to be served."""

    comments: dict[int, github_api.Json] = field(default_factory=dict)
    waiting: list[asyncio.Event] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def turn(self) -> None:
        self.waiting.append(asyncio.Event())
        await self.waiting[-1].wait()

    def add(self, body: str) -> github_api.Json:
        comment = {"id": next(self.ids), "body": body, "user": BOT, "html_url": None}
        return self.comments.setdefault(comment["id"], comment)


class Hub:
    """The client's methods on such a page. Each request is served at once when it is its turn."""

    of_app = True

    def __init__(self, page: Page) -> None:
        self.page = page

    async def pages(self, path: str, *, needs: str) -> AsyncIterator[github_api.Json]:
        await self.page.turn()
        for comment in [dict(one) for one in self.page.comments.values()]:
            yield comment

    async def post(self, path: str, body: github_api.Json, *, needs: str) -> github_api.Json:
        await self.page.turn()
        return dict(self.page.add(body["body"]))

    async def viewer(self) -> str:
        return BOT["login"]

    async def get(self, path: str, *, needs: str) -> github_api.Json:
        raise GitHubError("GitHub answered 403", 403)

    async def patch(self, path: str, body: github_api.Json, *, needs: str) -> None:
        await self.page.turn()
        self._known(path)["body"] = body["body"]

    async def delete(self, path: str, *, needs: str) -> None:
        await self.page.turn()
        del self.page.comments[self._known(path)["id"]]

    def _known(self, path: str) -> github_api.Json:
        number = int(path.rpartition("/")[2])
        if number not in self.page.comments:
            raise GitHubError("GitHub answered 404", 404)
        return self.page.comments[number]


@settings(max_examples=examples(400))
@given(
    order=st.lists(st.integers(0, 11), min_size=1, max_size=40),
    runs=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    left=st.integers(0, 2),
)
async def test_any_order_of_requests_leaves_exactly_one_comment(order, runs, left):
    """Whoever is served when, and whatever was left by earlier runs. Of two that create, the newer wins."""
    page = Page()
    persons = page.add(PASSED.body) | {"user": PERSON}
    page.comments[persons["id"]] = dict(persons)
    for _ in range(left):
        page.add(comment_of(WorkflowRun(99)).body)
    written = [comment_of(WorkflowRun(100 + run), f"{index}") for index, run in enumerate(runs)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(comments.post(Hub(page), REPOSITORY, 7, one)) for one in written]
        for luck in itertools.cycle(order):
            await asyncio.sleep(0)
            if page.waiting:
                page.waiting.pop(luck % len(page.waiting)).set()
            elif all(task.done() for task in tasks):
                break
    assert page.comments.pop(persons["id"]) == persons
    (comment,) = page.comments.values()
    assert comment["body"] in [one.body for one in written]
    if not left and len(runs) == 2:
        assert f"run: {100 + max(runs)} " in comment["body"]


NO_COMMENT = "GitHub answered with something other than a comment"
SERVER_ERROR = "GitHub answered 502 (Server Error): the server has a problem; try again later"
CHECK = "; check the number, and the job's 'permissions:'"


async def test_error_names_missing_permission_locked_conversation_or_overlong_comment(api):
    """With where to give it; to a locked conversation no permission would help."""
    api.locked.add(7)
    assert await post_error(api) == (
        "GitHub answered 403 (Unable to create comment because issue is "
        "locked); unlock the conversation to have it there"
    )
    api.locked.clear()
    api.permissions.discard("pull-requests: write")
    with pytest.raises(GitHubError) as caught:
        await post(api)
    assert caught.value.status == 403
    assert await post_error(api) == (
        "GitHub answered 403 (Resource not accessible by integration): "
        f"{LACKS}; add it to the job's 'permissions:' (a fork's pull request cannot have it)"
    )
    api.permissions.add("pull-requests: write")
    assert await post_error(api, comment_of(None, "x" * 70_000)) == (
        "GitHub answered 422 (Validation Failed; Body is too long (maximum is 65536 characters))"
    )


@each_row(("answer", "expected"), [
    (NOT_FOUND, f"GitHub answered 404 (Not Found): not found, or {LACKS}{CHECK}"),
    (Answer(410, {"message": "This issue was deleted"}), "GitHub answered 410 (This issue was deleted)"),
    (Answer(502, {"message": "Server Error"}), SERVER_ERROR),
    (Answer(201, {"id": None}), NO_COMMENT),
    (Answer(201, []), NO_COMMENT),
])  # fmt: skip
async def test_refused_comment_is_reported_with_cause_and_remedy(api, answer, expected):
    api.fail("POST", answer)
    assert await post_error(api) == expected


async def test_malformed_comment_in_the_list_is_skipped(api):
    old = api.add_comment(7, comment_of(None).body)
    for odd in (None, 7, {}, {"id": "7"}, {"id": 7, "body": 7, "user": 7, "html_url": 7}):
        old["body"] = comment_of(None).body
        api.fail("GET .*comments", Answer(200, [odd, old]))
        assert (await post(api)).status == "updated", odd
