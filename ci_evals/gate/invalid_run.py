"""The reasons why a run has no verdict, whatever its score."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules.max_errors import MaxErrors
from ci_evals.gate.rules.max_invalid_users import MaxInvalidUsers
from ci_evals.scoring.scores import ScoreRule, deciding, ended_too_early, failed_in_error


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
    played: int
    broke_off: int
    """Trials of them that ended in an error; the others could not be judged."""


@dataclass(frozen=True)
class TooManyExcluded:
    """More trials were excluded than `max-invalid-users` allows."""

    trials: int
    played: int


@dataclass(frozen=True)
class JudgeFailed:
    """A judge did not pass its check."""

    check: JudgeCheck


@dataclass(frozen=True)
class BaseNotPlayed:
    """The base agent, which this one is compared with, could not be played as often as it should."""

    errored: int
    not_run: int
    planned: int
    error: str | None = None
    """The most frequent error of its trials."""


@dataclass(frozen=True)
class NothingScored:
    """There is no score."""

    quarantined: bool = False
    """True if all tests are in quarantine."""


@dataclass(frozen=True)
class UncountedDecide:
    """The trials without a score would decide the gate, had they been played to the end."""

    trials: int


@dataclass(frozen=True)
class NotCompared:
    """The run lacks the comparison that it must have."""

    why: str


@dataclass(frozen=True)
class NotChecked:
    """A check against the baseline could not be made."""

    check: GateCheck


@dataclass(frozen=True)
class EarlierUnread:
    """An earlier attempt at the commit left results that cannot be read, and may show a failure."""

    source: str
    why: str


InvalidRunReason = (
    Incomplete
    | Stopped
    | NotRun
    | TooManyErrored
    | TooManyExcluded
    | JudgeFailed
    | BaseNotPlayed
    | NothingScored
    | UncountedDecide
    | NotCompared
    | NotChecked
    | EarlierUnread
)


def invalid_run_reasons(results: Results, policy: Policy, ending: RunEnding) -> Iterator[InvalidRunReason]:
    """Yield every reason that lies in the run itself."""
    counts = results.counts
    max_errors = policy.rule(MaxErrors).max_errors
    yield from map(Incomplete, ending.incomplete)
    if ending.stopped_because and not ending.failed_fast:
        yield Stopped(ending.stopped_because)
    if counts.not_run and not ending.failed_fast:
        yield NotRun(counts.not_run, counts.trials + counts.not_run)
    trials = _own_trials(results)
    rule = ScoreRule(offline=results.run.offline)
    # The check of max-errors fails by these too, and with it the run: it has a verdict.
    by_agent = sum(failed_in_error(trial, rule) for trial in trials)
    if counts.errors - by_agent > max_errors:
        broke_off = sum(not (trial.counts or trial.excluded) for trial in trials)
        yield TooManyErrored(counts.errors, len(trials), broke_off)
    if base := results.base_side:
        errored, not_run = base.counts.errors, base.counts.not_run
        cut_short = not ending.failed_fast and (not_run or base.score is None)
        if errored > max_errors or cut_short:
            yield BaseNotPlayed(errored, not_run, base.counts.trials + not_run, _most_frequent_error(base))
    if counts.invalid_users > policy.rule(MaxInvalidUsers).max_invalid_users:
        yield TooManyExcluded(counts.invalid_users, counts.trials)
    if not ending.judge_only_warned:
        yield from (JudgeFailed(check) for check in ending.judge_checks if not check.passed)
    all_errored = len(trials) == counts.errors > max_errors
    if results.score is None and not all_errored and not any(map(ended_too_early, trials)):
        yield NothingScored(quarantined=0 < counts.quarantined == counts.tests)


def _own_trials(results: Results) -> list[TrialResult]:
    """The trials but for those of earlier attempts: limits of errors are about this run."""
    return [trial for test in deciding(results.tests) for trial in test.trials if trial.run is None]


def unread_attempts(results: Results) -> Iterator[EarlierUnread]:
    """Yield the earlier attempts at the commit that are not known: without them a run cannot pass."""
    reruns = results.run.reruns
    for run in reruns.not_pooled if reruns else ():
        if run.unread:
            yield EarlierUnread(run.source, run.why)


def _most_frequent_error(results: Results) -> str | None:
    errors = Counter(trial.error for test in results.tests for trial in test.trials if not trial.counts)
    return next((error for error, _ in errors.most_common() if error), None)
