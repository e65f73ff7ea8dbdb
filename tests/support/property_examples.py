"""How many examples a property is tried with: a quarter, and all of them in `make simulate`."""

from hypothesis import settings

ALL = "all"
"""The profile of hypothesis that `make simulate` names."""
FEW = "few"
SHARE = 4
"""The other tiers try one of so many."""
DEFAULT = 100
"""Of a property that names no number."""


def register_profiles() -> None:
    """Make the profiles known, and choose the one with few examples."""
    settings.register_profile(ALL, deadline=None, max_examples=DEFAULT)
    settings.register_profile(FEW, deadline=None, max_examples=DEFAULT // SHARE)
    settings.load_profile(FEW)


def examples(number: int) -> int:
    """Return how many of so many examples this run tries, at least ten."""
    if settings.get_current_profile_name() == ALL:
        return number
    return max(10, number // SHARE)
