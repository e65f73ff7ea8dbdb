"""A verdict in words: its kind, its votes, and what is behind it. Not yet sanitized."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.verdict import DimensionGrade, Finding, Grade, Outcome, Quote, Vote
from ci_evals.reports import sanitize
from ci_evals.reports.story.outcome_labels import CAUSES
from ci_evals.reports.story.table import Column
from ci_evals.support.text import visible

_SHORT_BYTES = 1_024
"""Bytes of a vote's reason, or of a quote, in a log."""


def verdict_kind(finding: Finding) -> str:
    """`judged`, `judged claims`, or `strict tool_used`."""
    if finding.strict:
        return f"strict {finding.strict}"
    return "judged claims" if finding.claims else finding.kind


def tally(findings: Iterable[Finding | Vote]) -> str:
    """`3 passed, 1 failed`."""
    counts = Counter(finding.outcome for finding in findings)
    return (
        ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]) or "no verdicts"
    )


def vote_tally(found: Sequence[Vote]) -> str:
    """The outcome of the votes: `3 votes: 2 passed, 1 failed`."""
    return f"{numbers.count(len(found), 'vote')}: {tally(found)}"


def outcome_words(verdict: Finding | Vote) -> str:
    """Its outcome, with the cause of one that is undecided: `undecided (no judge)`."""
    return f"{verdict.outcome} ({CAUSES[verdict.cause]})" if verdict.cause else verdict.outcome.value


def rests_on(verdict: Finding | Vote) -> str:
    """The turns that it rests on: `turns 1, 3`, `what is absent from turn 2`; empty if it names none."""
    if not verdict.evidence:
        return ""
    noun = "turn" if len(verdict.evidence) == 1 else "turns"
    absent = "what is absent from " if verdict.rests_on == "absence" else ""
    return f"{absent}{noun} {', '.join(map(str, verdict.evidence))}"


def quotes_of(verdict: Finding | Vote) -> tuple[Quote, ...]:
    """The words that it rests on. An empty quote stands for something absent."""
    return tuple(quote for quote in verdict.quotes if visible(quote.text).strip())


def grade_words(grade: Grade) -> str:
    """`0.75 of 1; passed from 0.7 on`."""
    floor = "" if grade.pass_at is None else f"; passed from {numbers.plain(grade.pass_at)} on"
    return f"{numbers.grade(grade.score, grade.pass_at)} of 1{floor}"


DIMENSIONS: tuple[Column[DimensionGrade], ...] = (
    Column("dimension", words=True, limit=160, show=lambda one: one.name),
    Column("level", words=True, limit=160, show=lambda one: one.level),
    Column("score", show=lambda one: numbers.grade(one.score)),
    Column("weight", show=lambda one: numbers.plain(one.weight)),
    Column("reason", words=True, limit=400, show=lambda one: one.reason),
)
"""The grades of a rubric's dimensions."""


def verdict_details(finding: Finding, warning: str | None) -> Iterator[str]:
    """The details of a verdict in lines for a log; `warning`: why the criterion is less reliable."""
    if warning:
        yield f"! {warning}"
    if finding.rests_on == "absence":
        yield f"rests on {rests_on(finding)}"
    for quote in quotes_of(finding):
        yield f"turn {quote.turn}: “{_short(quote.text)}”"
    if grade := finding.grade:
        yield f"graded {grade_words(grade)}"
        for one in grade.dimensions:
            yield f"{one.name}: {one.level} ({numbers.grade(one.score)}): {_short(one.reason)}"
    if finding.votes:
        yield vote_tally(finding.votes)
        disagree = len({vote.outcome for vote in finding.votes}) > 1
        for vote in finding.votes if disagree else ():
            yield f"{vote.outcome}, {vote.model}: {_short(vote.reason)}"


def _short(text: str) -> str:
    return sanitize.cut(text, _SHORT_BYTES, "…")
