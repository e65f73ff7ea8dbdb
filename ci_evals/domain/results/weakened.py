"""Where suites and gate of a run require less than those of its baseline."""

from dataclasses import dataclass
from enum import StrEnum

from ci_evals.domain.base import CleanText, Instant, ResultPart

CODE_DIGITS = 40
"""Hexadecimal digits of a code: too many to find two changes of suites with the same one."""


class WeakeningKind(StrEnum):
    """Kinds of what is required no longer."""

    SUITE_REMOVED = "suite_removed"
    """A suite is gone, and none of its tests is elsewhere."""
    TEST_REMOVED = "test_removed"
    """A test is gone, and no new one has its turns and evaluations."""
    CRITERION_REMOVED = "criterion_removed"
    """A criterion is gone or says something else."""
    TEST_QUARANTINED = "test_quarantined"
    TEST_NOT_CRITICAL = "test_not_critical"
    TEST_MAY_ESCALATE = "test_may_escalate"
    """The agent may hand over before the last line of a test, with which it failed before."""
    TEST_JOINED_CLUSTER = "test_joined_cluster"
    """A test counts as one with another that it was independent of, so a drop of theirs proves less."""
    TEST_LOST_TRAIT = "test_lost_trait"
    """The simulated user of a test lost a trait of its persona, or writes in another language."""
    TEST_LEFT_PART = "test_left_part"
    """A test lost the tag, the difficulty, the name or the suite that a limit of the gate is about."""
    TEST_WHEN_NARROWED = "test_when_narrowed"
    """A test depends on fewer paths, so `changed_since` plays it for fewer changes."""
    WEIGHT_LOWERED = "weight_lowered"
    MIN_SCORE_LOWERED = "min_score_lowered"
    """`minScore` of a suite or a test."""
    LIMIT_LOOSENED = "limit_loosened"
    """An option of the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakening(ResultPart):
    """One thing that the baseline required, and this run does not."""

    kind: WeakeningKind
    suite: str | None = None
    """As the baseline names it; null for an option of the gate."""
    test: str | None = None
    criterion: str | None = None
    option: str | None = None
    """The option of the gate, as `min-score`, with the part of the run that it is about. Of a test that left
    a part, that part: `tag:safety`."""
    before: str | None = None
    """The value in the baseline, where there is one."""
    now: str | None = None
    """The value in this run; null if there is none any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(ResultPart):
    """A comment in the pull request by which somebody with write access approves weakened suites."""

    by: str
    """The login of its author."""
    at: Instant
    url: str | None = None
    code: CleanText
    """The `code` of what is approved."""
    commit: str | None = None
    """The last commit of the pull request when this run found the comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakened(ResultPart):
    """Everything that suites and gate require less than in the baseline."""

    branch: str | None = None
    """The branch of the baseline, if known."""
    items: tuple[Weakening, ...] = ()
    unknown: str | None = None
    """The reason why it is not known, or not all of it."""
    code: CleanText | None = None
    """SHA-256 of all that suites and gate of the baseline and of this run require, shortened. An approval
    names it, and counts until one of them changes. Null without items."""
    approval: Approval | None = None
    """Null if nobody has approved these items."""
