"""Spans of many instrumentations as tool calls, model calls and agents. Pure.

The dialects, each with the page or version that it was read from:

- GenAI: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai (gen-ai-spans.md,
  gen-ai-agent-spans.md, mcp.md), and the names of semantic-conventions 1.36 before it;
- OpenInference: github.com/Arize-ai/openinference, spec/semantic_conventions.md;
- Traceloop: opentelemetry-semantic-conventions-ai (`traceloop.*`, `gen_ai.completion.*`);
- the Vercel AI SDK: ai-sdk.dev, "Telemetry" (`ai.*`);
- pydantic-ai and logfire, before they used the names of GenAI (`tool_arguments`, `events`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import methodcaller
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.otlp.spans import MAX_TEXT, TOO_LONG, Attributes, Span
from ci_evals.adapters.transport import payload
from ci_evals.support.json_text import canonical

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
_NO_OBJECT = "the span's arguments are no JSON object"
REDACTED = "__REDACTED__"
"""The text that OpenInference puts where it hides something."""


@dataclass
class Called:
    """A tool call, as a tool's span or a model's answer has it."""

    name: str
    call_id: str | None = None
    arguments: dict[str, JsonValue] | None = None
    not_captured: str | None = None
    """Why there are no arguments."""
    bare: JsonValue = None
    """The value of the only argument, where its name is missing."""
    result: JsonValue = None
    failed: bool | None = None
    """None where it is not reported."""

    @cached_property
    def canonical(self) -> str:
        """The same text for equal arguments."""
        return canonical(self.arguments)


def tool_call(span: Span) -> Called | None:
    """Return the call that a span of a tool stands for; None for any other span."""
    attributes = span.attributes
    if attributes.get("ai.operationId") == "ai.toolCall" or "ai.toolCall.name" in attributes:
        name, call_id = span.text("ai.toolCall.name"), span.text("ai.toolCall.id")
        arguments = _first(attributes, "ai.toolCall.args", "ai.toolCall.input")
        result = _first(attributes, "ai.toolCall.result", "ai.toolCall.output")
    elif attributes.get("openinference.span.kind") == "TOOL":
        return _openinference(span)
    elif attributes.get("traceloop.span.kind") == "tool" and "gen_ai.tool.name" not in attributes:
        return _traceloop(span)
    elif _is_genai_tool(attributes):
        name, call_id = span.text("gen_ai.tool.name"), span.text("gen_ai.tool.call.id")
        arguments = _first(attributes, "gen_ai.tool.call.arguments", "tool_arguments")
        result = _first(attributes, "gen_ai.tool.call.result", "tool_response")
    else:
        return None
    if not name:
        return None
    return _called(span, name, call_id, arguments, result)


def _is_genai_tool(attributes: Attributes) -> bool:
    operation = attributes.get("gen_ai.operation.name")
    if operation is None:
        return "gen_ai.tool.name" in attributes
    return operation == "execute_tool" or attributes.get("mcp.method.name") == "tools/call"


def _called(span: Span, name: str, call_id: str | None, arguments: JsonValue, result: JsonValue) -> Called:
    read, reason = _arguments(arguments, span)
    failed = span.failed or "error.type" in span.attributes
    return Called(name, call_id, read, reason, result=_parsed(result), failed=failed)


def _arguments(value: JsonValue, span: Span) -> tuple[dict[str, JsonValue] | None, str | None]:
    """Return arguments, or why there are none."""
    if value is None:
        return None, _not_captured(span)
    if value == REDACTED:
        return None, _HIDDEN
    if value == TOO_LONG:
        return None, _LONG
    if isinstance(value, str) and not value.strip():
        return {}, None
    parsed = _parsed(value)
    return (parsed, None) if isinstance(parsed, dict) else (None, _NO_OBJECT)


def _not_captured(span: Span) -> str:
    return f"the spans hold no arguments; switch the capture of content on: {content_switch(span)}"


def _openinference(span: Span) -> Called | None:
    name = span.text("tool.name") or span.name
    given, result = span.attributes.get("input.value"), _parsed(span.attributes.get("output.value"))
    message = _langchain_message(result)
    in_message = message.get("tool_call_id")
    call_id = in_message if isinstance(in_message, str) and in_message else None
    called = _called(span, name, span.text("tool_call.id", "tool.id") or call_id, given, None)
    # A graph catches what a tool raises, and goes on with a message of it.
    failed = called.failed or message.get("status") == "error"
    called = replace(called, result=None if result == REDACTED else result, failed=failed)
    if called.not_captured != _NO_OBJECT:
        return called
    bare = _parsed(given)
    if key := _only_property(span.attributes.get("tool.parameters")):
        return replace(called, arguments={key: bare}, not_captured=None)
    return replace(called, bare=bare, not_captured=_NAMELESS)


def _langchain_message(result: JsonValue) -> dict[str, JsonValue]:
    """Return the message that LangChain makes of a tool's result; empty if it is none."""
    data = result.get("data", result) if isinstance(result, dict) else None
    return data if isinstance(data, dict) and "tool_call_id" in data else {}


def _only_property(schema: JsonValue) -> str | None:
    """Return the name of the only argument that a tool's schema knows."""
    parsed = _parsed(schema)
    properties = parsed.get("properties") if isinstance(parsed, dict) else None
    return next(iter(properties)) if isinstance(properties, dict) and len(properties) == 1 else None


def _traceloop(span: Span) -> Called | None:
    name = span.text("traceloop.entity.name") or span.name.removesuffix(".tool")
    given = _parsed(span.attributes.get("traceloop.entity.input"))
    if isinstance(given, dict):
        # A decorated function has {"args": [...], "kwargs": {...}}, LangChain's callbacks {"inputs": {...}}.
        inner = given.get("kwargs", given.get("inputs", given.get("input_str", given)))
        if given.get("args"):
            return Called(name, None, None, _NAMELESS, failed=span.failed)
        given = _parsed(inner)
    result = _parsed(span.attributes.get("traceloop.entity.output"))
    return _called(span, name, span.text("gen_ai.tool.call.id"), given, result)


_MODEL_OPERATIONS = ("chat", "text_completion", "generate_content")


def is_model_call(span: Span) -> bool:
    """Return whether a span is one call of a model."""
    attributes = span.attributes
    return (
        attributes.get("gen_ai.operation.name") in _MODEL_OPERATIONS
        or attributes.get("openinference.span.kind") == "LLM"
        or str(attributes.get("ai.operationId", "")).endswith((".doGenerate", ".doStream"))
        or "llm.request.type" in attributes
    )


def tokens(span: Span) -> tuple[int | None, int | None]:
    """Return the tokens that a model read and wrote."""
    if _TOKENS.isdisjoint(span.attributes):
        return None, None
    return _count(span.attributes, _TOKENS_READ), _count(span.attributes, _TOKENS_WRITTEN)


_TOKENS_READ = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
)
_TOKENS_WRITTEN = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
)
_TOKENS = frozenset(_TOKENS_READ + _TOKENS_WRITTEN)


def requested_calls(span: Span) -> tuple[Called, ...]:
    """Return the tool calls in a model's answer, in its order."""
    if not span.events and not any(map(_is_of_answers, span.attributes)):
        return ()
    for read in (_genai_messages, _vercel_calls, _openinference_calls, _traceloop_calls, _genai_events):
        if calls := tuple(read(span)):
            return calls
    return ()


_is_of_answers = methodcaller(
    "startswith",
    ("gen_ai.output.", "gen_ai.completion.", "ai.response.", "llm.output_messages.", "events"),
)


def hides_calls(span: Span) -> bool:
    """Return whether a model's answer was too long to be kept, with all calls in it."""
    answers = ("gen_ai.output.messages", "ai.response.toolCalls", "events")
    values = span.attributes.values()
    return TOO_LONG in values and any(span.attributes.get(key) == TOO_LONG for key in answers)


def shows_answer(span: Span) -> bool:
    """Return whether a model's span has its answer, in which calls would be seen, or failed without one."""
    if span.failed or any(event.name == "gen_ai.choice" for event in span.events):
        return True
    nothing: tuple[JsonValue, ...] = (None, "", "[]", [], REDACTED)
    return any(_ANSWER.fullmatch(key) and value not in nothing for key, value in span.attributes.items())


_ANSWER = re.compile(
    r"gen_ai\.output\.messages|events|ai\.response\.(text|object|toolCalls)|llm\.output_messages\..+"
    r"|gen_ai\.completion\.\d{1,9}\.(?!finish_reason$).+"
)


def is_of_agents(span: Span) -> bool:
    """Return whether a span was made by something that knows of tools, models and agents."""
    return any(map(_is_of_agents, span.attributes))


_is_of_agents = methodcaller("startswith", ("gen_ai.", "openinference.", "traceloop.", "ai.", "llm.", "mcp."))


def content_switch(span: Span) -> str:
    """Return what switches the capture of content on for the instrumentation of a span."""
    traceloop = any(key.startswith("traceloop.") for key in span.attributes)
    maker = "traceloop" if traceloop else span.scope.partition(".")[0]
    return _SWITCHES.get(span.scope) or _SWITCHES.get(maker, _SWITCH)


def agent_name(span: Span) -> str | None:
    """Return the name of the agent that a span is, or belongs to."""
    if _OF_AN_AGENT.isdisjoint(span.attributes):
        return None
    if named := span.text("gen_ai.agent.name", "agent.name"):
        return named
    if span.attributes.get("openinference.span.kind") == "AGENT":
        return span.text("graph.node.id") or span.name
    if span.attributes.get("traceloop.span.kind") == "agent":
        return span.text("traceloop.entity.name") or span.name.removesuffix(".agent")
    return None


_OF_AN_AGENT = frozenset(
    {"gen_ai.agent.name", "agent.name", "openinference.span.kind", "traceloop.span.kind"}
)


def conversation_id(span: Span) -> str | None:
    """Return the id of the conversation that a span names."""
    return span.text(*_CONVERSATION_IDS)


_CONVERSATION_IDS = (
    "gen_ai.conversation.id",
    "session.id",
    "thread_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.sessionId",
)


def _genai_messages(span: Span) -> Iterator[Called]:
    messages = _parsed(span.attributes.get("gen_ai.output.messages"))
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call":
                yield from _requested(span, part.get("name"), part.get("id"), part.get("arguments"))


def _genai_events(span: Span) -> Iterator[Called]:
    """Yield the calls in events of the old names, and in pydantic-ai's list of them."""
    listed = _parsed(span.attributes.get("events"))
    bodies: list[Any] = [*listed] if isinstance(listed, list) else []
    bodies += [event.attributes for event in span.events if event.name == "gen_ai.choice"]
    for body in bodies:
        message = _parsed(body.get("message")) if isinstance(body, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        yield from _openai_calls(span, calls)


def _vercel_calls(span: Span) -> Iterator[Called]:
    calls = _parsed(span.attributes.get("ai.response.toolCalls"))
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            arguments = call.get("input", call.get("args"))
            yield from _requested(span, call.get("toolName"), call.get("toolCallId"), arguments)


def _openai_calls(span: Span, calls: JsonValue) -> Iterator[Called]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            yield from _requested(span, function.get("name"), call.get("id"), function.get("arguments"))


_OPENINFERENCE_CALL = re.compile(
    r"llm\.output_messages\.(\d{1,9})\.message\.tool_calls\.(\d{1,9})\.tool_call\.(.+)"
)
_TRACELOOP_CALL = re.compile(r"gen_ai\.completion\.(\d{1,9})\.tool_calls\.(\d{1,9})\.(.+)")


def _openinference_calls(span: Span) -> Iterator[Called]:
    for call in _flattened(span.attributes, _OPENINFERENCE_CALL):
        yield from _requested(span, call.get("function.name"), call.get("id"), call.get("function.arguments"))


def _traceloop_calls(span: Span) -> Iterator[Called]:
    for call in _flattened(span.attributes, _TRACELOOP_CALL):
        yield from _requested(span, call.get("name"), call.get("id"), call.get("arguments"))


def _flattened(attributes: Attributes, pattern: re.Pattern[str]) -> Iterator[dict[str, JsonValue]]:
    """Yield the calls whose fields are attributes of their own, in the order of their numbers."""
    calls: dict[tuple[int, int], dict[str, JsonValue]] = {}
    for key, value in attributes.items():
        if match := pattern.fullmatch(key):
            calls.setdefault((int(match[1]), int(match[2])), {})[match[3]] = value
    yield from (calls[place] for place in sorted(calls))


def _requested(span: Span, name: JsonValue, call_id: JsonValue, arguments: JsonValue) -> Iterator[Called]:
    if isinstance(name, str) and name:
        read, reason = _arguments(arguments, span)
        yield Called(name, call_id if isinstance(call_id, str) and call_id else None, read, reason)


def _first(attributes: Attributes, *keys: str) -> JsonValue:
    for key in keys:
        if (value := attributes.get(key)) is not None:
            return value
    return None


def _count(attributes: Attributes, keys: tuple[str, ...]) -> int | None:
    value = _first(attributes, *keys)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
        return None
    return int(value)


def _parsed(value: JsonValue) -> JsonValue:
    """Return what a JSON text holds; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return payload.parse(value.encode())
    except ValueError:
        return value
