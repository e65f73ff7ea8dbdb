"""Scores of the run and its suites, each with its interval, its minimum and the baseline's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ci_evals.domain import numbers
from ci_evals.domain.base import Interval
from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import is_floor
from ci_evals.gate.rule import IF_UNDECIDED_FAILED, wanting
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.figure import Figure
from ci_evals.reports.page.charts.frame import MOST_ROWS, SCORES, Entry, TrackRow

_READING = (
    "Each dot is this run's score from 0 to 100; a diamond is below the minimum that the gate requires (the "
    "vertical line). The shaded bar is the 95 % interval: with this number of tests and trials, the "
    "true score may "
    "lie anywhere in it. The ring is the baseline."
)


@dataclass(frozen=True)
class Scored:
    """A part of the run, as a row shows it."""

    name: str
    score: float | None
    interval: Interval | None = None
    base: float | None = None
    """The baseline's score over the tests that both runs share."""
    floor: GateCheck | None = None

    @property
    def missed(self) -> bool:
        """True if the score is below its floor."""
        return self.floor is not None and self.floor.passed is False

    @property
    def decisive(self) -> float | None:
        """The score that its floor was compared with, if verdicts are undecided."""
        if self.floor and self.missed and wanting(self.floor):
            return self.floor.seen_if_undecided_failed
        return self.score


def by_suite(results: Results) -> Figure | None:
    """The run and its suites; None where nothing is scored."""
    comparison = results.comparison if results.comparison and results.comparison.comparable else None
    suites = comparison.suites if comparison else ()
    parts = []
    for place, suite in enumerate(results.suites):
        base = suites[place] if place < len(suites) and suites[place].name == suite.name else None
        floor = _floor(results, suite_number=place + 1)
        if len(results.suites) == 1:
            floor = floor or _floor(results)
        base_score = base.base if base and base.comparable else None
        parts.append(Scored(suite.name, suite.score, suite.interval, base_score, floor))
    if all(part.score is None for part in parts):
        return None
    if len(parts) > 1 or (parts[0].floor and parts[0].floor.suite_number and _floor(results)):
        base_score = comparison.base if comparison else None
        parts.insert(0, Scored("All suites", results.score, results.interval, base_score, _floor(results)))
    return _figure("chart-scores", "Scores by suite", "suite", parts)


def _floor(
    results: Results, suite_number: int | None = None, selector: str | None = None
) -> GateCheck | None:
    """The highest floor of a suite, of the part that a selector names, or of the run."""
    floors = [
        check
        for check in results.gate.checks
        if is_floor(check) and check.test is None and check.suite_number == suite_number
        if suite_number or check.selector == selector
    ]
    return max(floors, key=lambda check: check.required or 0, default=None)


def _figure(name: str, title: str, noun: str, parts: Sequence[Scored]) -> Figure:
    words = Figure(
        id=name,
        title=title,
        says=_says(parts, noun),
        reading=_READING,
        headers=(noun, "score", "95 % interval", "minimum", "baseline"),
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


def _says(parts: Sequence[Scored], noun: str) -> str:
    scored = sorted((part.score, part.name) for part in parts if part.score is not None)
    (low, worst), (high, best) = scored[0], scored[-1]
    text = f"{worst}: {numbers.score(low)}"
    if low < high:
        text = f"Lowest: {worst}, {numbers.score(low)}; highest: {best}, {numbers.score(high)}"
    missed = sum(part.missed for part in parts)
    if not missed:
        return f"{text}."
    is_wanting = any(part.decisive != part.score for part in parts)
    why = f" {IF_UNDECIDED_FAILED}" if is_wanting else ""
    return f"{text}; {numbers.count(missed, noun)} below the minimum{why}."
