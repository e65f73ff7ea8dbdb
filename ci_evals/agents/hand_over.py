"""Hand-overs to a person, by tools that options name: `escalationTools`."""

from collections.abc import Collection, Iterable


def hands_over(names: Iterable[str], tools: Collection[str]) -> bool:
    """Return whether a tool was called that hands over."""
    return any(name in tools for name in names)


def hand_over(names: Iterable[str], tools: Collection[str], *, all_known: bool) -> bool | None:
    """Return whether the agent handed over by one of the calls; None if that is unknown.

    One call that was read is evidence, whatever the others are. Only if all calls are known, and there cannot
    be others, is it known that there was none.
    """
    if not tools:
        return None
    if hands_over(names, tools):
        return True
    return False if all_known else None
