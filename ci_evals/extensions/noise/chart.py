"""The chart of the sources of noise: the agent, the simulated user and the judge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.noise.result import SOURCES, Noise, NoiseShare
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.frame import SCORES, TrackRow
from ci_evals.reports.story.figure import Figure

_READING = (
    "The variance between trials of one test, divided among its sources: what the agent, the simulated user "
    "and the judge do differently from trial to trial. The line on each bar is the 95 % interval."
)
_CLASSES = {"agent": "c-agent", "user": "c-user", "judge": "c-judge"}


@dataclass(frozen=True)
class _ChartPart:
    noise: NoiseShare
    estimate: Estimate
    share: float
    """Share of their sum, 0 to 1: the numbers of a foreign file may not add up."""


def figure(noise: Noise) -> Figure | None:
    """The shares of the sources; None if nothing is noisy."""
    parts = _parts(noise.parts)
    if not parts:
        return None
    most = max(parts, key=lambda part: part.share)
    says = f"{numbers.percent(most.estimate.value)} of the noise between trials of one test is from "
    words = Figure(
        id="chart-noise",
        title="Where the noise comes from",
        says=f"{says}{SOURCES[most.noise.source]}.",
        reading=_READING,
        headers=("source", "share", "variance, square points"),
        rows=[
            (
                SOURCES[part.noise.source],
                numbers.estimated_share(part.noise.share),
                numbers.estimate(part.noise.variance, numbers.spread),
            )
            for part in parts
        ],
    )
    return frame.drawn(words, frame.STACK + len(parts) * frame.ROW + frame.AXIS, _drawn(parts))


def _parts(found: Sequence[NoiseShare]) -> tuple[_ChartPart, ...]:
    known = [(one, one.share) for one in found if one.share is not None]
    whole = sum(max(0.0, share.value) for _, share in known)
    return (
        tuple(_ChartPart(one, share, max(0.0, share.value) / whole) for one, share in known) if whole else ()
    )


def _drawn(parts: Sequence[_ChartPart]) -> Iterator[Drawn]:
    """One bar of all sources, and below it each with the interval of its share."""
    for part, (left, width) in zip(parts, frame.stacked([part.share for part in parts]), strict=True):
        yield drawing.box(left, 2, width, frame.STACK - 8, _CLASSES[part.noise.source])
    yield from frame.rows([_row(part) for part in parts], frame.STACK)


def _row(part: _ChartPart) -> TrackRow:
    share, kind = part.estimate, _CLASSES[part.noise.source]

    def marks(y: float) -> Iterator[Drawn]:
        yield drawing.box(SCORES(0), y - 5, SCORES(100 * share.value) - SCORES(0), 10, kind)
        if share.low is not None and share.high is not None:
            low, high = SCORES(100 * share.low), SCORES(100 * share.high)
            yield drawing.line(low, y, high, y, "c-span")
            for end in (low, high):
                yield drawing.line(end, y - 4, end, y + 4, "c-span")

    return TrackRow(SOURCES[part.noise.source], numbers.estimated_share(part.noise.share), marks)
