"""HTTP clients of services that a run asks a few things: GitHub, GitLab, a test's world."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, cast

import httpx2

from ci_evals.adapters.transport.network import certificates
from ci_evals.adapters.transport.payload import MAX_ANSWER_MB, AnswerTooLargeError

ACCEPT_ENCODING = {"Accept-Encoding": "gzip, deflate"}
"""Not whatever other decoders happen to be installed."""


class Client(httpx2.AsyncClient):
    """Limits the total time of a request. httpx2's timeouts are for each step: a drip never exceeds them."""

    def __init__(self, seconds: float | None, **options: Any) -> None:
        self._seconds = seconds
        super().__init__(timeout=None, **options)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; raise `ReadTimeout` if its answer is not whole in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await super().send(request, **options)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {self._seconds} s", request=request) from error
        except ValueError as error:  # of httpx2, for an odd redirect
            raise httpx2.RemoteProtocolError("the answer cannot be read", request=request) from error


def new_client(
    *,
    proxy: str | None = None,
    timeout: float | None = None,
    headers: Mapping[str, str] | None = None,
    max_mb: int = MAX_ANSWER_MB,
) -> Client:
    """Create a client that follows no redirect, so that a key goes to no other host.

    Its answers may have `max_mb` after decompression, else reading them raises `AnswerTooLargeError`. A
    request may take `timeout` seconds with its whole answer, else `ReadTimeout` is raised.
    """
    return Client(
        timeout,
        proxy=proxy_of(proxy),
        verify=certificates(),
        trust_env=False,  # otherwise each client would read the environment again
        headers=ACCEPT_ENCODING | dict(headers or {}),
        follow_redirects=False,
        cookies=no_cookies(),
        event_hooks=size_limit(max_mb),
    )


def no_cookies() -> CookieJar:
    """Return a jar that keeps none: a cookie beyond ASCII would break the next request."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def proxy_of(address: str | None) -> httpx2.Proxy | None:
    """Return a proxy, with its password as a header: so it passes through any library unchanged."""
    if address is None:
        return None
    url = httpx2.URL(address)
    if not url.userinfo:
        return httpx2.Proxy(url)
    secret = b64encode(f"{url.username}:{url.password}".encode()).decode()
    plain = url.copy_with(username=None, password=None)
    return httpx2.Proxy(plain, headers={"Proxy-Authorization": f"Basic {secret}"})


def size_limit(max_mb: int) -> dict[str, list[Any]]:
    """Return the hooks of a client whose answers may have `max_mb` after decompression."""

    async def limit(response: httpx2.Response) -> None:
        body = cast("httpx2.AsyncByteStream", response.stream)
        encodings = [header for header in response.headers.raw if header[0].lower() == b"content-encoding"]
        if encodings:
            body = _Decompressed(body, encodings)
            del response.headers["content-encoding"]
        response.stream = _Limited(body, max_mb)
        # Otherwise a server could name an encoding of Python's that is not for text (`hex`, `zlib`).
        response.encoding = "utf-8"

    return {"response": [limit]}


class _Decompressed(httpx2.AsyncByteStream):
    """A body, decompressed piece by piece as httpx2 does it."""

    def __init__(self, body: httpx2.AsyncByteStream, encodings: list[tuple[bytes, bytes]]) -> None:
        self._response = httpx2.Response(200, headers=encodings, stream=body)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.aiter_bytes()

    async def aclose(self) -> None:
        await self._response.aclose()


class _Limited(httpx2.AsyncByteStream):
    """A body up to the maximum size."""

    def __init__(self, body: httpx2.AsyncByteStream, max_mb: int) -> None:
        self._body, self._max_mb = body, max_mb

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_mb * 1_000_000
        async for part in self._body:
            left -= len(part)
            if left < 0:
                raise AnswerTooLargeError(self._max_mb)
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()
