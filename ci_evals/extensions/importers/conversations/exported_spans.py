"""Spans as Phoenix, Langfuse and LangSmith export them in forms of their own: rows with times in text. Pure.

- Phoenix: `{name, context: {trace_id, span_id}, parent_id, span_kind, start_time, attributes, …}`;
- Langfuse: observations `{id, traceId, parentObservationId, type, startTime, input, output, …}`, in exports
  to files with keys in snake case; the download of a trace holds them under `observations`;
- LangSmith: runs `{id, trace_id, parent_run_id, run_type, start_time, inputs, outputs, extra, …}`.

A row becomes a span of OTLP with the attributes that the same product gives such spans.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from ci_evals.extension_support.span_reading.spans import MAX_TEXT, TOO_LONG, Span
from ci_evals.support import payload

_TYPES = frozenset({
    "span", "generation", "event", "agent", "tool", "chain", "retriever", "evaluator", "embedding",
    "guardrail",
})  # fmt: skip
"""Types of Langfuse's observations."""
_LISTS = ("observations", "data", "spans", "runs")
_THREADS = ("thread_id", "session_id", "conversation_id")
_MILLISECONDS, _MICROSECONDS = 10**14, 10**17
"""The numbers of milliseconds and microseconds of our time are below these."""
_LATEST = 2**63
"""The last nanosecond that OTLP knows."""

Row = Mapping[str, JsonValue]


def spans_in(value: JsonValue) -> list[Span] | None:
    """Return the spans of an export, or of a line of one; None if the value is none."""
    if isinstance(value, list):
        return _spans(value, {})
    if not isinstance(value, dict):
        return None
    for key in _LISTS:
        if isinstance(listed := value.get(key), list) and (found := _spans(listed, value)) is not None:
            return found
    return _spans([value], {})


def _spans(rows: Sequence[JsonValue], about: Row) -> list[Span] | None:
    """Return the spans of rows; None if there are none, or one is no row. `about` is what holds them."""
    spans: list[Span] = []
    for row in rows:
        span = _span(row, about) if isinstance(row, dict) else None
        if span is None:
            return None
        spans.append(span)
    return spans or None


def _span(row: Row, about: Row) -> Span | None:
    if payload.name(payload.member(row.get("context"), "span_id")):
        return _of_phoenix(row)
    if payload.name(row.get("run_type")):
        return _of_langsmith(row)
    if str(row.get("type")).lower() in _TYPES and _first(row, "traceId", "trace_id"):
        return _of_langfuse(row, about)
    return None


def _of_phoenix(row: Row) -> Span:
    context = row.get("context")
    attributes = {key: _text(value) for key, value in (payload.filled(row.get("attributes")) or {}).items()}
    attributes.setdefault("openinference.span.kind", row.get("span_kind"))
    return Span(
        trace_id=_string(payload.member(context, "trace_id")),
        span_id=_string(payload.member(context, "span_id")),
        parent_id=_string(row.get("parent_id")),
        name=_string(row.get("name")),
        start_ns=_nanoseconds(row.get("start_time")),
        end_ns=_nanoseconds(row.get("end_time")),
        attributes=attributes,
        failed=row.get("status_code") == "ERROR",
    )


def _of_langfuse(row: Row, about: Row) -> Span:
    session = _first(row, "sessionId", "session_id") or _first(about, "sessionId", "session_id")
    attributes: dict[str, JsonValue] = {
        "langfuse.observation.type": str(row.get("type")).lower(),
        "langfuse.observation.input": _text(row.get("input")),
        "langfuse.observation.output": _text(row.get("output")),
        "langfuse.session.id": session,
    }
    return Span(
        trace_id=_string(_first(row, "traceId", "trace_id")),
        span_id=_string(row.get("id")),
        parent_id=_string(_first(row, "parentObservationId", "parent_observation_id")),
        name=_string(row.get("name")),
        start_ns=_nanoseconds(_first(row, "startTime", "start_time")),
        end_ns=_nanoseconds(_first(row, "endTime", "end_time")),
        attributes=_given(attributes),
        failed=row.get("level") == "ERROR",
    )


def _of_langsmith(row: Row) -> Span:
    metadata = payload.filled(payload.member(row.get("extra"), "metadata")) or {}
    attributes: dict[str, JsonValue] = {
        "langsmith.span.kind": row.get("run_type"),
        "langsmith.trace.name": row.get("name"),
        "gen_ai.prompt": _text(row.get("inputs")),
        "gen_ai.completion": _text(row.get("outputs")),
        "langsmith.metadata.thread_id": _first(metadata, *_THREADS) or row.get("thread_id"),
    }
    return Span(
        trace_id=_string(_first(row, "trace_id", "id")),
        span_id=_string(row.get("id")),
        parent_id=_string(row.get("parent_run_id")),
        name=_string(row.get("name")),
        start_ns=_nanoseconds(row.get("start_time")),
        end_ns=_nanoseconds(row.get("end_time")),
        attributes=_given(attributes),
        failed=bool(row.get("error")),
    )


def _given(attributes: Row) -> dict[str, JsonValue]:
    return {key: value for key, value in attributes.items() if value is not None}


def _first(row: Row, *keys: str) -> JsonValue:
    return next((row[key] for key in keys if row.get(key)), None)


def _string(value: JsonValue) -> str:
    return payload.name(value) or ""


def _text(value: JsonValue) -> JsonValue:
    """Return a value as attributes have it: objects and lists are JSON, and no text is too long."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
    return TOO_LONG if isinstance(text, str) and len(text) > MAX_TEXT else text


def _nanoseconds(value: JsonValue) -> int:
    """Return a time since 1970: text in ISO 8601 (UTC without a zone), or milliseconds and finer by size."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = max(0, int(value))
        if number < _MILLISECONDS:
            return number * 1_000_000
        return number * 1_000 if number < _MICROSECONDS else min(number, _LATEST)
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        time = None
    if time is None:
        return 0
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return max(0, int(since.total_seconds() * 1e9))
