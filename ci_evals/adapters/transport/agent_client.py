"""The HTTP client of one conversation with an agent, over aiohttp.

It has its own cookies, and sends each message over a connection of its own, which it closes after the answer:
so no answer can belong to another message or another conversation. Only a WebSocket stays open, and
`websocket` checks what comes over it. Redirects are not followed, so that a key goes to no other host.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from ci_evals._version import __version__
from ci_evals.adapters.transport.addresses import split_proxy
from ci_evals.adapters.transport.aiohttp_errors import network_error
from ci_evals.adapters.transport.network import Answer, NetworkError, certificates
from ci_evals.adapters.transport.streams import StreamReader
from ci_evals.adapters.transport.websocket import CLOSE_SECONDS, HandshakeRefusedError, WebSocket
from ci_evals.support.payload import MAX_ANSWER_MB, AnswerTooLargeError

R = TypeVar("R")

MAX_HEADERS = 250
MAX_HEADER_BYTES = 65_536

REST_SECONDS = 1.0
"""Time that a server has to end its stream after the answer is complete. It counts as nobody's."""

_MAX_PIECE = 1 << 20
"""Maximum size of a body that aiohttp sends in one piece; it warns of more."""
_MAX_REFUSAL = 10_000
"""Bytes that are read of the answer to a handshake that failed."""
_ADDED_BY_AIOHTTP = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_USUAL_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "close",
    "User-Agent": f"ci-evals/{__version__}",
}
_NO_END = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


@dataclass(frozen=True)
class Message:
    """A request as it goes out."""

    method: str
    url: URL
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class AgentClient:
    """Sends the messages of one conversation. Opens nothing before the first one."""

    def __init__(
        self,
        *,
        proxy: str | None = None,
        headers: Mapping[str, str] | None = None,
        max_mb: int = MAX_ANSWER_MB,
    ) -> None:
        """Create a client whose answers may have `max_mb` each after decompression."""
        self._max_bytes, self._max_mb = max_mb * 1_000_000, max_mb
        self._headers = with_headers(_USUAL_HEADERS, headers or {})
        self._proxy: str | None = None
        self._proxy_key: dict[str, str] = {}
        if proxy:
            self._proxy, self._proxy_key = split_proxy(proxy)
        self._session: aiohttp.ClientSession | None = None
        self.websocket = WebSocket(max_mb)
        """Opened when a message is sent over it."""

    async def send(self, message: Message) -> Answer:
        """Send a message, and read the whole answer.

        Raises:
            NetworkError: there is none.
            AnswerTooLargeError: it is too long.
        """
        began = time.perf_counter()
        with _network_errors():
            response = await self._request(message)
            try:
                body = b"".join([piece async for piece in self._pieces(response)])
            finally:
                response.close()
        return Answer(response.status, response.headers, body, time.perf_counter() - began)

    async def stream(self, message: Message, reader: StreamReader) -> tuple[Answer, "OpenStream"]:
        """Send a message, and read the answer as far as it goes; an error status is read whole.

        Raise what `send` and the reader raise. The stream must be left in the end.
        """
        began = time.perf_counter()
        with _network_errors():
            response = await self._request(message)
            pieces = self._pieces(response)
            try:
                body = b""
                if not 200 <= response.status < 300:
                    body = b"".join([piece async for piece in pieces])
                else:
                    reader.begin(response.headers.get("content-type", ""))
                    await _feed(reader, pieces, began)
            except BaseException:
                response.close()
                raise
        answer = Answer(response.status, response.headers, body, time.perf_counter() - began)
        return answer, OpenStream(response, pieces)

    async def converse(self, message: Message, reader: StreamReader) -> Answer:
        """Send a message's body over the WebSocket, and read the answer.

        Headers and address are those of the handshake. Its refusal is returned as an answer.
        Raise what `send` and the reader raise.
        """
        began = time.perf_counter()

        async def handshake() -> aiohttp.ClientWebSocketResponse:
            with _network_errors():
                return await self._open_websocket(message)

        try:
            await self.websocket.send(handshake, (message.body or b"").decode())
        except HandshakeRefusedError as refusal:
            if 200 <= refusal.status < 300:
                raise NetworkError(
                    f"expected a WebSocket, found an answer with status {refusal.status}"
                ) from None
            return Answer(refusal.status, refusal.headers, refusal.body)
        await _feed(reader, self.websocket.messages(), began)
        return Answer(200)

    async def aclose(self) -> None:
        """Close the connections, broken or not. The client can be used again."""
        session, self._session = self._session, None
        try:
            await self.websocket.close()
        finally:
            if session:
                await session.close()

    async def _request(self, message: Message) -> aiohttp.ClientResponse:
        body: bytes | BytesIO | None = message.body
        if message.body and len(message.body) > _MAX_PIECE:
            body = BytesIO(message.body)
        options = self._options(message)
        request = self._opened().request(
            message.method, message.url, data=body, allow_redirects=False, **options
        )
        return await _sent(request)

    async def _open_websocket(self, message: Message) -> aiohttp.ClientWebSocketResponse:
        options = self._options(message)
        for name in ("Connection", "Content-Type", "Content-Length"):  # those of a message of its own
            options["headers"].pop(name, None)
        handshake = self._opened().ws_connect(
            message.url,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
            max_msg_size=self._max_bytes,
            **options,
        )
        return await _sent(handshake)

    def _options(self, message: Message) -> dict[str, Any]:
        """Return headers, proxy and encryption of a request, as aiohttp wants them."""
        headers = with_headers(self._headers, message.headers)
        # With this one aiohttp would hold the body back, forever if the server does not know it.
        headers = {name: value for name, value in headers.items() if name.lower() != "expect"}
        is_tls = message.url.scheme in ("https", "wss")
        if self._proxy_key and not is_tls:
            headers |= self._proxy_key
        meets_tls = is_tls or (self._proxy is not None and self._proxy.startswith("https"))
        return {
            "headers": headers,
            "proxy": self._proxy,
            "proxy_headers": self._proxy_key if is_tls else None,
            "ssl": certificates() if meets_tls else True,
        }

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # As many connections as needed: rate limiters limit calls.
                connector=aiohttp.TCPConnector(
                    limit=0, force_close=True, resolver=aiohttp.ThreadedResolver()
                ),
                cookie_jar=_Cookies(unsafe=True, quote_cookie=False),
                skip_auto_headers=_ADDED_BY_AIOHTTP,
                timeout=_NO_END,
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
                max_headers=MAX_HEADERS,
                middlewares=[_once],
            )
        return self._session

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for piece in response.content.iter_any():
            left -= len(piece)
            if left < 0:
                raise AnswerTooLargeError(self._max_mb)
            yield piece


class OpenStream:
    """The rest of a streamed answer, after what belongs to it."""

    def __init__(self, response: aiohttp.ClientResponse, pieces: AsyncIterator[bytes]) -> None:
        self._response, self._pieces = response, pieces

    async def leave(self) -> None:
        """Give the server time to end its stream, and close it: many stop their work if a client leaves."""
        try:
            with suppress(TimeoutError, aiohttp.ClientError, AnswerTooLargeError):
                async with asyncio.timeout(REST_SECONDS):
                    async for _ in self._pieces:
                        pass
        finally:
            self._response.close()


class _Cookies(aiohttp.CookieJar):
    """Keeps no cookie that cannot be sent back: the next request would break on it."""

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        super().update_cookies_from_headers([text for text in headers if text.isascii()], response_url)


def with_headers(headers: Mapping[str, str], over: Mapping[str, str]) -> dict[str, str]:
    """Merge headers; those of `over` replace any of the same name, whatever the case."""
    replaced = {name.lower() for name in over}
    return {name: value for name, value in headers.items() if name.lower() not in replaced} | dict(over)


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a request after a broken connection, and a handshake from being redirected.

    The caller decides.
    """
    try:
        response = await send(request)
        if "Sec-WebSocket-Key" not in request.headers or response.status == 101:
            return response
        body = await response.content.read(_MAX_REFUSAL)
    except aiohttp.ClientConnectorError:
        raise  # it was not sent at all
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise network_error(error) from error
    raise HandshakeRefusedError(response.status, response.headers, body)


async def _sent(request: Awaitable[R]) -> R:
    try:
        return await request
    except aiohttp.ClientError:
        raise  # some of these are ValueErrors too
    except ValueError as error:  # a header, say, that cannot be sent
        raise NetworkError(str(error)) from error


async def _feed(reader: StreamReader, pieces: AsyncIterator[bytes], began: float) -> None:
    async for piece in pieces:
        reader.feed(piece, time.perf_counter() - began)
        if reader.is_complete:
            break
    reader.end(time.perf_counter() - began)


@contextmanager
def _network_errors() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientError as error:
        raise network_error(error) from error
