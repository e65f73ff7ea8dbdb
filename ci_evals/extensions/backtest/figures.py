"""The findings of `backtest`, and the shape of `_backtest.json`."""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from ci_evals.domain.base import Amount, CleanText, Instant, ResultPart, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareInterval(ResultPart):
    """An exact 95 % interval of a share, 0 to 1 (Clopper and Pearson)."""

    low: Share
    high: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms(ResultPart):
    """The comparisons that failed, of those with a verdict."""

    count: Amount
    of: Amount
    interval: ShareInterval | None
    """Null if there is no comparison."""

    @property
    def share(self) -> float | None:
        """The share that failed, 0 to 1."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAlarms(ResultPart):
    """The comparisons that one kind of check failed."""

    kind: CleanText
    count: Amount
    predicted: Share | None
    """The share that `odds` predicted; null for what it does not estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAlarms(ResultPart):
    """The false alarms of one gate."""

    false_alarms: Alarms
    no_verdict: Amount
    """Comparisons without a verdict. They count neither way."""
    predicted: Share | None
    """The mean of the shares that `odds` predicted; null if it could not."""
    predicted_at_most: Share | None
    """The same with the level of `regression: significant`, which `odds` leaves out."""
    checks: tuple[CheckAlarms, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequests(ResultPart):
    """The runs of pull requests that fail, of those with a verdict."""

    failed: Amount
    of: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingResult(GateAlarms):
    """Another gate, on the same runs."""

    name: str
    options: dict[CleanText, JsonValue]
    only_here: Amount
    """Comparisons that fail with these options and pass without them."""
    only_before: Amount
    """Comparisons that pass with these options and fail without them."""
    p: Share
    """The probability that chance alone makes such a difference (McNemar's exact test)."""
    pull_requests: PullRequests


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult(ResultPart):
    """Two consecutive runs, the earlier one as the baseline."""

    run: str
    base: str
    at: Instant
    commit: str | None
    base_commit: str | None
    same_commit: bool
    """False also if a commit is not known."""
    failed: bool | None
    """Null if there is no verdict."""
    checks: tuple[str, ...]
    """The checks that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestResult(ResultPart):
    """A run of a pull request."""

    run: str
    commit: str | None
    pull_request: Amount
    failed: bool | None
    """Null if there is no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRun(ResultPart):
    """A file or a run that was not used."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest(GateAlarms):
    """The gate on stored runs."""

    schema_version: Literal[1] = 1
    branch: str
    runs: Amount
    """Runs of the branch that were used."""
    pairs: Amount
    """Pairs of consecutive comparable runs; each run is in one at most."""
    same_commit: Alarms
    """The pairs of two runs of one commit."""
    other_commit: Alarms
    """The other pairs: the agent may have changed."""
    options: dict[CleanText, JsonValue]
    """The options that stand instead of the runs' own."""
    settings: tuple[SettingResult, ...]
    pull_requests: tuple[PullRequestResult, ...]
    pair_results: tuple[PairResult, ...]
    left_out: tuple[LeftOutRun, ...]
