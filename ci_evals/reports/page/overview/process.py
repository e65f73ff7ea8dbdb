"""The table of the measures of process."""

from collections.abc import Callable
from dataclasses import dataclass

from ci_evals.domain.results.process import ProcessSummary
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.page.overview.table import Table, table

NO_TRACE = "no reply carried a trace"


@dataclass(frozen=True)
class _Measure:
    """One measure of process: what it is called, what it means, how it is shown."""

    name: str
    meaning: str
    show: Callable[[ProcessSummary], str]
    """Empty if it is not known."""
    why_not: Callable[[ProcessSummary], str] = lambda summary: "" if summary.traced_trials else NO_TRACE
    """The reason why it is not known; may be empty."""


def table_of(results: Results, baseline: Results | None) -> Table:
    """The measures of process of the run, of the baseline and of each suite."""
    sides: list[tuple[str, ProcessSummary]] = [("this run", results.process)]
    sides += [("baseline", baseline.process)] if baseline else []
    if len(results.suites) > 1:
        sides += [(suite.name, suite.process) for suite in results.suites]
    shown = [
        measure
        for measure in _MEASURES
        if any(measure.show(summary) for _, summary in sides) or measure.why_not(results.process)
    ]
    return table(
        "Measures of process",
        ["measure", *(name for name, _ in sides)],
        [
            [measure.name, *(measure.show(summary) or numbers.NONE for _, summary in sides)]
            for measure in shown
        ],
        notes=[_note(measure, results.process) for measure in shown],
    )


def _note(measure: _Measure, summary: ProcessSummary) -> str:
    """Its meaning and, if it is not known, why not."""
    why = "" if measure.show(summary) else measure.why_not(summary)
    return f"{measure.meaning}; {numbers.NONE}: {why}" if why else measure.meaning


def _percent(share: float | None) -> str:
    return "" if share is None else numbers.percent(share)


def _fault(share: float | None) -> str:
    return "" if share is None else numbers.fault(share)


def _decimal(number: float | None) -> str:
    return "" if number is None else numbers.average(number)


def _overhead(summary: ProcessSummary) -> str:
    return "" if summary.overhead is None else numbers.excess(summary.overhead)


def _time(part: str) -> Callable[[ProcessSummary], str]:
    def shown(summary: ProcessSummary) -> str:
        if summary.times is None:
            return ""
        seconds = getattr(summary.times, part)
        whole = summary.times.whole
        share = f" ({numbers.percent(seconds / whole)})" if whole else ""
        return f"{numbers.duration(seconds)}{share}"

    return shown


def _no_optimal(summary: ProcessSummary) -> str:
    return "no test names optimalTools" if summary.traced_trials else NO_TRACE


def _nothing(_: ProcessSummary) -> str:
    return ""


_MEASURES = (
    _Measure(
        "Completion rate",
        "trials whose conversation came to an end of its own, or to the error that its test asks for",
        lambda summary: _percent(summary.completion_rate),
        _nothing,
    ),
    _Measure(
        "Success rate",
        "trials that passed every evaluation that was wanted",
        lambda summary: _percent(summary.success_rate),
        _nothing,
    ),
    _Measure(
        "Steps a trial",
        "workflows begun and integrations called, in the mean",
        lambda summary: _decimal(summary.steps_per_trial),
    ),
    _Measure(
        "Repeated steps",
        "steps taken before with the same parameters, of all steps",
        lambda summary: _fault(summary.redundancy_rate),
    ),
    _Measure(
        "Failed calls",
        "calls of integrations that came to an error, of all calls",
        lambda summary: _fault(summary.failure_rate),
        lambda summary: "no integration was called" if summary.traced_trials else NO_TRACE,
    ),
    _Measure(
        "Steps back a trial",
        "returns to a workflow that had been left for another one",
        lambda summary: _decimal(summary.backtracks_per_trial),
    ),
    _Measure(
        "Overhead",
        "workflows begun beyond the shortest right way (optimalTools)",
        _overhead,
        _no_optimal,
    ),
    _Measure(
        "Missed steps",
        "of that way, steps that did not run, or not in that order",
        lambda summary: "" if summary.missed is None else f"{summary.missed:,}",
        _no_optimal,
    ),
    _Measure(
        "First reply",
        "median time to the agent's first reply",
        lambda summary: (
            "" if summary.first_reply_seconds is None else numbers.latency(summary.first_reply_seconds)
        ),
        _nothing,
    ),
    _Measure("Time of the agent", "waiting for its replies, all trials together", _time("agent"), _nothing),
    _Measure("Time of the simulated user", "waiting for its model", _time("user"), _nothing),
    _Measure("Time of the judge", "reaching the verdicts", _time("judge"), _nothing),
    _Measure(
        "Other time",
        "sessions, earlier attempts, waiting for a place, and this tool's own work",
        _time("other"),
        _nothing,
    ),
    _Measure(
        "Cost a trial",
        "what judge, simulated user and embedding model cost, in the mean of the run",
        lambda summary: (
            "" if summary.cost_usd_per_trial is None else numbers.money(summary.cost_usd_per_trial)
        ),
        _nothing,
    ),
    _Measure(
        "Cost-adjusted score",
        "the run's score, less 20 points for each US dollar that a trial costs, at most 40",
        lambda summary: (
            "" if summary.cost_adjusted_score is None else numbers.score(summary.cost_adjusted_score)
        ),
        _nothing,
    ),
)
