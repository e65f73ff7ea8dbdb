"""Scores of the run and its suites, each with its interval, its minimum and the baseline's."""

from collections.abc import Iterator, Sequence
from functools import partial

from ci_evals.domain import numbers
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.frame import MOST_ROWS, SCORES, Entry, Figure, TrackRow
from ci_evals.reports.story.scores import UNDECIDED_FAILED, Scored
from ci_evals.reports.story.story import Story

_READING = (
    "Each dot is this run's score from 0 to 100; a diamond is below the minimum that the gate requires (the "
    "vertical line). The shaded bar is the 95 % interval: with this number of tests and trials, the "
    "true score may "
    "lie anywhere in it. The ring is the baseline."
)


def figure(story: Story) -> Figure | None:
    """Return the chart; None if nothing is scored."""
    parts = story.tables.scored
    return _figure(parts) if parts else None


def _figure(parts: Sequence[Scored]) -> Figure:
    words = Figure(
        id="chart-scores",
        title="Scores by suite",
        says=_says(parts),
        reading=_READING,
        headers=("suite", "score", "95 % interval", "minimum", "baseline"),
        rows=[
            (
                part.name,
                numbers.score(part.score),
                numbers.interval(part.interval),
                numbers.plain(part.floor.required) if part.floor else "",
                "" if part.base is None else numbers.score(part.base),
            )
            for part in parts
        ],
    )
    shown = parts[:MOST_ROWS]
    return frame.drawn_in_rows(words, _key(shown), list(map(_row, shown)))


def _row(part: Scored) -> TrackRow:
    value = numbers.score(part.decisive, part.floor.required if part.floor else None)
    if part.floor and part.missed:
        value += f", minimum {numbers.plain(part.floor.required)}"
    about = [value]
    about += (
        [f"{numbers.score(part.score)} without undecided verdicts"] if part.decisive != part.score else []
    )
    about += [f"95 % interval {numbers.interval(part.interval)}"] if part.interval else []
    about += [f"baseline {numbers.score(part.base)}"] if part.base is not None else []
    classes = ("c-bad-text",) if part.missed else ()
    return TrackRow(part.name, value, partial(_marks, part), classes, "; ".join(about))


def _marks(part: Scored, y: float) -> Iterator[drawing.Drawn]:
    if part.interval:
        yield frame.interval_mark(part.interval.low, part.interval.high, y)
    if part.floor and part.floor.required is not None:
        yield frame.floor_mark(part.floor.required, y)
    if part.base is not None:
        yield drawing.circle(SCORES(part.base), y, "c-base", radius=6)
    if part.decisive is not None:
        yield frame.score_mark(part.decisive, y, bad=part.missed)


def _key(shown: Sequence[Scored]) -> Iterator[Entry]:
    yield Entry("score", "head")
    if any(part.missed for part in shown):
        yield Entry("too low", "bad")
    if any(part.interval for part in shown):
        yield Entry("95 % interval", "interval")
    if any(part.base is not None for part in shown):
        yield Entry("baseline", "base")
    if any(part.floor for part in shown):
        yield Entry("minimum", "floor")


def _says(parts: Sequence[Scored]) -> str:
    scored = sorted((part.score, part.name) for part in parts if part.score is not None)
    (low, worst), (high, best) = scored[0], scored[-1]
    text = f"{worst}: {numbers.score(low)}"
    if low < high:
        text = f"Lowest: {worst}, {numbers.score(low)}; highest: {best}, {numbers.score(high)}"
    missed = sum(part.missed for part in parts)
    if not missed:
        return f"{text}."
    is_wanting = any(part.decisive != part.score for part in parts)
    why = f" {UNDECIDED_FAILED}" if is_wanting else ""
    return f"{text}; {numbers.count(missed, 'suite')} below the minimum{why}."
