"""An httpx2 transport over connections of aiohttp, which cost a third of the processor time of httpx2's own.

aiohttp sends the request exactly as httpx2 has it. Redirects, cookies, decompression and timeouts are handled
elsewhere. Errors become those of httpx2.
"""

import asyncio
import errno
import select
import time
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, partial
from io import BytesIO
from ssl import SSLContext
from typing import Any, cast

import aiohttp
import httpx2
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_exceptions import ContentLengthError, TransferEncodingError
from aiohttp.tracing import Trace
from yarl import URL

from ci_evals.adapters.transport import pool
from ci_evals.adapters.transport.payload import AnswerTooLargeError
from ci_evals.adapters.transport.pool import KEEPALIVE_SECONDS, PoolShare
from ci_evals.adapters.transport.websocket import CLOSE_SECONDS, HandshakeRefusedError, WebSocket

MAX_HEADERS = 250
MAX_HEADER_BYTES = 65_536

_MAX_PIECE = 1 << 20
"""Maximum size of a body that aiohttp sends in one piece; it warns of more."""
_EXPECT = b"expect"
"""With this header aiohttp would hold the body back, forever if the server does not know it."""
_ADDED_BY_AIOHTTP = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_MAX_REFUSAL = 10_000
"""Bytes that are read of the answer to a handshake that failed."""
QUIET_SECONDS = 0.1
"""Silence after an answer before a connection is reused. A second answer that comes within this time is
noticed and cannot be taken for the answer to the next request."""
SURPLUS = "it sent more than one answer to a request"
"""The reason not to use an answer: it may belong to an earlier request."""

_CUT_OFF = (ContentLengthError, TransferEncodingError)
_NO_END = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


@dataclass(eq=False)
class ConversationConnections:
    """The connections of one conversation, which nothing else uses, then or later."""

    surplus: bool = False
    """True if an unrequested answer came, so that the answers may be shifted by one."""
    guards: "set[_ConnectionGuard]" = field(default_factory=set)

    def close(self) -> None:
        """Close the connections."""
        for guard in self.guards:
            guard.conversation = None
            guard.close()
        self.guards.clear()


class Transport(httpx2.AsyncBaseTransport):
    """Carries the requests of one client."""

    def __init__(
        self, max_mb: int, proxy: str | None = None, conversation: ConversationConnections | None = None
    ) -> None:
        self._max_mb = max_mb
        self._proxy, self._proxy_key = None, ""
        if proxy:
            url = httpx2.URL(proxy)
            self._proxy = _address(url)
            if url.userinfo:
                self._proxy_key = "Basic " + b64encode(f"{url.username}:{url.password}".encode()).decode()
        self._pool: PoolShare | None = None
        self._conversation = conversation
        self.websocket = WebSocket(self._open_websocket, max_mb)
        """Opened when a message is sent over it."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the body of the answer is read later."""
        answer, body = await self._begin(request)
        return _Response(answer, stream=body)

    async def exchange(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read its whole answer."""
        began = time.perf_counter()
        answer, body = await self._begin(request)
        try:
            whole = b"".join([part async for part in body])
        finally:
            await body.aclose()
        response = _ReadResponse(answer, whole)
        response.elapsed, response.request = timedelta(seconds=time.perf_counter() - began), request
        return response

    async def _begin(self, request: httpx2.Request) -> "tuple[aiohttp.ClientResponse, _Body]":
        session = await self._session()
        content = request.content
        transfer = _Transfer(self._conversation)
        token = _current_transfer.set(transfer)
        try:
            answer = await session.request(
                request.method,
                _address(request.url),
                data=BytesIO(content) if len(content) > _MAX_PIECE else content or None,
                allow_redirects=False,
                **self._options(request),
            )
        except aiohttp.ClientError as error:
            raise _as_httpx2(error) from error
        except ValueError as error:  # a header, say, that cannot be sent
            raise httpx2.LocalProtocolError(str(error)) from error
        finally:
            _current_transfer.reset(token)
        return answer, _Body(answer, self._max_mb, transfer)

    async def aclose(self) -> None:
        """Close the client's own connections; shared ones stay for others."""
        await self.websocket.close()
        if self._conversation:
            self._conversation.close()
        if self._pool:
            share, self._pool = self._pool, None
            await pool.release(share)

    async def _open_websocket(self, request: httpx2.Request) -> aiohttp.ClientWebSocketResponse:
        session = await self._session()
        request.headers.pop("connection", None)  # aiohttp has its own, unless there is one
        token = _current_transfer.set(_Transfer(self._conversation))
        try:
            socket: aiohttp.ClientWebSocketResponse = await session.ws_connect(
                _address(request.url),
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                max_msg_size=self._max_mb * 1_000_000,
                **self._options(request),
            )
        except aiohttp.ClientError as error:
            raise _as_httpx2(error) from error
        except ValueError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        finally:
            _current_transfer.reset(token)
        return socket

    def _options(self, request: httpx2.Request) -> dict[str, Any]:
        """Return headers, proxy and encryption of a request, as aiohttp wants them."""
        is_tls = request.url.scheme == "https"
        meets_tls = is_tls or (self._proxy is not None and self._proxy.scheme == "https")
        headers = [
            (name.decode(), value.decode()) for name, value in request.headers.raw if name.lower() != _EXPECT
        ]
        proxy_headers = None
        if self._proxy_key and is_tls:
            proxy_headers = {"Proxy-Authorization": self._proxy_key}
        elif self._proxy_key:
            headers.append(("Proxy-Authorization", self._proxy_key))
        return {
            "headers": headers,
            "proxy": self._proxy,
            "proxy_headers": proxy_headers,
            "ssl": _tls() if meets_tls else True,
        }

    async def _session(self) -> aiohttp.ClientSession:
        if self._pool and self._pool.loop is not asyncio.get_running_loop():
            await self.aclose()
        share = self._pool = self._pool or pool.acquire()
        share.session = share.session or _new_session()
        return share.session


class _Response(httpx2.Response):
    """An answer, without headers that are not valid after decompression."""

    def __init__(self, answer: aiohttp.ClientResponse, stream: httpx2.AsyncByteStream) -> None:
        kept = [(name, value) for name, value in answer.raw_headers if _is_kept(name.lower(), value)]
        super().__init__(answer.status, headers=kept, stream=stream)
        # Otherwise a server could name an encoding of Python's that is not for text (`hex`, `zlib`).
        self.encoding = "utf-8"


class _ReadResponse(_Response):
    """An answer that was read: httpx2 would take nine times as long to hold it."""

    def __init__(self, answer: aiohttp.ClientResponse, whole: bytes) -> None:
        super().__init__(answer, httpx2.ByteStream(whole))
        self._whole = whole

    @property
    def content(self) -> bytes:
        return self._whole


class _Body(httpx2.AsyncByteStream):
    """The decompressed body of an answer, up to the maximum size."""

    def __init__(self, answer: aiohttp.ClientResponse, max_mb: int, transfer: "_Transfer") -> None:
        self._answer, self._max_mb, self._transfer = answer, max_mb, transfer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_mb * 1_000_000
        try:
            async for part in self._decompressed():
                left -= len(part)
                if left < 0:
                    raise AnswerTooLargeError(self._max_mb)
                yield part
        except aiohttp.ClientError as error:
            raise _as_httpx2(error) from error
        if self._transfer.has_surplus(self._answer):
            raise httpx2.RemoteProtocolError(SURPLUS)

    async def aclose(self) -> None:
        """Close the connection too, unless all was read."""
        self._answer.release()

    def _decompressed(self) -> AsyncIterator[bytes]:
        body, headers = self._answer.content.iter_any(), self._answer.raw_headers
        encodings = [(name, value) for name, value in headers if name.lower() == _CONTENT_ENCODING]
        return httpx2.Response(200, headers=encodings, content=body).aiter_bytes() if encodings else body


@dataclass(eq=False)
class _Transfer:
    """One request and the connection that carries it."""

    conversation: ConversationConnections | None
    guard: "_ConnectionGuard | None" = None

    def has_surplus(self, answer: aiohttp.ClientResponse) -> bool:
        """Return whether more than the answer came with it. The answer must have been read to its end."""
        if self.guard is None or not self.guard.surplus_at_rest or _ends_connection(answer):
            return False
        if self.conversation:
            self.conversation.surplus = True
        return True


_current_transfer: ContextVar[_Transfer] = ContextVar("_current_transfer")


class _Request(aiohttp.ClientRequest):
    """A request that uses only the connections of its conversation, if it has one."""

    @property
    def connection_key(self) -> ConnectionKey:
        key = super().connection_key
        conversation = _current_transfer.get().conversation
        if conversation is None:
            return key
        return key._replace(proxy_headers_hash=hash((key.proxy_headers_hash, id(conversation))))


class _Handler(ResponseHandler):
    """Resumes reading only if it was paused: aiohttp calls this for every chunk taken from a body."""

    def resume_reading(self, resume_parser: bool = True) -> None:  # as the base class has it
        if self._reading_paused:
            super().resume_reading(resume_parser)


class _Connector(aiohttp.TCPConnector):
    """Reuses a connection only if it has been silent since its last answer, and for long enough."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(_Handler, loop=self._loop))
        self._resting = deque[tuple[float, ConnectionKey, ResponseHandler]]()
        """Connections that may be used again, each from a time on."""
        self._next_look: asyncio.TimerHandle | None = None

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # as the base class has it
    ) -> Connection:
        transfer = _current_transfer.get()
        self._keep_rested()
        while True:
            connection = await super().connect(req, traces, timeout)
            transport, protocol = connection.transport, connection.protocol
            if transport is None or protocol is None:  # broken already; using it will raise the error
                return connection
            guard = transport.get_protocol()
            if not isinstance(guard, _ConnectionGuard):
                guard = _ConnectionGuard(protocol, transfer.conversation)
                transport.set_protocol(guard)
            elif _is_readable(transport):
                connection.close()
                continue
            guard.at_rest = guard.surplus_at_rest = False
            transfer.guard = guard
            connection.add_callback(guard.rest)
            return connection

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """Keep a connection for the next request once it has been silent for a while."""
        if should_close or protocol.should_close or self.closed:
            super()._release(key, protocol, should_close=should_close)
            return
        self._resting.append((self._loop.time() + QUIET_SECONDS, key, protocol))
        # One timer for all: one for each takes some hundredths of the work of a conversation.
        if self._next_look is None:
            self._next_look = self._loop.call_later(QUIET_SECONDS, self._look_after)

    def _keep_rested(self) -> None:
        while self._resting and self._resting[0][0] <= self._loop.time():
            _, key, protocol = self._resting.popleft()
            super()._release(key, protocol, should_close=not protocol.is_connected())

    def _look_after(self) -> None:
        """Keep what nobody asked for meanwhile."""
        self._keep_rested()
        again = self._loop.call_later(QUIET_SECONDS, self._look_after) if self._resting else None
        self._next_look = again


class _ConnectionGuard(asyncio.Protocol):
    """Stands between a connection and aiohttp, and closes a connection at rest if data comes.

    aiohttp would take the data for the answer to the next request.
    """

    def __init__(self, handler: ResponseHandler, conversation: ConversationConnections | None) -> None:
        self._handler = handler
        self.conversation = conversation
        self.at_rest = False
        self.surplus_at_rest = False
        """True if aiohttp would not reuse the connection after the last answer."""
        if conversation:
            conversation.guards.add(self)

    def rest(self) -> None:
        self.at_rest = True
        self.surplus_at_rest = self._handler.should_close

    def close(self) -> None:
        self._handler.close()

    def data_received(self, data: bytes) -> None:
        was_at_rest = self.at_rest
        if not was_at_rest:
            self._handler.data_received(data)
        elif self.conversation and data.strip():  # line ends alone are no answer
            self.conversation.surplus = True
        if self.at_rest and self._handler.should_close:
            self.surplus_at_rest = True
        if was_at_rest or (self.at_rest and self._handler.should_close):  # more came than the answer
            self._handler.close()

    def eof_received(self) -> None:
        self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.conversation:
            self.conversation.guards.discard(self)
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()


def _new_session() -> aiohttp.ClientSession:
    """Create the connections of the running event loop, as many as needed: rate limiters limit calls."""
    return aiohttp.ClientSession(
        connector=_Connector(
            limit=0, keepalive_timeout=KEEPALIVE_SECONDS, resolver=aiohttp.ThreadedResolver()
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_ADDED_BY_AIOHTTP,
        timeout=_NO_END,
        auto_decompress=False,
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
        middlewares=[_once],
        request_class=_Request,
    )


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a GET after a broken connection, and a handshake from being redirected.

    The caller decides.
    """
    try:
        answer = await send(request)
        if "Sec-WebSocket-Key" not in request.headers or answer.status == 101:
            return answer
        body = await answer.content.read(_MAX_REFUSAL)
    except aiohttp.ClientConnectorError:
        raise  # it was not sent at all
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _as_httpx2(error) from error
    kept = [(name, value) for name, value in answer.raw_headers if _is_kept(name.lower(), value)]
    raise HandshakeRefusedError(httpx2.Response(answer.status, headers=kept, content=body))


def _as_httpx2(error: aiohttp.ClientError) -> httpx2.HTTPError:
    """Convert an error. Its message names no address, which might hold a password."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return httpx2.ConnectError(str(error.certificate_error))
        case aiohttp.ClientConnectorError():
            # asyncio's own text repeats the address, as Python writes it.
            refused = error.errno == errno.ECONNREFUSED
            reason = "connection refused" if refused else error.strerror or str(error.os_error)
            return httpx2.ConnectError(reason or "no connection")
        case aiohttp.ClientHttpProxyError():
            return httpx2.ProxyError(f"{error.status} {error.message}")
        case aiohttp.InvalidURL():
            return httpx2.UnsupportedProtocol("an address that cannot be used")
        case aiohttp.ServerDisconnectedError():
            reason = "Server disconnected without sending a response."
        case aiohttp.ClientResponseError():
            line, _, _ = error.message.partition("\n")
            reason = f"the answer is not HTTP ({line.rstrip(':')})"
        case aiohttp.ClientPayloadError() if isinstance(error.__cause__, _CUT_OFF):
            reason = "it was closed in the middle of the answer"
        case aiohttp.ClientOSError() if error.__cause__:
            reason = str(error.__cause__)
        case _:
            reason = str(error)
    return httpx2.RemoteProtocolError(reason)


_CONTENT_ENCODING = b"content-encoding"
_TRANSFER_HEADERS = frozenset({_CONTENT_ENCODING, b"content-length", b"transfer-encoding"})


def _is_kept(name: bytes, value: bytes) -> bool:
    """Return whether a header is valid after decompression; a cookie, only if it can be sent back."""
    return value.isascii() if name == b"set-cookie" else name not in _TRANSFER_HEADERS


def _ends_connection(answer: aiohttp.ClientResponse) -> bool:
    """Return whether this is the last answer on its connection, so that what follows reaches nobody."""
    connection = answer.headers.get("Connection", "").lower()
    is_old = answer.version is None or answer.version < aiohttp.HttpVersion11
    framed = (
        "Content-Length" in answer.headers or "chunked" in answer.headers.get("Transfer-Encoding", "").lower()
    )
    return (
        "close" in connection
        or is_old
        or answer.status < 200
        or (not framed and answer.status not in (204, 304))
    )


def _address(url: httpx2.URL) -> URL:
    """Return the address to send, without credentials, which are in the headers, and not quoted again."""
    return URL(str(url.copy_with(username=None, password=None) if url.userinfo else url), encoded=True)


def _is_readable(transport: asyncio.BaseTransport) -> bool:
    """Return whether unread data or the end of the connection has arrived."""
    file = transport.get_extra_info("socket").fileno()
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([file], [], [], 0)[0])  # Windows


@cache
def _tls() -> SSLContext:
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
