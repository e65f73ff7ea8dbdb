"""How the client of GitHub's API follows a download to another host."""

import io
import os
import subprocess
import sys

import github_api
import pytest
from github_api import HANG_UP, REPOSITORY, TOKEN, Answer, GitHubApi

from ci_evals.adapters.github.api import GitHub
from ci_evals.domain.errors import GitHubError

PROMISE = {"Content-Length": "20000"}
GZIPPED = {"Content-Encoding": "gzip"}


@pytest.fixture
def hub(api, sleeps) -> GitHub:
    return GitHub(api.url, TOKEN, sleep=sleeps)


class Download:
    """One artifact of a run, to be downloaded."""

    def __init__(self, api: GitHubApi, data: bytes = b"PK data") -> None:
        artifact = api.add_artifact(api.add_run("a" * 40), data, name="results")
        self.path = f"/repos/{REPOSITORY}/actions/artifacts/{artifact['id']}/zip"
        self.artifact, self.into = artifact, io.BytesIO()

    async def read(self, hub: GitHub, max_mb: int = 1) -> bytes:
        async with hub:
            await hub.download(self.path, self.into, needs="actions: read", max_mb=max_mb)
        return self.into.getvalue()

    async def refusal(self, hub: GitHub) -> GitHubError:
        with pytest.raises(GitHubError) as caught:
            await self.read(hub)
        assert "signed" not in str(caught.value)
        return caught.value


@pytest.fixture
def download(api: GitHubApi) -> Download:
    return Download(api)


async def test_download_sends_no_token_to_the_artifact_store(api, hub, download):
    """The store is another host, and refuses who shows a token."""
    assert await download.read(hub) == b"PK data"
    (request,) = api.blob_requests
    assert TOKEN not in str(request.headers)


async def test_broken_download_is_requested_again(api, hub, sleeps, download):
    """The signed address is good for a minute; what came of a broken answer is thrown away."""
    api.fail("BLOB", Answer(503, raw=b"<Error/>"), Answer(200, raw=b"half of it", headers=PROMISE))
    assert (await download.read(hub), len(api.requests_to("/zip"))) == (b"PK data", 3)
    assert [0 <= seconds <= most for seconds, most in zip(sleeps, (2, 4), strict=True)] == [True, True]


@pytest.mark.parametrize(("answer", "why"), [
    (Answer(403, raw=b"<Error/>"), "it answered 403"),
    (Answer(302, None, {"Location": "https://evil.example/signed"}), "it answered 302"),
    (HANG_UP, "it cannot be reached (RemoteProtocolError)"),
    (Answer(200, raw=b"half", headers=PROMISE), "it cannot be reached (RemoteProtocolError)"),
    (Answer(200, raw=b"half", headers=GZIPPED), "it cannot be reached (DecodingError)"),
])  # fmt: skip
async def test_download_that_keeps_failing_is_reported(api, hub, download, answer, why):
    """With the host alone. The store's status is none of the API's: no permission is missing."""
    api.fail("BLOB", *[answer] * 9)
    error = await download.refusal(hub)
    assert str(error) == f"the download from {api.blob_url.removeprefix('http://')} failed: {why}"
    assert (error.status, download.into.getvalue()) == (None, b"")


async def test_expired_forbidden_or_oversized_download_is_not_repeated(api, hub, download):
    download.artifact["expired"] = True
    error = await download.refusal(hub)
    assert (str(error), error.status) == ("GitHub answered 410 (Artifact has expired)", 410)
    assert (len(api.requests_to("/zip")), api.blob_requests) == (1, [])
    api.permissions.discard("actions: read")
    assert str(await download.refusal(hub)).endswith("the token lacks the permission 'actions: read'")
    # No megabyte beyond what was asked for is kept.
    api.permissions.add("actions: read")
    download = Download(api, b" " * 1_000_001)
    host = api.blob_url.removeprefix("http://")
    error = await download.refusal(hub)
    assert str(error) == f"the download is not read: {host} answered with more than 1 MB"
    assert len(api.blob_requests) == 1


async def test_download_without_a_redirect_or_of_a_renamed_repository_is_read(api, hub, download):
    api.fail("/zip", Answer(200, raw=b"x" * 1_000_001), Answer(200, raw=b"x" * 5))
    assert str(await download.refusal(hub)) == "the download is not read: answered with more than 1 MB"
    assert await download.read(hub) == b"x" * 5
    download.into = io.BytesIO()
    # A redirect within the API is one of the API's, which keeps the token.
    api.fail("old/name", Answer(301, {"message": "Moved"}, {"Location": download.path}))
    download.path = "/repos/old/name"
    assert await download.read(hub) == b"PK data"


WITHOUT_TLS = """
import asyncio, io, sys
from ci_evals.adapters.github.api import GitHub
from ci_evals.domain.errors import GitHubError

async def main():
    async with GitHub(sys.argv[1], "ghs_secret") as hub:
        await hub.download("/zip", io.BytesIO(), needs="actions: read", max_mb=1)

try:
    asyncio.run(main())
except GitHubError as error:
    print(error)
"""
"""A program of its own: which certificates are trusted is read from the environment once."""


@pytest.mark.slow
def test_redirect_of_a_download_without_tls_is_rejected(key_and_certificate):
    """An API that is asked by https does not lead to a store without: anybody could answer there."""
    key, certificate = key_and_certificate
    redirect = Answer(302, None, {"Location": "http://store.example/zip?sig=signed"})
    with github_api.serving_tls(redirect, key, certificate) as url:
        completed = subprocess.run(
            [sys.executable, "-c", WITHOUT_TLS, url],
            env=os.environ | {"SSL_CERT_FILE": str(certificate)}, check=True, capture_output=True, text=True,
        )  # fmt: skip
    assert completed.stdout == "GitHub redirects the download to store.example without TLS\n"
