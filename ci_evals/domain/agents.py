"""Names of adapters, and secrets in their options."""

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from ci_evals.support import secrets

DEFAULT_ADAPTER = "aui"

PYTHON, COMMAND = "python:", "command:"
"""Prefixes of adapters for code: `python:module:attribute`, `command: node agent.js`."""


def is_program(adapter: str) -> bool:
    """Return whether the adapter's name says which code to run here."""
    return adapter.startswith((PYTHON, COMMAND))


def program_of(adapter: str) -> str | None:
    """Return the prefix of such a name, without the colon; None for other adapters."""
    return adapter.partition(":")[0] if is_program(adapter) else None


_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|session|password", re.IGNORECASE)


_OF_HEADERS = frozenset({"headers", "keyHeader"})
"""Options whose names of headers show which values are secret; the name of a header itself is not."""


def secrets_of(options: Mapping[str, JsonValue] | None) -> Iterator[str]:
    """Yield the secrets in an adapter's options, as far as names of options and headers reveal them."""
    headers = (options or {}).get("headers")
    others = {key: item for key, item in (options or {}).items() if key not in _OF_HEADERS}
    yield from secrets.in_options(others)
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if isinstance(value, str) and _SECRET_HEADER.search(str(name)):
            yield from (part for part in value.split() if "{{" not in part and "}}" not in part)


_SCHEMES = frozenset({"", "basic", "bearer", "token"})


def lacks_secret(name: str, value: str) -> bool:
    """Return whether a header that should hold a secret, by its name, holds none."""
    return bool(_SECRET_HEADER.search(name)) and value.strip().lower() in _SCHEMES
