"""Base against head, test by test: those whose score changed, the deepest fall first."""

from collections.abc import Iterator
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, SCORES, Entry, Figure, TrackRow
from ci_evals.reports.story.story import Story

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


def figure(story: Story) -> Figure | None:
    """Return the chart; None if nothing was compared, or no score changed."""
    compared = list(_compared(story))
    changed = sorted((test for test in compared if abs(test.delta) >= _SAME), key=lambda test: test.delta)
    if not changed:
        return None
    fell, rose = [test for test in changed if test.delta < 0], [test for test in changed if test.delta > 0]
    lower, higher, same = len(fell), len(rose), len(compared) - len(changed)
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
            for test in changed[: story.listed.most]
        ],
    )
    entries = (Entry("baseline", "base"), Entry("dropped to", "bad"), Entry("rose to", "head"))
    shown = fell[:MOST_ROWS]
    shown += rose[max(0, len(rose) - (MOST_ROWS - len(shown))) :]
    return frame.drawn_in_rows(words, entries, list(map(_row, shown)), more=lower + higher - len(shown))


def _compared(story: Story) -> Iterator[Changed]:
    """Yield the tests that both runs have and define in the same way."""
    for suite in story.suites:
        for row in suite.tests:
            if row.delta is not None and row.base is not None and row.test.score is not None:
                yield Changed(suite.suite.name, row.test.name, row.base, row.test.score)


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
