"""Creates HTTP clients, and checks addresses, proxies and headers."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

try:
    import resource
except ImportError:  # Windows, where sockets do not count as open files
    resource = None  # type: ignore[assignment]

from ci_evals.adapters.transport.payload import MAX_ANSWER_MB
from ci_evals.domain.errors import UsageError

if TYPE_CHECKING:
    from ci_evals.adapters.transport.over_aiohttp import ConversationConnections
    from ci_evals.adapters.transport.websocket import WebSocket

MAX_HOST_LENGTH = 255

MAX_SHARE = 1024

_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MADE_HERE = frozenset({"host", "content-length", "transfer-encoding"})


def new_client(
    *,
    proxy: str | None = None,
    timeout: float | None = None,
    headers: dict[str, str] | None = None,
    max_mb: int = MAX_ANSWER_MB,
    alone: bool = False,
) -> "Client":
    """Create a client that follows no redirect, so that a key goes to no other host.

    Its answers may have `max_mb` after decompression, else reading them raises `AnswerTooLargeError`. A
    request may take `timeout` seconds with its whole answer, else `ReadTimeout` is raised. If `alone`,
    nothing else uses its connections, before or after it.
    """
    from ci_evals.adapters.transport import over_aiohttp  # noqa: PLC0415  # 0.2 s, for calls alone

    all_headers = httpx2.Headers({"Accept-Encoding": "gzip, deflate"})  # not what other decoders there are
    all_headers.update(headers)
    conversation = over_aiohttp.ConversationConnections() if alone else None
    return Client(
        timeout,
        conversation,
        transport=over_aiohttp.Transport(max_mb, proxy, conversation),
        trust_env=False,  # otherwise each client would read the environment again
        headers=all_headers,
        follow_redirects=False,
    )


def proxy_for(url: str) -> str | None:
    """Return the proxy by the environment (`HTTPS_PROXY`, `NO_PROXY`, …); none for this machine.

    Raise `UsageError`, without its password, if it is not supported or no address.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or _is_loopback(host) or proxy_bypass(host) or proxy_bypass(f"{host}:{port}"):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = proxy.partition("://")[0].lower()
    if scheme not in _DEFAULT_PORTS:
        raise UsageError(
            f"the environment names a proxy for {host} of the kind {scheme!r}; "
            "only http and https proxies are supported (see HTTPS_PROXY, ALL_PROXY, NO_PROXY)"
        )
    if not _is_proxy(proxy):
        raise UsageError(
            f"the environment names a proxy for {host} that is not an address like http://host:port; "
            "see HTTP_PROXY, HTTPS_PROXY, ALL_PROXY (a password's special characters must be percent-encoded)"
        )
    return proxy


def base_url_parts(base_url: str) -> SplitResult:
    """Return the parts of an agent's address, which paths can be appended to.

    Raise `UsageError` if it is no such http(s) address, without its query, which may hold a secret.
    """
    text = base_url.strip()
    if "@" in text:
        raise UsageError(
            "the agent's base URL may not contain a user name or password; set headers with --agent-headers"
        )
    shown = re.split("[?#]", text, maxsplit=1)[0]
    if not _is_http(text) or any(char.isspace() for char in text):
        raise UsageError(f"the agent's base URL {shown!r} is not an http(s):// address (see --base-url)")
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        raise UsageError(f"the agent's base URL {shown!r} must end before '?' and '#' (see --base-url)")
    return parts


def host_of(url: str) -> str:
    """Return the host of an address and its port, if given: the name of a server in messages."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "an address that cannot be read"
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def redirect_of(response: httpx2.Response) -> str | None:
    """Return the target of a redirect for messages, without its path, which may hold a secret."""
    if not response.has_redirect_location:
        return None
    if response.next_request is None:
        return "an address that cannot be read"
    here, there = response.request.url, response.next_request.url
    if (here.scheme, here.netloc) == (there.scheme, there.netloc):
        return "another path on the same host"
    host = there.netloc.decode(errors="replace")[:MAX_HOST_LENGTH]
    return host if here.scheme == there.scheme else f"{there.scheme}://{host}"


def fair_share() -> int:
    """Return the maximum number of connections to one service: a quarter of the files that may be open."""
    if resource is None:
        return MAX_SHARE
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_SHARE if most < 0 else max(1, min(most // 4, MAX_SHARE))


def header_value(value: str, what: str) -> str:
    """Return a header's value without surrounding white space, as of a pasted secret.

    Raise `UsageError`, which names `what` but never the value, if HTTP does not allow it.
    """
    value = value.strip()
    if value and not _HEADER_VALUE.fullmatch(value):
        raise UsageError(f"{what} holds characters that no HTTP header can carry; was it pasted wrongly?")
    return value


class Client(httpx2.AsyncClient):
    """Limits the total time of a request. httpx2's timeouts are for each step: a drip never exceeds them."""

    def __init__(
        self, seconds: float | None, conversation: "ConversationConnections | None", **options: Any
    ) -> None:
        self._seconds, self._conversation = seconds, conversation
        self._carrier = options["transport"]
        super().__init__(timeout=None, **options)
        self._own = {name.lower().decode(): (name, value) for name, value in self.headers.raw}

    @property
    def met_surplus(self) -> bool:
        """True if an unrequested answer came over the client's own connections."""
        return self._conversation is not None and self._conversation.surplus

    @property
    def socket(self) -> "WebSocket":
        """The client's WebSocket, which is opened when a message is sent over it."""
        return self._carrier.websocket  # type: ignore[no-any-return]

    def build_request(
        self, method: str, url: httpx2.URL | str, *, content: Any = None, headers: Any = None, **options: Any
    ) -> httpx2.Request:
        """Build the request that httpx2 would, in a sixth of its time if it is a body and usual headers."""
        given = headers.items() if isinstance(headers, Mapping) else headers or ()
        names = {name.lower() for name, _ in given}
        is_usual = _MADE_HERE.isdisjoint(names | self._own.keys())
        if type(content) is not bytes or not is_usual or any(options.values()):
            return super().build_request(method, url, content=content, headers=headers, **options)
        own = [header for name, header in self._own.items() if name not in names]
        address = url if isinstance(url, httpx2.URL) else _read_address(url)
        complete = [("Host", address.netloc), *own, *given, ("Content-Length", str(len(content)))]
        request = httpx2.Request(
            method,
            address,
            headers=httpx2.Headers(complete),
            cookies=self.cookies,
            stream=httpx2.ByteStream(content),
        )
        request.read()
        return request

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request; raise `ReadTimeout` if its answer is not whole in time."""
        usual = all(option is httpx2.USE_CLIENT_DEFAULT for option in options.values())
        try:
            async with asyncio.timeout(self._seconds):
                if stream or self.is_closed or request.url.userinfo or not usual:
                    return await super().send(request, stream=stream, **options)
                return await self._exchange(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {self._seconds} s", request=request) from error

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request as httpx2 does, without what never happens here: hooks, and steps of a login."""
        response: httpx2.Response = await self._carrier.exchange(request)
        self.cookies.extract_cookies(response)
        if response.has_redirect_location:
            with suppress(httpx2.InvalidURL):
                target = request.url.join(response.headers["location"])
                response.next_request = httpx2.Request("GET", target)
        return response


_read_address = lru_cache(httpx2.URL)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # among them a port beyond 65535
        return False


def _is_proxy(address: str) -> bool:
    try:
        httpx2.Proxy(address)
    except (ValueError, httpx2.InvalidURL):
        return False
    return _is_http(address)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
