"""The agreement of the judge's votes, criterion by criterion."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import Estimate, PartAgreement
from ci_evals.domain.results.run import Results
from ci_evals.reports.page.charts import frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, Entry, TrackRow
from ci_evals.reports.story.figure import Figure

_ENOUGH = 80
"""Percent of pairs below which agreement is low."""
_READING = (
    "One row per criterion that several votes decided: the share of pairs of votes with the same verdict. "
    "Below 80 % (the vertical line) the criterion's verdicts are less reliable. "
    "The shaded bar is the 95 % interval."
)


def figure(results: Results) -> Figure | None:
    """Return the chart; None if no criterion had several votes."""
    votes = results.vote_agreement
    parts = votes.criteria if votes else ()
    shares = [(part, part.share) for part in parts if part.share is not None]
    if not shares:
        return None
    low = sum(part.low for part, _ in shares)
    words = Figure(
        id="chart-agreement",
        title="Agreement of the judge's votes by criterion",
        says=f"Agreement is low on {low:,} of {numbers.count(len(shares), 'criterion', 'criteria')}.",
        reading=_READING,
        headers=("criterion", "test", "pairs that agree", "alpha", "verdicts"),
        rows=[
            (
                part.name,
                part.test or "",
                numbers.estimated_share(share),
                numbers.estimated_coefficient(part.alpha),
                f"{part.verdicts:,}",
            )
            for part, share in shares
        ],
    )
    key = [Entry("pairs that agree, %", "head")]
    key += [Entry("low", "bad")] if low else []
    key += [Entry("95 % interval", "interval")] if any(share.low is not None for _, share in shares) else []
    key += [Entry("80 %", "floor")]
    return frame.drawn_in_rows(words, key, [_row(part, share) for part, share in shares[:MOST_ROWS]])


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
