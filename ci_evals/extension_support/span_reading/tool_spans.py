"""Spans of tools as calls, in every dialect. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from ci_evals.extension_support.span_reading.arguments import NO_OBJECT, REDACTED, bare, parsed, read
from ci_evals.extension_support.span_reading.spans import Attributes, Span
from ci_evals.support.json_text import canonical

_NAMES = (
    "gen_ai.tool.name",
    "ai.toolCall.name",
    "tool.name",
    "traceloop.entity.name",
    "langsmith.trace.name",
)
_NAME_PREFIXES = ("execute_tool ", "tools/call ")
"""Beginnings of a span's name before the tool's name, by the conventions for GenAI and MCP."""
_NAMED_LIKE_TOOLS = frozenset({
    "openinference.span.kind", "traceloop.span.kind", "langfuse.observation.type", "mlflow.spanType",
})  # fmt: skip
"""Attributes of instrumentations that usually give the span of a tool its name."""
_IDS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "ai.toolCall.args",
    "ai.toolCall.input",
    "traceloop.entity.input",
    "input.value",
    "langfuse.observation.input",
    "mlflow.spanInputs",
    "gen_ai.prompt",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "tool_response",
    "ai.toolCall.result",
    "ai.toolCall.output",
    "traceloop.entity.output",
    "output.value",
    "langfuse.observation.output",
    "mlflow.spanOutputs",
    "gen_ai.completion",
)


@dataclass
class Called:
    """A tool call, as a tool's span or a model's answer has it."""

    name: str
    """Empty if the span of a tool names none."""
    call_id: str | None = None
    arguments: dict[str, JsonValue] | None = None
    not_captured: str | None = None
    """Why there are no arguments."""
    bare: JsonValue = None
    """The value of the only argument, where its name is missing."""
    result: JsonValue = None
    failed: bool | None = None
    """None where it is not reported."""
    guessed: bool = False
    """True if the name is that of the span, which need not be the tool's."""

    @cached_property
    def canonical(self) -> str:
        """The same text for equal arguments."""
        return canonical(self.arguments)


def called_by(span: Span) -> Called:
    """Return the call that the span of a tool stands for."""
    attributes = span.attributes
    name, guessed = _name_of(span)
    given, result = _first(attributes, _ARGUMENTS), parsed(_first(attributes, _RESULTS))
    found = read(given, span, name)
    if found.not_captured == NO_OBJECT and "openinference.span.kind" in attributes:
        # LangChain's instrumentation leaves out the name of an only argument.
        found = bare(given, _only_property(attributes.get("tool.parameters")))
    message = _langchain_message(result)
    in_message = message.get("tool_call_id")
    return Called(
        name=name,
        call_id=span.text(*_IDS) or (in_message if isinstance(in_message, str) and in_message else None),
        arguments=found.values,
        not_captured=found.not_captured,
        bare=found.bare,
        result=None if result == REDACTED else result,
        # A graph catches what a tool raises, and goes on with a message of it.
        failed=span.failed or "error.type" in attributes or message.get("status") == "error",
        guessed=guessed,
    )


def _name_of(span: Span) -> tuple[str, bool]:
    """Return the name of the tool that a span is of, empty if it names none, and whether it is a guess."""
    if name := span.text(*_NAMES):
        return name, False
    for prefix in _NAME_PREFIXES:
        if span.name.startswith(prefix) and (name := span.name.removeprefix(prefix).strip()):
            return name, False
    if span.name.endswith(".tool") and "traceloop.span.kind" in span.attributes:
        return span.name.removesuffix(".tool"), False
    return ("", False) if _NAMED_LIKE_TOOLS.isdisjoint(span.attributes) else (span.name.strip(), True)


def _only_property(schema: JsonValue) -> str | None:
    """Return the name of the only argument that a tool's schema knows."""
    found = parsed(schema)
    properties = found.get("properties") if isinstance(found, dict) else None
    return next(iter(properties)) if isinstance(properties, dict) and len(properties) == 1 else None


def _langchain_message(result: JsonValue) -> Mapping[str, JsonValue]:
    """Return the message that LangChain makes of a tool's result; empty if it is none."""
    data = result.get("data", result) if isinstance(result, dict) else None
    return data if isinstance(data, dict) and "tool_call_id" in data else {}


def _first(attributes: Attributes, keys: tuple[str, ...]) -> JsonValue:
    for key in keys:
        if (value := attributes.get(key)) is not None:
            return value
    return None
