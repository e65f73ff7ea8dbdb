"""The agent's process: its steps, time and cost, and the logic that tests reached. Not yet sanitized."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports.story.table import BLANK, Column, Table, table_of
from ci_evals.scoring import coverage

_Side = tuple[str, ProcessSummary]
BEGUN = "workflows and tools"
"""The label of the names of steps."""
_MOST_SUITES = 5
"""Suites that have a column each; each suite's own summary has its measures."""
_NAMED = 12
"""Parts of the agent's logic that a sentence names."""


class Measure(NamedTuple):
    """A measure of the process."""

    name: str
    meaning: str
    show: Callable[[ProcessSummary], str]
    """`numbers.NONE` if it is not known."""
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


def part_name(part: Reach, covered: Coverage) -> str:
    """A part by its kind and name: `rule refund-window`."""
    return f"{_kind_name(part.kind, covered)} {part.name}"


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
    ),
    Measure(
        "Success rate",
        "trials that passed every criterion",
        lambda process: numbers.percent(process.success_rate),
    ),
    Measure(
        "Steps per trial",
        "workflows started and tools called, on average",
        lambda process: numbers.average(process.steps_per_trial),
        "tools called and other steps taken, on average",
    ),
    Measure(
        "Repeated steps",
        "steps taken before with the same parameters, of all steps",
        lambda process: numbers.fault(process.redundancy_rate),
    ),
    Measure(
        "Failed calls",
        "calls of tools and integrations that failed, of all calls",
        lambda process: numbers.fault(process.failure_rate),
        "calls that failed, of all calls",
    ),
    Measure(
        "Backtracks per trial",
        "returns to a workflow that had been left for another one",
        lambda process: numbers.average(process.backtracks_per_trial),
        "returns to a step that had been left for another one",
    ),
    Measure(
        "Overhead",
        "workflows started beyond the shortest path (optimalTools)",
        lambda process: numbers.excess(process.overhead),
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


@dataclass(frozen=True)
class ProcessStory:
    """The facts known of the agent's process."""

    is_traced: bool
    """True if the steps of some trial are known."""
    measures: Table
    """A row for each known measure."""
    notes: tuple[str, ...]
    """Their limits, in sentences."""
    lost: str
    """The agent's logic that was used in the baseline alone, in a sentence; empty if there is none."""
    coverage: "CoverageTables | None"
    """The agent's logic that the tests reached."""


def process(results: Results, baseline: Results | None) -> ProcessStory:
    """Return the process of a run, of the baseline beside it, and of its suites if they are few."""
    whole, notes = results.process, []
    if whole.traced_trials and whole.traced_trials < results.counts.trials:
        trials = numbers.count(results.counts.trials, "trial")
        notes.append(f"Steps come from traces, which {whole.traced_trials:,} of {trials} have.")
    return ProcessStory(
        is_traced=whole.traced_trials > 0,
        measures=_measures(results, baseline),
        notes=tuple(notes),
        lost=_lost(results),
        coverage=coverage_tables(results),
    )


def _measures(results: Results, baseline: Results | None) -> Table:
    sides: list[_Side] = [("this run", results.process)]
    if baseline:
        sides.append(("baseline", baseline.process))
    if 1 < len(results.suites) <= _MOST_SUITES:
        sides += [(suite.name, suite.process) for suite in results.suites]
    columns: list[Column[Measure]] = [Column("measure", words=True, show=lambda measure: measure.name)]
    columns += [Column(name, limit=80, show=_of_side(summary)) for name, summary in sides]
    summaries = [summary for _, summary in sides]
    known = [one for one in MEASURES if any(one.show(summary) != numbers.NONE for summary in summaries)]
    note = partial(Measure.explained, logic=names_logic(results.coverage))
    return table_of("Measures of the process", columns, known, note=note)


def _of_side(summary: ProcessSummary) -> Callable[[Measure], str]:
    return lambda measure: measure.show(summary)


def _lost(results: Results) -> str:
    """The logic that was used in the baseline and is not now, but for what may be missing by chance."""
    lost = coverage.plainly_lost(results.coverage)
    if not lost:
        return ""
    names = [part_name(part, results.coverage) for part in lost]
    these, were = ("this part", "was") if len(lost) == 1 else ("these parts", "were")
    return (
        f"Look here first: {these} of {parts_name(results.coverage)} {were} used in the baseline and no "
        f"longer in the same tests: {numbers.listed(names, _NAMED)}."
    )


def of_trial(trial: TrialResult) -> Iterator[tuple[str, str]]:
    """Yield what is known of the process of a trial, each fact with a label."""
    if process := trial.process:
        yield "steps", str(process.steps)
        if process.begun:
            yield BEGUN, " → ".join(process.begun)
        counts = (
            ("distinct tools", process.tools),
            ("repeated steps", process.repeated),
            ("calls", process.calls),
            ("failed calls", process.failed_calls),
            ("backtracks", process.backtracks),
        )
        yield from ((label, str(number)) for label, number in counts if number is not None)
        if process.overhead is not None:
            yield "overhead over optimalTools", numbers.excess(process.overhead)
        if process.missed is not None:
            yield "missed steps of optimalTools", str(process.missed)


def time_of_trial(trial: TrialResult) -> Iterator[tuple[str, str]]:
    """Yield how the time of a trial was spent, each part with a label."""
    if times := trial.times:
        parts = (
            ("duration", trial.duration_seconds),
            ("waiting for the agent", times.agent),
            ("waiting for the simulated user", times.user),
            ("judging", times.judge),
            ("other", times.other),
        )
        yield from ((label, numbers.duration(seconds)) for label, seconds in parts)


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
        "trials that used it, baseline → now",
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
