"""The arguments of a tool call, as instrumentations write them. Pure.

OpenLLMetry writes what a callback of LangChain got, `{input_str, tags, metadata, inputs, kwargs}`, and the
parameters of a decorated function, `{args, kwargs}`: the arguments are inside. LangChain's `input_str` is
JSON, or the text that Python has for a dict.
"""

import ast
import json
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.extension_support.span_reading.spans import MAX_TEXT, TOO_LONG, Span
from ci_evals.support import payload

_SWITCHES = {
    "pydantic-ai": "InstrumentationSettings(include_content=True)",
    "logfire": "instrument_pydantic_ai(include_content=True)",
    "gcp.vertex.agent": "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true",
    "ai": "experimental_telemetry: { recordInputs: true }",
    "openinference": "OPENINFERENCE_HIDE_INPUTS=false",
    "traceloop": "TRACELOOP_TRACE_CONTENT=true",
}
"""What switches the capture of content on, by the beginning of an instrumentation's name."""
_SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
_HIDDEN = "the instrumentation hides inputs; switch its hide_inputs off (OPENINFERENCE_HIDE_INPUTS=false)"
_LONG = f"the arguments have more than {MAX_TEXT:,} characters"
_NAMELESS = "the span holds the value of one argument without its name"
NO_OBJECT = "the span's arguments are no JSON object"
REDACTED = "__REDACTED__"
"""The text that OpenInference puts where it hides something."""
_MAX_LITERAL = 100_000
"""Characters of a Python literal that are read."""
_CALLBACK = frozenset({"input_str", "tags", "metadata", "inputs", "kwargs"})
_DECORATED = frozenset({"args", "kwargs"})
_TOOL = ("name", "tool_name", "toolName", "tool")
_HELD = ("arguments", "args", "input", "parameters")
_REQUEST = frozenset({*_TOOL, *_HELD, "id", "type"})


class Arguments(NamedTuple):
    """The arguments of a call by name, or why they are unknown."""

    values: dict[str, JsonValue] | None
    not_captured: str | None = None
    bare: JsonValue = None
    """The value of the only argument, if its name is missing."""


def read(value: JsonValue, span: Span, tool: str) -> Arguments:
    """Return the arguments of a call of `tool` that an attribute of its span holds."""
    if value is None:
        reason = f"the spans hold no arguments; switch the capture of content on: {content_switch(span)}"
        return Arguments(None, reason)
    if value == REDACTED:
        return Arguments(None, _HIDDEN)
    if value == TOO_LONG:
        return Arguments(None, _LONG)
    if isinstance(value, str) and not value.strip():
        return Arguments({})
    found = object_in(value)
    if isinstance(found, dict):
        return _unwrapped(found, tool, by_traceloop=_is_of_traceloop(span))
    return Arguments(None, NO_OBJECT)


def bare(value: JsonValue, key: str | None) -> Arguments:
    """Return the argument that a span holds without its name, which is `key` if the tool has no other."""
    found = parsed(value)
    if isinstance(found, str) and found.lstrip().startswith("{"):
        return Arguments(None, NO_OBJECT)  # an object that cannot be read, not the value of an argument
    return Arguments({key: found}) if key else Arguments(None, _NAMELESS, found)


def _unwrapped(given: dict[str, JsonValue], tool: str, *, by_traceloop: bool) -> Arguments:
    """Return the arguments without what an instrumentation wraps around them."""
    keys = given.keys()
    if {"input_str", "inputs"} <= keys or (
        keys <= _CALLBACK and ("input_str" in keys or "inputs" in keys) and (by_traceloop or len(keys) > 1)
    ):
        return _of_callback(given)
    if by_traceloop and given and keys <= _DECORATED:
        inner = object_in(given.get("kwargs"))
        return Arguments(None, _NAMELESS) if given.get("args") else _checked(inner or {})
    named = any(given.get(key) == tool for key in _TOOL)
    held = [object_in(given[key]) for key in _HELD if key in given]
    if named and keys <= _REQUEST and len(held) == 1 and isinstance(held[0], dict):
        return Arguments(held[0])
    return Arguments(given)


def _of_callback(given: dict[str, JsonValue]) -> Arguments:
    inputs, text = object_in(given.get("inputs")), given.get("input_str")
    if isinstance(inputs, dict) and (inputs or not text):
        return Arguments(inputs)
    found = object_in(text)
    return Arguments(found) if isinstance(found, dict) else bare(text, None)


def _checked(value: JsonValue) -> Arguments:
    return Arguments(value) if isinstance(value, dict) else Arguments(None, NO_OBJECT)


def object_in(value: JsonValue) -> JsonValue:
    """Return the object that a text holds, as JSON or as Python writes it; any other value as it is."""
    found = parsed(value)
    if isinstance(found, str):
        if found is not value:
            found = parsed(found)  # JSON within JSON
        if isinstance(found, str) and found.lstrip().startswith("{"):
            return _literal(found)
    return found


def _literal(text: str) -> JsonValue:
    """Return the dict that Python writes so, if JSON can hold it."""
    if len(text) > _MAX_LITERAL:
        return text
    try:
        found = payload.parse(json.dumps(ast.literal_eval(text), allow_nan=False).encode())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def parsed(value: JsonValue) -> JsonValue:
    """Return what a JSON text holds; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return payload.parse(value.encode())
    except ValueError:
        return value


def content_switch(span: Span) -> str:
    """Return what switches the capture of content on for the instrumentation of a span."""
    maker = "traceloop" if _is_of_traceloop(span) else span.scope.partition(".")[0]
    return _SWITCHES.get(span.scope) or _SWITCHES.get(maker, _SWITCH)


def _is_of_traceloop(span: Span) -> bool:
    return any(key.startswith("traceloop.") for key in span.attributes)
