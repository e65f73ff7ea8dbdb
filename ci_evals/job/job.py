"""The job of a run: everything it needs besides the agents and models."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.records import RunIdentity
from ci_evals.domain.choices import BothSides, CheckMode
from ci_evals.domain.plan import Plan
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.progress import Listener
from ci_evals.domain.results.reused import ReusedTests
from ci_evals.domain.results.run import Git, Origin, Results, Shard
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import NO_BASELINE, BaselineResults
from ci_evals.job.limits import Limits
from ci_evals.job.pool import Pool
from ci_evals.runner import Options, TrialPlayer
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.players import BuiltPlayers


class PlayerElsewhere(TrialPlayer, Protocol):
    """Plays the trials of a job in other processes."""

    listen: Listener
    """Hears of what these do."""

    def notes(self) -> tuple[str, ...]:
        """Return what the results should say of them."""
        ...


class PlayElsewhere(Protocol):
    """Starts what plays a job elsewhere."""

    def __call__(
        self, job: "Job", connections: Connections, players: BuiltPlayers, stop: Stop
    ) -> AbstractAsyncContextManager[PlayerElsewhere]:
        """Return a context with a player that is ready. `players` are those of this process.

        Raises:
            UsageError: nothing can play the job.
        """
        ...


@dataclass(frozen=True)
class Elsewhere:
    """Agents and models by settings, and trials that other processes play with them."""

    connections: Connections
    start: PlayElsewhere


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run that its results report, and that no score depends on."""

    config: Mapping[str, JsonValue] = field(default_factory=dict)
    """The options in force."""
    git: Git = field(default_factory=Git)
    identity: RunIdentity = field(default_factory=RunIdentity)
    """The CI run and the commit, which a journal that is resumed must share."""
    ci: str | None = None
    """The CI service."""
    shard: Shard | None = None
    """The part of the whole plan that this one is."""
    origin: Origin | None = None
    """The run whose conversations these are, if none is played now."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """Everything a run needs besides its agents and models."""

    plan: Plan
    policy: Policy
    options: Options
    redactor: Redactor
    baseline: BaselineResults = NO_BASELINE
    both_sides: BothSides = BothSides.AUTO
    """When the base arm of the plan, if it has one, is played."""
    limits: Limits = field(default_factory=Limits)
    journal: Journal | None = None
    """Keeps finished trials, and holds the past of a run that is resumed."""
    write_unfinished: Callable[[Results], None] | None = None
    """Takes the results of a run that has not finished, just before the first trial begins; may refuse with
    a `UsageError`."""
    reused: ReusedTests = field(default_factory=dict)
    """The tests that the plan does not play."""
    pool: Pool | None = None
    """Earlier attempts at the same commit, whose trials count; None if reruns are not pooled."""
    prices: Callable[[], PriceTable] = lambda: NO_PRICES
    """Read when they are first asked for: the bundled table takes a while."""
    judge_check: CheckMode = CheckMode.OFF
    """The mode of the judge check; commands default to `auto`."""
    facts: RunFacts = field(default_factory=RunFacts)
