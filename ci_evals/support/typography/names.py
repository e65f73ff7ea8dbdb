"""Names of tools and the like: when two are the same, and when one is another with a prefix."""

import re
import unicodedata
from collections.abc import Iterable

from ci_evals.support.typography.folding import seen

_PREFIX = re.compile(r"(?:mcp__.+?__|(?:functions|function|tools|default_api)[.:/]|[^.:/]+[.:/](?=[^.:/]+$))")
"""What clients of models put before a tool's name: `mcp__SERVER__`, `functions.`, `SERVER.`, `SERVER/`."""


def folded(name: str) -> str:
    """Return a name without signs that nobody sees, and with letters of ordinary width."""
    if name.isascii() and name.isprintable():
        return name
    return unicodedata.normalize("NFKC", seen(name)).strip()


def same(one: str, other: str) -> bool:
    """Return whether two names are the same but for signs that nobody sees, and width."""
    return one == other or folded(one) == folded(other)


def among(name: str, others: Iterable[str]) -> bool:
    """Return whether a name is one of these."""
    return any(same(name, other) for other in others)


def prefixed(name: str, seen_names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are this one with a prefix, each once: perhaps the same tool."""
    return tuple(dict.fromkeys(other for other in seen_names if _is_prefixed(folded(name), folded(other))))


def _is_prefixed(name: str, other: str) -> bool:
    prefix = _PREFIX.match(other)
    return prefix is not None and other != name and other[prefix.end() :] == name
