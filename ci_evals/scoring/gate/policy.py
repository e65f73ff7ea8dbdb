"""The requirements on a run, and the way in which it ended."""

import math
from dataclasses import dataclass

from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.domain.score_scale import as_share, is_share
from ci_evals.scoring.gate.selectors import SelectorLimit


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


@dataclass(frozen=True)
class RunEnding:
    """The way in which a run ended."""

    interrupted: bool = False
    stopped_because: str | None = None
    failed_fast: bool = False
    """True if it was stopped since a trial had failed: then no more were wanted."""
    bug: bool = False
    """True if it was stopped by a bug of ours."""
    judge_checks: tuple[JudgeCheck, ...] = ()
    """The check of each model that judges."""
    judge_only_warned: bool = False
    """True if a judge that did not pass its check is a warning only (`--judge-check=warn`)."""
    incomplete: tuple[str, ...] = ()
    """The reasons why merged results are not complete."""
