"""Checks addresses, proxies and headers."""

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

try:
    import resource
except ImportError:  # Windows, where sockets do not count as open files
    resource = None  # type: ignore[assignment]

from ci_evals.domain.errors import UsageError

MAX_HOST_LENGTH = 255

MAX_SHARE = 1024

_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


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
    if not is_address(proxy):
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
    if not is_address(text):
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


def redirect_of(url: str, status: int, location: str | None) -> str | None:
    """Return the target of a redirect for messages, without its path, which may hold a secret.

    `url` is the address that was asked. None if the answer does not redirect.
    """
    if status not in _REDIRECTS or location is None:
        return None
    try:
        here, there = urlsplit(url), urlsplit(urljoin(url, location))
        host, port = there.hostname, there.port
    except ValueError:
        return "an address that cannot be read"
    if (here.scheme, here.netloc) == (there.scheme, there.netloc):
        return "another path on the same host"
    if not host:
        return "an address that cannot be read"
    host = f"[{host}]" if ":" in host else host
    shown = (f"{host}:{port}" if port else host)[:MAX_HOST_LENGTH]
    return shown if here.scheme == there.scheme else f"{there.scheme}://{shown}"


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


def is_address(url: str) -> bool:
    """Return whether a text is an http(s) address that requests can be sent to."""
    if any(char.isspace() or not char.isprintable() for char in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # among them a port beyond 65535
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
