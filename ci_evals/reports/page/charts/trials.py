"""The distribution of the trials' scores."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Chart, Entry, Plot
from ci_evals.reports.page.charts.scale import Scale, above, ticks
from ci_evals.scoring.scores import UndecidedRule
from ci_evals.scoring.validity import all_passed

_BINS = 10
_LEFT, _TOP, _BOTTOM, _HEIGHT = 34.0, 50.0, 186.0, 210.0
_SLOT = 25.0
"""Width of a bin; what has no score stands apart, behind all bins."""
_APART = WIDTH - _SLOT - 17


@dataclass(frozen=True)
class Spread:
    """Numbers of trials by score."""

    passed: tuple[int, ...]
    """By tens of points, of those that passed every evaluation."""
    others: tuple[int, ...]
    unscored: int

    @classmethod
    def of(cls, results: Results) -> "Spread":
        """Count all trials of a run."""
        rule = UndecidedRule(offline=results.run.offline)
        trials = [trial for suite in results.suites for test in suite.tests for trial in test.trials]
        scored = [trial for trial in trials if trial.scored]
        return cls(
            _bins(trial for trial in scored if all_passed(trial, rule)),
            _bins(trial for trial in scored if not all_passed(trial, rule)),
            len(trials) - len(scored),
        )

    @property
    def trials(self) -> int:
        """The number of all trials."""
        return sum(self.passed) + sum(self.others) + self.unscored

    @property
    def stacks(self) -> tuple[int, ...]:
        """The height of each bin."""
        return tuple(map(sum, zip(self.passed, self.others, strict=True)))


def _bins(trials: Iterable[TrialResult]) -> tuple[int, ...]:
    counts = [0] * _BINS
    for trial in trials:
        counts[min(_BINS - 1, int((trial.score or 0) // (100 / _BINS)))] += 1
    return tuple(counts)


def figure(results: Results, baseline: Results | None) -> Figure | None:
    """Return the chart; None if no trial was played."""
    spread = Spread.of(results)
    if not spread.trials:
        return None
    base = Spread.of(baseline) if baseline and results.comparison and results.comparison.comparable else None
    base = base if base and base.trials else None
    says = _says(spread, base)
    chart = Chart(
        id="chart-trials",
        title="Trials by their score",
        says=says,
        headers=("score", "passed", "not passed", "without a score", *(("baseline",) if base else ())),
        rows=(_rows(spread, base)),
    )
    return chart.drawn(_HEIGHT, _drawn(spread, base))


def _drawn(spread: Spread, base: Spread | None) -> Iterator[Drawn]:
    outline = _outline(spread, base) if base else ()
    high = above(max(*spread.stacks, spread.unscored, *outline), 4)
    plot = Plot(Scale(0, 100, _LEFT, _LEFT + _BINS * _SLOT), Scale(0, high, _BOTTOM, _TOP))
    counts = [(value, f"{value:,.0f}") for value in ticks(0, high, 4) if value == int(value)]
    yield from frame.key(tuple(_key(spread, base)), 13)
    scores = [(value, f"{value:g}") for value in ticks(0, 100)]
    yield from frame.axes(plot, scores, counts, ("", "trials"))
    stacks = [
        ((passed, "c-passed"), (others, "c-failed"))
        for passed, others in zip(spread.passed, spread.others, strict=True)
    ]
    lefts = [_LEFT + place * _SLOT for place in range(_BINS)]
    for place, (left, parts) in enumerate(
        zip([*lefts, _APART], [*stacks, ((spread.unscored, "c-unscored"),)], strict=True)
    ):
        yield from _stack(plot, left, parts, outline[place] if outline else 0)
    if spread.unscored or (base and base.unscored):
        yield drawing.line(_APART - 2, _BOTTOM, _APART + _SLOT + 2, _BOTTOM, "c-axis")
        yield drawing.words(WIDTH, _BOTTOM + 16, "no score", "c-tick", "c-end")


def _stack(plot: Plot, left: float, parts: Sequence[tuple[int, str]], base: float) -> Iterator[Drawn]:
    height = plot.bottom
    for number, kind in parts:
        if number:
            tall = max(1.5, plot.bottom - plot.y(number))
            height -= tall
            yield drawing.box(left + 2, height, _SLOT - 4, tall, kind)
    if base:
        yield drawing.line(left - 1, plot.y(base), left + _SLOT + 1, plot.y(base), "c-outline")
        height = min(height, plot.y(base))
    if count := sum(number for number, _ in parts):
        yield drawing.words(left + _SLOT / 2, height - 5, f"{count:,}", "c-count", "c-middle")


def _outline(spread: Spread, base: Spread) -> tuple[float, ...]:
    """The baseline's bins and its trials without a score, as if it had as many trials as this run."""
    times = spread.trials / base.trials
    return tuple(count * times for count in (*base.stacks, base.unscored))


def _key(spread: Spread, base: Spread | None) -> Iterator[Entry]:
    yield Entry("passed", "c-passed")
    yield Entry("not passed", "c-failed")
    if spread.unscored:
        yield Entry("no score", "c-unscored")
    if base:
        yield Entry("baseline", "outline")


def _rows(spread: Spread, base: Spread | None) -> Iterator[tuple[str, ...]]:
    for place in range(_BINS):
        last = place == _BINS - 1
        name = f"{place * 10} to {'100' if last else f'below {place * 10 + 10}'}"
        counts = [spread.passed[place], spread.others[place], 0, *([base.stacks[place]] if base else [])]
        yield name, *map(str, counts)
    yield "no score", "0", "0", str(spread.unscored), *((str(base.unscored),) if base else ())


def _says(spread: Spread, base: Spread | None) -> str:
    text = f"{sum(spread.passed):,} of {numbers.count(spread.trials, 'trial')} passed every evaluation"
    low = sum(spread.stacks[:5])
    text += f"; {low:,} scored below 50" if low else ""
    text += f"; {spread.unscored:,} came to no score" if spread.unscored else ""
    if base:
        text += f"; in the baseline {sum(base.passed):,} of {base.trials:,} passed"
        text += ", drawn as if it had as many trials" if base.trials != spread.trials else ""
    return f"{text}."
