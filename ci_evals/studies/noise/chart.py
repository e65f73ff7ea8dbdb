"""Where the noise of a trial's score comes from: the agent, the simulated user, or the judge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.judge import Estimate
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import SCORES, Row
from ci_evals.reports.page.charts.scale import Scale
from ci_evals.studies.noise.result import SOURCES, Noise, NoiseShare

_NAME, _TITLE = "chart-noise", "Where the noise comes from"
_STACK = 24
"""Height of the bar of all sources together."""
_CLASSES = {"agent": "c-agent", "user": "c-user", "judge": "c-judge"}


@dataclass(frozen=True)
class _Part:
    told: NoiseShare
    estimate: Estimate
    share: float
    """Of all of them, 0 to 1: a file of somebody else's may have numbers that make no whole."""


def figure(noise: Noise) -> Figure | None:
    """The shares of the sources; None if nothing is noisy."""
    parts = _parts(noise.parts)
    if not parts:
        return None
    most = max(parts, key=lambda part: part.share)
    says = f"{numbers.percent(most.estimate.value)} of the noise between trials of one test is from "
    says += f"{SOURCES[most.told.source]}."
    height = _STACK + len(parts) * frame.ROW + frame.AXIS
    return Figure(
        id=_NAME,
        title=_TITLE,
        says=says,
        svg=drawing.picture(_NAME, _TITLE, says, height, _drawn(parts)),
        headers=("source", "share", "variance, square points"),
        rows=tuple(
            (
                SOURCES[part.told.source],
                numbers.estimated_share(part.told.share),
                numbers.estimate(part.told.variance, numbers.spread),
            )
            for part in parts
        ),
    )


def _parts(found: Sequence[NoiseShare]) -> tuple[_Part, ...]:
    known = [(one, one.share) for one in found if one.share is not None]
    whole = sum(max(0.0, share.value) for _, share in known)
    return tuple(_Part(one, share, max(0.0, share.value) / whole) for one, share in known) if whole else ()


def _drawn(parts: Sequence[_Part]) -> Iterator[Drawn]:
    """One bar of all sources, and below it each with the interval of its share."""
    stack, begun, rows = Scale(0, 1, 0, WIDTH), 0.0, []
    for place, part in enumerate(parts):
        left, right = stack(begun), stack(begun + part.share)
        begun += part.share
        kind = _CLASSES[part.told.source]
        yield drawing.box(left, 2, right - left - 1, _STACK - 8, kind)
        value = numbers.estimated_share(part.told.share)
        marks = tuple(_marks(part, kind, frame.track_of(place, _STACK)))
        rows.append(Row(SOURCES[part.told.source], value, marks))
    yield from frame.rows(rows, _STACK)


def _marks(part: _Part, kind: str, height: float) -> Iterator[Drawn]:
    share = part.estimate
    yield drawing.box(SCORES(0), height - 5, SCORES(100 * share.value) - SCORES(0), 10, kind)
    if share.low is not None and share.high is not None:
        low, high = SCORES(100 * share.low), SCORES(100 * share.high)
        yield drawing.line(low, height, high, height, "c-span")
        for end in (low, high):
            yield drawing.line(end, height - 4, end, height + 4, "c-span")
