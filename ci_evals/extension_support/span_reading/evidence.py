"""The spans of a turn as evidence: each tool call once, in the order of starting. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.domain.base import instant, model_names
from ci_evals.domain.transcript import ToolCall, ToolStatus
from ci_evals.extension_support.span_reading.arguments import content_switch
from ci_evals.extension_support.span_reading.belonging import ancestors
from ci_evals.extension_support.span_reading.dialects import (
    agent_name,
    hides_calls,
    model_of,
    requested_calls,
    shows_answer,
    tokens,
)
from ci_evals.extension_support.span_reading.for_people import for_people
from ci_evals.extension_support.span_reading.kinds import AGENT, MODEL, SIDE, TOOL, kinds_of
from ci_evals.extension_support.span_reading.spans import MAX_TEXT, Span
from ci_evals.extension_support.span_reading.tool_spans import Called, called_by
from ci_evals.support.documentation import see
from ci_evals.support.json_text import canonical

MAX_CALLS = 1_000
"""Limit of the tool calls that are read of one turn."""


@dataclass(frozen=True)
class TurnEvidence:
    """The evidence in the spans of a turn."""

    calls: tuple[ToolCall, ...]
    missing: str | None
    """Why there may be calls that these spans do not show; None if they show all."""
    unnamed: str | None
    """Why a call may be of any tool; None if each has a name."""
    input_tokens: int | None
    output_tokens: int | None
    models: tuple[str, ...]
    """The models that answered."""
    spans: JsonValue
    """The spans for people to read."""


class Progress(IntEnum):
    """How much of a turn's trace has arrived."""

    NOTHING = 0
    BROKEN = 1
    """Its root is missing, or the parent of a span."""
    WHOLE = 2
    """No span is known to be missing, but another root may come."""
    ANSWERED = 3
    """The agent's server has ended its span of every request, which it does last."""


def progress(spans: Sequence[Span], turn_id: str, requests: int) -> Progress:
    """Return how much of a turn's trace has arrived, in which the agent was sent `requests`."""
    if not spans:
        return Progress.NOTHING
    above = {turn_id, ""}
    parents = {span.parent_id for span in spans}
    if parents.isdisjoint(above) or parents - {span.span_id for span in spans} - above:
        return Progress.BROKEN
    answered = sum(span.is_server and span.parent_id in above for span in spans)
    return Progress.ANSWERED if answered >= requests > 0 else Progress.WHOLE


LATE_PART = (
    "some of its spans did not arrive in time; let all parts of the agent export them, end them before the "
    f"reply, and set OTEL_BSP_SCHEDULE_DELAY=200 ({see('traces')})"
)
_NO_AGENT = (
    "none of its spans is of a tool, a model or an agent; trace the agent's framework, or name the span of "
    f"each turn by gen_ai.operation.name=invoke_agent and make one for each tool ({see('traces')})"
)
_LONG_ANSWER = (
    f"a model's answer has more than {MAX_TEXT:,} characters or is cut off, and may hold more tool calls"
)
_CUT = (
    "attributes or events of the span {!r} were dropped, and may have shown tool calls; raise "
    f"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT ({see('traces')})"
)
_UNNAMED = (
    "the span {!r} is of a tool, and does not say which; set gen_ai.tool.name on it, or call it "
    f"'execute_tool NAME' ({see('traces')})"
)
_MANY_CALLS = f"it has more tool calls than the {MAX_CALLS:,} that are read of one turn"


def read(spans: Iterable[Span], missing: str | None = None) -> TurnEvidence:
    """Return the evidence in the spans of one turn; `missing` says why there may be other spans."""
    ordered = sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    turn = _Turn(ordered, {span.span_id: span for span in ordered}, [kinds_of(span) for span in ordered])
    models = _model_calls(turn)
    executions = _without_duplicates(turn)
    calls = sorted(_joined(executions, models), key=lambda each: each.at_ns)
    used = [
        next((pair for pair in map(tokens, group) if pair != (None, None)), (None, None)) for group in models
    ]
    return TurnEvidence(
        calls=tuple(_tool_call(each, turn.by_id) for each in calls if each.called.name),
        missing=missing or _hidden(turn, models, calls),
        unnamed=_unnamed(calls),
        input_tokens=_sum(pair[0] for pair in used),
        output_tokens=_sum(pair[1] for pair in used),
        models=model_names(model_of(span) for group in models for span in group),
        spans=for_people(ordered),
    )


class _Turn(NamedTuple):
    """The spans of a turn in the order in which they began."""

    spans: Sequence[Span]
    by_id: Mapping[str, Span]
    kinds: Sequence[int]
    """The kinds of each span."""

    def of(self, kinds: int) -> list[Span]:
        """Return the spans that are of one of these kinds."""
        return [span for span, own in zip(self.spans, self.kinds, strict=True) if own & kinds]


def _model_calls(turn: _Turn) -> list[list[Span]]:
    """Return the spans of each call of a model, the outermost first: several instrumentations may see one."""
    groups: dict[str, list[Span]] = {}
    models = {span.span_id: span for span in turn.of(MODEL)}
    if models.keys().isdisjoint([span.parent_id for span in turn.spans]):
        return [[span] for span in models.values()]  # none is above another
    for span in models.values():
        above = [each.span_id for each in ancestors(span, turn.by_id) if each.span_id in models]
        groups.setdefault(above[-1] if above else span.span_id, []).append(span)
    return [*groups.values()]


class _Call(NamedTuple):
    """A call, and the span that shows it: of the tool, or of the model that asked for it."""

    span: Span
    called: Called
    executed: bool
    others: tuple[Span, ...] = ()
    """Further spans that show it."""

    @property
    def at_ns(self) -> int:
        return self.span.start_ns if self.executed else self.span.end_ns


def _hidden(turn: _Turn, models: Sequence[Sequence[Span]], calls: Sequence[_Call]) -> str | None:
    """Return why the spans of a turn may not show all of its calls."""
    if len(calls) >= MAX_CALLS:
        return _MANY_CALLS
    if any(map(hides_calls, chain.from_iterable(models))):
        return _LONG_ANSWER
    if unclear := _unnamed(calls) or _cut(turn):
        return unclear
    if not _shows_agent(turn):
        return _NO_AGENT
    # Tools that have spans of their own show whether they were called, whatever a model answered.
    silent = (group[0] for group in models if not any(map(shows_answer, group)))
    if not any(call.executed for call in calls) and (span := next(silent, None)):
        return (
            "the spans of its models do not show what they answered, which may be tool calls; switch the "
            f"capture of content on: {content_switch(span)}"
        )
    return None


def _unnamed(calls: Iterable[_Call]) -> str | None:
    for call in calls:
        if not call.called.name or call.called.guessed:
            return _UNNAMED.format(call.span.name)
    return None


def _cut(turn: _Turn) -> str | None:
    """Return which span may have shown calls in what was dropped of it."""
    if any(map(attrgetter("cut"), turn.spans)):
        for span, kinds in zip(turn.spans, turn.kinds, strict=True):
            if span.cut and (kinds & (TOOL | MODEL) or not kinds):
                return _CUT.format(span.name)
    return None


def _shows_agent(turn: _Turn) -> bool:
    """Return whether a span is of a tool, a model or an agent, and not a part of a guardrail or the like."""
    sides = {span.span_id for span in turn.of(SIDE)}
    for span in turn.of(TOOL | MODEL | AGENT):
        if not sides or sides.isdisjoint([span.span_id, *(s.span_id for s in ancestors(span, turn.by_id))]):
            return True
    return False


def _without_duplicates(turn: _Turn) -> list[_Call]:
    """Return the calls that spans of tools show, each once."""
    calls: list[_Call] = []
    for span in turn.of(TOOL)[:MAX_CALLS]:
        called = called_by(span)
        for index, other in enumerate(calls):
            if _is_same(span, called, other, turn.by_id):
                both = _merged(other.called, called)
                calls[index] = other._replace(called=both, others=(*other.others, span))
                break
        else:
            calls.append(_Call(span, called, executed=True))
    return calls


def _is_same(span: Span, called: Called, other: _Call, by_id: Mapping[str, Span]) -> bool:
    """Return whether a span shows a call that other spans show already.

    It does if it is within each of these (a tool behind MCP has spans on both sides), or if two
    instrumentations made them of the same call at the same time. One after the other they are two calls, even
    with one id or within one span: the tool was run twice.
    """
    if called.name != other.called.name or _differ(called.call_id, other.called.call_id):
        return False
    above: set[str] | None = None
    for shown in (other.span, *other.others):
        if span.scope != shown.scope and span.start_ns <= shown.end_ns and shown.start_ns <= span.end_ns:
            continue
        above = {each.span_id for each in ancestors(span, by_id)} if above is None else above
        if shown.span_id not in above:
            return False
    return called.call_id == other.called.call_id is not None or _agree(called, other.called)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _joined(executed: Sequence[_Call], models: Iterable[Sequence[Span]]) -> list[_Call]:
    """Return the executed calls, completed by what models asked for, and the calls that were asked for alone.

    Without an id, a span stands for the next call of a model with its name and arguments.
    """
    calls, open_calls = [*executed], [*range(len(executed))]
    for group in models:
        answers = ((span, requested_calls(span)) for span in group)
        span, requested = next((answer for answer in answers if answer[1]), (group[0], ()))
        for wanted in requested[: MAX_CALLS - len(calls) + len(open_calls)]:
            index = next((i for i in open_calls if _answers(calls[i], wanted)), None)
            if index is not None:
                open_calls.remove(index)
                calls[index] = calls[index]._replace(called=_merged(calls[index].called, wanted))
            elif not any(_seen_twice(call, span, wanted) for call in calls):
                calls.append(_Call(span, wanted, executed=False))
    return calls


def _seen_twice(call: _Call, span: Span, wanted: Called) -> bool:
    """Return whether another instrumentation has shown that a model asked for this call."""
    if wanted.call_id is None or call.called.call_id != wanted.call_id or call.called.name != wanted.name:
        return False
    return call.executed or call.span.scope != span.scope


def _answers(call: _Call, wanted: Called) -> bool:
    """Return whether an executed call is the one that a model asked for."""
    if call.called.call_id and wanted.call_id:
        return call.called.call_id == wanted.call_id
    return call.called.name == wanted.name and _agree(call.called, wanted)


def _agree(one: Called, other: Called) -> bool:
    """Return whether the arguments of both may be the same."""
    if one.arguments is None or other.arguments is None:
        bare, named = (one, other) if one.arguments is None else (other, one)
        if bare.bare is None or named.arguments is None:
            return True
        return len(named.arguments) == 1 and canonical(bare.bare) == canonical(*named.arguments.values())
    return one.canonical == other.canonical


def _merged(one: Called, other: Called) -> Called:
    """Return a call with what either shows."""
    arguments = other.arguments if one.arguments is None else one.arguments
    return Called(
        name=one.name or other.name,
        call_id=one.call_id or other.call_id,
        arguments=arguments,
        not_captured=None if arguments is not None else one.not_captured or other.not_captured,
        result=other.result if one.result is None else one.result,
        failed=other.failed if one.failed is None else one.failed,
        guessed=one.guessed and other.guessed,
    )


def _tool_call(call: _Call, by_id: Mapping[str, Span]) -> ToolCall:
    called, span = call.called, call.span
    agents = (agent_name(each) for each in (span, *ancestors(span, by_id)))
    return ToolCall.model_construct(
        id=called.call_id,
        name=called.name,
        arguments=called.arguments,
        not_captured=called.not_captured,
        result=called.result,
        status=_STATUS[called.failed],
        started_at=instant(datetime.fromtimestamp(call.at_ns / 1e9, UTC)),
        duration_ms=max(0, span.end_ns - span.start_ns) / 1e6 if call.executed else None,
        agent=next(filter(None, agents), None),
    )


_STATUS = {None: ToolStatus.UNKNOWN, True: ToolStatus.ERROR, False: ToolStatus.OK}


def _sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None if there is none, or one is unknown: a part would look like the whole."""
    known = list(counts)
    return sum(count or 0 for count in known) if known and None not in known else None
