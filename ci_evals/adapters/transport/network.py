"""What agents and models have in common on the network: answers, failures, certificates."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache


@dataclass(frozen=True)
class Answer:
    """An answer that was read."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name, whatever its case."""
    body: bytes = b""
    seconds: float = 0.0
    """Seconds from the request to the end of the answer."""

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return 200 <= self.status < 300


class NetworkError(Exception):
    """A connection broke, or the answer was no HTTP. The server may have received the request."""


class UnreachableError(NetworkError):
    """No connection was made, so the server received nothing."""


class ProxyError(NetworkError):
    """A proxy refused to pass the request on."""


@cache
def certificates() -> ssl.SSLContext:
    """Return the check of servers' certificates, made once: reading them takes milliseconds.

    They are those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else of the system.
    """
    import httpx2  # noqa: PLC0415  # knows both variables; not needed without TLS

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
