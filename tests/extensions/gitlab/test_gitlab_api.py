"""The client of GitLab's API, held to a server that behaves as it does."""

import socket

import gitlab_api
import pytest
from each_row import each_row
from gitlab_api import PROJECT, TOKEN
from werkzeug import Response

from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline
from ci_evals.extensions.gitlab import baseline
from ci_evals.extensions.gitlab.api import GitLab, GitLabError
from ci_evals.extensions.gitlab.context import read

NOTES = f"/projects/{PROJECT}/merge_requests/7/notes"
TROUBLE = gitlab_api.error_response(502, "Bad gateway")


class Slept(list):
    """A `sleep` that only remembers."""

    async def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def gitlab():
    with gitlab_api.serving() as api:
        yield api


@pytest.fixture
def slept():
    return Slept()


async def ask(hub, method):
    calls = {
        "GET": lambda: hub.get("/user"), "POST": lambda: hub.post(NOTES, {"body": "Hello"}),
        "PUT": lambda: hub.put(f"{NOTES}/1000", {"body": "Bye"}),
        "DELETE": lambda: hub.delete(f"{NOTES}/1000"),
    }  # fmt: skip
    async with hub:
        return await calls[method]()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_idempotent_request_is_retried_after_a_server_error(gitlab, slept, method):
    gitlab.add_note("Hello")
    gitlab.faults += [(method, TROUBLE)] * 2
    await ask(GitLab(gitlab.url, TOKEN, sleep=slept), method)
    assert (len(gitlab.requests), len(slept)) == (3, 2)


@each_row("method", ["GET", "PUT", "DELETE"])
@each_row("status", [500, 502, 503, 504])
async def test_persistent_server_error_is_reported_after_three_tries(slept, method, status):
    with gitlab_api.serving() as gitlab:
        gitlab.faults += [(method, gitlab_api.error_response(status, "Sorry"))] * 9
        message = rf"GitLab answered {status} \(Sorry\): the server has a problem"
        with pytest.raises(GitLabError, match=message):
            await ask(GitLab(gitlab.url, TOKEN, sleep=slept), method)
        assert len(gitlab.requests) == 3


async def test_note_is_not_resent_after_errors_except_for_a_while_after_a_rate_limit(gitlab, slept):
    # GitLab may have written it before it failed.
    gitlab.faults += [("POST", TROUBLE)] * 9
    with pytest.raises(GitLabError, match="GitLab answered 502"):
        await ask(GitLab(gitlab.url, TOKEN, sleep=slept), "POST")
    assert (len(gitlab.requests), slept) == (1, [])
    with pytest.raises(GitLabError, match=r"GitLab at 127.0.0.1:9 cannot be reached \(ConnectError\)"):
        await ask(GitLab("http://127.0.0.1:9", TOKEN, sleep=slept), "GET")
    for each in (gitlab.faults, gitlab.requests, slept):
        each.clear()
    # A note that was refused for a rate limit was not written.
    gitlab.faults += [("POST", gitlab_api.error_response(429, "Retry later"))] * 99
    with pytest.raises(GitLabError, match=r"GitLab answered 429 \(Retry later\)"):
        await ask(GitLab(gitlab.url, TOKEN, sleep=slept), "POST")
    assert 1 < len(gitlab.requests) < 10
    assert sum(slept) <= 60


@pytest.mark.parametrize(("answer", "why"), [
    (gitlab_api.error_response(401, "401 Unauthorized"), "the token is not valid there: see "),
    (gitlab_api.error_response(403, "403 Forbidden"), "or the project is archived"),
    (gitlab_api.error_response(404, "404 Project Not Found"), "the token may not see it"),
    (gitlab_api.error_response(409, "Conflict"), "GitLab answered 409 (Conflict)"),
    (gitlab_api.error_response(422, "ref is invalid"), "GitLab answered 422 (ref is invalid)"),
    (gitlab_api.error_response(429, "Retry later"), "GitLab answered 429 (Retry later)"),
    (gitlab_api.error_response(500, "Sorry"), "the server has a problem; try again later"),
    (gitlab_api.error_response(403, "x" * 9_999), "…"),
    (gitlab_api.json_response({"no": "list"}), "something other than a list"),
    (Response("<html>Sign in</html>", 200), "something other than JSON"),
])  # fmt: skip
async def test_refused_baseline_request_gives_reason_instead_of_error(gitlab, slept, answer, why):
    gitlab.faults += [("pipelines", answer)] * 99
    async with GitLab(gitlab.url, TOKEN, sleep=slept) as hub:
        result = await baseline.find(hub, read(gitlab.environ()), "results/_results.json")
    assert isinstance(result, NoBaseline)
    assert why in result.reason


@pytest.mark.parametrize(("method", "tries"), [("GET", 3), ("POST", 1)])
async def test_unresponsive_server_times_out_and_only_reads_are_retried(slept, method, tries):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(GitLabError) as caught:
            await ask(GitLab(f"http://{host}/api/v4", TOKEN, timeout=0.05, sleep=slept), method)
    message = str(caught.value).replace("ConnectTimeout", "ReadTimeout")  # on a busy machine
    assert (message, len(slept)) == (f"GitLab at {host} cannot be reached (ReadTimeout)", tries - 1)


@pytest.mark.parametrize(("max_bytes", "runs"), [(10_000, 4), (250, 2), (200, 2), (150, 1), (1, 1)])
async def test_earlier_runs_are_read_within_a_total_size(gitlab, max_bytes, runs):
    """The baseline itself is read in any case: its own size has a limit already."""
    data = b'{"run": {"status": "completed"}}'.ljust(100)
    for number in range(1, 5):
        gitlab.add_pipeline(number, data)
    job = read(gitlab.environ())
    async with GitLab(gitlab.url, TOKEN) as hub:
        result = await baseline.find(hub, job, "results/_results.json", earlier=9, max_bytes=max_bytes)
    assert isinstance(result, BaselineArtifact)
    assert 1 + len(result.earlier) == runs
    assert len([asked for asked in gitlab.requests if "/artifacts/" in asked]) <= runs + 1
