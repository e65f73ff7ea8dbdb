"""`--rounds`: when a run is looked at."""

from ci_evals.cli.settings.suite_commands import PlanSettings, RunSettings
from ci_evals.domain.choices import BothSides
from ci_evals.domain.errors import UsageError
from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS

_MOST = 1_000


def looks_of(settings: PlanSettings) -> tuple[int, ...]:
    """The trials of each test after which the run is looked at; empty without `--rounds`.

    With a base agent they are those that its limits were searched for, whatever `--rounds` lists.

    Raises:
        UsageError: they are none, or another option contradicts them.
    """
    text = settings.rounds.strip().lower()
    if text in {"", "off"}:
        return ()
    if isinstance(settings, RunSettings) and settings.confirm:
        raise UsageError(
            f"--rounds={text}, --confirm={settings.confirm}: rounds confirm a result. Omit --confirm."
        )
    if settings.loops != PlanSettings.loops:
        raise UsageError(
            f"--rounds={text}, --loops={settings.loops}: rounds set how often tests are played. Omit --loops."
        )
    if isinstance(settings, RunSettings) and settings.shard:
        raise UsageError(
            f"--rounds={text} does not work with --shard={settings.shard}: only the whole run shows whether "
            "it is decided. Use --loops instead."
        )
    both_sides = settings.against is not None and settings.both_sides is not BothSides.NEVER
    if text == "auto":
        return BOTH_SIDES_LOOKS if both_sides else LOOKS
    parts = [part.strip() for part in text.split(",")]
    looks = tuple(int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 5)
    if (
        len(looks) < len(parts)
        or list(looks) != sorted(set(looks))
        or not 1 <= looks[0] <= looks[-1] <= _MOST
    ):
        raise UsageError(
            f"--rounds: {text[:60]!r} is no list of ascending numbers from 1 to {_MOST}. Write off, auto, or "
            "numbers such as 2,3,5,7."
        )
    return BOTH_SIDES_LOOKS if both_sides else looks
