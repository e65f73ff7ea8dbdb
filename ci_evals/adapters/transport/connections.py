"""Creates HTTP clients, and checks addresses, proxies and headers."""

import asyncio
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
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

MAX_HOST_LENGTH = 255
"""Maximum length of a quoted host name: no real one is longer."""

MAX_SHARE = 1024
"""Maximum number of concurrent calls to one model."""

_ACCEPTED_ENCODINGS = "gzip, deflate"
"""httpx2 would accept more if it found more decoders."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def new_client(
    *,
    proxy: str | None = None,
    timeout: float | None = None,
    headers: dict[str, str] | None = None,
    max_mb: int = MAX_ANSWER_MB,
    alone: bool = False,
) -> httpx2.AsyncClient:
    """Create a client that follows no redirect, so that a key goes to no other host.

    Reading an answer beyond the maximum size raises `AnswerTooLargeError`.

    Args:
        proxy: Proxy, as of `proxy_for`.
        timeout: Seconds for a request and its whole answer, after which httpx2's `ReadTimeout` is raised.
        headers: Headers of each request.
        max_mb: Maximum size of an answer after decompression.
        alone: Whether the client has its own connections, which nothing else uses, before or after it.
    """
    from ci_evals.adapters.transport import over_aiohttp  # noqa: PLC0415  # 0.2 s, for calls alone

    all_headers = httpx2.Headers({"Accept-Encoding": _ACCEPTED_ENCODINGS})
    all_headers.update(headers)
    conversation = over_aiohttp.ConversationConnections() if alone else None
    return _Client(
        timeout,
        conversation,
        transport=over_aiohttp.Transport(max_mb, proxy, conversation),
        trust_env=False,  # otherwise each client would read the environment again
        headers=all_headers,
        follow_redirects=False,
    )


def load() -> None:
    """Import aiohttp ahead of the first request, which takes 0.2 s."""
    from ci_evals.adapters.transport import over_aiohttp  # noqa: F401, PLC0415  # for those alone


def met_surplus(client: httpx2.AsyncClient) -> bool:
    """Return whether an unrequested answer came over the client's own connections."""
    return isinstance(client, _Client) and client.conversation is not None and client.conversation.surplus


def proxy_for(url: str) -> str | None:
    """Return the proxy by the environment (`HTTPS_PROXY`, `NO_PROXY`, …); none for this machine.

    Raises:
        UsageError: it is not supported, or no address. The message holds no password.
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
            f"the environment names a proxy for {host} that is no address like http://host:port; "
            "see HTTP_PROXY, HTTPS_PROXY, ALL_PROXY (a password's special characters must be percent-encoded)"
        )
    return proxy


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

    Raises:
        UsageError: it is not valid in HTTP. The message names `what`, never the value.
    """
    value = value.strip()
    if value and not _HEADER_VALUE.fullmatch(value):
        raise UsageError(f"{what} holds characters that no HTTP header can carry; was it pasted wrongly?")
    return value


def key_value(key: str, provider: str, hint: str) -> str:
    """Return an LLM key without surrounding white space.

    Raises:
        UsageError: it is blank, or not valid in a header.
    """
    if value := header_value(key, f"the key for {provider}"):
        return value
    raise UsageError(f"there is no key for {provider}: {hint}")


def is_header_name(name: str) -> bool:
    """Return whether HTTP allows a header of this name."""
    return _HEADER_NAME.fullmatch(name) is not None


class _Client(httpx2.AsyncClient):
    """Limits the total time of a request. httpx2's timeouts are for each step: a drip never exceeds them."""

    def __init__(
        self, seconds: float | None, conversation: "ConversationConnections | None", **options: Any
    ) -> None:
        self._seconds = seconds
        self.conversation = conversation
        super().__init__(timeout=None, **options)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            async with asyncio.timeout(self._seconds):
                return await super().send(request, **options)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {self._seconds} s", request=request) from error


def _is_proxy(address: str) -> bool:
    try:
        httpx2.Proxy(address)
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
