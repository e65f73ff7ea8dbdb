"""The tables of the page: suites, gate, groups, tokens and cost, latency, coverage."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Reach
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.reports import numbers
from ci_evals.reports.facts import change, gate, labels, rows
from ci_evals.reports.page.overview.process import NO_TRACE
from ci_evals.reports.page.overview.table import Table, table
from ci_evals.scoring import coverage

_TONES = {True: "good", False: "bad", None: "open"}


@dataclass(frozen=True)
class CoverageTables:
    """The agent's logic that the tests reached."""

    says: str
    open: tuple[Table, ...]
    """The parts that deserve a look: no longer fired, wanted and never fired, newly fired."""
    all: tuple[Table, ...]
    """Every part of it, a table for each kind."""


def of_suites(results: Results) -> Table:
    """Score and change of each suite."""
    pairs = zip(results.suites, change.of_suites(results), strict=True)
    cells = [[suite.name, *rows.of_suite(suite, became)] for suite, became in pairs]
    return table("Scores of the suites", ["suite", *rows.SUITE_COLUMNS], cells)


def of_gate(results: Results) -> Table | None:
    """The table of the gate's checks: required and seen."""
    checks = gate.in_order(results)
    if not checks:
        return None
    cells = [[check.name, gate.decision(check), *rows.of_check(check)] for check in checks]
    return table(
        "Checks of the gate",
        ["check", "result", *rows.CHECK_COLUMNS],
        cells,
        texts=("result", "required", "seen", "note"),
        tones=[_TONES[check.holds] for check in checks],
    )


def of_groups(results: Results) -> tuple[Table, ...]:
    """The scores by category, AUI Logic, tag and difficulty of each suite."""
    return tuple(
        table(f"{suite.name}: {title[:1].lower()}{title[1:]}", [header, *rows.GROUP_COLUMNS], cells)
        for suite in results.suites
        for title, header, groups in rows.groups_of(suite)
        if (cells := [[group.name, *rows.of_group(group)] for group in groups])
    )


def of_usage(results: Results) -> Table | None:
    """Calls, tokens and cost by role and model."""
    roles = results.usage.by_role
    if not roles:
        return None
    rows = [
        [
            labels.ROLES[role.role],
            role.model or "",
            f"{role.calls:,}",
            numbers.tokens(role.input_tokens),
            numbers.tokens(role.output_tokens),
            _cost(role),
        ]
        for role in roles
    ]
    headers = ["role", "model", "calls", "tokens read", "tokens written", "cost"]
    return table("Tokens and cost by role and model", headers, rows, texts=("model",))


def _cost(role: RoleUsage) -> str:
    if why := numbers.uncounted(role):
        return f"unknown: {why}"
    return "no price known" if role.cost_usd is None else numbers.money(role.cost_usd)


def of_latency(results: Results, baseline: Results | None) -> Table | None:
    """The table of the agent's latency."""
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


def of_coverage(results: Results) -> CoverageTables:
    """The tables of the agent's logic that fired."""
    whole = results.coverage
    if not whole.traced_trials:
        return CoverageTables(f"Not known: {NO_TRACE}.", (), ())
    says = []
    for kind in LogicKind:
        parts = [part for part in whole.logic if part.kind is kind]
        wanted = [part for part in parts if part.wanted]
        if not parts:
            continue
        fired = numbers.count(sum(bool(part.trials) for part in parts), kind.value)
        reached = sum(bool(part.trials) for part in wanted)
        says.append(f"{fired} fired" + (f" ({reached} of {len(wanted)} wanted)" if wanted else ""))
    lost = coverage.lost(whole)
    groups = (
        ("Fired in the baseline, and in the same tests no longer", lost),
        (
            "Wanted by a criterion, and never fired",
            [part for part in coverage.never(whole) if part not in lost],
        ),
        ("Fires now, and in the same tests of the baseline did not", coverage.gained(whole)),
    )
    return CoverageTables(
        ", ".join(says) + "." if says else "Nothing fired.",
        tuple(_reached(title, parts) for title, parts in groups if parts),
        tuple(
            _reached(_KINDS[kind], parts)
            for kind in LogicKind
            if (parts := [part for part in whole.logic if part.kind is kind])
        ),
    )


def _reached(title: str, parts: Sequence[Reach]) -> Table:
    rows = [
        [
            part.name,
            part.kind.value,
            _amount(part.trials),
            _amount(part.tests),
            _became(part),
            "yes" if part.wanted else "",
        ]
        for part in parts
    ]
    headers = ["name", "kind", "trials", "tests", "same tests, before → now", "wanted"]
    return table(title, headers, rows, texts=("kind", "wanted"))


def _became(part: Reach) -> str:
    """Trials in which it fired in the compared tests, of the baseline and of this run."""
    if part.base_trials is None:
        return ""
    return f"{part.base_trials:,} → {_amount(part.compared_trials)}"


def _amount(number: int | None) -> str:
    return numbers.NONE if number is None else f"{number:,}"


_KINDS = {
    LogicKind.WORKFLOW: "Workflows",
    LogicKind.PARAMETER: "Parameters",
    LogicKind.RULE: "Rules",
    LogicKind.INTEGRATION: "Integrations",
}
