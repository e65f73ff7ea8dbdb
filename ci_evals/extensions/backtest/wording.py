"""The findings in sentences and tables."""

from ci_evals.domain import numbers
from ci_evals.extensions.backtest.figures import (
    Alarms,
    Backtest,
    CheckAlarms,
    GateAlarms,
    PairResult,
    SettingResult,
)
from ci_evals.reports.story.table import Column, Table, table_of
from ci_evals.scoring.statistics import ALPHA

THIS = "this gate"
_NOISY = 0.05
"""The share of false alarms from which people stop to believe a gate."""
_NAMED = 20
"""Files and runs left out that are named."""
OWN_LEVEL = f"up to {numbers.odds(ALPHA)} more by the level of regression=significant"


def rate(alarms: Alarms) -> str:
    """`3 of 40 comparisons (8 %, 95 % interval 1 % to 21 %)`."""
    if alarms.share is None or alarms.interval is None:
        return "none to count"
    of = numbers.count(alarms.of, "comparison")
    return f"{alarms.count:,} of {of} ({numbers.fault(alarms.share)}, 95 % interval {_interval(alarms)})"


def headline(found: Backtest) -> str:
    """Return how often the gate failed an unchanged agent, in a sentence."""
    return f"On {found.branch} this gate failed an unchanged agent in {rate(found.false_alarms)}."


def extent(found: Backtest) -> str:
    """Return how much was compared, in a sentence."""
    runs = numbers.count(found.runs, "run")
    return f"{runs} of {found.branch} make {numbers.count(found.pairs, 'comparison')}."


def judgment(found: Backtest) -> str:
    """Return what the numbers mean: too noisy, quiet, or not known yet."""
    interval = found.false_alarms.interval
    if interval is None:
        return ""
    if interval.low > _NOISY:
        return (
            f"The gate is too noisy: it fails more than {numbers.odds(_NOISY)} of runs of an unchanged agent."
        )
    if interval.high <= _NOISY:
        return f"The gate is quiet: it fails at most {numbers.odds(_NOISY)} of runs of an unchanged agent."
    return (
        f"These are too few comparisons to say whether it is more than {numbers.odds(_NOISY)}. "
        "More stored runs narrow the interval."
    )


def prediction(found: Backtest) -> str:
    """Return what `odds` predicted, and whether that agrees with what was observed."""
    interval = found.false_alarms.interval
    if found.predicted is None or found.predicted_at_most is None or interval is None:
        return "Odds could not predict a rate: the runs have no scores to estimate noise from."
    text = f"Odds predicted {predicted(found)}"
    if found.predicted_at_most < interval.low:
        return (
            f"{text}, which is less than observed: runs differ by more than their trials do. Something "
            "changes from run to run, such as the provider, the data or the agent itself."
        )
    if found.predicted > interval.high:
        return f"{text}, which is more than observed."
    return f"{text}, which agrees with what was observed."


def commits(found: Backtest) -> str:
    """Return how the comparisons of equal commits differ from the others."""
    same, other = found.same_commit, found.other_commit
    if not same.of:
        return "No comparison is known to be of one commit, so the agent may have changed."
    if not other.of:
        return "In all comparisons the commits are equal."
    return (
        f"Where the commits differ, so that the agent may have changed, the gate failed in {rate(other)}; "
        f"where they are equal, in {rate(same)}."
    )


def pull_requests(found: Backtest) -> str:
    """Return how many runs of pull requests fail; empty without any."""
    decided = [one for one in found.pull_requests if one.failed is not None]
    if not found.pull_requests:
        return ""
    failed = sum(bool(one.failed) for one in decided)
    text = (
        f"Of {numbers.count(len(found.pull_requests), 'run')} of pull requests {failed:,} would have failed"
    )
    undecided = len(found.pull_requests) - len(decided)
    return f"{text}, and {undecided:,} have no verdict." if undecided else f"{text}."


def left_out(found: Backtest) -> list[str]:
    """Return what was not used, a line each."""
    lines = [f"{one.name}: {one.why}" for one in found.left_out[:_NAMED]]
    more = len(found.left_out) - _NAMED
    return [*lines, f"and {more:,} more"] if more > 0 else lines


def predicted(alarms: GateAlarms) -> str:
    """`8 %`, or `8 %, and up to 5 % more by the level of regression=significant`."""
    text = numbers.odds(alarms.predicted)
    if alarms.predicted != alarms.predicted_at_most:
        return f"{text}, and {OWN_LEVEL}"
    return text


def gate_table(found: Backtest) -> Table:
    """Return a row for each gate."""
    columns: tuple[Column[tuple[str, GateAlarms]], ...] = (
        Column("gate", words=True, show=lambda row: row[0]),
        Column("false alarms", show=lambda row: f"{row[1].false_alarms.count:,}"),
        Column("of", show=lambda row: f"{row[1].false_alarms.of:,}"),
        Column("share", show=lambda row: numbers.fault(row[1].false_alarms.share)),
        Column("95 % interval", unbroken=True, show=lambda row: _interval(row[1].false_alarms)),
        Column("predicted", unbroken=True, show=lambda row: _range(row[1])),
        Column("no verdict", show=lambda row: f"{row[1].no_verdict:,}"),
    )
    rows: list[tuple[str, GateAlarms]] = [(THIS, found)]
    rows += [(setting.name, setting) for setting in found.settings]
    return table_of("False alarms", columns, rows)


def setting_table(found: Backtest) -> Table:
    """Return a row for each gate that is compared, on the same runs."""
    columns: tuple[Column[SettingResult], ...] = (
        Column("gate", words=True, show=lambda one: one.name),
        Column("options", words=True, show=_options),
        Column("only it fails", show=lambda one: f"{one.only_here:,}"),
        Column("only this gate fails", show=lambda one: f"{one.only_before:,}"),
        Column("p", unbroken=True, show=lambda one: numbers.chance(one.p)),
        Column("pull requests that fail", show=_failed_pull_requests),
    )
    return table_of("Other gates on the same runs", columns, found.settings)


def check_table(found: Backtest) -> Table:
    """Return a row for each kind of check that failed, or is predicted to."""
    columns: tuple[Column[CheckAlarms], ...] = (
        Column("check", words=True, show=lambda one: one.kind),
        Column("false alarms", show=lambda one: f"{one.count:,}"),
        Column("share", show=lambda one: numbers.fault(one.count / found.false_alarms.of)),
        Column("predicted", show=lambda one: numbers.odds(one.predicted)),
    )
    return table_of("False alarms by check", columns, found.checks if found.false_alarms.of else ())


def alarm_table(found: Backtest) -> Table:
    """Return a row for each comparison that failed."""
    columns: tuple[Column[PairResult], ...] = (
        Column("run", words=True, show=lambda one: one.run),
        Column("baseline", words=True, show=lambda one: one.base),
        Column("at", words=True, show=lambda one: f"{one.at:%Y-%m-%d %H:%M} UTC"),
        Column("commit", words=True, show=lambda one: (one.commit or "")[:7]),
        Column("checks", words=True, show=lambda one: ", ".join(one.checks)),
    )
    alarms = [one for one in found.pair_results if one.failed]
    return table_of("Comparisons that failed", columns, alarms, long=True)


def _options(setting: SettingResult) -> str:
    lines = []
    for name, value in setting.options.items():
        lines.append(f"{name}={value}".replace("\n", ", "))
    return " ".join(lines)


def _failed_pull_requests(setting: SettingResult) -> str:
    counts = setting.pull_requests
    return f"{counts.failed:,} of {counts.of:,}" if counts.of else numbers.NONE


def _interval(alarms: Alarms) -> str:
    if alarms.interval is None:
        return numbers.NONE
    return f"{numbers.percent(alarms.interval.low)} to {numbers.fault(alarms.interval.high)}"


def _range(alarms: GateAlarms) -> str:
    if alarms.predicted is None or alarms.predicted_at_most is None:
        return numbers.NONE
    return numbers.extent(alarms.predicted, alarms.predicted_at_most, numbers.odds)
