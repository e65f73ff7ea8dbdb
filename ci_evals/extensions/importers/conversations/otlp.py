"""Spans in files: OTLP as JSON, JSON Lines or protobuf, as conversations.

Collectors write a request, one a line, or protobuf messages, each after its length in four bytes. Phoenix's
API has lists of spans under `data`, with keys in snake case. What else Phoenix, Langfuse and LangSmith export
is read by `exported_spans`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.transcript import Turn
from ci_evals.extension_support.drafting.conversation import RecordedConversation, recorded_turn
from ci_evals.extension_support.span_reading import evidence, spans
from ci_evals.extension_support.span_reading.belonging import ancestors
from ci_evals.extension_support.span_reading.dialects import conversation_id
from ci_evals.extension_support.span_reading.kinds import AGENT, MODEL, TOOL, kinds_of
from ci_evals.extension_support.span_reading.spans import OtlpError, Span
from ci_evals.extensions.importers.conversations import exported_spans
from ci_evals.extensions.importers.conversations.recorded_file import LocatedValue, RecordedFile
from ci_evals.extensions.importers.conversations.span_messages import answer, users_messages
from ci_evals.extensions.importers.records import MOST_TESTS, Remarks

_MOST_SPANS = 500_000
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_LENGTH_BYTES = 4
_LONGEST_TURN = 86_400
"""Seconds."""
_MORE_IDS = (
    "langfuse.session.id",
    "langsmith.metadata.session_id",
    "langsmith.metadata.conversation_id",
    "langsmith.metadata.thread_id",
)
"""Attributes with the id of a conversation, besides those that agents under test are known by."""
_SNAKE = re.compile(r"_([a-z])")


def read(file: RecordedFile, remarks: Remarks) -> list[RecordedConversation]:
    """Read the conversations that spans show, by `gen_ai.conversation.id`, `session.id` or the like.

    Spans of a trace that names no conversation are one of their own. A turn is an agent's outermost span, or
    a model's that is in none.
    """
    found: list[Span] = []
    for batch in _batches(file):
        found += batch
        if len(found) > _MOST_SPANS:
            raise _fault(file, f"more than {_MOST_SPANS:,} spans. Split the file.")
    groups = _by_conversation(span for span in found if span.trace_id)
    if not groups:
        raise _fault(file, "the file holds no spans")
    conversations: list[RecordedConversation] = []
    for name, group in groups.items():
        turns = _turns(group)
        if turns:
            place = Problem(file.name, 1, 1, "", "")
            conversations.append(RecordedConversation(name=name, place=place, turns=turns))
        else:
            message = (
                f"{name}: its spans do not show what the user said. Switch the capture of content on "
                "where they are made"
            )
            remarks.leave_out(Problem(file.name, 1, 1, "", message))
    if len(conversations) > MOST_TESTS:
        raise _fault(file, f"more than {MOST_TESTS:,} conversations. Split the file.")
    return conversations


def _fault(file: RecordedFile, message: str) -> SuiteError:
    return SuiteError([Problem(file.name, 1, 1, "", message)])


def _batches(file: RecordedFile) -> Iterator[list[Span]]:
    if not file.data.strip():
        raise _fault(file, "the file is empty")
    for sign, name in _PACKED.items():
        if file.data.startswith(sign):
            raise UsageError(f"{file.name}: is packed by {name}. Unpack it first.")
    if file.begins_as_json:
        for value in file.values():
            exported = exported_spans.spans_in(value.value)
            if exported is not None:
                yield exported
            else:
                yield from map(_json_batch, _requests(value))
        return
    for message in _messages(file.data):
        try:
            yield spans.read(message, "application/x-protobuf", spans.MAX_TEXT)
        except OtlpError as error:
            raise _fault(file, f"neither JSON nor OTLP in protobuf: {error}") from error


def _json_batch(request: LocatedValue) -> list[Span]:
    body = json.dumps(_camel(request.value)).encode()
    try:
        return spans.read(body, "application/json", spans.MAX_TEXT)
    except OtlpError as error:
        raise request.fault(str(error)) from error


def _messages(data: bytes) -> list[bytes]:
    """Return the messages of a file, each after its length; if it has no such lengths, the file as one."""
    messages: list[bytes] = []
    start = 0
    while start + _LENGTH_BYTES <= len(data):
        length = int.from_bytes(data[start : start + _LENGTH_BYTES], "big")
        start += _LENGTH_BYTES
        messages.append(data[start : start + length])
        start += length
    return messages if start == len(data) and messages else [data]


def _requests(one: LocatedValue) -> Iterator[LocatedValue]:
    """Yield the requests in a value; lists of spans are made into one."""
    value = one.value
    if isinstance(value, list):
        if value and all(map(_is_span, value)):
            yield LocatedValue(_request(value), one.document, one.path)
        else:
            for item in one.items():
                yield from _requests(item)
    elif isinstance(value, dict) and ("resourceSpans" in value or "resource_spans" in value):
        yield one
    elif isinstance(value, dict) and _is_span(value):
        yield LocatedValue(_request([value]), one.document, one.path)
    elif isinstance(value, dict) and isinstance(value.get("data"), list):
        yield from _requests(one.at("data"))
    else:
        raise one.fault(
            "is neither an OTLP request, which has resourceSpans, nor an export of Phoenix, Langfuse or "
            "LangSmith"
        )


def _is_span(value: JsonValue) -> bool:
    return isinstance(value, dict) and ("spanId" in value or "span_id" in value)


def _request(listed: Sequence[JsonValue]) -> JsonValue:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [*listed]}]}]}


def _camel(value: JsonValue) -> JsonValue:
    """Return OTLP with the keys of OTLP/JSON: some write those of its definition."""
    if isinstance(value, dict):
        return {_SNAKE.sub(lambda sign: sign[1].upper(), key): _camel(item) for key, item in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value


def _by_conversation(found: Iterable[Span]) -> Mapping[str, Sequence[Span]]:
    """Return spans by the conversation that they, a span above them or their trace alone names."""
    traces: dict[str, list[Span]] = {}
    for span in found:
        traces.setdefault(span.trace_id, []).append(span)
    groups: dict[str, list[Span]] = {}
    for trace_id, members in traces.items():
        by_id = {span.span_id: span for span in members}
        named = {name for span in members if (name := _name(span))}
        alone = next(iter(named)) if len(named) == 1 else f"trace {trace_id}"
        for span in members:
            above = (_name(each) for each in ancestors(span, by_id))
            name = _name(span) or next(filter(None, above), None) or alone
            groups.setdefault(name, []).append(span)
    for group in groups.values():
        group.sort(key=lambda span: (span.start_ns, -span.end_ns))
    return dict(sorted(groups.items(), key=lambda item: item[1][0].start_ns))


def _name(span: Span) -> str | None:
    return conversation_id(span) or span.text(*_MORE_IDS)


@dataclass
class _Unit:
    """The spans of a turn: an agent's outermost span and all in it, or a model's."""

    top: Span
    spans: list[Span] = field(default_factory=list)

    def users(self) -> list[str]:
        """Return the user's messages that it was given."""
        models = [span for span in self.spans if kinds_of(span) & MODEL]
        for span in (self.top, *models):
            if said := users_messages(span):
                return said
        return []

    def answer(self) -> str:
        models = [span for span in reversed(self.spans) if kinds_of(span) & MODEL]
        return next((text for span in (self.top, *models) if (text := answer(span))), "")


@dataclass
class _OpenTurn:
    """The units of a turn: a model is asked once more after each tool, and agents pass a turn on."""

    said: list[str]
    units: list[_Unit]

    def turn(self, index: int) -> Turn:
        members = [span for unit in self.units for span in unit.spans]
        shown = evidence.read(members)
        answers = [text for unit in self.units if (text := unit.answer())]
        start = min(unit.top.start_ns for unit in self.units)
        end = max(unit.top.end_ns for unit in self.units)
        seconds = (end - start) / 1e9
        if not 0 <= seconds <= _LONGEST_TURN:  # a time is missing, or wrong
            seconds = 0.0
        return recorded_turn(
            index,
            self.said[-1],
            answers[-1] if answers else "",
            shown.calls,
            seconds,
            partial=bool(shown.missing or shown.unnamed),
        )


def _turns(group: Sequence[Span]) -> tuple[Turn, ...]:
    """Return the turns of a conversation; none if a user's message is unknown."""
    turns: list[_OpenTurn] = []
    for unit in _units(group):
        said = unit.users()
        if turns and _continues(unit, said, turns[-1]):
            turns[-1].units.append(unit)
        elif said:
            turns.append(_OpenTurn(said, [unit]))
        else:
            return ()
    return tuple(one.turn(index) for index, one in enumerate(turns, 1))


def _continues(unit: _Unit, said: Sequence[str], before: _OpenTurn) -> bool:
    """Return whether a unit is of the turn before it: it was given the same message of the user."""
    if unit.top.trace_id != before.units[-1].top.trace_id:
        # Each call of a model may be a trace of its own; an agent's run is a turn of its own.
        return not kinds_of(unit.top) & AGENT and said == before.said
    if not said:
        return True
    one_knows_no_more = min(len(said), len(before.said)) == 1
    return said[-1] == before.said[-1] and (len(said) == len(before.said) or one_knows_no_more)


def _units(group: Sequence[Span]) -> list[_Unit]:
    """Return the units of a conversation in their order; a tool's span in none is of the unit before it."""
    by_id = {span.span_id: span for span in group}
    units: dict[str, _Unit] = {}
    for span in group:
        line = [span, *ancestors(span, by_id)]
        top = next((each for each in reversed(line) if kinds_of(each) & AGENT), None)
        if top is None:
            top = next((each for each in reversed(line) if kinds_of(each) & MODEL), None)
        if top is not None:
            units.setdefault(top.span_id, _Unit(top)).spans.append(span)
        elif units and kinds_of(span) & TOOL:
            [*units.values()][-1].spans.append(span)
    return sorted(units.values(), key=lambda unit: unit.top.start_ns)
