"""The HTTP client of one conversation with an agent, over aiohttp.

It has its own cookies, and sends each message over a connection of its own, which it closes after the answer:
so no answer can belong to another message or another conversation. Only a WebSocket stays open, and
`websocket` checks what comes over it. Redirects are not followed, so that a key goes to no other host.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ci_evals._version import __version__
from ci_evals.adapters.transport.addresses import split_proxy
from ci_evals.adapters.transport.aiohttp_errors import network_error
from ci_evals.adapters.transport.network import Answer, NetworkError, certificates
from ci_evals.adapters.transport.streams import StreamReader
from ci_evals.adapters.transport.websocket import CLOSE_SECONDS, HandshakeRefusedError, WebSocket
from ci_evals.support.payload import MAX_ANSWER_BYTES, AnswerTooLargeError

MAX_HEADERS = 250
MAX_HEADER_BYTES = 65_536

REST_SECONDS = 1.0
"""Time that a server has to end its stream after the answer is complete."""

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

    def __init__(self, *, proxy: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        self._headers = with_headers(_USUAL_HEADERS, headers or {})
        self._proxy: str | None = None
        self._proxy_key: dict[str, str] = {}
        if proxy:
            self._proxy, self._proxy_key = split_proxy(proxy)
        self._session: aiohttp.ClientSession | None = None
        self._streaming: aiohttp.ClientResponse | None = None
        """The response that a reader has read, until its stream is ended."""
        self.websocket = WebSocket()
        """Opened when a message is sent over it."""

    async def send(self, message: Message, reader: StreamReader | None = None) -> Answer:
        """Send a message, and read the whole answer.

        A reader reads the answer as far as it goes, unless that has an error status. Call `end_stream` then.

        Raises:
            NetworkError: there is no answer.
            AnswerTooLargeError: it is too long.
        """
        began, body = time.perf_counter(), b""
        response = await self._request(message)
        try:
            if reader and 200 <= response.status < 300:
                reader.begin(response.headers.get("content-type", ""))
                await _feed(reader, self._pieces(response), began)
                self._streaming = response
            else:
                body = b"".join([piece async for piece in self._pieces(response)])
        finally:
            if self._streaming is not response:
                response.close()
        return Answer(response.status, response.headers, body, time.perf_counter() - began)

    async def end_stream(self) -> None:
        """Give the server time to end its stream: many stop their work if a client leaves."""
        response, self._streaming = self._streaming, None
        if response is None:
            return
        try:
            with suppress(TimeoutError, NetworkError, AnswerTooLargeError):
                async with asyncio.timeout(REST_SECONDS):
                    async for _ in self._pieces(response):
                        pass
        finally:
            response.close()

    async def converse(self, message: Message, reader: StreamReader) -> Answer:
        """Send a message's body over the WebSocket, and read the answer.

        Headers and address are those of the handshake. Its refusal is returned as an answer.
        Raise what `send` and the reader raise.
        """
        began = time.perf_counter()
        try:
            await self.websocket.send(lambda: self._open_websocket(message), (message.body or b"").decode())
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
        with _network_errors():
            return await self._opened().request(
                message.method, message.url, data=body, allow_redirects=False, **options
            )

    async def _open_websocket(self, message: Message) -> aiohttp.ClientWebSocketResponse:
        options = self._options(message)
        for name in ("Connection", "Content-Type", "Content-Length"):  # those of a message of its own
            options["headers"].popall(name, None)
        with _network_errors():
            connection: aiohttp.ClientWebSocketResponse = await self._opened().ws_connect(
                message.url,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                max_msg_size=MAX_ANSWER_BYTES,
                **options,
            )
        return connection

    def _options(self, message: Message) -> dict[str, Any]:
        """Return headers, proxy and encryption of a request, as aiohttp wants them."""
        headers = with_headers(self._headers, message.headers)
        # With this one aiohttp would hold the body back, forever if the server does not know it.
        headers.popall("Expect", None)
        is_tls = message.url.scheme in ("https", "wss")
        if not is_tls:
            headers.update(self._proxy_key)
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
        left = MAX_ANSWER_BYTES
        with _network_errors():
            async for piece in response.content.iter_any():
                left -= len(piece)
                if left < 0:
                    raise AnswerTooLargeError
                yield piece


class _Cookies(aiohttp.CookieJar):
    """Keeps no cookie that cannot be sent back: the next request would break on it."""

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        super().update_cookies_from_headers([text for text in headers if text.isascii()], response_url)


def with_headers(headers: Mapping[str, str], over: Mapping[str, str]) -> CIMultiDict[str]:
    """Merge headers; those of `over` replace any of the same name, whatever the case."""
    merged = CIMultiDict(headers)
    merged.update(over)
    return merged


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


async def _feed(reader: StreamReader, pieces: AsyncIterator[bytes], began: float) -> None:
    async for piece in pieces:
        reader.feed(piece, time.perf_counter() - began)
        if reader.is_complete:
            break
    reader.end(time.perf_counter() - began)


@contextmanager
def _network_errors() -> Iterator[None]:
    """Turn errors of aiohttp into ours; a `ValueError` is its word for a header, say, that cannot be sent."""
    try:
        yield
    except aiohttp.ClientError as error:  # some of these are ValueErrors too
        raise network_error(error) from error
    except ValueError as error:
        raise NetworkError(str(error)) from error
