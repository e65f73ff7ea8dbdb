"""The time of a run by who took it, and its tokens and dollars by role."""

from collections.abc import Iterator, Sequence
from functools import partial

from ci_evals.domain.results.process import Times
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.facts.labels import ROLES
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, Chart, Entry, TrackRow
from ci_evals.reports.page.charts.scale import Scale


def time(results: Results) -> Figure | None:
    """Return the chart of time; None if none was measured."""
    times = results.process.times
    parts = _parts(times) if times else ()
    whole = sum(seconds for _, seconds, _ in parts)
    if whole <= 0:
        return None
    longest, most, _ = max(parts, key=lambda part: part[1])
    says = (
        f"Of {numbers.duration(whole)}, all trials together, {numbers.percent(most / whole)} "
        f"went to {'all else' if longest == 'other' else f'the {longest}'}."
    )
    chart = Chart(
        id="chart-time",
        title="Where the time went",
        says=says,
        headers=("part", "time", "share"),
        rows=(
            (name, numbers.duration(seconds), numbers.percent(seconds / whole)) for name, seconds, _ in parts
        ),
    )
    return chart.drawn(frame.STACK + len(parts) * frame.ROW, _drawn_time(parts, whole))


def _parts(times: Times) -> tuple[tuple[str, float, str], ...]:
    """Name, seconds and class of each part."""
    return (
        ("agent", times.agent, "c-agent"),
        ("simulated user", times.user, "c-user"),
        ("judge", times.judge, "c-judge"),
        ("other", times.other, "c-other"),
    )


def _drawn_time(parts: Sequence[tuple[str, float, str]], whole: float) -> Iterator[Drawn]:
    """One bar of all parts, and below it each part where it stands in that bar."""
    rows = []
    stacked = frame.stacked([seconds for _, seconds, _ in parts])
    for (name, seconds, kind), (left, width) in zip(parts, stacked, strict=True):
        yield drawing.box(left, 2, width, frame.STACK - 8, kind)
        value = f"{numbers.duration(seconds)} · {numbers.percent(seconds / whole)}"
        rows.append(TrackRow(name, value, partial(_part_marks, left, width, kind)))
    yield from frame.rows(rows, frame.STACK, None)


def _part_marks(left: float, width: float, kind: str, y: float) -> Iterator[Drawn]:
    yield drawing.line(0, y, WIDTH, y, "c-track")
    yield drawing.box(left, y - 5, width, 10, kind)


def usage(results: Results) -> Figure | None:
    """Return the chart of tokens; None if none were counted."""
    used = [role for role in results.usage.by_role if role.input_tokens or role.output_tokens]
    if not used:
        return None
    used.sort(key=lambda role: -(role.input_tokens + role.output_tokens))
    shown = used[:MOST_ROWS]
    chart = Chart(
        id="chart-usage",
        title="Tokens and cost by role",
        says=_says(results.usage, used),
        headers=("role", "model", "calls", "tokens read", "written", "cost"),
        rows=(
            (
                ROLES[role.role],
                role.model or "",
                f"{role.calls:,}",
                f"{role.input_tokens:,}",
                f"{role.output_tokens:,}",
                numbers.money(role.cost_usd),
            )
            for role in used
        ),
    )
    key = (Entry("tokens read", "c-agent"), Entry("written", "c-failed c-plain"))
    scale = Scale(0, max(role.input_tokens + role.output_tokens for role in shown), 0, WIDTH)
    return chart.in_rows(key, [_usage_row(role, scale) for role in shown], scale=None)


def _usage_row(role: RoleUsage, scale: Scale) -> TrackRow:
    total = role.input_tokens + role.output_tokens
    cost = "" if role.cost_usd is None else f" · {numbers.money(role.cost_usd)}"

    def marks(y: float) -> Iterator[Drawn]:
        read = scale(role.input_tokens)
        yield drawing.box(0, y - 5, read, 10, "c-agent")
        yield drawing.box(read, y - 5, scale(total) - read, 10, "c-failed", "c-plain")

    name = f"{ROLES[role.role]}, {role.model}" if role.model else ROLES[role.role]
    return TrackRow(name, f"{numbers.tokens(total)}{cost}", marks)


def _says(used: Usage, roles: Sequence[RoleUsage]) -> str:
    most = roles[0]
    tokens = sum(role.input_tokens + role.output_tokens for role in roles)
    text = f"{numbers.tokens(tokens)} tokens, most of them for the {ROLES[most.role]}"
    if used.cost_usd is None:
        return f"{text}; what they cost is not known."
    return f"{text}; {numbers.money(used.cost_usd)} in all."
