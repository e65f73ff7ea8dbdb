"""Charts of false alarms: observed with their interval, and predicted."""

from collections.abc import Callable, Iterator

from ci_evals.extensions.backtest import wording
from ci_evals.extensions.backtest.binomial import exact_interval
from ci_evals.extensions.backtest.figures import Backtest, CheckAlarms, GateAlarms
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import Drawn
from ci_evals.reports.page.charts.frame import SCORES, Entry, Figure, TrackRow
from ci_evals.reports.story.table import Table

_KEY = (Entry("observed", "head"), Entry("95 % interval", "interval"), Entry("predicted", "floor"))
_READING = (
    "Each row is the share of comparisons that failed, from 0 to 100 %. The dot is what was observed, and "
    "the band its exact 95 % interval. The upright line is what odds predicted; a second one includes the "
    "level of regression=significant. If both are below the band, runs differ by more than their trials do."
)


def figures(found: Backtest) -> tuple[Figure, ...]:
    """Return all charts of a backtest."""
    drawn = [_by_gate(found), _by_check(found)]
    return tuple(figure for figure in drawn if figure)


def _by_gate(found: Backtest) -> Figure | None:
    gates: list[tuple[str, GateAlarms]] = [(wording.THIS, found)]
    gates += [(setting.name, setting) for setting in found.settings]
    rows = [_gate_row(name, gate) for name, gate in gates if gate.false_alarms.of]
    if not rows:
        return None
    table = wording.gate_table(found)
    words = _figure("chart-gates", "False alarms by gate", wording.headline(found), table)
    return _drawn(words, rows)


def _by_check(found: Backtest) -> Figure | None:
    of = found.false_alarms.of
    rows = [_check_row(check, of) for check in found.checks] if of else []
    if not rows:
        return None
    most = max(found.checks, key=lambda check: check.count)
    says = f"{most.kind} failed {most.count:,} of {of:,} comparisons." if most.count else "No check failed."
    words = _figure("chart-checks", "False alarms by check", says, wording.check_table(found))
    return _drawn(words, rows)


def _figure(name: str, title: str, says: str, table: Table) -> Figure:
    cells = [row.cells for row in table.rows]
    return Figure(id=name, title=title, says=says, reading=_READING, headers=table.titles, rows=cells)


def _drawn(words: Figure, rows: list[TrackRow]) -> Figure:
    shown = rows[: frame.MOST_ROWS]
    return frame.drawn_in_rows(words, _KEY, shown)


def _gate_row(name: str, gate: GateAlarms) -> TrackRow:
    alarms = gate.false_alarms
    lines = [share for share in (gate.predicted, gate.predicted_at_most) if share is not None]
    return _row(name, alarms.count, alarms.of, lines)


def _check_row(check: CheckAlarms, of: int) -> TrackRow:
    lines = [] if check.predicted is None else [check.predicted]
    return _row(check.kind, check.count, of, lines)


def _row(name: str, count: int, of: int, predicted: list[float]) -> TrackRow:
    low, high = exact_interval(count, of)
    return TrackRow(name, f"{count:,} of {of:,}", _marks(count / of, low, high, predicted))


def _marks(
    share: float, low: float, high: float, predicted: list[float]
) -> Callable[[float], Iterator[Drawn]]:
    def marks(y: float) -> Iterator[Drawn]:
        yield frame.interval_mark(100 * low, 100 * high, y)
        for line in dict.fromkeys(predicted):
            yield frame.floor_mark(100 * line, y)
        yield drawing.circle(SCORES(100 * share), y, "c-head")

    return marks
