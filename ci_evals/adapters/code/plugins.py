"""Adapters of other packages: which entry points of `ci_evals.adapters` there are. Loads none of them."""

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

from ci_evals.domain.agents import BUILT_IN
from ci_evals.domain.errors import UsageError

GROUP = "ci_evals.adapters"


def names() -> frozenset[str]:
    """The names of all adapters that are installed beside the built-in ones. Loads none of them."""
    return frozenset(_installed(tuple(sys.path)).names)


def named(name: str) -> EntryPoint:
    """The entry point of that name.

    Raises:
        UsageError: there is none, or more than one package brings one.
    """
    found = _found(name)
    if len(found) != 1:
        several = f"is brought by more than one package, {packages(*found)}: uninstall all but one"
        raise UsageError(f"adapter {name!r} {several if found else 'is not installed'}")
    return found[0]


def check_built_in(name: str) -> None:
    """Nothing, unless a package claims the name of a built-in adapter: then it is not clear who is meant.

    Raises:
        UsageError: one does.
    """
    if name in BUILT_IN and (found := _found(name)):
        raise UsageError(
            f"adapter {name!r} is built in, and {packages(*found)} brings another one of that name: "
            "uninstall it, or ask its authors for another name"
        )


def packages(*found: EntryPoint) -> str:
    """The packages that entry points are of, as messages name them."""
    known = sorted(
        {f"{entry.dist.name!r} {entry.dist.version}" if entry.dist else "unknown" for entry in found}
    )
    return f"the package{'s' if len(known) > 1 else ''} {' and '.join(known)}"


def _found(name: str) -> tuple[EntryPoint, ...]:
    return tuple(_installed(tuple(sys.path)).select(name=name))


@lru_cache(maxsize=1)
def _installed(_path: tuple[str, ...]) -> EntryPoints:
    """All adapters on the path. Every installed package is asked, which takes a while: once is enough."""
    return entry_points(group=GROUP)
