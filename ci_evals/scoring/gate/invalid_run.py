"""The reasons why a run has no verdict, whatever its score."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.scoring.gate.policy import Policy, RunEnding
from ci_evals.scoring.scorecard import Scorecard


@dataclass(frozen=True)
class Incomplete:
    """The results are not all that there should be."""

    why: str


@dataclass(frozen=True)
class Stopped:
    """The run was stopped before all was played."""

    why: str


@dataclass(frozen=True)
class NotRun:
    """Trials were never started."""

    trials: int
    planned: int


@dataclass(frozen=True)
class TooManyErrored:
    """More trials errored than `max-errors` allows."""

    trials: int
    allowed: int


@dataclass(frozen=True)
class TooManyExcluded:
    """More trials were excluded than `max-invalid-users` allows."""

    trials: int
    allowed: int


@dataclass(frozen=True)
class JudgeFailed:
    """A judge did not pass its check."""

    check: JudgeCheck


@dataclass(frozen=True)
class NothingScored:
    """There is no score."""


@dataclass(frozen=True)
class UncountedDecide:
    """The trials without a score would decide the gate, had they been played to the end."""

    trials: int
    some_excluded: bool


@dataclass(frozen=True)
class NotCompared:
    """The run lacks the comparison that it must have."""

    why: str


@dataclass(frozen=True)
class NotChecked:
    """A check against the baseline could not be made."""

    check: GateCheck


InvalidRunReason = (
    Incomplete
    | Stopped
    | NotRun
    | TooManyErrored
    | TooManyExcluded
    | JudgeFailed
    | NothingScored
    | UncountedDecide
    | NotCompared
    | NotChecked
)


def invalid_run_reasons(card: Scorecard, policy: Policy, ending: RunEnding) -> Iterator[InvalidRunReason]:
    """Yield every reason that lies in the run itself."""
    counts = card.counts
    yield from map(Incomplete, ending.incomplete)
    if ending.stopped_because and not ending.failed_fast:
        yield Stopped(ending.stopped_because)
    if counts.not_run and not ending.failed_fast:
        yield NotRun(counts.not_run, counts.trials + counts.not_run)
    if counts.errors > policy.max_errors:
        yield TooManyErrored(counts.errors, policy.max_errors)
    if counts.invalid_users > policy.max_invalid_users:
        yield TooManyExcluded(counts.invalid_users, policy.max_invalid_users)
    if not ending.judge_only_warned:
        yield from (JudgeFailed(check) for check in ending.judge_checks if not check.passed)
    if card.score is None:
        yield NothingScored()


def worst(checks: Iterable[JudgeCheck]) -> JudgeCheck | None:
    """Return the check that speaks most against its judge; None without any."""
    return min(checks, key=lambda check: (check.passed, check.right - check.required), default=None)
