"""The service behind a model, as results may name it: without credentials."""

from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2

from ci_evals.adapters.transport import connections
from ci_evals.support.digest import digest


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
        shown = f"{parts.scheme}://{connections.host_of(address)}"
        whole = httpx2.URL(address).copy_with(username="", password="")
        return cls(shown, digest(str(whole).rstrip("/")))
