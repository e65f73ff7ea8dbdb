"""The distribution of the trials' scores."""

from collections.abc import Iterator
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Entry, Plot
from ci_evals.reports.page.charts.scale import Scale, above
from ci_evals.reports.story.figure import Figure
from ci_evals.scoring.scores import ScoreRule, all_passed, kinds

_BINS = 10
_LEFT, _TOP, _BOTTOM, _HEIGHT = 34.0, 50.0, 186.0, 210.0
_SLOT = 25.0
"""Width of a bin; what has no score stands apart, behind all bins."""
_APART = WIDTH - _SLOT - 17
_READING = (
    "Each bar counts the trials whose score is in that range. Solid: every criterion passed. "
    "Outlined: at least one did not. A thick line is the baseline, scaled to the same number of trials."
)


class Spread(NamedTuple):
    """Numbers of trials by tens of points, and at the end the number without a score."""

    passed: list[int]
    """Of those that passed every criterion."""
    others: list[int]

    @classmethod
    def of(cls, results: Results) -> "Spread":
        """Count all trials of a run."""
        rule = ScoreRule(offline=results.run.offline)
        spread = cls([0] * (_BINS + 1), [0] * (_BINS + 1))
        for trial, number in kinds(test for suite in results.suites for test in suite.tests):
            score = trial.score or 0
            place = min(_BINS - 1, int(score // (100 / _BINS))) if trial.scored else _BINS
            passed = trial.scored and all_passed(trial, rule)
            (spread.passed if passed else spread.others)[place] += number
        return spread

    @property
    def stacks(self) -> tuple[int, ...]:
        """The height of each bin."""
        return tuple(map(sum, zip(self.passed, self.others, strict=True)))


def figure(results: Results, baseline: Results | None) -> Figure | None:
    """Return the chart; None if no trial was played."""
    spread = Spread.of(results)
    if not sum(spread.stacks):
        return None
    compared = baseline and results.comparison and results.comparison.comparable
    base = Spread.of(baseline) if baseline and compared else None
    base = base if base and sum(base.stacks) else None
    words = Figure(
        id="chart-trials",
        title="Trials by score",
        says=_says(spread, base),
        reading=_READING,
        headers=("score", "passed", "not passed", *(("baseline",) if base else ())),
        rows=list(_rows(spread, base)),
    )
    return frame.drawn(words, _HEIGHT, _drawn(spread, base))


def _drawn(spread: Spread, base: Spread | None) -> Iterator[Drawn]:
    outline = _outline(spread, base) if base else [0.0] * (_BINS + 1)
    high = above(max(*spread.stacks, *outline), 4)
    plot = Plot(Scale(0, 100, _LEFT, _LEFT + _BINS * _SLOT), Scale(0, high, _BOTTOM, _TOP))
    entries = [Entry("passed", "c-passed"), Entry("not passed", "c-failed")]
    entries += [Entry("no score", "c-unscored")] if spread.others[-1] else []
    entries += [Entry("baseline", "outline")] if base else []
    yield from frame.key(entries)
    yield from frame.axes(plot, frame.scores_on(plot.x), frame.counts_on(plot.y), ("", "trials"))
    for place, (passed, others) in enumerate(zip(*spread, strict=True)):
        apart = place == _BINS
        left = _APART if apart else _LEFT + place * _SLOT
        height = _BOTTOM
        for count, kind in ((passed, "c-passed"), (others, "c-unscored" if apart else "c-failed")):
            if count:
                tall = frame.bar_height(plot, count)
                height -= tall
                yield drawing.box(left + 2, height, _SLOT - 4, tall, kind)
        if outline[place]:
            line = plot.y(outline[place])
            yield drawing.line(left - 1, line, left + _SLOT + 1, line, "c-outline")
            height = min(height, line)
        if passed + others:
            yield drawing.words(left + _SLOT / 2, height - 5, f"{passed + others:,}", "c-count", "c-middle")
    if spread.others[-1] or outline[-1]:
        yield drawing.line(_APART - 2, _BOTTOM, _APART + _SLOT + 2, _BOTTOM, "c-axis")
        yield drawing.words(WIDTH, _BOTTOM + 16, "no score", "c-tick", "c-end")


def _outline(spread: Spread, base: Spread) -> list[float]:
    """The baseline's bins, as if it had as many trials as this run."""
    times = sum(spread.stacks) / sum(base.stacks)
    return [count * times for count in base.stacks]


def _rows(spread: Spread, base: Spread | None) -> Iterator[tuple[str, ...]]:
    ranges = [f"{10 * place} to below {10 * place + 10}" for place in range(_BINS - 1)]
    names = [*ranges, "90 to 100", "no score"]
    columns = [spread.passed, spread.others, *([base.stacks] if base else [])]
    for name, *counts in zip(names, *columns, strict=True):
        yield name, *map(str, counts)


def _says(spread: Spread, base: Spread | None) -> str:
    trials, low, unscored = sum(spread.stacks), sum(spread.stacks[:5]), spread.others[-1]
    text = f"{sum(spread.passed):,} of {numbers.count(trials, 'trial')} passed every criterion"
    text += f"; {low:,} scored below 50" if low else ""
    text += f"; {unscored:,} without a score" if unscored else ""
    text += f"; baseline: {sum(base.passed):,} of {sum(base.stacks):,} passed" if base else ""
    return f"{text}."
