"""Making HTTP clients: one for each conversation, with its own cookies, over connections that they share."""

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
    from ci_evals.adapters.transport.over_aiohttp import Line

MAX_HOST_LENGTH = 255
"""Characters of a foreign host's name that a message of ours quotes: no real one is longer."""

MAX_SHARE = 1024
"""The most calls to one model at once, however many files may be open."""

_PACKED_AS = "gzip, deflate"
"""How answers may be packed. httpx2 would ask for more where it finds more decoders."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def new_client(
    *,
    proxy: str | None = None,
    timeout: float | None = None,
    headers: dict[str, str] | None = None,
    most_mb: int = MAX_ANSWER_MB,
    alone: bool = False,
) -> httpx2.AsyncClient:
    """A client that follows no redirect: a key goes to no other host.

    Reading an answer raises `AnswerTooLargeError` where there is no end to it.

    Args:
        proxy: As `proxy_for` gives it.
        timeout: Seconds that one request may take in all, its answer read; without it the caller sees to an
            end. Too long is httpx2's `ReadTimeout`.
        headers: Sent with each request.
        most_mb: The most that is read of an answer, unpacked.
        alone: Whether the client has connections of its own, which nobody else uses, before or after it.
    """
    from ci_evals.adapters.transport.over_aiohttp import Line, Transport  # noqa: PLC0415  # 0.2 s, for calls alone

    sent = httpx2.Headers({"Accept-Encoding": _PACKED_AS})
    sent.update(headers)
    line = Line() if alone else None
    return _PunctualClient(
        timeout,
        line,
        transport=Transport(most_mb, proxy, line),
        trust_env=False,  # else each client would read the environment again
        headers=sent,
        follow_redirects=False,
    )


def load() -> None:
    """Imports what requests are carried by, for whoever is about to send some: it takes 0.2 s."""
    from ci_evals.adapters.transport import over_aiohttp  # noqa: F401, PLC0415  # for those alone


def met_surplus(client: httpx2.AsyncClient) -> bool:
    """Return whether more has come over the client's own connections than it asked for."""
    return isinstance(client, _PunctualClient) and client.line is not None and client.line.surplus


def proxy_for(url: str) -> str | None:
    """The proxy that the environment (`HTTPS_PROXY`, `NO_PROXY`, …) asks for; never one to this machine.

    Raises:
        UsageError: it is of a kind that is not supported, or no address. The message holds no password.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or _loopback(host) or proxy_bypass(host) or proxy_bypass(f"{host}:{port}"):
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
    """The host of `url`, with its port if it is not the scheme's own: what messages call a server."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "an address that cannot be read"
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def redirect_of(response: httpx2.Response) -> str | None:
    """Where an answer redirects to, to go after "redirects to"; none if it does not.

    A path is not told: it may hold a secret.
    """
    if not response.has_redirect_location:
        return None
    if response.next_request is None:
        return "an address that cannot be read"
    here, there = response.request.url, response.next_request.url
    if (here.scheme, here.netloc) == (there.scheme, there.netloc):
        return "another path on the same host"
    place = there.netloc.decode(errors="replace")[:MAX_HOST_LENGTH]
    return place if here.scheme == there.scheme else f"{there.scheme}://{place}"


def fair_share() -> int:
    """How many connections one neighbour may take: a quarter of what the process may open.

    Beside it stand another model and the agents, whose number the user sets by --parallel.
    """
    if resource is None:
        return MAX_SHARE
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_SHARE if most < 0 else max(1, min(most // 4, MAX_SHARE))


def header_value(value: str, what: str) -> str:
    """`value` without the blanks and line ends that a pasted secret brings along.

    Raises:
        UsageError: no HTTP header can carry it. The message names `what`, never the value.
    """
    value = value.strip()
    if value and not _HEADER_VALUE.fullmatch(value):
        raise UsageError(f"{what} holds characters that no HTTP header can carry; was it pasted wrongly?")
    return value


def key_value(key: str, provider: str, hint: str) -> str:
    """An LLM key, stripped.

    Raises:
        UsageError: it is blank, or no header can carry it.
    """
    if value := header_value(key, f"the key for {provider}"):
        return value
    raise UsageError(f"there is no key for {provider}: {hint}")


def is_header_name(name: str) -> bool:
    """Whether HTTP allows a header of this name."""
    return _HEADER_NAME.fullmatch(name) is not None


class _PunctualClient(httpx2.AsyncClient):
    """Gives a request a time in all. httpx2's own timeouts are for each step: a drip never exceeds them."""

    def __init__(self, seconds: float | None, line: "Line | None", **options: Any) -> None:
        self._seconds = seconds
        self.line = line
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


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
