"""`--rounds`: when a run is looked at."""

from ci_evals.cli.settings.plan_settings import PlanSettings
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import UsageError
from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS


def looks_of(settings: PlanSettings) -> tuple[int, ...]:
    """The trials of each test after which the run is looked at; empty without `--rounds`.

    With several agents they are those that its limits were searched for, whatever `--rounds` lists.

    Raises:
        UsageError: they are none, or another option contradicts them.
    """
    text = settings.rounds.strip().lower()
    if text in {"", "off"}:
        return ()
    if settings.loops != PlanSettings.loops:
        raise UsageError(
            f"`rounds={text}`, `loops={settings.loops}`: rounds set how often tests are played. "
            "Omit `loops=`."
        )
    if isinstance(settings, RunSettings) and settings.shard:
        raise UsageError(
            f"`rounds={text}` does not work with `shard={settings.shard}`: only the whole run shows whether "
            "it is decided. Use `loops=` instead."
        )
    both_sides = settings.against is not None or settings.arms is not None
    if text == "auto":
        return BOTH_SIDES_LOOKS if both_sides else LOOKS
    parts = [part.strip() for part in text.split(",")]
    looks = [look for look in LOOKS if str(look) in parts]
    if parts != [str(look) for look in looks]:
        known = ", ".join(map(str, LOOKS))
        raise UsageError(
            f"`rounds=`: {text[:60]!r} is not off, auto, or some of {known} in ascending order, such as 3,7."
        )
    return BOTH_SIDES_LOOKS if both_sides else tuple(looks)
