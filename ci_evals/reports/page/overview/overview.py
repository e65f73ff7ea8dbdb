"""The page before a test is opened, as facts that the templates only place."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ci_evals.reports.page.charts import changes, latency, quality, scores, trend
from ci_evals.reports.page.charts.frame import Figure
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import test_table, what_broke
from ci_evals.reports.page.overview.what_broke import TestLinks
from ci_evals.reports.story.judging import Remark
from ci_evals.reports.story.next_step import NextStep
from ci_evals.reports.story.outcome_labels import RunOutcome, Tone
from ci_evals.reports.story.phrases import capitalized, sentence
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Table
from ci_evals.reports.story.verdict import Numbers, Trust

_CHARTS = (scores, changes, latency, quality, trend)
"""In the order of reading."""
_FEW = 5
"""Suites that it names."""


class Headline(NamedTuple):
    """The head of the page in plain text, neither sanitized nor escaped."""

    suites: str
    tone: str
    verdict: str
    numbers: Numbers
    reasons: list[str]
    """The reasons for the verdict that it does not name itself."""
    next_step: NextStep
    certainty: str
    details: list[str]
    """More on how sure the result is, in sentences."""
    warnings: tuple[str, ...]
    """Dropped requirements, and reasons to trust judge and simulated user less."""
    notes: list[str]
    facts: Sequence[tuple[str, str]]


class Reliability(NamedTuple):
    """The reliability of judge and simulated user, in sentences and tables."""

    remarks: Sequence[Remark]
    tables: Sequence[Table]
    long: Sequence[Table]
    """The tables with a row for each criterion or test."""


def values_of(story: Story, tests: Sequence[TestView]) -> dict[str, object]:
    """The values that the page's templates place, in plain text: they sanitize and escape it."""
    return {
        "story": story,
        "headline": _headline(story),
        "what_broke": what_broke.of(story, TestLinks(tests)),
        "figures": figures(story),
        "tests": test_table.of(story, tests),
        "reliability": _reliability(story),
    }


def figures(story: Story) -> tuple[Figure, ...]:
    """The charts that a run has something to show in."""
    drawn = (chart.figure(story) for chart in _CHARTS)
    return tuple(figure for figure in drawn if figure)


def _headline(story: Story) -> Headline:
    outcome, trust = story.outcome, story.trust()
    names = [row.suite.name for row in story.suites]
    tone = Tone.OPEN if trust is Trust.CONTRADICTORY else outcome.value.tone
    played = outcome is not RunOutcome.SKIPPED
    origin, weakened = story.notices.origin, story.notices.weakened
    dropped = weakened.sentences if weakened else ()
    return Headline(
        suites=", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else ""),
        tone=tone.value,
        verdict=story.verdict(trust),
        numbers=story.numbers,
        reasons=list(_reasons(story)),
        next_step=story.next_step,
        certainty=story.certainty.sentence if played else "",
        details=list(_details(story)) if played else [],
        warnings=(*dropped, *story.judging.warnings),
        notes=[*([origin] if origin else []), *story.notices.notes],
        facts=story.run.facts,
    )


def _reasons(story: Story) -> Iterator[str]:
    outcome = story.outcome
    if story.failed_checks:
        yield story.failed_checks
    # The verdict names the first reason of a run without one.
    reasons = story.run.gate.reasons[outcome is RunOutcome.NO_VERDICT :]
    yield from (sentence(capitalized(reason)) for reason in reasons)
    yield from story.notices.checks_not_made


def _details(story: Story) -> Iterator[str]:
    change, certainty = story.change, story.certainty
    yield certainty.score_and_change
    yield from certainty.decision
    more = (certainty.small_print, certainty.confirmed, certainty.odds, change.baseline)
    yield from (one for one in more if one)
    if from_cache := story.judging.cached_answers:
        yield sentence(capitalized(from_cache))
    yield from (sentence(f"Not compared: {reason}") for reason in change.reasons)


def _reliability(story: Story) -> Reliability | None:
    """Return the section on judge and simulated user; None if nothing is known of them."""
    remarks = story.judging.remarks
    if not remarks:
        return None
    short: list[Table] = []
    long: list[Table] = []
    for table in story.judging.tables:
        (long if table.long else short).append(table)
    return Reliability(remarks, short, long)
