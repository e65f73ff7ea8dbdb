"""Measures of the agent's process in Markdown: steps, time, cost, and the logic that was used."""

from collections.abc import Callable, Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach, Times, TrialProcess
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports import sanitize
from ci_evals.reports.markdown.sections import OPEN, Rank, Section, folded, table_text, tabled
from ci_evals.reports.story import process
from ci_evals.reports.story.table import Table
from ci_evals.scoring import coverage

_SUITES = 15
"""Suites in the table: the page and the results have all of them."""
_MOST_BEGUN = 12
"""Workflows that a trial's line names."""


def lost(results: Results) -> Section | None:
    """The logic used in the baseline and no longer in the same tests; None if there is none.

    What may well be missing by chance is told with the measures alone.
    """
    covered = results.coverage
    lost = coverage.plainly_lost(covered)
    if not lost:
        return None
    are = "is" if len(lost) == 1 else "are"
    many = f"{numbers.count(len(lost), 'part')} of {process.parts_name(covered)}"
    text = (
        f"**{many} {are} no longer used** in the compared tests: {_named(lost, _with_base_trials(covered))}. "
        f"{_reached(covered, shown=lost)}"
    )
    return Section("the logic that is no longer used", text.rstrip(), Rank.DETAILS)


def measures(results: Results) -> Section | None:
    """The measures of the process, folded; None if no trial has a trace."""
    whole = results.process
    if not whole.traced_trials:
        return None
    alone = len(results.suites) == 1
    sides = [(results.suites[0].name if alone else "all", whole)]
    shown = () if alone else results.suites[:_SUITES]
    sides += [(suite.name, suite.process) for suite in shown]
    table = process.process_in_brief(sides)
    logic = process.names_logic(results.coverage)
    lines = "\n\n".join([*_meanings(table, logic=logic), *_lines(results, whole)])
    inner = tabled(Section("the process", "", Rank.DETAILS, noun="suite", tail=lines), table)
    return folded(sanitize.html_in_markdown(f"Agent steps{_in_short(whole)}"), inner)


def of_suite(results: Results, suite: SuiteResult) -> Section | None:
    """The measures of one suite, not folded: its table, and its time by role."""
    logic = process.names_logic(results.coverage)
    whole = suite.process
    if whole.completion_rate is None:
        return None
    table = process.process_in_brief([(suite.name, whole)])
    parts = ["### Agent steps", table_text(table), *_meanings(table, logic=logic), *_time(whole.times)]
    text = "\n\n".join(parts)
    return Section("the process", text, Rank.DETAILS)


def of_trial(trial: TrialResult) -> str | None:
    """A trial's process on one line of Markdown; None where nothing is known of it."""
    parts = [*(_steps(trial.process) if trial.process else ()), *_time(trial.times, few=True)]
    return " · ".join(parts) or None


_EXPLAINED = ("steps", "repeated", "backtracks", "overhead")
"""Columns whose names do not say what they are."""


def _meanings(table: Table, *, logic: bool) -> Iterator[str]:
    """The meaning of its columns, on one line; `logic`: whether the agent's logic is named."""
    shown = [one for one in process.MEASURES if one.short in _EXPLAINED and one.short in table.titles]
    if found := [f"{one.short}: {one.explained(logic=logic)}" for one in shown]:
        text = "; ".join(found)
        yield f"{text[0].upper()}{text[1:]}."


def _in_short(summary: ProcessSummary) -> str:
    """A summary for the title."""
    parts = []
    if summary.steps_per_trial is not None:
        parts.append(f"{numbers.average(summary.steps_per_trial)} steps per trial")
    if summary.redundancy_rate:
        parts.append(f"{numbers.fault(summary.redundancy_rate)} repeated")
    if summary.failure_rate:
        parts.append(f"{numbers.fault(summary.failure_rate)} of calls failed")
    return f": {', '.join(parts)}" if parts else ""


def _lines(results: Results, whole: ProcessSummary) -> Iterator[str]:
    if whole.traced_trials < results.counts.trials:
        trials = numbers.count(results.counts.trials, "trial")
        yield f"Steps come from traces, which {whole.traced_trials:,} of {trials} have."
    if whole.missed:
        missed = numbers.count(whole.missed, "step")
        yield f"Of what tests name as `optimalTools`, {missed} did not run, or not in that order."
    yield from _time(whole.times)
    yield from _logic(results.coverage)


def _logic(covered: Coverage) -> Iterator[str]:
    if sentence := _reached(covered):
        yield sentence
    if lost := coverage.lost(covered):
        yield f"No longer used in the same tests: {_named(lost, _with_base_trials(covered))}."
    if new := coverage.gained(covered):
        yield f"Used now, but not in the same tests of the baseline: {_named(new, _with_trials(covered))}."


def _time(times: Times | None, *, few: bool = False) -> Iterator[str]:
    """The time by role, with its shares, or in few words."""
    if times is None:
        return
    parts = {
        "agent": times.agent,
        "simulated user": times.user,
        "judge": times.judge,
        "the rest": times.other,
    }
    whole = times.whole
    if few:
        yield "time: " + ", ".join(f"{who} {numbers.duration(seconds)}" for who, seconds in parts.items())
    elif whole:
        shares = (f"{who} {numbers.percent(seconds / whole)}" for who, seconds in parts.items())
        yield f"Of the time of all trials, {numbers.duration(whole)}: {', '.join(shares)}."


def _steps(process: TrialProcess) -> Iterator[str]:
    yield f"{numbers.count(process.steps, 'step')}"
    if process.begun:
        more = len(process.begun) - _MOST_BEGUN
        names = " → ".join(map(sanitize.code, process.begun[:_MOST_BEGUN]))
        yield f"workflow{'s' if len(process.begun) > 1 else ''} {names}" + (
            f" and {more:,} more" if more > 0 else ""
        )
    if process.repeated:
        yield f"{process.repeated:,} repeated"
    if process.failed_calls:
        yield f"{process.failed_calls:,} of {numbers.count(process.calls or 0, 'call')} failed"
    if process.backtracks:
        yield numbers.count(process.backtracks, "backtrack")
    if process.overhead is not None:
        missed = f", {process.missed:,} missed" if process.missed else ""
        yield f"overhead {numbers.excess(process.overhead)}{missed}"


def _reached(covered: Coverage, shown: Sequence[Reach] = ()) -> str:
    """The number of named parts that were used, and those that were not, except for those already `shown`."""
    named, never = coverage.named(covered), coverage.never(covered)
    if not named:
        return ""
    used = len(named) - len(never)
    parts = f"{numbers.count(len(named), 'named part')} of {process.parts_name(covered)}"
    text = f"The tests used {used:,} of {parts}"
    others = [reach for reach in never if reach not in shown]
    return (
        f"{text}; {'also ' if shown else ''}never: {_named(others, _alone(covered))}."
        if others
        else f"{text}."
    )


def _named(reached: Sequence[Reach], shown: Callable[[Reach], str]) -> str:
    names = ", ".join(shown(reach) for reach in reached[:OPEN])
    return names + (f" and {len(reached) - OPEN:,} more" if len(reached) > OPEN else "")


def _alone(covered: Coverage) -> Callable[[Reach], str]:
    return lambda reach: process.part_name(reach, covered, sanitize.code)


def _with_trials(covered: Coverage) -> Callable[[Reach], str]:
    name = _alone(covered)
    return lambda reach: f"{name(reach)} (in {numbers.count(reach.compared_trials or 0, 'trial')})"


def _with_base_trials(covered: Coverage) -> Callable[[Reach], str]:
    name = _alone(covered)
    return lambda reach: (
        f"{name(reach)} (in {numbers.count(reach.base_trials or 0, 'trial')} of the baseline)"
    )
