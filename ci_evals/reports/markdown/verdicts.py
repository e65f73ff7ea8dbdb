"""A verdict in Markdown: its facts, its reason, and the quotes, grade and votes behind it."""

from collections.abc import Iterator, Mapping, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import DimensionGrade, Finding, Quote, Vote
from ci_evals.reports import sanitize
from ci_evals.reports.markdown.sections import REASON_BYTES, section, table_text
from ci_evals.reports.story import failures, verdict_words
from ci_evals.reports.story.outcome_labels import CAUSES, OUTCOMES
from ci_evals.reports.story.phrases import NO_REASON
from ci_evals.reports.story.table import Column, table_of

_QUOTE_BYTES = 2_048
_DIMENSIONS: tuple[Column[DimensionGrade], ...] = (
    Column("dimension", words=True, limit=160, show=lambda one: one.name),
    Column("level", words=True, limit=160, show=lambda one: one.level),
    Column("score", show=lambda one: numbers.grade(one.score)),
    Column("weight", show=lambda one: numbers.plain(one.weight)),
    Column("reason", words=True, limit=400, show=lambda one: one.reason),
)


def shown(finding: Finding, warnings: Mapping[str, str]) -> tuple[Iterator[str], str, str]:
    """The facts of a verdict, its reason, and its details; `warnings`: why criteria are less reliable."""
    return _facts(finding, warnings), _reason(finding.reason), details(finding)


def _facts(finding: Finding, warnings: Mapping[str, str]) -> Iterator[str]:
    """A verdict in short, in parts; `warnings`: why criteria are less reliable."""
    cause = f" ({CAUSES[finding.cause]})" if finding.cause else ""
    sign = OUTCOMES[finding.outcome].sign
    yield f"{sign} **{sanitize.inline(finding.criterion)}**: {finding.outcome.value}{cause}"
    yield sanitize.inline(verdict_words.verdict_kind(finding))
    yield f"weight {numbers.plain(finding.weight)}"
    if finding.category:
        yield f"category {sanitize.code(finding.category)}"
    if finding.aui_logic:
        yield f"AUI logic {', '.join(map(sanitize.code, finding.aui_logic))}"
    if finding.evidence:
        noun = "turn" if len(finding.evidence) == 1 else "turns"
        on = "what is absent from " if finding.rests_on == "absence" else ""
        yield f"rests on {on}{noun} {', '.join(map(str, finding.evidence))}"
    if warning := warnings.get(finding.criterion):
        yield f"⚠️ {sanitize.inline(warning)}"


def _reason(text: str) -> str:
    """The reason of a verdict or a vote as a quotation."""
    return sanitize.quote(sanitize.cut(text or NO_REASON, REASON_BYTES))


def details(finding: Finding) -> str:
    """The quotes, grade and votes behind a verdict; empty if there is only its reason."""
    votes = finding.votes or ()
    unusable = [text for one in votes or (finding,) for text in one.unusable or ()]
    if not (finding.quotes or finding.grade or votes or unusable):
        return ""
    return section(
        "verdict_details",
        quotes=_quoted(finding.quotes),
        grade=finding.grade,
        dimensions=table_text(table_of("", _DIMENSIONS, finding.grade.dimensions)) if finding.grade else "",
        votes=[(_vote(vote), _reason(vote.reason)) for vote in votes],
        tally=verdict_words.vote_tally(votes),
        unusable=[sanitize.code_block(text) for text in unusable],
    )


def violations(trial: TrialResult) -> str:
    """Places where the trial's simulated user broke character, with the words that show it; may be empty."""
    found = trial.user_audit.violations if trial.user_audit else ()
    if not found:
        return ""
    shown = [
        (
            sanitize.inline(f"{failures.violation(one, trial)}: {one.reason}", 600),
            sanitize.quote(sanitize.cut(one.text, _QUOTE_BYTES)) if one.text.strip() else "",
        )
        for one in found
    ]
    return section("violations", violations=shown)


def _quoted(quotes: Sequence[Quote]) -> list[tuple[int, str]]:
    # A quote may be empty: the verdict then rests on what is not there.
    return [
        (quote.turn, sanitize.quote(sanitize.cut(quote.text, _QUOTE_BYTES)))
        for quote in quotes
        if quote.text.strip()
    ]


def _vote(vote: Vote) -> str:
    cause = f" ({CAUSES[vote.cause]})" if vote.cause else ""
    graded = f", {numbers.grade(vote.grade.score, vote.grade.pass_at)} of 1" if vote.grade else ""
    sign = OUTCOMES[vote.outcome].sign
    absent = "what is absent from " if vote.rests_on == "absence" else ""
    on = f", rests on {absent}{', '.join(map(str, vote.evidence))}" if vote.evidence else ""
    return f"{sign} {vote.outcome.value}{cause}{graded}, {sanitize.code(vote.model)}{on}"
