"""The agent's process: its steps, time and cost, and the logic that tests reached. Not yet sanitized."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach
from ci_evals.domain.results.run import Results
from ci_evals.reports.story.table import BLANK, UNKNOWN, Column, Table, table_of
from ci_evals.scoring import coverage

_Side = tuple[str, ProcessSummary]


class Measure(NamedTuple):
    """A measure of the process."""

    name: str
    meaning: str
    show: Callable[[ProcessSummary], str]
    """`numbers.NONE` if it is not known."""
    short: str = ""
    """Its name as a column where there is little room; empty if it is not shown there."""
    of_steps: str = ""
    """Its meaning for an agent of which only steps are known; empty if that is the same."""

    def explained(self, *, logic: bool) -> str:
        """Return its meaning; `logic`: whether the agent's logic is named."""
        return self.meaning if logic or not self.of_steps else self.of_steps


def names_logic(covered: Coverage) -> bool:
    """Return whether the agent reports rules, parameters or integrations, or a suite asks for some.

    Of others only steps are known: tools, or workflows derived from the trace.
    """
    return any(part.kind is not LogicKind.WORKFLOW for part in covered.logic)


def parts_name(covered: Coverage) -> str:
    """The name for what tests can reach of the agent: `the agent's logic`."""
    return "the agent's logic" if names_logic(covered) else "the agent's steps"


def part_name(part: Reach, covered: Coverage, show: Callable[[str], str] = str) -> str:
    """A part by its kind and name, which `show` writes: `rule refund-window`."""
    return f"{_kind_name(part.kind, covered)} {show(part.name)}"


def _kind_name(kind: LogicKind, covered: Coverage) -> str:
    return kind.value if names_logic(covered) else "step"


def _time(part: str) -> Callable[[ProcessSummary], str]:
    def shown(summary: ProcessSummary) -> str:
        if summary.times is None:
            return numbers.NONE
        seconds = getattr(summary.times, part)
        whole = summary.times.whole
        share = f" ({numbers.percent(seconds / whole)})" if whole else ""
        return f"{numbers.duration(seconds)}{share}"

    return shown


MEASURES = (
    Measure(
        "Completion rate",
        "trials whose conversation ended by itself, or with the error that the test expects",
        lambda process: numbers.percent(process.completion_rate),
        "completed",
    ),
    Measure(
        "Success rate",
        "trials that passed every criterion",
        lambda process: numbers.percent(process.success_rate),
        "passed",
    ),
    Measure(
        "Steps per trial",
        "workflows started and tools called, on average",
        lambda process: numbers.average(process.steps_per_trial),
        "steps",
        "tools called and other steps taken, on average",
    ),
    Measure(
        "Repeated steps",
        "steps taken before with the same parameters, of all steps",
        lambda process: numbers.fault(process.redundancy_rate),
        "repeated",
    ),
    Measure(
        "Failed calls",
        "calls of tools and integrations that failed, of all calls",
        lambda process: numbers.fault(process.failure_rate),
        "failed calls",
        "calls that failed, of all calls",
    ),
    Measure(
        "Backtracks per trial",
        "returns to a workflow that had been left for another one",
        lambda process: numbers.average(process.backtracks_per_trial),
        "backtracks",
        "returns to a step that had been left for another one",
    ),
    Measure(
        "Overhead",
        "workflows started beyond the shortest path (optimalTools)",
        lambda process: numbers.excess(process.overhead),
        "overhead",
        "steps beyond the shortest path (optimalTools)",
    ),
    Measure(
        "Missed steps",
        "steps of that path that did not run, or not in that order",
        lambda process: numbers.NONE if process.missed is None else f"{process.missed:,}",
    ),
    Measure(
        "First reply",
        "median time to the agent's first reply",
        lambda process: numbers.latency(process.first_reply_seconds or None),
        "first reply",
    ),
    Measure("Agent time", "waiting for its replies, added up over all trials", _time("agent")),
    Measure("Simulated user time", "waiting for its model", _time("user")),
    Measure("Judge time", "reaching the verdicts", _time("judge")),
    Measure("Other time", "sessions, retries, waiting for a free slot, and ci-evals itself", _time("other")),
    Measure(
        "Cost per trial",
        "judge, simulated user and embedding model, on average",
        lambda process: numbers.money(process.cost_usd_per_trial),
    ),
    Measure(
        "Cost-adjusted score",
        "the score minus 20 points for each US dollar that a trial costs, at most 40",
        lambda process: numbers.score(process.cost_adjusted_score),
    ),
)


def process(results: Results, baseline: Results | None) -> Table:
    """A row for each known measure of the process: of the run, of the baseline, and of each suite."""
    sides: list[_Side] = [("this run", results.process)]
    if baseline:
        sides.append(("baseline", baseline.process))
    if len(results.suites) > 1:
        sides += [(suite.name, suite.process) for suite in results.suites]
    columns: list[Column[Measure]] = [Column("measure", words=True, show=lambda measure: measure.name)]
    columns += [Column(name, show=_of_side(summary)) for name, summary in sides]
    summaries = [summary for _, summary in sides]
    known = [one for one in MEASURES if any(one.show(summary) != numbers.NONE for summary in summaries)]
    logic = names_logic(results.coverage)
    note = partial(Measure.explained, logic=logic)
    return table_of("Measures of the process", columns, known, note=note)


def _of_side(summary: ProcessSummary) -> Callable[[Measure], str]:
    return lambda measure: measure.show(summary)


def process_in_brief(sides: Sequence[_Side]) -> Table:
    """A row for each side, with the measures that are known of any in few words."""
    columns: list[Column[_Side]] = [Column("", words=True, limit=80, show=lambda side: side[0])]
    columns += [
        Column(measure.short, says_nothing=UNKNOWN, show=_of_measure(measure))
        for measure in MEASURES
        if measure.short
    ]
    return table_of("Agent steps", columns, sides)


def _of_measure(measure: Measure) -> Callable[[_Side], str]:
    return lambda side: measure.show(side[1])


@dataclass(frozen=True)
class CoverageTables:
    """The agent's logic that the tests reached."""

    parts: str
    """The name for all of it: `the agent's logic`."""
    says: str
    open: tuple[Table, ...] = ()
    """The parts that deserve a look: no longer used, wanted and never used, newly used."""
    all: tuple[Table, ...] = ()
    """Every part of it, a table for each kind."""


def _before_and_now(part: Reach) -> str:
    if part.base_trials is None:
        return ""
    return f"{part.base_trials:,} → {_amount(part.compared_trials)}"


def _amount(number: int | None) -> str:
    return numbers.NONE if number is None else f"{number:,}"


_REACH_COLUMNS: tuple[Column[Reach], ...] = (
    Column("name", words=True, show=lambda part: part.name),
    Column("kind", words=True, show=lambda part: part.kind.value),
    Column("trials", show=lambda part: _amount(part.trials)),
    Column("tests", show=lambda part: _amount(part.tests)),
    Column(
        "trials of compared tests, baseline → now",
        says_nothing=BLANK,
        show=_before_and_now,
    ),
    Column("needed", words=True, says_nothing=BLANK, show=lambda part: "yes" if part.wanted else ""),
)


def _reach_columns(covered: Coverage) -> tuple[Column[Reach], ...]:
    """Return the columns; parts that are all steps need no kind."""
    if names_logic(covered):
        return _REACH_COLUMNS
    return tuple(column for column in _REACH_COLUMNS if column.title != "kind")


def coverage_tables(results: Results) -> CoverageTables | None:
    """The agent's logic that was used, in a sentence and tables; None if nothing of it is known."""
    whole = results.coverage
    if not whole.traced_trials or not whole.logic:
        return None
    says, every = [], []
    for kind in LogicKind:
        parts = [part for part in whole.logic if part.kind is kind]
        if not parts:
            continue
        wanted = [part for part in parts if part.wanted]
        name = _kind_name(kind, whole)
        fired = numbers.count(sum(bool(part.trials) for part in parts), name)
        reached = sum(bool(part.trials) for part in wanted)
        says.append(f"{fired} used" + (f" ({reached} of {len(wanted)} that criteria need)" if wanted else ""))
        every.append(table_of(f"{name.capitalize()}s", _reach_columns(whole), parts))
    return CoverageTables(
        parts_name(whole),
        f"{', '.join(says)}.",
        tuple(_open_parts(results)),
        tuple(every),
    )


def _open_parts(results: Results) -> Iterator[Table]:
    whole = results.coverage
    lost = coverage.lost(whole)
    found = (
        ("Used in the baseline, no longer in the same tests", lost),
        ("Needed by a criterion, never used", [part for part in coverage.never(whole) if part not in lost]),
        ("Used now, not in the same tests of the baseline", coverage.gained(whole)),
    )
    for title, parts in found:
        if parts:
            yield table_of(title, _reach_columns(whole), parts)
