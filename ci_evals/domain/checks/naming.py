"""Names in the reasons of verdicts."""

from collections.abc import Iterable

from ci_evals.support.typography import names


def listed(seen: Iterable[str]) -> str:
    """Return the names, each once; `none` if there are none."""
    return ", ".join(dict.fromkeys(seen)) or "none"


def other_names(wanted: Iterable[str], seen: Iterable[str]) -> str:
    """Return a note on names that are wanted ones with a prefix, which a check takes for other tools."""
    seen = tuple(seen)
    notes: list[str] = []
    for name in wanted:
        notes += [f"; {other} is another name than {name}" for other in names.prefixed(name, seen)]
    return "".join(dict.fromkeys(notes))
