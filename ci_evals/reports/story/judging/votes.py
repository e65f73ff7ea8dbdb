"""The facts of the judge's votes: how far they agree."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import PartAgreement, VoteAgreement
from ci_evals.domain.results.run import Results
from ci_evals.reports.story.judging.parts import CriterionWarning, criterion, listed
from ci_evals.reports.story.labels import Tone
from ci_evals.reports.story.table import BLANK, Column, Table, table_of

TOPIC = "Votes"


def remarks(results: Results) -> Iterator[str]:
    """The share of the pairs of votes that agree."""
    if results.vote_agreement:
        yield _remark(results.vote_agreement)


def tables(results: Results) -> Iterator[Table]:
    """Each criterion and category in numbers."""
    if results.vote_agreement:
        yield _table(results.vote_agreement)


def warnings(results: Results) -> Iterator[str]:
    """A warning if votes disagree."""
    agreement = results.vote_agreement
    low = [part for part in agreement.criteria if part.low] if agreement else []
    if not agreement or not low:
        return
    named = [
        f"{criterion(part.name, part.test)} ({_percent(part)}, {numbers.count(part.verdicts, 'verdict')})"
        for part in low
    ]
    criteria = numbers.count(len(low), "criterion", "criteria")
    it = "it" if len(low) == 1 else "them"
    advice = f"Read the votes' reasons, and word {it} so that both would agree"
    if agreement.whole.low:
        advice = (
            f"Overall only {numbers.estimated_share(agreement.whole.share)} agree: another judge or a panel "
            "may help more than other words"
        )
    yield (
        f"The judge's votes disagree on {criteria} of {len(agreement.criteria):,} (clearly less than 80 % of "
        f"the pairs of votes agree): {listed(named)}. {advice}."
    )


def criterion_warnings(results: Results) -> Iterator[CriterionWarning]:
    """Each criterion on which votes disagree."""
    for part in results.vote_agreement.criteria if results.vote_agreement else ():
        if part.low:
            text = f"the judge's votes disagree on this one ({_percent(part)} of pairs agree)"
            yield CriterionWarning(part.name, part.suite, part.test, text)


def _remark(agreement: VoteAgreement) -> str:
    who = f" by {', '.join(agreement.models)}" if agreement.models else ""
    votes = f"Up to {numbers.count(agreement.votes, 'vote')} on a criterion{who}"
    if agreement.whole.share is None:
        return f"{votes}; no verdict had two that decide."
    alpha = (
        "all alike, so Krippendorff's alpha has no value"
        if agreement.whole.alpha is None
        else f"Krippendorff's alpha {numbers.estimated_coefficient(agreement.whole.alpha)}"
    )
    agree = f"of the pairs of votes on one verdict {numbers.estimated_share(agreement.whole.share)} agree"
    text = f"{votes}; {agree}, {alpha}, on {numbers.count(agreement.whole.verdicts, 'verdict')}."
    if agreement.levels:
        text += f" On the levels of rubrics: ordinal alpha {numbers.estimated_coefficient(agreement.levels)}."
    return text


def _percent(part: PartAgreement) -> str:
    return numbers.percent(part.share.value if part.share else None)


_Part = tuple[str, PartAgreement]
"""A criterion or a category: what stands before its name, and the numbers."""
_COLUMNS: tuple[Column[_Part], ...] = (
    Column("criterion", words=True, show=lambda part: f"{part[0]}{part[1].name}"),
    Column("said of it", words=True, says_nothing=BLANK, show=lambda part: "low" if part[1].low else ""),
    Column("test", words=True, says_nothing=BLANK, show=lambda part: part[1].test or ""),
    Column("pairs that agree", show=lambda part: numbers.estimated_share(part[1].share)),
    Column("alpha", show=lambda part: numbers.estimated_coefficient(part[1].alpha)),
    Column("verdicts", show=lambda part: f"{part[1].verdicts:,}"),
)


def _table(agreement: VoteAgreement) -> Table:
    parts = [("", part) for part in agreement.criteria]
    parts += [("category ", part) for part in agreement.categories]
    return table_of(
        "Agreement of the judge's votes",
        _COLUMNS,
        parts,
        tone=lambda part: Tone.BAD if part[1].low else None,
        long=True,
    )
