"""The tables of the page: suites, gate, groups, process, tokens and cost, latency, coverage."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import ProcessSummary, Reach
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import Latency, RoleUsage
from ci_evals.reports.facts import gate, labels, rows
from ci_evals.reports.facts.comparison import change
from ci_evals.scoring import coverage

_TONES = {True: "good", False: "bad", None: "open"}
NO_TRACE = "no reply had a trace"


class Table(NamedTuple):
    """Cells of plain text, neither sanitized nor escaped. The first cell of a row names it."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Collection[str] = ()
    """The columns, beside the first, that hold words and no numbers."""
    tones: Sequence[str] = ()
    """The tone of each row, `good`, `bad`, `open` or nothing; empty if none has one."""
    notes: Sequence[str] = ()
    """Below each row's name; empty if there are none."""

    @property
    def columns(self) -> dict[int, bool]:
        """The columns with anything in them; True for numbers, which are aligned to the right."""
        return {
            index: index > 0 and header not in self.texts
            for index, header in enumerate(self.headers)
            if index == 0 or any(row[index] for row in self.rows)
        }


def of_suites(results: Results) -> Table:
    """Score and change of each suite."""
    pairs = zip(results.suites, change.of_suites(results), strict=True)
    cells = [[suite.name, *rows.of_suite(suite, became)] for suite, became in pairs]
    return Table("Scores of the suites", ["suite", *rows.SUITE_COLUMNS], cells)


def of_gate(results: Results) -> Table | None:
    """The table of the gate's checks: required and seen."""
    checks = gate.in_order(results)
    if not checks:
        return None
    cells = [[check.name, gate.decision(check), *rows.of_check(check)] for check in checks]
    return Table(
        "Checks of the gate",
        ["check", "result", *rows.CHECK_COLUMNS],
        cells,
        texts=("result", "required", "seen", "note"),
        tones=[_TONES[check.passed] for check in checks],
    )


def of_groups(results: Results) -> list[Table]:
    """The scores by category, AUI Logic, tag and difficulty of each suite."""
    return [
        Table(
            f"{suite.name}: {title[:1].lower()}{title[1:]}",
            [header, *rows.GROUP_COLUMNS],
            [[group.name, *rows.of_group(group)] for group in groups],
        )
        for suite in results.suites
        for title, header, groups in rows.groups_of(suite)
    ]


def of_usage(results: Results) -> Table | None:
    """Calls, tokens and cost by role and model."""
    cells = [
        [
            labels.ROLES[role.role],
            role.model or "",
            f"{role.calls:,}",
            numbers.tokens(role.input_tokens),
            numbers.tokens(role.output_tokens),
            _cost(role),
        ]
        for role in results.usage.by_role
    ]
    headers = ["role", "model", "calls", "input tokens", "output tokens", "cost"]
    return Table("Tokens and cost by role and model", headers, cells, texts=("model",)) if cells else None


def _cost(role: RoleUsage) -> str:
    if why := numbers.uncounted(role):
        return f"unknown: {why}"
    return "no price known" if role.cost_usd is None else numbers.money(role.cost_usd)


def of_latency(results: Results, baseline: Results | None) -> Table | None:
    """The table of the agent's latency."""
    runs = {"this run": results.latency, "baseline": baseline.latency if baseline else Latency()}
    known = {name: run for name, run in runs.items() if run.replies}
    headers = ["run", "replies", "median", "p95", "slowest"]
    cells = [
        [name, f"{run.replies:,}", *map(numbers.latency, (run.median, run.p95, run.slowest))]
        for name, run in known.items()
    ]
    if any(run.first_token_median is not None for run in known.values()):
        headers += ["first words, median", "first words, p95"]
        for cell, run in zip(cells, known.values(), strict=True):
            cell.extend(map(numbers.latency, (run.first_token_median, run.first_token_p95)))
    return Table("Latency of the agent's replies", headers, cells) if cells else None


class _Measure(NamedTuple):
    """One measure of the process."""

    name: str
    meaning: str
    show: Callable[[ProcessSummary], str]
    """`numbers.NONE` if it is not known."""
    unknown: str | None = None
    """The reason, if any, why it is not known although replies had traces; None if it needs no trace."""


def of_process(results: Results, baseline: Results | None) -> Table:
    """The measures of process of the run, of the baseline and of each suite."""
    sides = [("this run", results.process), *([("baseline", baseline.process)] if baseline else [])]
    if len(results.suites) > 1:
        sides += [(suite.name, suite.process) for suite in results.suites]
    cells, notes = [], []
    for measure in _MEASURES:
        values = [measure.show(summary) for _, summary in sides]
        why = (
            "" if measure.unknown is None else measure.unknown if results.process.traced_trials else NO_TRACE
        )
        if why or any(value != numbers.NONE for value in values):
            cells.append([measure.name, *values])
            explains = why and values[0] == numbers.NONE
            notes.append(f"{measure.meaning}; {numbers.NONE}: {why}" if explains else measure.meaning)
    return Table("Measures of the process", ["measure", *(name for name, _ in sides)], cells, notes=notes)


def _time(part: str) -> Callable[[ProcessSummary], str]:
    def shown(summary: ProcessSummary) -> str:
        if summary.times is None:
            return numbers.NONE
        seconds = getattr(summary.times, part)
        whole = summary.times.whole
        share = f" ({numbers.percent(seconds / whole)})" if whole else ""
        return f"{numbers.duration(seconds)}{share}"

    return shown


_NO_OPTIMUM = "no test names optimalTools"
_MEASURES = (
    _Measure(
        "Completion rate",
        "trials whose conversation ended by itself, or with the error that the test expects",
        lambda process: numbers.percent(process.completion_rate),
    ),
    _Measure(
        "Success rate",
        "trials that passed every criterion",
        lambda process: numbers.percent(process.success_rate),
    ),
    _Measure(
        "Steps per trial",
        "workflows started and integrations called, on average",
        lambda process: numbers.average(process.steps_per_trial),
        "",
    ),
    _Measure(
        "Repeated steps",
        "steps taken before with the same parameters, of all steps",
        lambda process: numbers.fault(process.redundancy_rate),
        "",
    ),
    _Measure(
        "Failed calls",
        "calls of tools and integrations that failed, of all calls",
        lambda process: numbers.fault(process.failure_rate),
        "no tool or integration was called",
    ),
    _Measure(
        "Backtracks per trial",
        "returns to a workflow that had been left for another one",
        lambda process: numbers.average(process.backtracks_per_trial),
        "",
    ),
    _Measure(
        "Overhead",
        "workflows started beyond the shortest path (optimalTools)",
        lambda process: numbers.excess(process.overhead),
        _NO_OPTIMUM,
    ),
    _Measure(
        "Missed steps",
        "steps of that path that did not run, or not in that order",
        lambda process: numbers.NONE if process.missed is None else f"{process.missed:,}",
        _NO_OPTIMUM,
    ),
    _Measure(
        "First reply",
        "median time to the agent's first reply",
        lambda process: numbers.latency(process.first_reply_seconds),
    ),
    _Measure("Agent time", "waiting for its replies, added up over all trials", _time("agent")),
    _Measure("Simulated user time", "waiting for its model", _time("user")),
    _Measure("Judge time", "reaching the verdicts", _time("judge")),
    _Measure("Other time", "sessions, retries, waiting for a free slot, and ci-evals itself", _time("other")),
    _Measure(
        "Cost per trial",
        "judge, simulated user and embedding model, on average",
        lambda process: numbers.money(process.cost_usd_per_trial),
    ),
    _Measure(
        "Cost-adjusted score",
        "the score minus 20 points for each US dollar that a trial costs, at most 40",
        lambda process: numbers.score(process.cost_adjusted_score),
    ),
)


class CoverageTables(NamedTuple):
    """The agent's logic that the tests reached."""

    says: str
    open: Sequence[Table] = ()
    """The parts that deserve a look: no longer used, wanted and never used, newly used."""
    all: Sequence[Table] = ()
    """Every part of it, a table for each kind."""


def of_coverage(results: Results) -> CoverageTables:
    """The tables of the agent's logic that was used."""
    whole = results.coverage
    if not whole.traced_trials:
        return CoverageTables(f"Unknown: {NO_TRACE}.")
    says, every = [], []
    for kind in LogicKind:
        parts = [part for part in whole.logic if part.kind is kind]
        if not parts:
            continue
        wanted = [part for part in parts if part.wanted]
        fired = numbers.count(sum(bool(part.trials) for part in parts), kind.value)
        reached = sum(bool(part.trials) for part in wanted)
        says.append(f"{fired} used" + (f" ({reached} of {len(wanted)} that criteria need)" if wanted else ""))
        every.append(_reached(f"{kind.value.capitalize()}s", parts))
    lost = coverage.lost(whole)
    groups = (
        ("Used in the baseline, no longer in the same tests", lost),
        ("Needed by a criterion, never used", [part for part in coverage.never(whole) if part not in lost]),
        ("Used now, not in the same tests of the baseline", coverage.gained(whole)),
    )
    return CoverageTables(
        ", ".join(says) + "." if says else "Nothing was used.",
        [_reached(title, parts) for title, parts in groups if parts],
        every,
    )


def _reached(title: str, parts: Sequence[Reach]) -> Table:
    cells = [
        [
            part.name,
            part.kind.value,
            _amount(part.trials),
            _amount(part.tests),
            "" if part.base_trials is None else f"{part.base_trials:,} → {_amount(part.compared_trials)}",
            "yes" if part.wanted else "",
        ]
        for part in parts
    ]
    headers = ["name", "kind", "trials", "tests", "trials of compared tests, baseline → now", "needed"]
    return Table(title, headers, cells, texts=("kind", "needed"))


def _amount(number: int | None) -> str:
    return numbers.NONE if number is None else f"{number:,}"
