"""How many examples a property is tried with: a quarter, and all of them in `make simulate`."""

from hypothesis import HealthCheck, settings

ALL = "all"
"""The profile of hypothesis that `make simulate` names."""
FEW = "few"
SHARE = 4
"""The other tiers try one of so many."""
CLOCKS = (HealthCheck.too_slow,)
"""Fails where examples are made slowly, as on a busy machine. Properties that suppress others name it too."""
DEFAULT = 100
"""Of a property that names no number."""


def register_profiles() -> None:
    """Make the profiles known, and choose the one with few examples. None holds a clock."""
    without_clock = {"deadline": None, "suppress_health_check": CLOCKS}
    settings.register_profile(ALL, max_examples=DEFAULT, **without_clock)
    settings.register_profile(FEW, max_examples=DEFAULT // SHARE, **without_clock)
    settings.load_profile(FEW)


def examples(number: int) -> int:
    """Return how many of so many examples this run tries, at least ten."""
    if settings.get_current_profile_name() == ALL:
        return number
    return max(10, number // SHARE)
