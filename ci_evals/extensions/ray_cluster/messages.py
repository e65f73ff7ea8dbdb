"""Messages between a run and its workers: orders to a worker, and news from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_evals.adapters.transport.rate_limiter import Slowdown
from ci_evals.adapters.transport.reduction import Reduction
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.progress import ModelAnswered, StillWaiting, TurnPlayed
from ci_evals.domain.results.trial import TrialResult
from ci_evals.runner import Options
from ci_evals.wiring.connections import Connections


@dataclass(frozen=True)
class SetUp:
    """The first order: everything a worker needs to play trials of a run."""

    plan: Plan
    connections: Connections
    options: Options
    keys: frozenset[str] = field(repr=False)
    values: frozenset[str] = field(repr=False)
    """The secrets of the run, to be redacted."""
    environ: Mapping[str, str] = field(repr=False)
    workers: int
    """The number of workers that share the rate limits of services."""


@dataclass(frozen=True)
class Play:
    """Play a trial."""

    trial: Trial


@dataclass(frozen=True)
class End:
    """The run was asked to end; see `Stop`."""

    interrupted: bool
    reason: str | None
    cut_off: bool


@dataclass(frozen=True)
class Heed:
    """Heed a limit that a service has set in another worker."""

    service: int
    """The number of its limiter; all workers count them alike."""
    slowdown: Slowdown


@dataclass(frozen=True)
class Join:
    """Begin with a limit that a service has set before this worker was ready."""

    service: int
    reduction: Reduction
    pause: float
    """Seconds for which all calls still wait."""


@dataclass(frozen=True)
class Leave:
    """Release everything: no more trials come."""


Order = SetUp | Play | End | Heed | Join | Leave


@dataclass(frozen=True)
class Ready:
    """The worker can play trials."""


@dataclass(frozen=True)
class CannotPlay:
    """The worker could not be set up: agents or models cannot be used there."""

    reason: str


@dataclass(frozen=True)
class ConversationEnded:
    """The conversation of a trial has ended, and is graded now."""

    trial: Trial


@dataclass(frozen=True)
class Graded:
    """A trial was played and graded. Secrets are taken out of the result."""

    trial: Trial
    result: TrialResult


@dataclass(frozen=True)
class Failed:
    """A trial could not be played: a bug of ours, or the machine's resources ran out."""

    trial: Trial
    error: str
    exhausted: bool


@dataclass(frozen=True)
class Stopped:
    """The worker wants the run to end, since an agent or a model cannot be used."""

    reason: str
    outage: bool


@dataclass(frozen=True)
class Limited:
    """A service has set a limit, which all other workers have to heed."""

    service: int
    slowdown: Slowdown
    reduction: Reduction
    """The worker's own, now."""


@dataclass(frozen=True)
class Left:
    """The last news: everything is released."""

    printed: str
    """The output of agents that the worker has started."""


AboutTrial = TurnPlayed | ModelAnswered | ConversationEnded | Graded | Failed
AboutWorker = Ready | CannotPlay | StillWaiting | Stopped | Limited | Left
News = AboutTrial | AboutWorker
