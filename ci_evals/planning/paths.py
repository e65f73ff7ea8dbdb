"""Patterns of paths, as in `when: {paths: [...]}`: which files a test depends on."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ci_evals.domain.errors import Problem
from ci_evals.planning.parse import LoadedSuite

_PARTS = re.compile(r"/\*\*(?=/|$)|^\*\*/|\*\*|\*|\?|.", re.DOTALL)
_WORDS = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def touches(patterns: Iterable[str], files: Iterable[str]) -> bool:
    """Return whether a pattern takes one of the files, all relative to the root of the repository.

    `*` and `?` stay within a folder, `**` does not. A folder stands for all that is in it.
    """
    expressions = [_expression(pattern) for pattern in patterns]
    return any(expression.fullmatch(file) for file in files for expression in expressions)


def unmatched(patterns: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """Return the patterns that take none of the files: probably misspelled."""
    return tuple(pattern for pattern in patterns if not touches((pattern,), files))


def unmatched_in(loaded: LoadedSuite, files: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each pattern of a suite and its tests that takes none of the files."""
    tests = ((("tests", number), test.when) for number, test in enumerate(loaded.suite.tests))
    for path, when in (((), loaded.suite.when), *tests):
        for index, pattern in enumerate(when.paths if when else ()):
            if unmatched((pattern,), files):
                yield loaded.document.problem((*path, "when", "paths", index), f"{pattern!r} {_UNMATCHED}")


_UNMATCHED = (
    "matches no file that git tracks, so `changed_since=` always plays the test; correct the path, which is "
    "relative to the root of the repository"
)


@lru_cache(1_000)
def _expression(pattern: str) -> re.Pattern[str]:
    parts = _PARTS.findall(pattern.removeprefix("./").rstrip("/"))
    return re.compile("".join(_WORDS.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL)
