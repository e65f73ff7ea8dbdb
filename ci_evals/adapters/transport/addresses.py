"""Addresses, proxies and header values, checked before anything is sent."""

import re
from base64 import b64encode
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from ci_evals.domain.errors import UsageError

MAX_HOST_LENGTH = 255

_UNREADABLE = "an address that cannot be read"
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


def split_proxy(proxy: str) -> tuple[str, dict[str, str]]:
    """Return a proxy's address without its login, and the header that holds it: any library takes these."""
    parts = urlsplit(proxy)
    login, _, place = parts.netloc.rpartition("@")
    plain = parts._replace(netloc=place).geturl()
    if not login:
        return plain, {}
    user, _, password = login.partition(":")
    secret = f"{unquote(user)}:{unquote(password)}".encode()
    return plain, {"Proxy-Authorization": f"Basic {b64encode(secret).decode()}"}


def base_url_parts(base_url: str) -> SplitResult:
    """Return the parts of an agent's address, which paths can be appended to.

    Raise `UsageError` if it is no such http(s) address, without its query, which may hold a secret.
    """
    text = base_url.strip()
    if "@" in text:
        raise UsageError(
            "the agent's base URL may not contain a user name or password; set headers with `agent_headers=`"
        )
    shown = re.split("[?#]", text, maxsplit=1)[0]
    if not is_address(text):
        raise UsageError(f"the agent's base URL {shown!r} is not an http(s):// address (see `base_url=`)")
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        raise UsageError(f"the agent's base URL {shown!r} must end before '?' and '#' (see `base_url=`)")
    return parts


def host_of(url: str) -> str:
    """Return the host of an address and its port, if given: the name of a server in messages."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return _UNREADABLE
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def redirect_of(url: str, status: int, location: str | None) -> str | None:
    """Return the target of a redirect for messages, without its path, which may hold a secret.

    `url` is the address that was asked. None if the answer does not redirect.
    """
    if status not in _REDIRECTS or location is None:
        return None
    try:
        target = urljoin(url, location)
        here, there = urlsplit(url), urlsplit(target)
    except ValueError:
        return _UNREADABLE
    if (here.scheme, here.netloc) == (there.scheme, there.netloc):
        return "another path on the same host"
    host = host_of(target)[:MAX_HOST_LENGTH] or _UNREADABLE
    if here.scheme == there.scheme or host == _UNREADABLE:
        return host
    return f"{there.scheme}://{host}"


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
