"""The entry points of `ci_evals.adapters` that other packages have. Loads none of them."""

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.errors import UsageError

GROUP = "ci_evals.adapters"


def names() -> frozenset[str]:
    """The names of all adapters that are installed beside the built-in ones."""
    return frozenset(_installed(tuple(sys.path)).names)


def named(name: str) -> EntryPoint:
    """The entry point of that name; raise `UsageError` if there is none, or several packages bring one."""
    entries = _entries(name)
    if not entries:
        raise UsageError(f"adapter {name!r} is not installed")
    if len(entries) > 1:
        several = f"is provided by more than one package, {packages(*entries)}: uninstall all but one"
        raise UsageError(f"adapter {name!r} {several}")
    return entries[0]


def check_built_in(name: str) -> None:
    """Raise `UsageError` if a package claims the name of a built-in adapter: either may be meant."""
    if name in AGENT_KINDS and (entries := _entries(name)):
        raise UsageError(
            f"adapter {name!r} is built in, and {packages(*entries)} provides another adapter of that name: "
            "uninstall it, or ask its authors for another name"
        )


def packages(*entries: EntryPoint) -> str:
    """The packages of entry points, as messages name them."""
    names = sorted(
        {f"{entry.dist.name!r} {entry.dist.version}" if entry.dist else "unknown" for entry in entries}
    )
    noun = "packages" if len(names) > 1 else "package"
    return f"the {noun} {' and '.join(names)}"


def _entries(name: str) -> tuple[EntryPoint, ...]:
    return tuple(_installed(tuple(sys.path)).select(name=name))


@lru_cache(maxsize=1)
def _installed(_path: tuple[str, ...]) -> EntryPoints:
    """All adapters on the path. Every installed package is asked, which takes a while: once is enough."""
    return entry_points(group=GROUP)
