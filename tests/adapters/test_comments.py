"""The one comment on a pull request: found, written, left alone."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import github_api
import pytest
from each_row import each_row
from github_api import BOT, REPOSITORY, TOKEN, Answer, GitHubApi
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.adapters.github import comments
from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.comments import Comment, Posted
from ci_evals.adapters.github.context import WorkflowRun
from ci_evals.domain.errors import GitHubError, UsageError

SHA = "c0ffee" + "1" * 34
PERSON = {"login": "octocat", "type": "User", "id": 583231}
OTHER_BOT = {"login": "evals-app[bot]", "type": "Bot", "id": 777}
MARKER = "<!-- ci-evals comment: default -->"
SAID = Comment("default", "## Passed\n\nAll is well.", WorkflowRun(500, 2), SHA)


@pytest.fixture
def api() -> Iterator[GitHubApi]:
    with github_api.serving() as serving:
        yield serving


async def no_sleep(_seconds: float) -> None:
    pass


async def post(api: GitHubApi, comment: Comment = SAID, number: int = 7, *, create: bool = True) -> Posted:
    async with GitHub(api.url, api.token, sleep=no_sleep) as hub:
        return await comments.post(hub, REPOSITORY, number, comment, create=create)


async def refusal(api: GitHubApi, comment: Comment = SAID) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        await post(api, comment)
    return caught.value


def texts(api: GitHubApi, number: int = 7) -> list[str]:
    return [comment["body"] for comment in api.comments.get(number, [])]


def written(api: GitHubApi) -> list[str]:
    """The requests that changed something, which a question to GraphQL does not."""
    return [request.method for request in api.requests_to("^(?!GET|POST /graphql)")]


def of(run: WorkflowRun | None, text: str = "Hello", key: str = "default") -> Comment:
    return Comment(key, text, run)


async def test_a_correction_is_written_only_where_there_is_something_to_correct(api: GitHubApi) -> None:
    """Where nothing was said before, nothing is taken back."""
    assert await post(api, create=False) == Posted(comments.CommentStatus.ABSENT, None)
    assert texts(api) == []
    await post(api)
    assert (await post(api, of(WorkflowRun(501), "Refused"), create=False)).status == "updated"
    assert "Refused" in texts(api)[0]


# -- what is posted


def test_a_comment_begins_with_two_hidden_lines() -> None:
    """The first finds it again, the second tells a slow run that it is late."""
    assert SAID.body == (
        f"{MARKER}\n<!-- ci-evals run: 500 attempt: 2 commit: {SHA} -->\n\n## Passed\n\nAll is well."
    )


@pytest.mark.parametrize(
    ("run", "commit", "second"),
    [
        (WorkflowRun(500), None, "<!-- ci-evals run: 500 attempt: 1 -->"),
        (None, SHA, f"<!-- ci-evals commit: {SHA} -->"),
        (None, None, None),
        (None, "--> @everybody", None),
        (WorkflowRun(500), "main", "<!-- ci-evals run: 500 attempt: 1 -->"),
        (WorkflowRun(500), f"{SHA}\n", "<!-- ci-evals run: 500 attempt: 1 -->"),
    ],
)
def test_unknown_facts_are_left_out(run: WorkflowRun | None, commit: str | None, second: str | None) -> None:
    """And so is what is no commit: no foreign text is hidden."""
    head = "\n".join(line for line in (MARKER, second) if line)
    assert Comment("default", "Text", run, commit).body == f"{head}\n\nText"


def test_half_a_character_can_be_posted() -> None:
    """It is in what models say, and is not in UTF-8."""
    assert Comment("default", "a\ud83d").body.endswith("a\ufffd")


@pytest.mark.parametrize("key", ["default", "a", "A.b_c-9", "x" * 64, "--"])
def test_a_key_may_be(key: str) -> None:
    """Letters, digits, dots, underscores and dashes."""
    assert comments.check_key(key) == key
    assert Comment(key, "").marker == f"<!-- ci-evals comment: {key} -->"


@each_row("key", ["", "a b", "a/b", "ä", "a\n", "-->", "x" * 65, "a:b", "١"])
def test_a_key_may_not_be(key: str) -> None:
    """It stands in a hidden line and in the names of artifacts."""
    with pytest.raises(UsageError) as caught:
        comments.check_key(key)
    assert str(caught.value) == (
        f"`comment_key=` is {key!r}: "
        "only the letters a to z, digits, '.', '_' and '-' are allowed, 64 of them at most"
    )
    with pytest.raises(UsageError):
        _ = Comment(key, "").body


# -- found and written


async def test_the_first_run_creates_it(api: GitHubApi) -> None:
    """And tells where it is."""
    posted = await post(api)
    (comment,) = api.comments[7]
    assert comment["body"] == SAID.body
    assert posted == Posted(comments.CommentStatus.CREATED, comment["html_url"])
    assert written(api) == ["POST"]


@pytest.mark.parametrize("before", [0, 29, 30, 99, 100, 250])
async def test_the_next_run_updates_it_wherever_it_is(api: GitHubApi, before: int) -> None:
    """On whichever page: it is not posted twice on a busy pull request."""
    for place in range(before):
        api.add_comment(7, f"Comment {place}", PERSON)
    old = api.add_comment(7, of(WorkflowRun(499)).body)
    api.add_comment(7, "The last word", PERSON)
    assert await post(api) == Posted(comments.CommentStatus.UPDATED, old["html_url"])
    assert old["body"] == SAID.body
    assert written(api) == ["PATCH"]
    assert len(api.comments[7]) == before + 2


@pytest.mark.parametrize(
    "kept",
    [
        SAID.body,
        SAID.body.replace("\n", "\r\n"),
        f"{SAID.body}\n\n ",
        SAID.body.replace("Passed", "Passed  "),
        SAID.body.replace("\n\n", "\n \t\n"),
    ],
)
async def test_unchanged_comment_is_not_written_again(api: GitHubApi, kept: str) -> None:
    """But for line ends and white space, which GitHub changes: an edit would show as one."""
    old = api.add_comment(7, kept)
    assert await post(api) == Posted(comments.CommentStatus.UNCHANGED, old["html_url"])
    assert written(api) == []
    assert old["body"] == kept


async def test_every_key_has_a_comment_of_its_own(api: GitHubApi) -> None:
    """No key is the beginning of another."""
    for key in ("a", "ab", "A", "a.b", "a-b"):
        assert (await post(api, of(None, key=key))).status == "created"
    for key in ("a", "ab", "A", "a.b", "a-b"):
        assert (await post(api, of(None, "New", key=key))).status == "updated"
    assert texts(api) == [of(None, "New", key=key).body for key in ("a", "ab", "A", "a.b", "a-b")]


@pytest.mark.parametrize(
    ("body", "author"),
    [
        pytest.param(SAID.body, PERSON, id="copied by a person"),
        pytest.param(f"> {MARKER}\n\nNo.", BOT, id="quoted"),
        pytest.param(f"Look:\n{MARKER}\n", BOT, id="on another line"),
        pytest.param(f" {MARKER}\n", BOT, id="indented"),
        pytest.param(f"{MARKER} and more", BOT, id="not alone on its line"),
        pytest.param("<!-- ci-evals comment: default2 -->\n", BOT, id="another key"),
        pytest.param(SAID.body, None, id="of a deleted account"),
        pytest.param("", BOT, id="empty"),
        pytest.param(None, BOT, id="null"),
    ],
)
async def test_what_is_not_ours_is_never_touched(api: GitHubApi, body: str | None, author: Any) -> None:
    """A token that may write could change everybody's comments."""
    theirs = api.add_comment(7, "", PERSON)
    theirs |= {"body": body, "user": author}
    assert (await post(api)).status == "created"
    assert api.comments[7][0] is theirs
    assert theirs["body"] == body
    assert texts(api)[1:] == [SAID.body]


# -- who am I


@pytest.mark.parametrize("graphql", [True, False])
async def test_another_bots_comment_is_not_ours(api: GitHubApi, graphql: bool) -> None:
    """It may carry our marker, and forge that a newer run wrote it: it is neither changed nor believed."""
    api.graphql = graphql
    forged = api.add_comment(7, of(WorkflowRun(999999999999)).body, OTHER_BOT)
    before = forged["body"]
    assert (await post(api)).status == "created"
    assert (await post(api, of(WorkflowRun(501)))).status == "updated"
    assert texts(api) == [before, of(WorkflowRun(501)).body]


async def test_an_app_finds_its_own_comment_and_no_other(api: GitHubApi) -> None:
    """An app cannot ask for its user, but GraphQL tells its name; the job's own bot has another one."""
    of_the_job = api.add_comment(7, of(None).body, BOT)
    own = api.add_comment(7, of(None).body, OTHER_BOT)
    api.bot = OTHER_BOT
    assert await post(api) == Posted(comments.CommentStatus.UPDATED, own["html_url"])
    assert api.requests_to("/user") == []
    assert of_the_job["body"] == of(None).body


async def test_an_app_that_cannot_learn_its_name_is_told_by_what_it_wrote(api: GitHubApi) -> None:
    """Two comments become one, the older."""
    api.graphql, api.bot = False, OTHER_BOT
    own = api.add_comment(7, of(None).body, OTHER_BOT)
    assert await post(api) == Posted(comments.CommentStatus.UPDATED, own["html_url"])
    assert api.comments[7] == [own]


@pytest.mark.parametrize(
    ("login", "app", "known"),
    [
        ("github-actions[bot]", True, "github-actions[bot]"),
        ("evals-app", True, "evals-app[bot]"),
        ("octocat", False, "octocat"),
        ("", True, None),
        (None, True, None),
        (7, True, None),
    ],
)
async def test_the_name_behind_a_token(api: GitHubApi, login: object, app: bool, known: str | None) -> None:
    """As the REST API writes it."""
    api.token = TOKEN if app else "ghp_personal"
    api.fail("graphql", Answer(200, {"data": {"viewer": {"login": login}}}))
    async with GitHub(api.url, api.token) as hub:
        assert await hub.viewer() == known
        api.fail("graphql", Answer(403), Answer(200, {"errors": []}), Answer(200, ["x"]))
        assert [await hub.viewer() for _ in range(3)] == [None] * 3


async def test_graphql_is_beside_the_api_of_an_own_server(api: GitHubApi) -> None:
    """`/api/v3` and `/api/graphql` on GitHub Enterprise Server."""
    async with GitHub(f"{api.url}/api/v3", TOKEN) as hub:
        await hub.viewer()
    assert [request.path for request in api.requests] == ["/api/graphql"]


async def test_a_persons_token_knows_its_person(api: GitHubApi) -> None:
    """By id, since names change; another person's copy and a bot's are not ours."""
    api.token, api.user = "ghp_personal", PERSON
    others = [api.add_comment(7, SAID.body, BOT), api.add_comment(7, SAID.body, PERSON | {"id": 1})]
    others.append(api.add_comment(7, "", BOT) | {"user": None})
    assert (await post(api)).status == "created"
    own = api.comments[7][-1]
    own["user"] = PERSON | {"login": "renamed"}
    assert await post(api, of(None)) == Posted(comments.CommentStatus.UPDATED, own["html_url"])
    assert [one["body"] for one in others[:2]] == [SAID.body] * 2
    assert len(api.requests_to("/user")) == 2


@pytest.mark.parametrize("user", [None, {}, [], {"id": "x"}])
async def test_a_token_without_a_user_is_an_apps(api: GitHubApi, user: Any) -> None:
    """Such as an app's on an older server, which looks like a person's."""
    api.token = "0123456789abcdef" * 2
    if user is not None:
        api.fail("/user", Answer(200, user))
    old = api.add_comment(7, of(None).body)
    api.add_comment(7, of(None).body, PERSON)
    assert await post(api) == Posted(comments.CommentStatus.UPDATED, old["html_url"])


@pytest.mark.parametrize(("status", "message"), [(401, "Bad credentials"), (403, "API rate limit exceeded")])
async def test_a_user_that_is_not_known_for_now_is_not_guessed(
    api: GitHubApi, status: int, message: str
) -> None:
    """Our comment would not be found, and posted twice."""
    api.token = "ghp_personal"
    api.fail("/user", *[Answer(status, {"message": message})] * 3)
    assert str(await refusal(api)).startswith("the comment on #7 was not written: GitHub answered 40")
    assert written(api) == []


# -- runs that are late


@pytest.mark.parametrize(
    ("theirs", "ours", "late"),
    [
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
    ],
)
async def test_a_newer_run_is_not_written_over(
    api: GitHubApi, theirs: WorkflowRun | None, ours: WorkflowRun | None, late: bool
) -> None:
    """By id and attempt, as numbers. What is not known is never newer."""
    kept = api.add_comment(7, of(theirs, "Theirs").body.replace("\n", "\r\n"))
    posted = await post(api, of(ours, "Ours"))
    assert posted == Posted(
        comments.CommentStatus.STALE if late else comments.CommentStatus.UPDATED, kept["html_url"]
    )
    assert kept["body"].endswith("Theirs" if late else "Ours")
    assert written(api) == ([] if late else ["PATCH"])


@pytest.mark.parametrize(
    ("theirs", "exists", "believed"),
    [
        (WorkflowRun(501), {"workflow_id": 1, "run_attempt": 1}, True),
        (WorkflowRun(501, 2), {"workflow_id": 1, "run_attempt": 1}, False),
        (WorkflowRun(501), {"workflow_id": 2, "run_attempt": 1}, False),
        (WorkflowRun(501), None, False),
        (WorkflowRun(500, 2), None, False),
    ],
)
async def test_a_newer_run_is_one_of_this_workflow(
    api: GitHubApi, theirs: WorkflowRun, exists: dict[str, int] | None, believed: bool
) -> None:
    """Other workflows write as the same bot, and may quote a line that a stranger wrote."""
    api.runs[500] = {"id": 500, "workflow_id": 1, "run_attempt": 1}
    if exists:
        api.runs[501] = {"id": 501} | exists
    api.add_comment(7, of(theirs, "Theirs").body)
    assert (await post(api, of(WorkflowRun(500), "Ours"))).status == ("stale" if believed else "updated")


async def test_a_run_of_the_far_future_is_not_believed(api: GitHubApi) -> None:
    """Where the token may not look runs up, the number must be near."""
    api.permissions.remove("actions: read")
    api.add_comment(7, of(WorkflowRun(10**17), "Theirs").body)
    assert (await post(api, of(WorkflowRun(500), "Ours"))).status == "updated"


@pytest.mark.parametrize(
    "second",
    [
        "", "<!-- ci-evals run: 999 -->", "<!-- ci-evals run: x attempt: 1 -->", "> quoted",
        f"<!-- ci-evals run: {'9' * 5000} attempt: 1 -->", "<!-- ci-evals run: 999 attempt: 1 --> more",
        "text\n<!-- ci-evals run: 999 attempt: 1 -->",
    ],
)  # fmt: skip
async def test_line_without_a_run_does_not_block_an_update(api: GitHubApi, second: str) -> None:
    """Only the second line counts, and only as we write it."""
    api.add_comment(7, f"{MARKER}\n{second}\n\nOld")
    assert (await post(api)).status == "updated"


# -- others at the same time


async def test_of_several_the_oldest_stays(api: GitHubApi) -> None:
    """As a crash may leave them."""
    oldest = api.add_comment(7, of(WorkflowRun(400)).body)
    api.add_comment(7, "Why two?", PERSON)
    api.add_comment(7, of(WorkflowRun(401)).body)
    api.add_comment(7, of(WorkflowRun(402)).body)
    assert await post(api) == Posted(comments.CommentStatus.UPDATED, oldest["html_url"])
    assert texts(api) == [SAID.body, "Why two?"]


async def test_one_that_cannot_be_deleted_is_no_failure(api: GitHubApi) -> None:
    """The next run sees to it."""
    oldest = api.add_comment(7, of(WorkflowRun(400)).body)
    api.add_comment(7, of(WorkflowRun(401)).body)
    api.fail("DELETE", Answer(403, {"message": "Resource not accessible by integration"}))
    assert await post(api) == Posted(comments.CommentStatus.UPDATED, oldest["html_url"])
    assert len(api.comments[7]) == 2
    assert (await post(api)).status == "unchanged"
    assert texts(api) == [SAID.body]


@pytest.mark.parametrize(
    ("other", "what", "left"),
    [
        (WorkflowRun(499), "updated", SAID),
        (WorkflowRun(501), "stale", of(WorkflowRun(501))),
        (None, "updated", SAID),
    ],
)
async def test_later_of_two_comments_gives_way(
    api: GitHubApi, other: WorkflowRun | None, what: str, left: Comment
) -> None:
    """Another job created one between our look and our post: theirs is older, and says what is newer."""
    api.before.append(("POST", lambda: api.add_comment(7, of(other).body)))
    posted = await post(api)
    assert texts(api) == [left.body]
    assert posted == Posted(comments.CommentStatus(what), api.comments[7][0]["html_url"])


@pytest.mark.parametrize("other", [WorkflowRun(499), WorkflowRun(501)])
async def test_first_comment_of_two_writers_stays(api: GitHubApi, other: WorkflowRun) -> None:
    """A newer run moves its text to ours itself, so nothing of it is deleted before."""

    def late_comer() -> None:
        api.before.append(("GET .*comments", lambda: api.add_comment(7, of(other).body)))

    api.before.append(("POST", late_comer))
    posted = await post(api)
    newer = other.id > 500
    assert texts(api) == ([SAID.body, of(other).body] if newer else [SAID.body])
    assert posted.status == ("stale" if newer else "created")


async def test_one_that_is_deleted_meanwhile_is_created_anew(api: GitHubApi) -> None:
    """Somebody tidied up between our look and our change."""
    api.add_comment(7, of(None).body)
    api.before.append(("PATCH", api.comments[7].clear))
    assert (await post(api)).status == "created"
    assert texts(api) == [SAID.body]


async def test_one_that_is_deleted_at_once_is_left_at_that(api: GitHubApi) -> None:
    """Somebody does not want it."""

    def tidied() -> None:
        api.comments[7].clear()

    api.before.append(("POST", lambda: api.before.append(("GET .*comments", tidied))))
    assert (await post(api)).status == "created"
    assert (texts(api), written(api)) == ([], ["POST"])


async def test_one_that_is_always_deleted_has_an_end(api: GitHubApi) -> None:
    """It is not written for ever."""
    api.add_comment(7, of(None).body)
    api.fail("PATCH", *[Answer(404, {"message": "Not Found"})] * 99)
    assert str(await refusal(api)) == (
        "the comment on #7 was not written: somebody deletes it as often as it is written"
    )
    assert len(api.requests) < 20


@pytest.mark.parametrize("trouble", ["GET .*comments", "PATCH"])
async def test_created_comment_is_no_failure_whatever_follows(api: GitHubApi, trouble: str) -> None:
    """It was created; what then went wrong leaves two at the most."""

    def other() -> None:
        api.add_comment(7, of(WorkflowRun(499)).body)
        api.fail(trouble, *[Answer(502)] * 9)

    api.before.append(("POST", other))
    assert (await post(api)).status == "created"
    assert texts(api)[-1] == SAID.body


@pytest.mark.parametrize("writers", [2, 3])
async def test_writers_at_the_same_time_leave_one_comment(api: GitHubApi, writers: int) -> None:
    """Each round starts without a comment, and goes on with one; a person speaks in between."""
    luck = random.Random(writers)

    async def late(number: int, comment: Comment) -> Posted:
        await asyncio.sleep(luck.random() / 200)
        return await post(api, comment, number)

    for number in range(1, 31):
        for first in (100, 200):
            text = [of(WorkflowRun(first + place), f"Run {first + place}") for place in range(writers)]
            luck.shuffle(text)
            await asyncio.gather(*(late(number, one) for one in text))
            api.add_comment(number, f"Said after {first}", PERSON)
            ours, people = texts(api, number)[:1], texts(api, number)[1:]
            assert ours[0] in [one.body for one in text]
            assert people == [f"Said after {which}" for which in (100, 200) if which <= first]
            if first == 100 and writers == 2:
                assert ours == [of(WorkflowRun(101), "Run 101").body]


@dataclass
class Page:
    """A pull request's comments, as GitHub keeps them, and a hand that says who is next to be served."""

    comments: dict[int, github_api.Json] = field(default_factory=dict)
    waiting: list[asyncio.Event] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def turn(self) -> None:
        served = asyncio.Event()
        self.waiting.append(served)
        await served.wait()

    def add(self, body: str) -> github_api.Json:
        comment = {"id": next(self.ids), "body": body, "user": BOT, "html_url": None}
        self.comments[comment["id"]] = comment
        return comment


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
async def test_no_order_of_requests_leaves_more_or_less_than_one(
    order: list[int], runs: list[int], left: int
) -> None:
    """Whoever is served when, and whatever was left by earlier runs. Of two that create, the newer wins."""
    page = Page()
    for _ in range(left):
        page.add(of(WorkflowRun(99)).body)
    text = [of(WorkflowRun(100 + run), f"{place}") for place, run in enumerate(runs)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(comments.post(Hub(page), REPOSITORY, 7, one)) for one in text]
        for luck in itertools.cycle(order):
            await asyncio.sleep(0)
            if page.waiting:
                page.waiting.pop(luck % len(page.waiting)).set()
            elif all(task.done() for task in tasks):
                break
    (comment,) = page.comments.values()
    assert comment["body"] in [one.body for one in text]
    if not left and len(runs) == 2:
        assert f"run: {100 + max(runs)} " in comment["body"]


# -- what GitHub refuses


LACKS = "the token lacks the permission 'pull-requests: write'"


async def test_a_missing_permission_is_named(api: GitHubApi) -> None:
    """With where to give it."""
    api.permissions.discard("pull-requests: write")
    error = await refusal(api)
    assert error.status == 403
    assert str(error) == (
        "the comment on #7 was not written: GitHub answered 403 (Resource not accessible by integration): "
        f"{LACKS}; add it to the job's 'permissions:' (a fork's pull request cannot have it)"
    )


async def test_a_locked_conversation_is_no_missing_permission(api: GitHubApi) -> None:
    """No permission would help."""
    api.locked.add(7)
    assert str(await refusal(api)) == (
        "the comment on #7 was not written: GitHub answered 403 (Unable to create comment because issue is "
        "locked); unlock the conversation to have it there"
    )


CHECK = "; check the number, and the job's 'permissions:'"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            Answer(404, {"message": "Not Found"}),
            f"GitHub answered 404 (Not Found): not found, or {LACKS}{CHECK}",
        ),
        (
            Answer(410, {"message": "This issue was deleted"}),
            "GitHub answered 410 (This issue was deleted)",
        ),
        (
            Answer(502, {"message": "Server Error"}),
            "GitHub answered 502 (Server Error): the server has a problem; try again later",
        ),
        (Answer(201, {"id": None}), "GitHub answered with something other than a comment"),
        (Answer(201, []), "GitHub answered with something other than a comment"),
    ],
)
async def test_what_else_is_refused_is_said(api: GitHubApi, answer: Answer, expected: str) -> None:
    """What was not done, why, and what to do."""
    api.fail("POST", answer)
    error = await refusal(api)
    assert str(error) == f"the comment on #7 was not written: {expected}"


async def test_overlong_text_is_reported(api: GitHubApi) -> None:
    """In GitHub's own words."""
    assert str(await refusal(api, of(None, "x" * 70_000))) == (
        "the comment on #7 was not written: "
        "GitHub answered 422 (Validation Failed; Body is too long (maximum is 65536 characters))"
    )


@pytest.mark.parametrize("odd", [None, 7, {}, {"id": "7"}, {"id": 7, "body": 7, "user": 7, "html_url": 7}])
async def test_other_comments_are_skipped(api: GitHubApi, odd: Any) -> None:
    """And ours is still found."""
    old = api.add_comment(7, of(None).body)
    api.fail("GET .*comments", Answer(200, [odd, old]))
    assert (await post(api)).status == "updated"


async def test_the_tests_own_token_is_a_workflows(api: GitHubApi) -> None:
    """A guard of these tests: their usual token is a workflow's."""
    async with GitHub(api.url, TOKEN) as hub:
        assert hub.of_app
