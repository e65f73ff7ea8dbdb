"""The words in spans of agents and models: what the user said last, and what was answered. Pure.

The dialects are those of `otlp/dialects`; LangSmith, Langfuse and MLflow keep messages as JSON in attributes
of their own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from ci_evals.extension_support.drafting.conversation import Kind, Part
from ci_evals.extension_support.span_reading.arguments import REDACTED, parsed
from ci_evals.extension_support.span_reading.spans import TOO_LONG, Span
from ci_evals.extensions.importers.conversations.messages import MessageError, is_message, parts_of
from ci_evals.support import payload

_INPUTS = (
    "gen_ai.input.messages",
    "pydantic_ai.all_messages",
    "all_messages_events",
    "events",
    "ai.prompt.messages",
    "ai.prompt",
    "langfuse.observation.input",
    "langfuse.trace.input",
    "input.value",
    "mlflow.spanInputs",
    "traceloop.entity.input",
    "gen_ai.prompt",
)
_OUTPUTS = (
    "gen_ai.output.messages",
    "ai.response.text",
    "langfuse.observation.output",
    "langfuse.trace.output",
    "output.value",
    "mlflow.spanOutputs",
    "traceloop.entity.output",
    "gen_ai.completion",
    "final_result",
)
_INPUT_LISTS = (
    re.compile(r"llm\.input_messages\.(\d{1,6})\.message\.(role|content|contents\..+\.text)"),
    re.compile(r"gen_ai\.prompt\.(\d{1,6})\.(role|content)"),
)
_OUTPUT_LISTS = (
    re.compile(r"llm\.output_messages\.(\d{1,6})\.message\.(role|content|contents\..+\.text)"),
    re.compile(r"gen_ai\.completion\.(\d{1,6})\.(role|content)"),
)
_HOLDERS = ("messages", "inputs", "input", "outputs", "output", "generations", "message", "kwargs", "prompt")
_INPUT_WORDS = ("question", "query", "user_input", "user_message", "prompt", "text", "content")
_OUTPUT_WORDS = ("answer", "response", "result", "text", "content", "return_value")
_EVENTS = {
    "gen_ai.user.message": "user",
    "gen_ai.system.message": "system",
    "gen_ai.assistant.message": "assistant",
}
_DEEPEST = 6


def users_messages(span: Span) -> list[str]:
    """Return the user's messages in what a span was given, the last one last."""
    for messages in _inputs(span):
        said = [part.text for part in _readable(messages) if part.kind is Kind.USER]
        if said:
            return said
    return [text for text in (_words(span, _INPUTS, _INPUT_WORDS),) if text]


def answer(span: Span) -> str:
    """Return the words that a span answered with; empty if it has none."""
    for messages in _outputs(span):
        said = [part.text for part in _readable(messages) if part.kind is Kind.AGENT]
        if said:
            return said[-1]
    return _words(span, _OUTPUTS, _OUTPUT_WORDS)


def _inputs(span: Span) -> Iterator[Sequence[JsonValue]]:
    for key in _INPUTS:
        yield _messages_in(parsed(span.attributes.get(key)))
    yield from (_listed(span, pattern, "user") for pattern in _INPUT_LISTS)
    yield [
        {"role": _EVENTS[event.name], "content": parsed(event.attributes.get("content"))}
        for event in span.events
        if event.name in _EVENTS
    ]


def _outputs(span: Span) -> Iterator[Sequence[JsonValue]]:
    for key in (*_OUTPUTS, "pydantic_ai.all_messages", "all_messages_events", "events"):
        yield _messages_in(parsed(span.attributes.get(key)))
    yield from (_listed(span, pattern, "assistant") for pattern in _OUTPUT_LISTS)
    choices = (event.attributes for event in span.events if event.name == "gen_ai.choice")
    messages = (parsed(choice.get("message")) for choice in choices)
    yield [{"role": "assistant", **message} for message in messages if isinstance(message, dict)]


def _readable(messages: Iterable[JsonValue]) -> Iterator[Part]:
    """Yield the parts of those messages that can be read: others may stand beside them in a prompt."""
    for message in messages:
        try:
            yield from [*parts_of([message])]
        except MessageError:
            continue


def _messages_in(value: JsonValue, depth: int = 0) -> Sequence[JsonValue]:
    """Return the messages that a value holds, however they are wrapped; none if it holds none."""
    if depth > _DEEPEST:
        return ()
    if isinstance(value, list):
        if any(map(is_message, value)):
            return value
        return next((found for item in value if (found := _messages_in(item, depth + 1))), ())
    if isinstance(value, dict):
        if is_message(value) and ("content" in value or "parts" in value):
            return [value]
        inner = (value.get(key) for key in _HOLDERS)
        return next((found for item in inner if (found := _messages_in(item, depth + 1))), ())
    return ()


def _listed(span: Span, pattern: re.Pattern[str], role: str) -> list[JsonValue]:
    """Return messages whose fields are attributes of their own, in the order of their numbers."""
    messages: dict[int, dict[str, JsonValue]] = {}
    for key, value in span.attributes.items():
        if match := pattern.fullmatch(key):
            message = messages.setdefault(int(match[1]), {"role": role})
            if match[2] == "role":
                message["role"] = value
            elif _is_there(value):
                before = message.get("content")
                message["content"] = f"{before}\n{value}" if before else value
    return [messages[number] for number in sorted(messages)]


def _words(span: Span, keys: Iterable[str], inner: Iterable[str]) -> str:
    """Return the plain text of an attribute, or that of an object in it."""
    words = [*inner]
    for key in keys:
        value = span.attributes.get(key)
        if not _is_there(value):
            continue
        found = parsed(value)
        for _ in range(_DEEPEST):
            if not isinstance(found, dict):
                break
            found = next((found[name] for name in (*words, *_HOLDERS) if found.get(name)), None)
        if isinstance(found, list):
            found = payload.joined(found, *words)
        if isinstance(found, str) and found.strip():
            return found.strip()
    return ""


def _is_there(value: JsonValue) -> bool:
    return isinstance(value, str) and value.strip() != "" and value not in (REDACTED, TOO_LONG)
