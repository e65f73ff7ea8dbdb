"""The scale of scores, 0 to 100, and floors that were meant on another one."""


def is_share(floor: float) -> bool:
    """Return whether a minimum score looks like a share of 1: nearly every run would reach it."""
    return 0 < floor <= 1


def as_share(floor: float) -> str:
    """Return a warning about such a floor, to follow its name."""
    return f"is at most 1 point: scores run from 0 to 100. For {100 * floor:g} % write {100 * floor:g}"
