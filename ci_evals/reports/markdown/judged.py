"""The details of a judged verdict, in Markdown or in lines: its quotes, its grade, and its votes."""

from collections.abc import Iterator, Sequence

from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding, Grade, Quote, Vote
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import highlights, labels, trial_errors
from ci_evals.reports.markdown.sections import REASON_BYTES, section, table

_QUOTE_BYTES = 2_048
_SHORT_BYTES = 1_024
"""Bytes of a vote's reason, or of a quote, in a log."""
_CELL = 400
"""Characters of a dimension's reason."""


def behind(finding: Finding) -> str:
    """All that stands behind a verdict; empty where its reason is all."""
    votes = finding.votes or ()
    if not (finding.quotes or finding.grade or votes):
        return ""
    return section(
        "judged",
        quotes=_quoted(finding.quotes),
        grade=finding.grade,
        dimensions=_dimensions(finding.grade) if finding.grade else "",
        votes=[(_vote(vote), sanitize.quote(_cut(vote.reason))) for vote in votes],
        tally=tally(votes),
    )


def lines(finding: Finding, warning: str | None) -> Iterator[str]:
    """The same details in plain lines for a log; `warning`: why the criterion is less reliable."""
    if warning:
        yield f"! {warning}"
    if finding.rests_on == "absence":
        yield f"rests on what is absent from turn {', '.join(map(str, finding.evidence))}"
    for quote in finding.quotes:
        if quote.text.strip():
            yield f"turn {quote.turn}: “{_short(quote.text)}”"
    if grade := finding.grade:
        floor = numbers.plain(grade.pass_at)
        yield f"graded {numbers.grade(grade.score, grade.pass_at)}, passed from {floor} on"
        for one in grade.dimensions:
            yield f"{one.name}: {one.level} ({numbers.grade(one.score)}): {_short(one.reason)}"
    if finding.votes:
        yield tally(finding.votes)
        disagree = len({vote.outcome for vote in finding.votes}) > 1
        for vote in finding.votes if disagree else ():
            yield f"{vote.outcome}, {vote.model}: {_short(vote.reason)}"


def violations(trial: TrialResult) -> str:
    """Where the trial's simulated user broke its role, with the words that show it; empty where nowhere."""
    found = trial.user_audit.violations if trial.user_audit else ()
    if not found:
        return ""
    shown = [
        (
            sanitize.inline(f"{trial_errors.violation(one, trial)}: {one.reason}", 600),
            sanitize.quote(sanitize.cut(one.text, _QUOTE_BYTES)) if one.text.strip() else "",
        )
        for one in found
    ]
    return section("violations", violations=shown)


def tally(votes: Sequence[Vote]) -> str:
    """The outcome of the votes: `3 votes: 2 passed, 1 failed`."""
    return f"{numbers.count(len(votes), 'vote')}: {highlights.tally(votes)}"


def _short(text: str) -> str:
    return sanitize.cut(text, _SHORT_BYTES, "…")


def _quoted(quotes: Sequence[Quote]) -> list[tuple[int, str]]:
    # A quote may be empty: the verdict then rests on what is not there.
    return [
        (quote.turn, sanitize.quote(sanitize.cut(quote.text, _QUOTE_BYTES)))
        for quote in quotes
        if quote.text.strip()
    ]


def _dimensions(grade: Grade) -> str:
    rows = [
        [
            sanitize.cell(one.name),
            sanitize.cell(one.level),
            numbers.grade(one.score),
            numbers.plain(one.weight),
            sanitize.cell(one.reason, _CELL),
        ]
        for one in grade.dimensions
    ]
    is_text = (True, True, False, False, True)
    return table(["dimension", "level", "score", "weight", "reason"], rows, is_text)


def _vote(vote: Vote) -> str:
    cause = f" ({labels.CAUSES[vote.cause]})" if vote.cause else ""
    graded = f", {numbers.grade(vote.grade.score, vote.grade.pass_at)} of 1" if vote.grade else ""
    sign = labels.OUTCOMES[vote.outcome].sign
    absent = "what is absent from " if vote.rests_on == "absence" else ""
    on = f", rests on {absent}{', '.join(map(str, vote.evidence))}" if vote.evidence else ""
    return f"{sign} {vote.outcome.value}{cause}{graded}, {sanitize.code(vote.model)}{on}"


def _cut(reason: str) -> str:
    return sanitize.cut(reason or "no reason was given", REASON_BYTES)
