"""How far the judge's votes agree, criterion by criterion."""

from collections.abc import Iterator

from ci_evals.domain.results.judge import Estimate, PartAgreement
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, SCORES, Entry, Row

_NAME, _TITLE = "chart-agreement", "Agreement of the judge's votes by criterion"
_TOP = 24
_ENOUGH = 80
"""Percent of pairs below which agreement is low."""


def figure(results: Results) -> Figure | None:
    """None where no criterion had several votes."""
    votes = results.vote_agreement
    parts = votes.criteria if votes else ()
    found = [(part, part.share) for part in parts if part.share is not None]
    if not found:
        return None
    shown, says = found[:MOST_ROWS], _says(found)
    rows = [_row(part, share, frame.track_of(place, _TOP)) for place, (part, share) in enumerate(shown)]
    low = (Entry("low", "bad"),) if any(part.low for part, _ in shown) else ()
    interval = (Entry("95 %", "interval"),) if any(share.low is not None for _, share in shown) else ()
    key = (Entry("pairs that agree, %", "head"), *low, *interval, Entry("80 %", "floor"))
    return Figure(
        id=_NAME,
        title=_TITLE,
        says=says,
        svg=drawing.picture(
            _NAME,
            _TITLE,
            says,
            _TOP + len(shown) * frame.ROW + frame.AXIS,
            [*frame.key(key, 13), *frame.rows(rows, _TOP)],
        ),
        headers=("criterion", "test", "pairs that agree", "alpha", "verdicts"),
        rows=tuple(
            (
                part.name,
                part.test or "",
                numbers.estimated_share(share),
                numbers.estimated_coefficient(part.alpha),
                f"{part.verdicts:,}",
            )
            for part, share in found
        ),
    )


def _row(part: PartAgreement, share: Estimate, height: float) -> Row:
    about = f"{numbers.estimated_share(share)} of pairs agree, on {numbers.count(part.verdicts, 'verdict')}"
    where = f", in {part.test}" if part.test else ""
    return Row(
        part.name,
        numbers.percent(share.value) + (", low" if part.low else ""),
        tuple(_marks(part, share, height)),
        ("c-bad-text",) if part.low else (),
        about + where,
    )


def _marks(part: PartAgreement, share: Estimate, height: float) -> Iterator[Drawn]:
    if share.low is not None and share.high is not None:
        low, high = SCORES(100 * share.low), SCORES(100 * share.high)
        yield drawing.box(low, height - 4, high - low, 8, "c-interval")
    yield drawing.line(SCORES(_ENOUGH), height - 9, SCORES(_ENOUGH), height + 9, "c-floor")
    mark = drawing.diamond if part.low else drawing.circle
    yield mark(SCORES(100 * share.value), height, "c-bad" if part.low else "c-head")


def _says(found: list[tuple[PartAgreement, Estimate]]) -> str:
    low = sum(part.low for part, _ in found)
    worst, share = min(found, key=lambda item: item[1].value)
    criteria = numbers.count(len(found), "criterion", "criteria")
    told = f"Least on {worst.name}: {numbers.percent(share.value)} of pairs agree"
    return f"{told}; low on {low:,} of {criteria}." if low else f"{told}; low on none of {criteria}."
