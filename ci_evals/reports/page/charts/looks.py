"""The looks of a run in rounds: p after each, and what it had to be to decide."""

from collections.abc import Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import ComparisonLook
from ci_evals.domain.results.gate import LookDecision
from ci_evals.domain.results.run import Results
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import Entry, Plot
from ci_evals.reports.page.charts.scale import Scale, decades
from ci_evals.reports.story.figure import Figure
from ci_evals.scoring.comparison.rounds import Look, looks_at

_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 48.0, WIDTH - 10.0, 50.0, 180.0, 214.0
_LEAST = 1e-4
"""A smaller p is drawn here."""
_READING = (
    "One mark per look, after that many trials of each test. The bar is the range of p in which the run "
    "continues: a p below it is a proven drop, one above it shows no sign of a drop. The last "
    "look always decides."
)
_DECISIONS: dict[LookDecision, str] = {
    "fail": "a proven drop",
    "pass": "no sign of a drop",
    "continue": "not clear yet",
}


def figure(results: Results) -> Figure | None:
    """Return the chart; None if this run did not look at p."""
    comparison, rounds = results.comparison, results.run.rounds
    if not comparison or not rounds:
        return None
    both_sides = comparison.method == "both-sides"
    limits = {look.trials: look for look in looks_at(rounds.looks, both_sides=both_sides)}
    looks = [(look, limits[look.trials]) for look in comparison.looks if look.trials in limits]
    if not looks:
        return None
    words = Figure(
        id="chart-looks",
        title="Looks at the change from the baseline",
        says=_says(looks[-1][0]),
        reading=_READING,
        headers=("trials of each test", "p", "fails at", "passes above", "decision"),
        rows=[
            (
                f"{look.trials:,}",
                numbers.decimal(look.p),
                numbers.decimal(limit.fails_at),
                numbers.decimal(limit.passes_above),
                _DECISIONS[look.decision],
            )
            for look, limit in looks
        ],
    )
    return frame.drawn(words, _HEIGHT, _drawn(looks))


def _says(look: ComparisonLook) -> str:
    after = f"After {numbers.count(look.trials, 'trial')} of each test {numbers.p_value(look.p)}"
    return f"{after}: {_DECISIONS[look.decision]}."


def _drawn(looks: Sequence[tuple[ComparisonLook, Look]]) -> Iterator[Drawn]:
    plot = Plot(
        Scale(-0.5, len(looks) - 0.5, _LEFT, _RIGHT),
        Scale(_LEAST, 1, _BOTTOM, _TOP, log=True),
    )
    entries = (Entry("p", "head"), Entry("a proven drop", "bad"), Entry("continues", "interval"))
    yield from frame.key(entries)
    labels = [(float(index), f"{look.trials:,}") for index, (look, _) in enumerate(looks)]
    yield from frame.axes(plot, labels, [(p, f"{p:g}") for p in decades(_LEAST, 1)], ("trials", "p"))
    for index, (look, limit) in enumerate(looks):
        x, high, low = plot.x(index), plot.y(limit.passes_above), plot.y(limit.fails_at)
        mark, color = (drawing.diamond, "c-bad") if look.decision == "fail" else (drawing.circle, "c-head")
        yield drawing.titled(
            f"{numbers.count(look.trials, 'trial')}: {numbers.p_value(look.p)}; a drop at "
            f"{numbers.decimal(limit.fails_at)} and below, none above {numbers.decimal(limit.passes_above)}",
            drawing.box(x - 6, high, 12, low - high, "c-interval"),
            mark(x, plot.y(look.p), color),
        )
