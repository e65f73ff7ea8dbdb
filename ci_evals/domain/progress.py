"""Events that a run reports to its listener."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import RoleUsage


@dataclass(frozen=True)
class TrialStarted:
    """A conversation has begun."""

    trial: Trial


@dataclass(frozen=True)
class TurnPlayed:
    """The agent has answered a message; `number` counts the conversation's turns."""

    trial: Trial
    number: int


@dataclass(frozen=True)
class ModelAnswered:
    """A model has answered, for this trial; `usage` is of that call alone."""

    trial: Trial | None
    """None for a control question to the judge."""
    usage: RoleUsage


@dataclass(frozen=True)
class TrialFinished:
    """A trial was played and graded. Secrets are taken out of the result."""

    trial: Trial
    result: TrialResult


@dataclass(frozen=True)
class RunResumed:
    """An interrupted run was resumed; `trials` of the plan had finished."""

    trials: int
    started_at: datetime


@dataclass(frozen=True)
class Extended:
    """More trials are to come, since the first look was close; `plan` holds them and those played."""

    plan: Plan
    because: tuple[str, ...]


@dataclass(frozen=True)
class StillWaiting:
    """The run is still waiting for one neighbor, for `seconds` now."""

    neighbor: str
    seconds: float
    reason: str


Event = TrialStarted | TurnPlayed | ModelAnswered | TrialFinished | RunResumed | Extended | StillWaiting
Listener = Callable[[Event], None]
