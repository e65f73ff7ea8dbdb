"""Requests of httpx2 over connections of aiohttp, which cost a third of httpx2's own.

aiohttp only carries: what is sent is the request as httpx2 has it, and redirects, cookies, unpacking, and the
time that all may take are left to others. Its errors become httpx2's.
"""

import asyncio
import select
from base64 import b64encode
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from ssl import SSLContext

import aiohttp
import httpx2
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from ci_evals.adapters.transport import pool
from ci_evals.adapters.transport.payload import AnswerTooLargeError
from ci_evals.adapters.transport.pool import KEEPALIVE_SECONDS, Share

MOST_HEADERS = 250
"""Of one answer; each of at most `MOST_OF_A_HEADER` bytes."""
MOST_OF_A_HEADER = 65_536

_MOST_AT_ONCE = 1 << 20
"""Bytes of a body that aiohttp sends in one piece; it warns of more."""
_EXPECTING = b"expect"
"""A header with which aiohttp would hold the body back, without end where the server does not know it."""
_ADDED_BY_AIOHTTP = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
QUIET_SECONDS = 0.1
"""A connection must have been silent for this long after an answer before it carries another request. A
second answer that comes within this time is seen and cannot be taken for the answer to the next request."""
SURPLUS = "it sent more than one answer to a request"
"""The reason why an answer is not used: it may belong to an earlier request."""

_NO_END = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


@dataclass(eq=False)
class Line:
    """The connections of one conversation, which nobody else uses, neither at the time nor afterwards."""

    surplus: bool = False
    """Whether more came than was asked for. The answers of the conversation may then be shifted by one."""
    watches: "set[_Watch]" = field(default_factory=set)

    def close(self) -> None:
        """Close the connections."""
        for watch in self.watches:
            watch.line = None
            watch.close()
        self.watches.clear()


class Transport(httpx2.AsyncBaseTransport):
    """The connections that one client uses: its own, closed with it, or those that its event loop shares."""

    def __init__(self, most_mb: int, proxy: str | None = None, line: Line | None = None) -> None:
        """Opens nothing yet.

        Args:
            most_mb: The most that is read of an answer, unpacked.
            proxy: An http(s) address, which may hold a user and a password.
            line: The connections that this client alone uses; without it, those that all share.
        """
        self._most_mb = most_mb
        self._proxy = _Proxy(proxy) if proxy else None
        self._share: Share | None = None
        self._line = line

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; the body of the answer is read later."""
        session = await self._session()
        content = await request.aread()
        trip = _Trip(self._line)
        carried = _trip.set(trip)
        is_tls = request.url.scheme == "https"
        meets_tls = is_tls or (self._proxy is not None and self._proxy.address.scheme == "https")
        try:
            headers = [
                (name.decode(), value.decode())
                for name, value in request.headers.raw
                if name.lower() != _EXPECTING
            ]
            proxy_headers = None
            if self._proxy and self._proxy.key:
                if is_tls:
                    proxy_headers = {"Proxy-Authorization": self._proxy.key}
                else:
                    headers.append(("Proxy-Authorization", self._proxy.key))
            answer = await session.request(
                request.method,
                _address(request.url),
                headers=headers,
                data=BytesIO(content) if len(content) > _MOST_AT_ONCE else content or None,
                allow_redirects=False,
                proxy=self._proxy.address if self._proxy else None,
                proxy_headers=proxy_headers,
                ssl=_tls() if meets_tls else True,
            )
        except aiohttp.ClientError as error:
            raise _as_httpx2(error) from error
        except ValueError as error:  # a header, say, that cannot be sent
            raise httpx2.LocalProtocolError(str(error)) from error
        finally:
            _trip.reset(carried)
        unpacked = [(name, value) for name, value in answer.raw_headers if _is_kept(name.lower(), value)]
        response = httpx2.Response(answer.status, headers=unpacked, stream=_Body(answer, self._most_mb, trip))
        # Else a server could name an encoding that is one of Python's, but none of text (`hex`, `zlib`).
        response.encoding = "utf-8"
        return response

    async def aclose(self) -> None:
        """Close the client's own connections; others may go on to use the shared ones."""
        if self._line:
            self._line.close()
        if self._share:
            share, self._share = self._share, None
            await pool.give_back(share)

    async def _session(self) -> aiohttp.ClientSession:
        if self._share and self._share.loop is not asyncio.get_running_loop():
            await self.aclose()
        share = self._share = self._share or pool.take()
        share.session = share.session or _new_session()
        return share.session


class _Proxy:
    """A proxy's address, and what it wants to be shown."""

    def __init__(self, proxy: str) -> None:
        url = httpx2.URL(proxy)
        self.address = _address(url)
        self.key: str | None = None
        if url.username or url.password:
            self.key = "Basic " + b64encode(f"{url.username}:{url.password}".encode()).decode()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, unpacked, as far as it may go."""

    def __init__(self, answer: aiohttp.ClientResponse, most_mb: int, trip: "_Trip") -> None:
        self._answer, self._most_mb, self._trip = answer, most_mb, trip

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most_mb * 1_000_000
        async for part in self._unpacked():
            left -= len(part)
            if left < 0:
                raise AnswerTooLargeError(self._most_mb)
            yield part
        if self._trip.met_surplus(self._answer):
            raise httpx2.RemoteProtocolError(SURPLUS)

    async def aclose(self) -> None:
        """Closes the connection too, unless all was read."""
        self._answer.release()

    def _unpacked(self) -> AsyncIterator[bytes]:
        raw = _Raw(self._answer)
        packed = [(name, value) for name, value in self._answer.raw_headers if name.lower() == _PACKED]
        return httpx2.Response(200, headers=packed, stream=raw).aiter_bytes() if packed else aiter(raw)


class _Raw(httpx2.AsyncByteStream):
    """The body of an answer as it came."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._content = answer.content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while part := await self._content.readany():
                yield part
        except aiohttp.ClientError as error:
            raise _as_httpx2(error) from error


@dataclass(eq=False)
class _Trip:
    """One request and the connection that carries it."""

    line: Line | None
    watch: "_Watch | None" = None

    def met_surplus(self, answer: aiohttp.ClientResponse) -> bool:
        """Whether more than the answer has come with it, once it is read to its end."""
        if self.watch is None or not self.watch.surplus_at_rest or _ends_connection(answer):
            return False
        if self.line:
            self.line.surplus = True
        return True


_trip: ContextVar[_Trip] = ContextVar("_trip")


class _Request(aiohttp.ClientRequest):
    """A request that finds only the connections of its own conversation, if it belongs to one."""

    @property
    def connection_key(self) -> ConnectionKey:
        key = super().connection_key
        line = _trip.get().line
        return (
            key if line is None else key._replace(proxy_headers_hash=hash((key.proxy_headers_hash, id(line))))
        )


class _Connector(aiohttp.TCPConnector):
    """Reuses a connection only if it has been silent since its last answer, and for long enough."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # as the base class has it
    ) -> Connection:
        """A connection that was kept, or a new one."""
        trip = _trip.get()
        while True:
            connection = await super().connect(req, traces, timeout)
            transport, protocol = connection.transport, connection.protocol
            if transport is None or protocol is None:  # it has broken already, which is told when it is used
                return connection
            watch = transport.get_protocol()
            if not isinstance(watch, _Watch):
                watch = _Watch(protocol, trip.line)
                transport.set_protocol(watch)
            elif _is_readable(transport):
                connection.close()
                continue
            watch.at_rest = watch.surplus_at_rest = False
            trip.watch = watch
            connection.add_callback(watch.rest)
            return connection

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """Keep a connection for the next request only once it has been silent for a while."""
        if should_close or protocol.should_close or self.closed:
            super()._release(key, protocol, should_close=should_close)
        else:
            self._loop.call_later(QUIET_SECONDS, self._keep, key, protocol)

    def _keep(self, key: ConnectionKey, protocol: ResponseHandler) -> None:
        super()._release(key, protocol, should_close=not protocol.is_connected())


class _Watch(asyncio.Protocol):
    """Stands between a connection and aiohttp, and closes it if it is at rest and something comes.

    aiohttp would keep that, as the answer to the next request.
    """

    def __init__(self, watched: ResponseHandler, line: Line | None) -> None:
        self._watched = watched
        self.line = line
        self.at_rest = False
        self.surplus_at_rest = False
        """Whether aiohttp would not use the connection again when the last answer had been read."""
        if line:
            line.watches.add(self)

    def rest(self) -> None:
        """There is no request under way any more."""
        self.at_rest = True
        self.surplus_at_rest = self._watched.should_close

    def close(self) -> None:
        """Close the connection."""
        self._watched.close()

    def data_received(self, data: bytes) -> None:
        was_at_rest = self.at_rest
        if not was_at_rest:
            self._watched.data_received(data)
        elif self.line and data.strip():  # line ends alone are no answer
            self.line.surplus = True
        if self.at_rest and self._watched.should_close:
            self.surplus_at_rest = True
        if was_at_rest or (self.at_rest and self._watched.should_close):  # more came than the answer
            self._watched.close()

    def eof_received(self) -> None:
        self._watched.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.line:
            self.line.watches.discard(self)
        self._watched.connection_lost(exc)

    def pause_writing(self) -> None:
        self._watched.pause_writing()

    def resume_writing(self) -> None:
        self._watched.resume_writing()


def _new_session() -> aiohttp.ClientSession:
    """Connections for the running event loop. As many as are asked for: a rate limiter limits calls."""
    return aiohttp.ClientSession(
        connector=_Connector(
            limit=0, keepalive_timeout=KEEPALIVE_SECONDS, resolver=aiohttp.ThreadedResolver()
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_ADDED_BY_AIOHTTP,
        timeout=_NO_END,
        auto_decompress=False,
        max_line_size=MOST_OF_A_HEADER,
        max_field_size=MOST_OF_A_HEADER,
        max_headers=MOST_HEADERS,
        middlewares=[_once],
        request_class=_Request,
    )


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from sending a GET again where the connection breaks: who asks decides."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise  # that was not sent at all
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _as_httpx2(error) from error


def _as_httpx2(error: aiohttp.ClientError) -> httpx2.HTTPError:
    """The error in httpx2's terms. Its words name no address, which might hold a password."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return httpx2.ConnectError(str(error.certificate_error))
        case aiohttp.ClientConnectorError():
            return httpx2.ConnectError(error.strerror or str(error.os_error) or "no connection")
        case aiohttp.ClientHttpProxyError():
            return httpx2.ProxyError(f"{error.status} {error.message}")
        case aiohttp.InvalidURL():
            return httpx2.UnsupportedProtocol("an address that cannot be used")
        case _:
            return httpx2.RemoteProtocolError(_broken(error))


def _broken(error: aiohttp.ClientError) -> str:
    """What happened on a connection that was there."""
    match error:
        case aiohttp.ServerDisconnectedError():
            return "Server disconnected without sending a response."
        case aiohttp.ClientResponseError():
            reason, _, _ = error.message.partition("\n")
            return f"the answer is no HTTP ({reason.rstrip(':')})"
        case aiohttp.ClientOSError() if error.__cause__:
            return str(error.__cause__)
        case _:
            return str(error)


_PACKED = b"content-encoding"
_OF_TRANSFER = frozenset({_PACKED, b"content-length", b"transfer-encoding"})


def _is_kept(name: bytes, value: bytes) -> bool:
    """Whether a header still holds for an answer that is unpacked; a cookie, only if it can be sent back."""
    return value.isascii() if name == b"set-cookie" else name not in _OF_TRANSFER


def _ends_connection(answer: aiohttp.ClientResponse) -> bool:
    """Whether the server said that this is the last answer on its connection: what follows reaches nobody."""
    says = answer.headers.get("Connection", "").lower()
    is_old = answer.version is None or answer.version < aiohttp.HttpVersion11
    framed = (
        "Content-Length" in answer.headers or "chunked" in answer.headers.get("Transfer-Encoding", "").lower()
    )
    return (
        "close" in says or is_old or answer.status < 200 or (not framed and answer.status not in (204, 304))
    )


def _address(url: httpx2.URL) -> URL:
    """An address as it goes out: nothing is quoted again, and a user's name is in the headers already."""
    return URL(str(url.copy_with(username=None, password=None) if url.userinfo else url), encoded=True)


def _is_readable(transport: asyncio.BaseTransport) -> bool:
    """Whether something has come that nobody has read yet: its end, where the other side has closed."""
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
