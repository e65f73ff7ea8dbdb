"""The service behind a model, as results may name it: without credentials."""

from typing import NamedTuple
from urllib.parse import urlsplit

from ci_evals.adapters.transport import addresses
from ci_evals.support.digest import digest

_PORTS = {"http": 80, "https": 443}


class Service(NamedTuple):
    """The address of a model's API, or its program."""

    shown: str
    """Scheme, host and port: a path may hold a key."""
    digest: str
    """SHA-256 of the whole address without credentials."""

    @classmethod
    def at(cls, address: str) -> "Service | None":
        """Return the service at an address.

        None if it has a query: that may choose another model, and may hold a key.
        """
        if "://" not in address:
            return cls(address.split(maxsplit=1)[0], digest(address))
        parts = urlsplit(address)
        if parts.query or parts.fragment:
            return None
        shown = f"{parts.scheme}://{addresses.host_of(address)}"
        port = parts.port or _PORTS.get(parts.scheme)
        return cls(shown, digest([parts.scheme, parts.hostname, port, parts.path.rstrip("/")]))
