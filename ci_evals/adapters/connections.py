"""Making HTTP clients: one small client for each conversation or call under way, one TLS context for all.

One shared pool would be searched linearly for every request: at 100 conversations that costs twice the wall
time. A TLS context of its own for each client would cost tens of milliseconds.
"""

import re
from functools import cache
from ipaddress import ip_address
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from ci_evals.domain.errors import UsageError

KEEPALIVE_SECONDS = 4.0
"""An idle connection is not used again after this long. Common servers close theirs after 5 s, and a request
that crosses with such a close fails although it may have been read."""

_LIMITS = httpx2.Limits(max_connections=4, max_keepalive_connections=4, keepalive_expiry=KEEPALIVE_SECONDS)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def new_client(
    url: str, *, proxy: str | None = None, timeout: float | None = None, headers: dict[str, str] | None = None
) -> httpx2.AsyncClient:
    """A client for calls to `url`'s host. It follows no redirect: a key goes to no other host.

    Args:
        url: Where the calls go; only its scheme counts.
        proxy: As `proxy_for` gives it.
        timeout: Seconds to wait for each step of a call; without it the caller sees to an end.
        headers: Sent with each request.
    """
    return httpx2.AsyncClient(
        verify=_tls() if url.startswith("https:") else _no_tls(),
        proxy=proxy,
        trust_env=False,  # else each client would read the environment again
        limits=_LIMITS,
        timeout=timeout,
        headers=headers,
        follow_redirects=False,
    )


def proxy_for(url: str) -> str | None:
    """The proxy that the environment (`HTTPS_PROXY`, `NO_PROXY`, …) asks for; never one to this machine.

    Raises:
        UsageError: it is of a kind that is not supported.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or _loopback(host) or proxy_bypass(host):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise UsageError(
            f"the environment names a proxy for {host} of the kind {urlsplit(proxy).scheme!r}; "
            "only http and https proxies are supported (see HTTPS_PROXY, ALL_PROXY, NO_PROXY)"
        )
    return proxy


def host_of(url: str) -> str:
    """The host of `url`, with its port if it is not the scheme's own: what messages call a server."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{parts.port}" if parts.port else host


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


@cache
def _tls() -> SSLContext:
    return httpx2.create_ssl_context()


@cache
def _no_tls() -> SSLContext:
    # Never used, but a client wants one, and this one loads no certificates.
    return SSLContext(PROTOCOL_TLS_CLIENT)


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
