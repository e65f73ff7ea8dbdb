"""Adapters of other packages: entry points of `ci_evals.adapters`. Only the one that is named is loaded."""

from importlib.metadata import entry_points

GROUP = "ci_evals.adapters"


def names() -> frozenset[str]:
    """The names of all adapters that are installed beside the built-in ones. Loads none of them."""
    return frozenset(entry_points(group=GROUP).names)
