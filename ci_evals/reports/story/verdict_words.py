"""A verdict in words: its kind, its votes, and what is behind it. Not yet sanitized."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.verdict import Finding, Outcome, Vote
from ci_evals.reports import sanitize

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


def verdict_details(finding: Finding, warning: str | None) -> Iterator[str]:
    """The details of a verdict in lines for a log; `warning`: why the criterion is less reliable."""
    if warning:
        yield f"! {warning}"
    if finding.rests_on == "absence":
        yield f"rests on what is absent from turn {', '.join(map(str, finding.evidence))}"
    for quote in finding.quotes:
        if quote.text.strip():
            yield f"turn {quote.turn}: “{_short(quote.text)}”"
    if grade := finding.grade:
        floor = "" if grade.pass_at is None else f", passed from {numbers.plain(grade.pass_at)} on"
        yield f"graded {numbers.grade(grade.score, grade.pass_at)}{floor}"
        for one in grade.dimensions:
            yield f"{one.name}: {one.level} ({numbers.grade(one.score)}): {_short(one.reason)}"
    if finding.votes:
        yield vote_tally(finding.votes)
        disagree = len({vote.outcome for vote in finding.votes}) > 1
        for vote in finding.votes if disagree else ():
            yield f"{vote.outcome}, {vote.model}: {_short(vote.reason)}"


def _short(text: str) -> str:
    return sanitize.cut(text, _SHORT_BYTES, "…")
