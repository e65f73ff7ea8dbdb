"""Tests that were not played in a run: their trials are those of an earlier one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ci_evals.domain.base import CleanText, Instant, ResultPart
from ci_evals.domain.results.trial import TrialResult

Reason = Literal["passed", "unchanged"]
"""`passed`: it passed there, and `only_failed` plays the others. `unchanged`: nothing of its `when.paths`
has changed since (option `changed_since`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenFrom(ResultPart):
    """The earlier run that the trials of a test were played in."""

    reason: Reason
    run: CleanText
    started_at: Instant
    commit: CleanText | None = None
    uncommitted_changes: bool = False
    """True if files differed from the commit."""


@dataclass(frozen=True)
class ReusedTest:
    """A test that is not played, with its trials."""

    trials: tuple[TrialResult, ...]
    source: TakenFrom


ReusedTests = Mapping[tuple[str, str], ReusedTest]
"""By the file of the suite and the name of the test."""
