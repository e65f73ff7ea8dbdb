"""Base against head, test by test: those whose score changed, the deepest fall first."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Comparison
from ci_evals.domain.results.run import Results
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.figure import Figure
from ci_evals.reports.page.charts.frame import MOST_ROWS, SCORES, Entry, TrackRow
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.story import wording

_SAME = 0.05
"""Points: what is less is shown as no change."""
_READING = (
    "One row per test, from its score in the baseline to its score now, the largest drop first. "
    "A single test may change by chance alone."
)


class Changed(NamedTuple):
    """A test that was scored on both sides."""

    suite: str
    name: str
    base: float
    head: float

    @property
    def delta(self) -> float:
        """In points."""
        return self.head - self.base


def figure(results: Results, tests: Sequence[TestView]) -> Figure | None:
    """Return the chart; None if nothing was compared, or no score changed."""
    comparison = results.comparison
    if not comparison or not comparison.comparable:
        return None
    limited = wording.lists_some_tests(results)
    compared = () if limited else tuple(_of_tests(tests))
    compared = compared or tuple(_of_comparison(comparison))
    changed = sorted((test for test in compared if abs(test.delta) >= _SAME), key=lambda test: test.delta)
    if not changed:
        return None
    fell, rose = [test for test in changed if test.delta < 0], [test for test in changed if test.delta > 0]
    lower, higher = len(fell), len(rose)
    if limited:  # the comparison names large changes alone, and has the size of all
        lower = sum(delta <= -_SAME for delta in comparison.deltas)
        higher = sum(delta >= _SAME for delta in comparison.deltas)
    same = max(comparison.tests, lower + higher) - lower - higher
    parts = [f"{lower:,} {'test' if lower == 1 else 'tests'} dropped, {higher:,} rose"]
    parts += [f"{same:,} unchanged"] if same else []
    words = Figure(
        id="chart-changes",
        title="Tests against the baseline",
        says=f"{', '.join(parts)}.",
        reading=_READING,
        headers=("suite", "test", "baseline", "this run", "change"),
        rows=[
            (
                test.suite,
                test.name,
                numbers.score(test.base),
                numbers.score(test.head),
                numbers.changed(test.base, test.head),
            )
            for test in (changed[: wording.MOST_TESTS] if limited else changed)
        ],
    )
    entries = (Entry("baseline", "base"), Entry("dropped to", "bad"), Entry("rose to", "head"))
    shown = fell[:MOST_ROWS]
    shown += rose[max(0, len(rose) - (MOST_ROWS - len(shown))) :]
    return frame.drawn_in_rows(words, entries, list(map(_row, shown)), more=lower + higher - len(shown))


def _of_tests(tests: Sequence[TestView]) -> Iterator[Changed]:
    """The tests that both runs have and define in the same way."""
    for shown in tests:
        head, base = shown.test.score, shown.base.score if shown.base else None
        if shown.same and head is not None and base is not None:
            yield Changed(shown.suite, shown.name, base, head)


def _of_comparison(comparison: Comparison) -> Iterator[Changed]:
    """The tests that the comparison names, if the baseline itself is not at hand."""
    named = {
        (test.suite, test.name): test
        for test in (*comparison.regressed, *comparison.suspects, *comparison.fixed)
    }
    for test in named.values():
        if test.base is not None and test.head is not None:
            yield Changed(test.suite, test.name, test.base, test.head)


def _row(test: Changed) -> TrackRow:
    fell = test.delta < 0

    def marks(y: float) -> Iterator[Drawn]:
        base = SCORES(test.base)
        yield drawing.line(base, y, SCORES(test.head), y, "c-fell" if fell else "c-rose")
        yield drawing.circle(base, y, "c-base")
        yield frame.score_mark(test.head, y, bad=fell)

    return TrackRow(
        test.name,
        numbers.changed(test.base, test.head),
        marks,
        ("c-bad-text" if fell else "c-good-text",),
        f"{numbers.score(test.base)} → {numbers.score(test.head)} ({test.suite})",
    )
