"""Checks addresses of agents. Pure."""

import re
from urllib.parse import SplitResult, urlsplit

from ci_evals.domain.errors import UsageError


def parse(base_url: str) -> SplitResult:
    """Return the parts of an address that paths can be appended to.

    Raises:
        UsageError: it is no such http(s) address. The message shows no query, which may hold a secret.
    """
    text = base_url.strip()
    if "@" in text:
        raise UsageError(
            "the agent's base URL may hold no user name or password; headers can be set by --agent-headers"
        )
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    shown = re.split("[?#]", text, maxsplit=1)[0]
    if not valid or any(char.isspace() for char in text):
        raise UsageError(f"the agent's base URL {shown!r} is no http(s):// address (see --base-url)")
    if parts.query or parts.fragment:
        raise UsageError(f"the agent's base URL {shown!r} must end before '?' and '#' (see --base-url)")
    return parts


def base(base_url: str) -> str:
    """Return an address that paths can be appended to.

    Raises:
        UsageError: as `parse`.
    """
    parts = parse(base_url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
