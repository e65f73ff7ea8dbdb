"""The gate's checks, its decision, and the odds of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ci_evals.domain.base import Interval, Percent, Positive, ResultPart

LookDecision: TypeAlias = Literal["fail", "pass", "continue"]
"""The decision at a look at a run in rounds."""


class CheckKind(StrEnum):
    """Kind of a gate check."""

    MIN_SCORE = "min-score"
    """Floor of the run or, with `suite` or `test`, the floor that a suite file sets itself."""
    THRESHOLD = "threshold"
    """Floor of a part of the run (option `thresholds`)."""
    CRITICAL = "critical"
    MAX_DROP = "max-drop"
    REGRESSION = "regression"
    MAX_COST = "max-cost"
    MAX_P95_LATENCY = "max-p95-latency"
    MAX_ERRORS = "max-errors"
    MAX_INVALID_USERS = "max-invalid-users"
    FAIL_FAST = "fail-fast"
    WEAKENED = "weakened"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckId(ResultPart):
    """Identity of a gate check: its kind and the part of the run that it is about."""

    name: str
    """For people only; the other keys identify the check."""
    kind: CheckKind
    suite: str | None = None
    """The suite; null for a check of the whole run, or of a part that spans suites."""
    suite_number: Positive | None = None
    """Its position in `suites`, counted from 1."""
    test: str | None = None
    """The test; null unless the check is about a single test."""
    test_number: Positive | None = None
    """Its position in the suite's `tests`, counted from 1."""
    selector: str | None = None
    """The part of the run as the option names it, such as `category:safety`."""

    @property
    def key(self) -> tuple[str, int | None, int | None, str | None]:
        """The identity as one value that two different checks never share."""
        return self.kind, self.suite_number, self.test_number, self.selector


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck(CheckId):
    """One rule of the gate: what it requires, what was seen, whether it passed."""

    required: float | None
    seen: float | None
    seen_if_undecided_failed: float | None = None
    """For floors: the score in which undecided verdicts count as failed. It decides."""
    interval: Interval | None = None
    """95 % interval of the score, or drop, that decides."""
    passed: Annotated[bool | None, Field(alias="holds")]
    """Null: not checked. The check was asked for and could not be made; `note` says why."""
    note: str | None = None
    settled: bool = True
    """With `rounds`: whether more trials could no longer have changed it."""
    blocks_verdict: bool = False
    """Whether the run has no verdict because this check could not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLook(ResultPart):
    """A score, or a drop of it, at one look at a run in rounds."""

    trials: Positive
    """Of each test, until then."""
    check: str
    """The check's `name`."""
    seen: float | None
    """As `seen` of the check."""
    decision: LookDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(ResultPart):
    """The outcome of the gate."""

    passed: bool
    exit_code: int
    checks: tuple[GateCheck, ...] = ()
    looks: tuple[GateLook, ...] = ()
    """With `rounds`: floors and `max-drop` at each look. Those at p are `comparison.looks`."""
    reasons: tuple[str, ...] = ()
    """The reasons for no verdict; empty if there is a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOdds(CheckId):
    """The odds that an unchanged agent fails one check of the gate."""

    share: float
    """0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds(ResultPart):
    """The odds that an unchanged agent fails this gate, estimated from the noise of these results."""

    share: float
    """Of runs like this one that would fail the gate, 0 to 1."""
    checks: tuple[CheckOdds, ...] = ()
    floor: Percent | None
    """The highest min-score that fewer than 5 % of such runs miss."""
    loops: int
    """Trials of each test in such a run, at most."""
