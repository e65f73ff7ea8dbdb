"""The agreement of the judge's votes, criterion by criterion."""

from collections.abc import Iterator

from ci_evals.domain.results.judge import Estimate, PartAgreement
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, Chart, Entry, TrackRow

_ENOUGH = 80
"""Percent of pairs below which agreement is low."""


def figure(results: Results) -> Figure | None:
    """Return the chart; None if no criterion had several votes."""
    votes = results.vote_agreement
    parts = votes.criteria if votes else ()
    shares = [(part, part.share) for part in parts if part.share is not None]
    if not shares:
        return None
    shown = shares[:MOST_ROWS]
    low = (Entry("low", "bad"),) if any(part.low for part, _ in shown) else ()
    interval = (Entry("95 %", "interval"),) if any(share.low is not None for _, share in shown) else ()
    key = (Entry("pairs that agree, %", "head"), *low, *interval, Entry("80 %", "floor"))
    chart = Chart(
        id="chart-agreement",
        title="Agreement of the judge's votes by criterion",
        says=_says(shares),
        headers=("criterion", "test", "pairs that agree", "alpha", "verdicts"),
        rows=(
            (
                part.name,
                part.test or "",
                numbers.estimated_share(share),
                numbers.estimated_coefficient(part.alpha),
                f"{part.verdicts:,}",
            )
            for part, share in shares
        ),
    )
    return chart.in_rows(key, [_row(part, share) for part, share in shown])


def _row(part: PartAgreement, share: Estimate) -> TrackRow:
    about = f"{numbers.estimated_share(share)} of pairs agree, on {numbers.count(part.verdicts, 'verdict')}"
    where = f", in {part.test}" if part.test else ""

    def marks(y: float) -> Iterator[Drawn]:
        if share.low is not None and share.high is not None:
            yield frame.interval_mark(100 * share.low, 100 * share.high, y)
        yield frame.floor_mark(_ENOUGH, y)
        yield frame.score_mark(100 * share.value, y, bad=part.low)

    return TrackRow(
        part.name,
        numbers.percent(share.value) + (", low" if part.low else ""),
        marks,
        ("c-bad-text",) if part.low else (),
        about + where,
    )


def _says(shares: list[tuple[PartAgreement, Estimate]]) -> str:
    low = sum(part.low for part, _ in shares)
    worst, share = min(shares, key=lambda item: item[1].value)
    criteria = numbers.count(len(shares), "criterion", "criteria")
    text = f"Least on {worst.name}: {numbers.percent(share.value)} of pairs agree"
    return f"{text}; low on {low:,} of {criteria}." if low else f"{text}; low on none of {criteria}."
