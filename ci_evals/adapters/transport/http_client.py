"""HTTP clients of services that a run asks a few things: GitHub, GitLab, a test's world."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, cast

import httpx2

from ci_evals.adapters.transport.addresses import split_proxy
from ci_evals.adapters.transport.network import certificates
from ci_evals.support.payload import MAX_ANSWER_MB, AnswerTooLargeError

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
    """Return a proxy for a client of httpx2."""
    if address is None:
        return None
    plain, headers = split_proxy(address)
    return httpx2.Proxy(plain, headers=headers)


def size_limit(max_mb: int) -> dict[str, list[Any]]:
    """Return the hooks of a client whose answers may have `max_mb` after decompression."""

    async def limit(response: httpx2.Response) -> None:
        packed = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = _Body(packed, packed.aclose, max_mb)
        # As bytes, for a server may write them beyond ASCII.
        encodings = [header for header in response.headers.raw if header[0].lower() == b"content-encoding"]
        if encodings:
            # Decompresses the body piece by piece.
            unpacked = httpx2.Response(200, headers=encodings, stream=packed)
            response.stream = _Body(unpacked.aiter_bytes(), unpacked.aclose, max_mb)
            del response.headers["content-encoding"]
        # Otherwise a server could name an encoding of Python's that is not for text (`hex`, `zlib`).
        response.encoding = "utf-8"

    return {"response": [limit]}


class _Body(httpx2.AsyncByteStream):
    """A body up to the maximum size."""

    def __init__(
        self, pieces: AsyncIterable[bytes], close: Callable[[], Awaitable[None]], max_mb: int
    ) -> None:
        self._pieces, self._close, self._max_mb = pieces, close, max_mb

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_mb * 1_000_000
        async for piece in self._pieces:
            left -= len(piece)
            if left < 0:
                raise AnswerTooLargeError(self._max_mb)
            yield piece

    async def aclose(self) -> None:
        await self._close()
