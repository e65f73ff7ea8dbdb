"""Limits that end a run before its plan is played: a budget, failures in a row, the first failure, time."""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import fsum

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import Event, ModelAnswered, TrialFinished, TrialStarted
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.transcript import EndState
from ci_evals.scoring.scores import ScoreRule, Validity, validity
from ci_evals.scoring.usage import cost_of, unmeasured
from ci_evals.stop import Stop

_TIE = 1e-9
"""Dollars: a cost that equals the budget is within it, whatever its rounding in binary."""

_FIRST = 4
"""Trials that begin before the cost of one is known, if there is a budget."""
FAILURES_IN_ROW = 10
"""Broken trials in a row that end a run."""
_LOOK_SECONDS = 0.5
"""The interval at which those that wait for them check whether the run was stopped."""


@dataclass(frozen=True)
class Limits:
    """Reasons to end a run early. None or 0: no limit."""

    max_duration: float | None = None
    """Seconds."""
    failures_in_row: int = 0
    """Trials that broke off or could not be judged. At least as many as play at a time are waited for: one
    fault hits them all."""
    fail_fast: bool = False

    def __post_init__(self) -> None:
        if self.max_duration is not None and not math.isfinite(self.max_duration):
            raise UsageError(f"`max_duration={self.max_duration}`: it is not a limit; name a finite number")


@dataclass(frozen=True)
class Budget:
    """The most that the models of a run may cost, and their prices."""

    most: float | None
    """US dollars; None for no limit."""
    prices: Callable[[], PriceTable]
    spent: float = 0.0
    """US dollars that a saved run has cost."""


class LimitsWatcher:
    """Listens to a run, and stops it if a limit is met."""

    def __init__(
        self,
        limits: Limits,
        budget: Budget,
        stop: Stop,
        rule: ScoreRule,
        parallel: int,
        *,
        is_tested: Callable[[Trial], bool] = lambda _: True,
        is_quarantined: Callable[[Trial], bool] = lambda _: False,
    ) -> None:
        """`is_tested` says whether a trial is of the agent under test; those of others may fail.

        Trials of a test in quarantine may fail and break off.
        """
        self._is_tested, self._is_quarantined = is_tested, is_quarantined
        self._limits, self._budget, self._stop, self._undecided_rule = limits, budget, stop, rule
        self._max_consecutive_failures = 0
        if limits.failures_in_row:
            self._max_consecutive_failures = max(limits.failures_in_row, parallel)
        self._consecutive_failures = 0
        self._spent = budget.spent
        self._under_way: dict[Trial, float] = {}
        self._finished, self._cost_of_finished = 0, 0.0
        self._one_finished = asyncio.Event()

    def count_resumed(self, done: Mapping[Trial, TrialResult]) -> None:
        """Count the trials that had finished before the run was resumed."""
        for trial, result in done.items():
            cost = fsum(map(self._cost, result.usage))
            self._spent += cost
            self._count(cost)
            if not self._is_quarantined(trial):
                self._check_failure(trial, result)

    async def admits(self) -> bool:
        """Return whether the budget is likely to hold one more trial, with those under way.

        While the cost of a trial is unknown, few begin, and the others wait for them.
        """
        most = self._budget.most
        if most is None:
            return True
        while not (self._finished or len(self._under_way) < _FIRST or self._stop.requested):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._one_finished.wait(), _LOOK_SECONDS)
        each = self._cost_of_finished / self._finished if self._finished else 0.0
        to_come = fsum(max(each - spent, 0.0) for spent in self._under_way.values())
        if self._spent + to_come + each <= most + _TIE:
            return True
        earlier = ", those of the saved run included" if self._budget.spent else ""
        self._stop.request(
            f"${self._spent:.4f} of ${most:g} spent{earlier}; another trial would exceed max-cost"
        )
        return False

    def __call__(self, event: Event) -> None:
        """Check the limits."""
        match event:
            case TrialStarted(trial):
                self._under_way[trial] = 0.0
            case ModelAnswered(trial, usage) if self._budget.most is not None:
                cost = self._cost(usage)
                self._spent += cost
                if trial:
                    self._under_way[trial] = self._under_way.get(trial, 0.0) + cost
            case TrialFinished(trial, result):
                self._count(self._under_way.pop(trial, 0.0))
                if result.status is not EndState.INTERRUPTED and not self._is_quarantined(trial):
                    self._check_outage(result)
                    self._check_failure(trial, result)
            case _:
                pass

    def out_of_time(self) -> None:
        """End the run: its time is up."""
        seconds = self._limits.max_duration
        self._stop.request(f"the time limit is reached (max-duration={seconds:g})", cut_off=True)

    def _cost(self, usage: RoleUsage) -> float:
        """The cost as far as it is known; without it a budget cannot be kept, and the run ends."""
        cost, most = cost_of(usage, self._budget.prices()), self._budget.most
        if cost is None and most is not None:
            self._stop.request(unmeasured(usage, most))
        return cost or 0.0

    def _count(self, cost: float) -> None:
        self._finished += 1
        self._cost_of_finished += cost
        self._one_finished.set()

    def _check_outage(self, result: TrialResult) -> None:
        if not result.infrastructure_failed:
            self._consecutive_failures = 0
            return
        self._consecutive_failures += 1
        number = self._consecutive_failures
        if self._max_consecutive_failures and number >= self._max_consecutive_failures:
            last = result.error or next(finding.reason for finding in result.findings if finding.cause)
            self._stop.request(
                f"{number} trials in a row errored or could not be judged; the last one: {last}",
                outage=True,
            )

    def _check_failure(self, trial: Trial, result: TrialResult) -> None:
        if not (self._limits.fail_fast and self._is_tested(trial)):
            return
        failed = next((one for one in result.findings if one.fails), None)
        if failed and result.counts:
            self._stop.request(f"a trial failed {failed.criterion!r} (fail-fast)", failed_fast=True)
        elif validity(result, self._undecided_rule) is Validity.ERRORED:
            reason = result.error or "a verdict is missing"
            # The trial is rerun on resume: otherwise the resumed run would end there again.
            self._stop.request(f"a trial is invalid: {reason} (fail-fast)", outage=result.needs_rerun)
