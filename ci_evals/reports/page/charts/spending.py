"""Where the time of a run went, and its tokens and dollars."""

from collections.abc import Iterator, Sequence

from ci_evals.domain.results.process import Times
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.facts.labels import ROLES
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, Entry, Row
from ci_evals.reports.page.charts.scale import Scale

_TIME, _TIME_TITLE = "chart-time", "Where the time went"
_USAGE, _USAGE_TITLE = "chart-usage", "Tokens and cost by role"
_STACK = 24
"""Height of the bar of all parts together."""
_TOP = 24


def time(results: Results) -> Figure | None:
    """None where no time was measured."""
    told = results.process.times
    parts = _parts(told) if told else ()
    whole = sum(seconds for _, seconds, _ in parts)
    if whole <= 0:
        return None
    longest, most, _ = max(parts, key=lambda part: part[1])
    says = (
        f"Of {numbers.duration(whole)}, all trials together, {numbers.percent(most / whole)} "
        f"went to {'all else' if longest == 'other' else f'the {longest}'}."
    )
    return Figure(
        id=_TIME,
        title=_TIME_TITLE,
        says=says,
        svg=drawing.picture(
            _TIME, _TIME_TITLE, says, _STACK + len(parts) * frame.ROW, _drawn_time(parts, whole)
        ),
        headers=("part", "time", "share"),
        rows=tuple(
            (name, numbers.duration(seconds), numbers.percent(seconds / whole)) for name, seconds, _ in parts
        ),
    )


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
    scale = Scale(0, whole, 0, WIDTH)
    found, begun = [], 0.0
    for place, (name, seconds, kind) in enumerate(parts):
        left, right = scale(begun), scale(begun + seconds)
        begun += seconds
        height = frame.track_of(place, _STACK)
        wide = max(1.0, right - left - 1) if seconds else 0.0
        left = min(left, WIDTH - wide)
        yield drawing.box(left, 2, wide, _STACK - 8, kind)
        value = f"{numbers.duration(seconds)} · {numbers.percent(seconds / whole)}"
        mark = drawing.box(left, height - 5, wide, 10, kind)
        behind = drawing.line(0, height, WIDTH, height, "c-track")
        found.append(Row(name, value, (behind, mark)))
    yield from frame.rows(found, _STACK, None)


def usage(results: Results) -> Figure | None:
    """None where no tokens were counted."""
    used = [role for role in results.usage.by_role if role.input_tokens or role.output_tokens]
    if not used:
        return None
    used.sort(key=lambda role: -(role.input_tokens + role.output_tokens))
    shown = used[:MOST_ROWS]
    says = _says(results.usage, used)
    height = _TOP + len(shown) * frame.ROW
    drawn = [
        *frame.key((Entry("tokens read", "c-agent"), Entry("written", "c-failed c-plain")), 13),
        *frame.rows(list(_usage_rows(shown)), _TOP, None),
    ]
    return Figure(
        id=_USAGE,
        title=_USAGE_TITLE,
        says=says,
        svg=drawing.picture(_USAGE, _USAGE_TITLE, says, height, drawn),
        headers=("role", "model", "calls", "tokens read", "written", "cost"),
        rows=tuple(
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


def _usage_rows(used: Sequence[RoleUsage]) -> Iterator[Row]:
    scale = Scale(0, max(role.input_tokens + role.output_tokens for role in used), 0, WIDTH)
    for place, role in enumerate(used):
        height = frame.track_of(place, _TOP)
        read, both = scale(role.input_tokens), scale(role.input_tokens + role.output_tokens)
        tokens = numbers.tokens(role.input_tokens + role.output_tokens)
        cost = "" if role.cost_usd is None else f" · {numbers.money(role.cost_usd)}"
        name = f"{ROLES[role.role]}, {role.model}" if role.model else ROLES[role.role]
        marks = (
            drawing.box(0, height - 5, read, 10, "c-agent"),
            drawing.box(read, height - 5, max(both - read, 0), 10, "c-failed", "c-plain"),
        )
        yield Row(name, f"{tokens}{cost}", marks)


def _says(used: Usage, roles: Sequence[RoleUsage]) -> str:
    most = roles[0]
    tokens = sum(role.input_tokens + role.output_tokens for role in roles)
    told = f"{numbers.tokens(tokens)} tokens, most of them for the {ROLES[most.role]}"
    if used.cost_usd is None:
        return f"{told}; what they cost is not known."
    return f"{told}; {numbers.money(used.cost_usd)} in all."
