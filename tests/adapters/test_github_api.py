"""The client of GitHub's API, held to a server that behaves as it does."""

import io
from datetime import UTC, datetime

import github_api
import pytest
import world
from github_api import HANG_UP, REPOSITORY, TOKEN, Answer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_examples import CLOCKS, examples

from ci_evals.adapters.github.api import MAX_PAGES, PATIENCE_SECONDS, GitHub
from ci_evals.domain.errors import GitHubError

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
COMMENTS = f"/repos/{REPOSITORY}/issues/7/comments"
NEEDS = "pull-requests: write"
SERVER_ERROR = Answer(502, {"message": "Server Error"})


@pytest.fixture
def hub(api, sleeps) -> GitHub:
    return GitHub(api.url, TOKEN, sleep=sleeps, now=lambda: NOW)


def limited(status: int = 403, message: str = "Forbidden", **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"message": message}, sent)


async def list_items(hub: GitHub, path: str = COMMENTS, **options: str) -> list[github_api.Json]:
    async with hub:
        return [item async for item in hub.pages(path, needs=NEEDS, **options)]


async def send(hub: GitHub, method: str, path: str = COMMENTS) -> github_api.Json:
    """The result of one request."""
    body = {"POST": ({"body": "Hello"},), "PATCH": ({"body": "Bye"},)}.get(method, ())
    async with hub:
        return await getattr(hub, method.lower())(path, *body, needs=NEEDS)


async def request_error(hub: GitHub, method: str = "GET") -> GitHubError:
    """The error that a request is refused with."""
    with pytest.raises(GitHubError) as caught:
        await send(hub, method)
    return caught.value


async def test_request_has_trimmed_token_user_agent_and_api_version(api, sleeps):
    """GitHub refuses requests without a user agent, and changes its answers between versions.

    Secrets are often pasted with a line end.
    """
    assert await list_items(GitHub(api.url, f" {TOKEN}\n", sleep=sleeps)) == []
    (request,) = api.requests
    names = ("authorization", "accept", "user-agent", "x-github-api-version")
    expected = [f"Bearer {TOKEN}", "application/vnd.github+json", "ci-evals", "2022-11-28"]
    assert [request.headers[name] for name in names] == expected


def test_token_of_an_app_is_recognized_by_its_prefix():
    """Nobody's user is behind it."""
    for token, app in ((TOKEN, True), (f"{TOKEN}\n", True), ("ghp_abc", False)):
        assert GitHub("https://api.github.com", token).of_app is app


@pytest.mark.parametrize(("comments", "pages"), [(0, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
async def test_all_pages_of_a_list_are_read(api, hub, comments, pages):
    """A hundred a page, where GitHub gives thirty to who does not ask."""
    texts = [f"Comment {number}" for number in range(comments)]
    for text in texts:
        api.add_comment(7, text)
    assert [one["body"] for one in await list_items(hub)] == texts
    read = [(request.query.get("page", "1"), request.query["per_page"]) for request in api.requests]
    assert read == [(str(1 + number), "100") for number in range(pages)]


async def test_list_within_an_object_is_read_with_its_query_on_every_page(api, hub):
    run = api.add_run("a" * 40)
    for _ in range(130):
        api.add_artifact(run, b"{}", name="wanted")
    api.add_artifact(run, b"{}", name="other")
    path = f"/repos/{REPOSITORY}/actions/artifacts"
    assert len(await list_items(hub, path, within="artifacts", name="wanted")) == 130
    assert [request.query["name"] for request in api.requests] == ["wanted", "wanted"]


@pytest.mark.parametrize(("link", "host"), [
    ("https://evil.example/comments?page=2", "evil.example"),
    ("http://127.0.0.1:1/comments?page=2", "127.0.0.1:1"),
    ("http://[::1", "an address that cannot be read"),
    ("//evil.example/", "evil.example"),
])  # fmt: skip
async def test_next_page_on_another_host_is_rejected(api, hub, link, host):
    """The token would go there."""
    api.fail("GET", Answer(200, [{"id": 1}], {"Link": f'<{link}>; rel="next"'}))
    with pytest.raises(GitHubError) as caught:
        await list_items(hub)
    assert str(caught.value) == f"GitHub names a next page of {COMMENTS} on another host, {host}"
    assert len(api.requests) == 1


async def test_list_ends_at_the_page_limit_and_an_oversized_answer_is_an_error(api, hub):
    link = {"Link": f'<{api.url}{COMMENTS}>; rel="next"'}
    api.fail("GET", *[Answer(200, [{"id": 1}], link)] * (MAX_PAGES + 5))
    assert len(await list_items(hub)) == MAX_PAGES
    api.faults.clear()
    api.fail("GET", Answer(200, raw=b" " * 16_000_001))
    assert str(await request_error(hub)).endswith(" answered with more than 16 MB")


async def test_response_that_is_not_json_or_not_a_list_is_an_error_that_says_which(api, hub):
    host = api.url.removeprefix("http://")
    for raw in (b"<html>", b"", b'{"a":', b"\xff\xfe", b"[" * 200_000):
        api.fail("GET", Answer(200, raw=raw))
        error = str(await request_error(hub))
        assert error == f"GitHub at {host} answered with something other than JSON", raw[:9]
    for body in ({"message": "Hm"}, "text", 7, None):
        api.fail("GET", Answer(200, body))
        with pytest.raises(GitHubError, match=f"GitHub answered {COMMENTS} with something other than a list"):
            await list_items(hub)


LACKS = "the token lacks the permission 'pull-requests: write'"


@pytest.mark.parametrize(("status", "body", "expected"), [
    (401, {"message": "Bad credentials"}, " (Bad credentials): the token is not valid there"),
    (403, {"message": "Resource not accessible by integration"},
     f" (Resource not accessible by integration): {LACKS}"),
    (403, {"message": "Resource not accessible by personal access token"},
     f" (Resource not accessible by personal access token): {LACKS}"),
    (403, {"message": "Must have admin rights to Repository."},
     f" (Must have admin rights to Repository): {LACKS}"),
    (403, {}, f": {LACKS}"),
    (403, {"message": "Repository was archived so is read-only."},
     " (Repository was archived so is read-only)"),
    (403, {"message": "Resource protected by organization SAML enforcement."},
     " (Resource protected by organization SAML enforcement)"),
    (404, {"message": "Not Found"}, f" (Not Found): not found, or {LACKS}"),
    (410, {"message": "Artifact has expired"}, " (Artifact has expired)"),
    (422, {"message": "Validation Failed", "errors": [{"message": "Body is too long"}, "x", {}]},
     " (Validation Failed; Body is too long)"),
    (422, {"message": "Validation Failed", "errors": "none"}, " (Validation Failed)"),
    (304, None, ""),
    (400, {"message": 7}, ""),
    (400, {"message": "a\n::error::b\x1b[31m \u202e" + "c" * 400}, f" (a ::error::b {'c' * 286}…)"),
])  # fmt: skip
async def test_refusal_is_reported_with_message_and_possible_cause_and_not_retried(
    api, hub, sleeps, status, body, expected
):
    api.fail("POST", Answer(status, body))
    error = await request_error(hub, "POST")
    assert (str(error), error.status) == (f"GitHub answered {status}{expected}", status)
    assert (len(api.requests), sleeps) == (1, [])


@pytest.mark.parametrize(("answer", "wait"), [
    (limited(403, "You have exceeded a secondary rate limit.", retry_after="7"), 7),
    (limited(403, "Forbidden", retry_after="7"), 7),
    (limited(429, "Too many requests", retry_after="Sat, 21 Nov 2026 09:30:12 GMT"), 12),
    (limited(429, "Too many requests", retry_after="soon"), 60),
    (limited(403, "You have exceeded a secondary rate limit. Please wait a few minutes."), 60),
    (limited(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW.timestamp()) + 40)), 40),
    (limited(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW.timestamp()) - 40)), 1),
    (limited(429, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 400), 60),
    (limited(429, x_ratelimit_remaining="0"), 60),
])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_request_is_repeated_after_short_rate_limit(api, hub, sleeps, answer, wait, method):
    """After the wait that GitHub names, or a minute. It has not acted on it: a comment may be sent again."""
    api.fail(method, answer)
    await send(hub, method)
    assert (sleeps, len(api.requests_to(method))) == ([wait], 2)
    assert len(api.comments.get(7, [])) == (method == "POST")


@pytest.mark.parametrize(("answer", "expected"), [
    (limited(403, "API rate limit exceeded", x_ratelimit_remaining="0",
             x_ratelimit_reset=str(int(NOW.timestamp()) + 3600)),
     "GitHub answered 403 (API rate limit exceeded): the rate limit is used up until 10:30:00 UTC"),
    (limited(429, "Slow down", retry_after="61"),
     "GitHub answered 429 (Slow down): the rate limit is used up until 09:31:01 UTC"),
    (limited(429, "Slow down", retry_after="9" * 400),
     "GitHub answered 429 (Slow down): the rate limit is used up"),
])  # fmt: skip
async def test_long_rate_limit_is_reported_without_waiting(api, hub, sleeps, answer, expected):
    """A report is not worth an hour of a job: it says when there is room again."""
    api.fail("GET", answer)
    error = await request_error(hub)
    assert (str(error), error.status) == (expected, answer.status)
    assert sleeps == []


async def test_total_of_waits_for_rate_limits_and_failed_connections_is_limited(api, hub, sleeps):
    """Requests that are each limited for half a minute cost a minute, not half of one each."""
    api.fail("GET", *[limited(429, retry_after="25")] * 9)
    assert ((await request_error(hub)).status, sleeps) == (429, [25, 25])
    assert str(await request_error(hub)).endswith("the rate limit is used up until 09:30:25 UTC")
    assert sum(sleeps) <= PATIENCE_SECONDS
    api.faults.clear()
    sleeps.clear()
    api.fail("GET", *[HANG_UP] * 300)
    other = GitHub(api.url, TOKEN, sleep=sleeps, now=lambda: NOW)
    for _ in range(40):
        await request_error(other)
    assert sum(sleeps) <= PATIENCE_SECONDS


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("trouble", [SERVER_ERROR, HANG_UP, Answer(500, raw=b"<html>")])
async def test_idempotent_request_is_retried_twice_after_server_error(api, hub, sleeps, method, trouble):
    comment = api.add_comment(7, "Hello")
    path = COMMENTS if method == "GET" else f"/repos/{REPOSITORY}/issues/comments/{comment['id']}"
    api.fail(method, trouble, trouble)
    await send(hub, method, path)
    left = {"GET": [comment], "PATCH": [comment | {"body": "Bye"}], "DELETE": []}
    assert api.comments[7] == left[method]
    first, second = sleeps
    assert (0 <= first <= 2, 0 <= second <= 4, len(api.requests)) == (True, True, 3)
    api.fail("GET", limited(503, retry_after="4"))
    await list_items(hub)
    assert sleeps[2:] == [4]


async def test_post_is_not_repeated_after_a_server_error(api, hub, sleeps):
    """GitHub may have written it before it failed."""
    problem = "GitHub answered 502 (Server Error): the server has a problem; try again later"
    broken = f"GitHub at {api.url.removeprefix('http://')} cannot be reached (RemoteProtocolError)"
    for trouble, expected in ((SERVER_ERROR, problem), (HANG_UP, broken)):
        api.requests.clear()
        api.fail("POST", trouble)
        assert str(await request_error(hub, "POST")) == expected
        assert (len(api.requests), sleeps) == (1, [])


async def test_lasting_server_error_or_unreachable_host_is_reported_after_three_tries(api, hub, sleeps):
    for method in ("GET", "PATCH", "DELETE"):
        api.requests.clear()
        api.fail(method, *[SERVER_ERROR] * 3)
        assert ((await request_error(hub, method)).status, len(api.requests)) == (502, 3)
    sleeps.clear()
    error = await request_error(GitHub("http://127.0.0.1:9", TOKEN, sleep=sleeps))
    assert str(error) == "GitHub at 127.0.0.1:9 cannot be reached (ConnectError)"
    assert (error.status, len(sleeps)) == (None, 2)


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
async def test_redirect_of_a_renamed_repository_is_followed_with_the_same_method(api, hub, method):
    comment = api.add_comment(7, "Hello")
    there = COMMENTS if method != "PATCH" else f"/repos/{REPOSITORY}/issues/comments/{comment['id']}"
    api.fail("old/name", Answer(301, {"message": "Moved"}, {"Location": f"{api.url}{there}?per_page=50"}))
    await send(hub, method, "/repos/old/name")
    assert [str(request) for request in api.requests] == [f"{method} /repos/old/name", f"{method} {there}"]
    assert api.requests[-1].query == {"per_page": "50"}
    texts = {"GET": ["Hello"], "POST": ["Hello", "Hello"], "PATCH": ["Bye"]}
    assert [one["body"] for one in api.comments[7]] == texts[method]


@pytest.mark.parametrize(("location", "expected"), [
    ("https://evil.example/repos", "GitHub redirects to another host, evil.example"),
    ("http://[::1", "GitHub redirects to an address that cannot be read"),
    ("http://evil:99999/", "GitHub redirects to an address that cannot be read"),
    (COMMENTS, "GitHub at {host} redirects without end"),
])  # fmt: skip
async def test_redirect_to_another_host_or_without_end_is_rejected(api, hub, location, expected):
    """The token stays where it belongs."""
    api.fail("GET", *[Answer(302, None, {"Location": location})] * 9)
    assert str(await request_error(hub)) == expected.format(host=api.url.removeprefix("http://"))


async def test_unsendable_token_address_or_proxy_is_rejected_without_showing_secrets(api, monkeypatch):
    """The address comes from the environment, which may be anybody's outside of Actions."""
    for token in ("", " \n"):
        assert str(await request_error(GitHub(api.url, token))) == "GITHUB_TOKEN is not set"
    unsendable = "the GitHub token holds characters that no HTTP header can carry; was it pasted wrongly?"
    for token in ("ghs_a\nX-Evil: 1", "ghs_\xe9"):
        assert str(await request_error(GitHub(api.url, token))) == unsendable
    assert api.requests == []
    for url in ("", "api.github.com", "ftp://github.example", "http://[::1", "https://a:99999"):
        assert str(await request_error(GitHub(url, TOKEN))) == f"GITHUB_API_URL is not an address: {url!r}"
    # A proxy's is an error of GitHub's too: it ends no run.
    monkeypatch.setenv("HTTPS_PROXY", "socks5://user:s3cret@proxy.example")
    monkeypatch.setenv("NO_PROXY", "")
    error = await request_error(GitHub("https://api.github.example", TOKEN))
    assert "a proxy for api.github.example of the kind 'socks5'" in str(error)
    assert "s3cret" not in str(error)


@settings(max_examples=examples(60), suppress_health_check=[*CLOCKS, HealthCheck.function_scoped_fixture])
@given(answers=st.lists(world.odd_responses(), max_size=3), method=st.sampled_from(["GET", "POST", "ZIP"]))
async def test_arbitrary_github_response_is_read_or_raises_github_error(sleeps, answers, method):
    closing = [part for answer in answers for part in (answer, world.HANG_UP)]
    async with world.raw_server(*closing) as (url, _), GitHub(url, TOKEN, sleep=sleeps) as hub:
        message = "fine"
        try:
            match method:
                case "GET":
                    assert [item async for item in hub.pages("/x", needs=NEEDS)] == []
                case "POST":
                    await hub.post("/x", {}, needs=NEEDS)
                case _:
                    await hub.download("/x", io.BytesIO(), needs=NEEDS, max_mb=1)
        except GitHubError as error:
            message = str(error)
        assert message.isprintable()
