"""The turn that a span belongs to. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_evals.extension_support.span_reading.spans import Span

_MAX_ANCESTORS = 256


class TurnSpan(NamedTuple):
    """The span that the agent's spans of a turn have as their parent."""

    span_id: str
    started_ns: int


def by_turn(
    spans: Mapping[str, Span], turns: Sequence[TurnSpan], earlier: Mapping[str, str]
) -> Mapping[str, list[Span]]:
    """Return the spans of each turn, by the id of its span; `earlier` has the turns of spans before these.

    A span belongs to the turn that its ancestors lead to; if they lead to none, since one of them is missing
    or it was made without our context, to the turn in which it began.
    """
    known = {**earlier, **{turn.span_id: turn.span_id for turn in turns}}
    belonging: dict[str, list[Span]] = {turn.span_id: [] for turn in turns}
    for span in spans.values():
        if turn_id := known.get(span.parent_id, ""):  # as nearly all, and in half the time
            known[span.span_id] = turn_id
            belonging[turn_id].append(span)
            continue
        path, top = [span.span_id], span
        while top.parent_id not in known and (parent := spans.get(top.parent_id)) and len(path) <= len(spans):
            path.append(parent.span_id)
            top = parent
        turn_id = known.get(top.parent_id) or _turn_at(top.start_ns, turns)
        known.update(dict.fromkeys(path, turn_id))
        belonging[turn_id].append(span)
    return belonging


def unattributed(
    spans: Mapping[str, Span], turns: Sequence[TurnSpan], earlier: Mapping[str, str]
) -> list[Span]:
    """Return the spans of which no ancestor is known to belong to a turn, since one is missing."""
    known = {*earlier, *(turn.span_id for turn in turns)}
    lost = []
    for span in spans.values():
        *_, top = span, *ancestors(span, spans)
        if top.parent_id and top.parent_id not in known and span.span_id not in known:
            lost.append(span)
    return lost


def _turn_at(time_ns: int, turns: Sequence[TurnSpan]) -> str:
    begun = [turn.span_id for turn in turns if turn.started_ns <= time_ns]
    return (begun or [turn.span_id for turn in turns])[-1]  # begun before all: its clock is another


def ancestors(span: Span, by_id: Mapping[str, Span]) -> Iterator[Span]:
    """Yield the parent, its parent, and so on; a limit ends a circle."""
    for _ in range(_MAX_ANCESTORS):
        parent = by_id.get(span.parent_id)
        if parent is None:
            return
        yield parent
        span = parent
