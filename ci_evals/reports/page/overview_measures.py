"""The tables of the page: suites, gate, groups, process, tokens and cost, latency, coverage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ci_evals.domain.process import LogicKind, ProcessSummary, Reach
from ci_evals.domain.results import Results
from ci_evals.reports import change, gate, numbers, tables
from ci_evals.reports.page.overview_table import Table, table

_NO_TRACE = "no reply carried a trace"


@dataclass(frozen=True)
class Measure:
    """One measure of process: what it is called, what it means, how it is shown."""

    name: str
    meaning: str
    show: Callable[[ProcessSummary], str]
    """Empty where it is not known."""
    why_not: Callable[[ProcessSummary], str] = lambda found: "" if found.traced_trials else _NO_TRACE
    """Why it is not known, where that can be told."""


@dataclass(frozen=True)
class Coverage:
    """What of the agent's logic the tests reached."""

    says: str
    open: tuple[Table, ...]
    """What a reader should look at: no longer fired, wanted and never fired, newly fired."""
    all: tuple[Table, ...]
    """Every part of it, a table for each kind."""


def of_suites(results: Results) -> Table:
    """Score and change of each suite."""
    pairs = zip(results.suites, change.of_suites(results), strict=True)
    rows = [[suite.name, *tables.scores(suite, became)] for suite, became in pairs]
    return table("Scores of the suites", ["suite", *tables.SUITE_COLUMNS], rows)


def of_gate(results: Results) -> Table | None:
    """What each check of the gate asked and saw."""
    checks = gate.in_order(results)
    rows = [
        [
            check.name,
            "holds" if check.holds else "does not hold",
            gate.required(check),
            gate.seen(check),
            check.note or "",
        ]
        for check in checks
    ]
    if not rows:
        return None
    return table(
        "Checks of the gate",
        ["check", "result", "required", "seen", "note"],
        rows,
        texts=("result", "required", "seen", "note"),
        tones=["good" if check.holds else "bad" for check in checks],
    )


def of_groups(results: Results) -> tuple[Table, ...]:
    """The scores by category, AUI Logic, tag and difficulty of each suite."""
    return tuple(
        table(f"{suite.name}: {title[:1].lower()}{title[1:]}", [header, *tables.GROUP_COLUMNS], rows)
        for suite in results.suites
        for title, header, found in tables.kinds_of_groups(suite)
        if (rows := [[group.name, *tables.of_group(group)] for group in found])
    )


def of_process(results: Results, baseline: Results | None) -> Table | None:
    """The measures of process of the run, of the baseline and of each suite; None where none was made."""
    if results.process is None:
        return None
    sides: list[tuple[str, ProcessSummary]] = [("this run", results.process)]
    sides += [("baseline", baseline.process)] if baseline and baseline.process else []
    if len(results.suites) > 1:
        sides += [(suite.name, suite.process) for suite in results.suites if suite.process]
    shown = [
        measure
        for measure in MEASURES
        if any(measure.show(found) for _, found in sides) or measure.why_not(results.process)
    ]
    return table(
        "Measures of process",
        ["measure", *(name for name, _ in sides)],
        [[measure.name, *(measure.show(found) or numbers.NONE for _, found in sides)] for measure in shown],
        notes=[_note(measure, results.process) for measure in shown],
    )


def of_usage(results: Results) -> Table | None:
    """Calls, tokens and cost by role and model."""
    roles = results.usage.by_role
    if not roles:
        return None
    rows = [
        [
            _ROLES[role.role],
            role.model or "",
            f"{role.calls:,}",
            numbers.tokens(role.input_tokens),
            numbers.tokens(role.output_tokens),
            "no price known" if role.cost_usd is None else numbers.money(role.cost_usd),
        ]
        for role in roles
    ]
    headers = ["role", "model", "calls", "tokens read", "tokens written", "cost"]
    return table("Tokens and cost by role and model", headers, rows, texts=("model",))


def of_latency(results: Results, baseline: Results | None) -> Table | None:
    """How long the agent took to answer."""
    sides = [("this run", results), *([("baseline", baseline)] if baseline else [])]
    rows = [
        [
            name,
            f"{one.latency.replies:,}",
            *map(numbers.latency, (one.latency.median, one.latency.p95, one.latency.slowest)),
        ]
        for name, one in sides
        if one.latency.replies
    ]
    headers = ["run", "replies", "median", "95 % within", "slowest"]
    return table("Latency of the agent's replies", headers, rows) if rows else None


def of_coverage(results: Results) -> Coverage | None:
    """What of the agent's logic fired; None in results that do not tell."""
    found = results.coverage
    if found is None:
        return None
    if not found.traced_trials:
        return Coverage(f"Not known: {_NO_TRACE}.", (), ())
    says = []
    for kind in LogicKind:
        parts = [part for part in found.logic if part.kind is kind]
        wanted = [part for part in parts if part.wanted]
        if not parts:
            continue
        fired = numbers.count(sum(bool(part.trials) for part in parts), kind.value)
        reached = sum(bool(part.trials) for part in wanted)
        says.append(f"{fired} fired" + (f" ({reached} of {len(wanted)} wanted)" if wanted else ""))
    groups = (
        ("Fired in the baseline, and not now", gone(results)),
        (
            "Wanted by a criterion, and never fired",
            [part for part in found.logic if part.wanted and part.trials == 0 and not _gone(part)],
        ),
        ("Fired now, and not in the baseline", [part for part in found.logic if _came(part)]),
    )
    return Coverage(
        ", ".join(says) + "." if says else "Nothing fired.",
        tuple(_reached(title, parts) for title, parts in groups if parts),
        tuple(
            _reached(_KINDS[kind], parts)
            for kind in LogicKind
            if (parts := [part for part in found.logic if part.kind is kind])
        ),
    )


def gone(results: Results) -> tuple[Reach, ...]:
    """What fired in the baseline, and in no trial of the same tests now."""
    return tuple(part for part in results.coverage.logic if _gone(part)) if results.coverage else ()


def _gone(part: Reach) -> bool:
    return bool(part.base_trials) and part.compared_trials == 0


def _came(part: Reach) -> bool:
    return part.base_trials == 0 and bool(part.compared_trials)


def _reached(title: str, parts: Sequence[Reach]) -> Table:
    rows = [
        [
            part.name,
            part.kind.value,
            _amount(part.trials),
            _amount(part.tests),
            "" if part.base_trials is None else f"{part.base_trials:,}",
            "yes" if part.wanted else "",
        ]
        for part in parts
    ]
    headers = ["name", "kind", "trials", "tests", "trials of the baseline", "wanted"]
    return table(title, headers, rows, texts=("kind", "wanted"))


def _amount(number: int | None) -> str:
    return numbers.NONE if number is None else f"{number:,}"


def _note(measure: Measure, found: ProcessSummary) -> str:
    """What it means and, where it is not known, why."""
    why = "" if measure.show(found) else measure.why_not(found)
    return f"{measure.meaning}; {numbers.NONE}: {why}" if why else measure.meaning


def _percent(share: float | None) -> str:
    return "" if share is None else numbers.percent(share)


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _overhead(found: ProcessSummary) -> str:
    return "" if found.overhead is None else f"{100 * found.overhead:+.0f} %"


def _time(part: str) -> Callable[[ProcessSummary], str]:
    def shown(found: ProcessSummary) -> str:
        if found.times is None:
            return ""
        seconds = getattr(found.times, part)
        whole = sum((found.times.agent, found.times.user, found.times.judge, found.times.other))
        share = f" ({numbers.percent(seconds / whole)})" if whole else ""
        return f"{numbers.duration(seconds)}{share}"

    return shown


def _no_optimal(found: ProcessSummary) -> str:
    return "no test names optimalTools" if found.traced_trials else _NO_TRACE


def _nothing(_: ProcessSummary) -> str:
    return ""


_ROLES = {
    "user": "simulated user",
    "judge": "judge",
    "embedder": "embedding model",
    "agent": "agent",
}
_KINDS = {
    LogicKind.WORKFLOW: "Workflows",
    LogicKind.PARAMETER: "Parameters",
    LogicKind.RULE: "Rules",
    LogicKind.INTEGRATION: "Integrations",
}
MEASURES = (
    Measure(
        "Completion rate",
        "trials whose conversation came to an end of its own",
        lambda found: _percent(found.completion_rate),
        _nothing,
    ),
    Measure(
        "Success rate",
        "trials that passed every evaluation that was wanted",
        lambda found: _percent(found.success_rate),
        _nothing,
    ),
    Measure(
        "Steps a trial",
        "workflows begun and integrations called, in the mean",
        lambda found: _decimal(found.steps_per_trial),
    ),
    Measure(
        "Repeated steps",
        "steps taken before with the same parameters, of all steps",
        lambda found: _percent(found.redundancy_rate),
    ),
    Measure(
        "Failed calls",
        "calls of integrations that came to an error, of all calls",
        lambda found: _percent(found.failure_rate),
        lambda found: "no integration was called" if found.traced_trials else _NO_TRACE,
    ),
    Measure(
        "Backtracks a trial",
        "returns to a workflow that had been left for another one",
        lambda found: _decimal(found.backtracks_per_trial),
    ),
    Measure(
        "Overhead",
        "workflows begun beyond the shortest right way (optimalTools)",
        _overhead,
        _no_optimal,
    ),
    Measure(
        "Missed steps",
        "of that way, steps that did not run, or not in that order",
        lambda found: "" if found.missed is None else f"{found.missed:,}",
        _no_optimal,
    ),
    Measure(
        "First reply",
        "median time to the agent's first reply",
        lambda found: "" if found.first_reply_seconds is None else numbers.latency(found.first_reply_seconds),
        _nothing,
    ),
    Measure("Time of the agent", "waiting for its replies, all trials together", _time("agent"), _nothing),
    Measure("Time of the simulated user", "waiting for its model", _time("user"), _nothing),
    Measure("Time of the judge", "from the conversation's end to the last verdict", _time("judge"), _nothing),
    Measure("Other time", "sessions, earlier attempts, and this tool's own work", _time("other"), _nothing),
    Measure(
        "Cost a trial",
        "what judge, simulated user and embedding model cost, in the mean of the run",
        lambda found: "" if found.cost_usd_per_trial is None else numbers.money(found.cost_usd_per_trial),
        _nothing,
    ),
    Measure(
        "Cost-adjusted score",
        "the run's score, less 20 points for each US dollar that a trial costs, at most 40",
        lambda found: "" if found.cost_adjusted_score is None else numbers.score(found.cost_adjusted_score),
        _nothing,
    ),
)
