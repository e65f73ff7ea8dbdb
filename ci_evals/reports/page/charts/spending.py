"""The time of a run by who took it, and its tokens and dollars by role."""

from collections.abc import Iterator, Sequence
from functools import partial

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.drawing import WIDTH, Drawn
from ci_evals.reports.page.charts.frame import MOST_ROWS, Entry, TrackRow
from ci_evals.reports.page.charts.scale import Scale
from ci_evals.reports.story.figure import Figure
from ci_evals.reports.story.labels import ROLES

_READING_TIME = (
    "Time spent in each part, added up over all trials. Trials run at the same time, so the sum is more "
    "than the run took. Other: opening sessions, retries, waiting for a free slot."
)
_READING_USAGE = "One bar per role and model: input tokens solid, output tokens outlined."


def time(results: Results) -> Figure | None:
    """Return the chart of time; None if none was measured."""
    times = results.process.times
    if times is None or times.whole <= 0:
        return None
    parts = (
        ("agent", times.agent, "c-agent"),
        ("simulated user", times.user, "c-user"),
        ("judge", times.judge, "c-judge"),
        ("other", times.other, "c-other"),
    )
    longest, most, _ = max(parts, key=lambda part: part[1])
    whole = times.whole
    rows = [(name, numbers.duration(each), numbers.percent(each / whole)) for name, each, _ in parts]
    words = Figure(
        id="chart-time",
        title="Where the time went",
        says=f"{longest.capitalize()}: {numbers.percent(most / whole)} of {numbers.duration(whole)}.",
        reading=_READING_TIME,
        headers=("part", "time", "share"),
        rows=rows,
    )
    return frame.drawn(words, frame.STACK + len(parts) * frame.ROW, _drawn_time(parts, rows))


def _drawn_time(
    parts: Sequence[tuple[str, float, str]], rows: Sequence[tuple[str, str, str]]
) -> Iterator[Drawn]:
    """One bar of all parts, and below it each part where it stands in that bar."""
    tracks = []
    stacked = frame.stacked([seconds for _, seconds, _ in parts])
    for (name, duration, share), (_, _, kind), (left, width) in zip(rows, parts, stacked, strict=True):
        yield drawing.box(left, 2, width, frame.STACK - 8, kind)
        tracks.append(TrackRow(name, f"{duration} · {share}", partial(_part_marks, left, width, kind)))
    yield from frame.rows(tracks, frame.STACK, None)


def _part_marks(left: float, width: float, kind: str, y: float) -> Iterator[Drawn]:
    yield drawing.line(0, y, WIDTH, y, "c-track")
    yield drawing.box(left, y - 5, width, 10, kind)


def usage(results: Results) -> Figure | None:
    """Return the chart of tokens; None if none were counted."""
    used = [role for role in results.usage.by_role if role.input_tokens or role.output_tokens]
    if not used:
        return None
    used.sort(key=_tokens, reverse=True)
    cost = "" if results.usage.cost_usd is None else f"; {numbers.money(results.usage.cost_usd)}"
    words = Figure(
        id="chart-usage",
        title="Tokens and cost by role",
        says=f"{numbers.tokens(sum(map(_tokens, used)))} tokens, most by the {ROLES[used[0].role]}{cost}.",
        reading=_READING_USAGE,
        headers=("role", "model", "calls", "input tokens", "output tokens", "cost"),
        rows=[
            (
                ROLES[role.role],
                role.model or "",
                f"{role.calls:,}",
                f"{role.input_tokens:,}",
                f"{role.output_tokens:,}",
                numbers.money(role.cost_usd),
            )
            for role in used
        ],
    )
    entries = (Entry("input tokens", "c-agent"), Entry("output tokens", "c-failed c-plain"))
    scale = Scale(0, _tokens(used[0]), 0, WIDTH)
    return frame.drawn_in_rows(
        words, entries, [_usage_row(role, scale) for role in used[:MOST_ROWS]], scale=None
    )


def _tokens(role: RoleUsage) -> int:
    return role.input_tokens + role.output_tokens


def _usage_row(role: RoleUsage, scale: Scale) -> TrackRow:
    cost = "" if role.cost_usd is None else f" · {numbers.money(role.cost_usd)}"

    def marks(y: float) -> Iterator[Drawn]:
        read = scale(role.input_tokens)
        yield drawing.box(0, y - 5, read, 10, "c-agent")
        yield drawing.box(read, y - 5, scale(_tokens(role)) - read, 10, "c-failed", "c-plain")

    name = f"{ROLES[role.role]}, {role.model}" if role.model else ROLES[role.role]
    return TrackRow(name, f"{numbers.tokens(_tokens(role))}{cost}", marks)
