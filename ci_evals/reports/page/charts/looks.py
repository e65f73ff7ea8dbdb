"""The looks of a run in rounds: p after each, and what it had to be to decide."""

from collections.abc import Iterator, Sequence

from ci_evals.domain.results.comparison import ComparisonLook
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Entry, Plot
from ci_evals.reports.page.charts.scale import Scale, decades

_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 48.0, WIDTH - 10.0, 50.0, 180.0, 214.0
_LEAST = 1e-4
"""A smaller p is drawn here."""
_READING = (
    "One mark per look, after that many trials of each test. The bar is the range of p in which the run "
    "goes on: a p below it is a proven drop, one above it shows no sign of a drop. The last "
    "look always decides."
)


def figure(results: Results) -> Figure | None:
    """Return the chart; None if this run did not look at p more than once or found none."""
    comparison = results.comparison
    looks = comparison.looks if comparison else ()
    known = [(look, look.p) for look in looks if look.p is not None]
    if not known:
        return None
    words = Figure(
        id="chart-looks",
        title="Looks at the change from the baseline",
        says=_says(known[-1]),
        reading=_READING,
        headers=("trials of each test", "p", "fails at", "passes above"),
        rows=[
            (
                f"{look.trials:,}",
                numbers.decimal(look.p),
                numbers.decimal(look.fails_at),
                numbers.decimal(look.passes_above),
            )
            for look in looks
        ],
    )
    return frame.drawn(words, _HEIGHT, _drawn(known))


def _says(last: tuple[ComparisonLook, float]) -> str:
    look, p = last
    after = f"After {numbers.count(look.trials, 'trial')} of each test {numbers.p_value(p)}"
    if p <= look.fails_at:
        return f"{after}: a proven drop."
    if p > look.passes_above:
        return f"{after}: no sign of a drop."
    return f"{after}: between the limits."


def _drawn(known: Sequence[tuple[ComparisonLook, float]]) -> Iterator[Drawn]:
    plot = Plot(
        Scale(-0.5, len(known) - 0.5, _LEFT, _RIGHT),
        Scale(_LEAST, 1, _BOTTOM, _TOP, log=True),
    )
    entries = (Entry("p", "head"), Entry("a proven drop", "bad"), Entry("goes on", "interval"))
    yield from frame.key(entries)
    labels = [(float(index), f"{look.trials:,}") for index, (look, _) in enumerate(known)]
    yield from frame.axes(plot, labels, [(p, f"{p:g}") for p in decades(_LEAST, 1)], ("trials", "p"))
    for index, (look, p) in enumerate(known):
        x, high, low = plot.x(index), plot.y(look.passes_above), plot.y(look.fails_at)
        mark = drawing.diamond if p <= look.fails_at else drawing.circle
        yield drawing.titled(
            f"{numbers.count(look.trials, 'trial')}: {numbers.p_value(p)}; a drop at "
            f"{numbers.decimal(look.fails_at)} and below, none above {numbers.decimal(look.passes_above)}",
            drawing.box(x - 6, high, 12, low - high, "c-interval"),
            mark(x, plot.y(p), "c-bad" if p <= look.fails_at else "c-head"),
        )
