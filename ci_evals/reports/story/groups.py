"""The tests worth showing in groups with a title each, in the order of reading. Not yet sanitized."""

from dataclasses import dataclass
from enum import Enum

from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.run import Results
from ci_evals.reports.story import changes, gate, verdict
from ci_evals.reports.story.failures import FailedTest, News
from ci_evals.reports.story.outcome_labels import UNFINISHED
from ci_evals.scoring.comparison.compare import SUSPECT


class Kind(Enum):
    """The kind of a group."""

    BROKE = "broke"
    UNJUDGED = "unjudged"
    WORSE = "worse"
    FAILED = "failed"
    FAILED_BEFORE = "failed-before"


@dataclass(frozen=True)
class FailedGroup:
    """Tests that fail."""

    kind: Kind
    title: str
    tests: tuple[FailedTest, ...]


@dataclass(frozen=True)
class ChangedGroup:
    """Tests that changed otherwise."""

    name: str
    title: str
    tests: tuple[TestChange, ...]
    good: bool


def failed(results: Results, news: News) -> tuple[FailedGroup, ...]:
    """Return the groups of tests that fail, without empty ones.

    Without a verdict the causes of errors name the tests that were not judged.
    """
    base = changes.in_base(results)
    compared = results.comparison is not None and results.comparison.delta is not None
    unjudged = () if gate.run_outcome(results) in UNFINISHED else news.unjudged
    new = "New or changed tests that fail" if compared else "Failed"
    groups = (
        FailedGroup(Kind.BROKE, verdict.broke_title(results), news.broke),
        FailedGroup(Kind.UNJUDGED, f"Passed {base}, not judged now", unjudged),
        FailedGroup(Kind.WORSE, f"Failed {base} too, and worse now", news.worse),
        FailedGroup(Kind.FAILED, new, news.failed),
        FailedGroup(Kind.FAILED_BEFORE, f"Failed {base} too", news.failed_before),
    )
    return tuple(group for group in groups if group.tests)


def changed(results: Results, news: News) -> tuple[ChangedGroup, ...]:
    """Return the groups of tests that were fixed or dropped, without empty ones."""
    fixed = f"Fixed {changes.since(results)}"
    groups = (
        ChangedGroup("fixed", fixed, news.fixed, good=True),
        ChangedGroup("dropped", f"Dropped by {SUSPECT} points or more", news.dropped, good=False),
    )
    return tuple(group for group in groups if group.tests)
