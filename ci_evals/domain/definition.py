"""Definitions of suites as results keep them: enough to see later what a suite requires no longer."""

from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain.base import CleanText, ResultPart


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDefinition(ResultPart):
    """A criterion of a test."""

    criterion: str
    digest: CleanText
    """SHA-256 of all that decides it but its weight. The words of a strict check decide nothing."""
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TestDefinition(ResultPart):
    """The requirements of a test."""

    __test__: ClassVar[bool] = False

    name: str
    content: CleanText
    """SHA-256 of its turns and evaluations, by which a test is recognized that has another name."""
    tags: tuple[str, ...] = ()
    difficulty: str | None = None
    critical: bool = False
    may_escalate: bool = False
    quarantined: bool = False
    cluster: str | None = None
    user: tuple[str, ...] = ()
    """The traits and the language that make its simulated user a harder one."""
    min_score: float | None = None
    when: tuple[str, ...] | None = None
    """The paths that it depends on, by its own `when` or that of its suite. Null if it is always played."""
    criteria: tuple[CriterionDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDefinition(ResultPart):
    """The requirements of a suite, with all of its tests, whichever of them a run selects."""

    name: str
    file: CleanText
    min_score: float | None = None
    tests: tuple[TestDefinition, ...]
