"""Agent cards of the A2A protocol: how an agent can be spoken to. Pure."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import JsonValue

from ci_evals.domain.errors import AgentError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})  # noqa: S104  # as cards name it


class Interface(NamedTuple):
    """The way to speak to an agent, as its card names it."""

    version: str
    """`1.0` or `0.3`."""
    binding: str
    """`JSONRPC` or `HTTP+JSON`."""
    path: str
    tenant: str | None
    streams: bool

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a request: without a version, servers take it for 0.3."""
        return {"A2A-Version": "1.0"} if self.version == "1.0" else {}


def interface_of(card: JsonValue, base_url: str, redactor: Redactor) -> Interface:
    """Choose the first interface of an agent card that can be spoken; raise `AgentError` if there is none."""
    offered = [*_interfaces(card)]
    usable = [one for one in offered if (one[1], one[2]) in _SPOKEN]
    if not usable:
        listed = ", ".join(f"{binding} {version}" for _, binding, version, _ in offered) or "none"
        raise AgentError(
            "the agent card has no interface that can be used: it offers "
            f"{payload.shorten(redactor.text(listed))}; ci-evals needs JSONRPC or HTTP+JSON 1.0, "
            "or JSONRPC 0.3"
        )
    url, binding, version, tenant = usable[0]
    parts, base = urlsplit(url), urlsplit(base_url)
    if _origin(url) != _origin(base_url):
        raise AgentError(
            f"the agent card names {payload.shorten(redactor.text(url))}, another server than {base.netloc}, "
            "which is not followed: set base-url to that server"
        )
    streams = payload.member(payload.member(card, "capabilities"), "streaming") is True
    return Interface(version, binding, parts.path.rstrip("/") or "/", tenant, streams)


_SPOKEN = {("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")}


def _interfaces(card: JsonValue) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield address, binding, version and tenant of each interface; that of 0.3 is the card itself."""
    listed = payload.member(card, "supportedInterfaces")
    if isinstance(listed, list) and listed:
        items = [(one, "protocolBinding", _version(payload.member(one, "protocolVersion"))) for one in listed]
    else:
        version = _version(payload.member(card, "protocolVersion"))
        more = payload.member(card, "additionalInterfaces")
        items = [(card, "preferredTransport", version)]
        items += [(one, "transport", version) for one in (more if isinstance(more, list) else ())]
    for item, key, version in items:
        url, binding = payload.name(payload.member(item, "url")), payload.name(payload.member(item, key))
        if url:
            yield url, binding or "JSONRPC", version, payload.name(payload.member(item, "tenant"))


def _version(value: JsonValue) -> str:
    """Return the major and minor version of a protocol."""
    return ".".join(str(value or "of no version").split(".")[:2])


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return "", url, None
    port = port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, "loopback" if host in _LOOPBACK else host, port
