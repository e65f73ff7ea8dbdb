"""Spans of many instrumentations as answers of models, agents and conversations. Pure.

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
from operator import methodcaller
from typing import Any

from pydantic import JsonValue

from ci_evals.extension_support.span_reading.arguments import REDACTED, parsed, read
from ci_evals.extension_support.span_reading.spans import Attributes, Span
from ci_evals.extension_support.span_reading.tool_spans import Called


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


_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "ai.response.model",
    "ai.model.id",
)


def model_of(span: Span) -> str | None:
    """Return the model that answered, or else the one that was asked."""
    return span.text(*_MODELS)


def requested_calls(span: Span) -> tuple[Called, ...]:
    """Return the tool calls in a model's answer, in its order."""
    if not span.events and not any(map(_is_of_answers, span.attributes)):
        return ()
    for find in (_genai_messages, _vercel_calls, _openinference_calls, _traceloop_calls, _genai_events):
        if calls := tuple(find(span)):
            return calls
    return ()


_is_of_answers = methodcaller(
    "startswith",
    ("gen_ai.output.", "gen_ai.completion.", "ai.response.", "llm.output_messages.", "events"),
)


def hides_calls(span: Span) -> bool:
    """Return whether a model's answer was too long to be kept, or cut off, with all calls in it."""
    held = [span.attributes, *(event.attributes for event in span.events)]
    answers = [attributes[key] for attributes in held for key in _ANSWERS & attributes.keys()]
    return any(isinstance(answer, str) and _is_cut(answer) for answer in answers)


def _is_cut(answer: str) -> bool:
    """Return whether a text holds only a part of an answer, or nobody knows how much."""
    return answer != REDACTED and bool(answer.strip()) and not isinstance(parsed(answer), list | dict)


_ANSWERS = frozenset({"gen_ai.output.messages", "ai.response.toolCalls", "events", "message"})
"""Attributes that hold all calls of an answer, as JSON."""


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
    messages = parsed(span.attributes.get("gen_ai.output.messages"))
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call":
                yield from _requested(span, part.get("name"), part.get("id"), part.get("arguments"))


def _genai_events(span: Span) -> Iterator[Called]:
    """Yield the calls in events of the old names, and in pydantic-ai's list of them."""
    listed = parsed(span.attributes.get("events"))
    bodies: list[Any] = [*listed] if isinstance(listed, list) else []
    bodies += [event.attributes for event in span.events if event.name == "gen_ai.choice"]
    for body in bodies:
        message = parsed(body.get("message")) if isinstance(body, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        yield from _openai_calls(span, calls)


def _vercel_calls(span: Span) -> Iterator[Called]:
    calls = parsed(span.attributes.get("ai.response.toolCalls"))
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
        found = read(arguments, span, name)
        by_id = call_id if isinstance(call_id, str) and call_id else None
        yield Called(name, by_id, found.values, found.not_captured)


def _count(attributes: Attributes, keys: tuple[str, ...]) -> int | None:
    value = next((value for key in keys if (value := attributes.get(key)) is not None), None)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
        return None
    return int(value)
