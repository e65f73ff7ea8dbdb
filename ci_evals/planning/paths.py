"""Patterns of paths, as in `when: {paths: [...]}`: which files a test depends on."""

import re
from collections.abc import Iterable
from functools import lru_cache

_PARTS = re.compile(r"/\*\*(?=/|$)|^\*\*/|\*\*|\*|\?|.", re.DOTALL)
_WORDS = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def touches(patterns: Iterable[str], files: Iterable[str]) -> bool:
    """Return whether a pattern takes one of the files, all relative to the root of the repository.

    `*` and `?` stay within a folder, `**` does not. A folder stands for all that is in it.
    """
    expressions = [_expression(pattern) for pattern in patterns]
    return any(expression.fullmatch(file) for file in files for expression in expressions)


@lru_cache(1_000)
def _expression(pattern: str) -> re.Pattern[str]:
    parts = _PARTS.findall(pattern.removeprefix("./").rstrip("/"))
    return re.compile("".join(_WORDS.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL)
