"""The identity of a test in a JUnit file: the path of its suites, its class and its name.

Parts that only repeat what follows are left out, and so are those that say nothing of a test: the names
that runners give to the whole, and the folder or the time in the name of a suite, which differ from run to
run.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

OF = " › "
"""Between the parts of an identity."""
_OF_THE_WHOLE = frozenset({"pytest", "Root Suite", "Mocha Tests", "jest tests", "vitest tests"})
_TIME = re.compile(r"-\d{14}$")
"""unittest-xml-reporting adds the time to the name of a suite."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")
_MOST_PATHS = 10_000
"""Paths of suites that are kept."""
_MARKS = re.compile(r"[\\/.:]+")


def suite_name(text: str) -> str:
    """Return the name of a suite as it is in every run."""
    return _TIME.sub("", text.strip())


def identity(suites: tuple[str, ...], where: str, name: str) -> str:
    """Return the name of a test in its file; empty if it has none, whatever is around it.

    Args:
        suites: The names of the suites around it, from the outermost.
        where: Its class.
        name: Its own name.
    """
    if not name:
        return ""
    if where == name:
        where = ""
    path = _path(suites, where)
    if where and path and path[-1].endswith(f"/{where}"):  # the package of Go, and its last part
        where = ""
    if path and (path[-1] == name or (not where and _repeats(path[-1], name))):
        path = path[:-1]
    return OF.join([*path, where, name] if where else [*path, name])


@lru_cache(_MOST_PATHS)
def _path(suites: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return the names of suites that say something of a test of a class, which no next one repeats."""
    path = [
        suite
        for depth, suite in enumerate(suites, 1)
        if suite and suite not in _OF_THE_WHOLE and (depth == len(suites) or not _ABSOLUTE.match(suite))
    ]
    following = [*path, where][1:]
    return tuple(part for part, after in zip(path, following, strict=True) if not _repeats(part, after))


def _repeats(part: str, following: str) -> bool:
    """Return whether what follows begins with a part: `shop.Cart` with `shop`, `cart adds` with `cart`."""
    part, following = _MARKS.sub(".", part), _MARKS.sub(".", following)
    return following == part or following.startswith((f"{part}.", f"{part} "))


def numbered(names: Iterable[str]) -> list[str]:
    """Return the names with a number from the second of each on: equal names are different tests.

    What has no name gets none.
    """
    names = list(names)
    repeated = {name for name, times in Counter(names).items() if times > 1 and name}
    if not repeated:
        return names
    seen: Counter[str] = Counter()
    taken = set(names)
    found = []
    for name in names:
        seen[name] += name in repeated
        number = seen[name]
        unique = name if number < 2 else f"{name} #{number}"
        while number > 1 and unique in taken:
            number += 1
            unique = f"{name} #{number}"
        taken.add(unique)
        found.append(unique)
    return found
