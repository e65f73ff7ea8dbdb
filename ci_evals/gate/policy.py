"""The requirements on a run."""

import math
from dataclasses import dataclass

from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.domain.score_scale import as_share, is_share
from ci_evals.gate.selectors import SelectorLimit


@dataclass(frozen=True)
class Policy:
    """The requirements on a run.

    Raises:
        UsageError: a number is none, or has no end.
    """

    min_score: float = 80
    thresholds: tuple[SelectorLimit, ...] = ()
    max_errors: int = 0
    max_invalid_users: int = 0
    """Trials left out since the simulated user broke character."""
    max_drop: float | None = None
    """Most points that the score may fall below the baseline's."""
    max_drops: tuple[SelectorLimit, ...] = ()
    """The same for parts of the run."""
    regression: Regression = Regression.OFF
    max_cost: float | None = None
    """US dollars."""
    max_p95_latency: float | None = None
    """Seconds."""
    baseline_required: bool = False
    """True if a run that cannot be compared has no verdict (`--baseline=required`)."""
    baseline_named: bool = False
    """True if the options name the baseline: a check against it that cannot be made leaves no verdict."""
    enforced: bool = True
    """True if a gate that does not hold fails the build (`--no-gate` says no)."""

    def __post_init__(self) -> None:
        for name in ("min_score", "max_drop", "max_cost", "max_p95_latency"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise UsageError(f"--{name.replace('_', '-')}: {number} is not a limit; name a finite number")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Floors that look like shares of 1, where scores run from 0 to 100."""
        floors = {f"--min-score={self.min_score:g}": self.min_score}
        floors |= {f"--thresholds: {one.selector}={one.limit:g}": one.limit for one in self.thresholds}
        return tuple(f"{option} {as_share(floor)}" for option, floor in floors.items() if is_share(floor))
