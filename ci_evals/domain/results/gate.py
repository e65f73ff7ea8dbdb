"""The gate's checks, its decision, and the odds of it."""

from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import Field

from ci_evals.domain.base import Interval, Percent, Positive, Record

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


class CheckId(Record):
    """Identity of a gate check: its kind and the part of the run that it is about."""

    name: str = Field(description="For people only; the other keys identify the check.")
    kind: CheckKind
    suite: str | None = Field(
        None, description="The suite; null for a check of the whole run, or of a part that spans suites."
    )
    suite_number: Positive | None = Field(None, description="Its position in `suites`, counted from 1.")
    test: str | None = Field(None, description="The test; null unless the check is about a single test.")
    test_number: Positive | None = Field(
        None, description="Its position in the suite's `tests`, counted from 1."
    )
    selector: str | None = Field(
        None, description="The part of the run as the option names it, such as `category:safety`."
    )

    @property
    def key(self) -> tuple[str, int | None, int | None, str | None]:
        """The identity as one value that two different checks never share."""
        return self.kind, self.suite_number, self.test_number, self.selector


class GateCheck(CheckId):
    """One rule of the gate: what it requires, what was seen, whether it passed."""

    required: float | None
    seen: float | None
    seen_if_undecided_failed: float | None = Field(
        None, description="For floors: the score in which undecided verdicts count as failed. It decides."
    )
    interval: Interval | None = Field(None, description="95 % interval of the score, or drop, that decides.")
    passed: bool | None = Field(
        alias="holds",
        description="Null: not checked. The check was asked for and could not be made; `note` says why.",
    )
    note: str | None = None
    settled: bool = Field(
        default=True,
        description="With `rounds`: whether more trials could no longer have changed it.",
    )
    blocks_verdict: bool = Field(
        default=False, description="Whether the run has no verdict because this check could not be made."
    )


class GateLook(Record):
    """A score, or a drop of it, at one look at a run in rounds."""

    trials: Positive = Field(description="Of each test, until then.")
    check: str = Field(description="The check's `name`.")
    seen: float | None = Field(description="As `seen` of the check.")
    decision: LookDecision


class Decision(Record):
    """The outcome of the gate."""

    passed: bool
    exit_code: int
    checks: tuple[GateCheck, ...] = ()
    looks: tuple[GateLook, ...] = Field(
        (),
        description="With `rounds`: floors and `max-drop` at each look. Those at p are `comparison.looks`.",
    )
    reasons: tuple[str, ...] = Field(
        (), description="The reasons for no verdict; empty if there is a verdict."
    )


class CheckOdds(CheckId):
    """The odds that an unchanged agent fails one check of the gate."""

    share: float = Field(description="0 to 1.")


class Odds(Record):
    """The odds that an unchanged agent fails this gate, estimated from the noise of these results."""

    share: float = Field(description="Of runs like this one that would fail the gate, 0 to 1.")
    checks: tuple[CheckOdds, ...] = ()
    floor: Percent | None = Field(description="The highest min-score that fewer than 5 % of such runs miss.")
    loops: int = Field(description="Trials of each test in such a run, at most.")
