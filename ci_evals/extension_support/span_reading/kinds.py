"""The kinds of spans: of tools, models, agents, and of what surrounds them. Pure.

The kinds of a span are a sum, since several instrumentations may mark one span.
"""

from ci_evals.extension_support.span_reading.dialects import hides_calls, requested_calls, shows_answer
from ci_evals.extension_support.span_reading.spans import Span

TOOL = 1
"""The run of a tool."""
MODEL = 2
"""A call of a model that may ask for tools."""
AGENT = 4
"""The run of an agent, a chain or a workflow."""
SIDE = 8
"""Embeddings, retrieval, guardrails, evaluators, prompts: no evidence of what the agent called."""

_SIDES = "embedding retriever reranker guardrail evaluator prompt parser"
_VERCEL = ("ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject")
_DIALECTS = {
    "gen_ai.operation.name": {
        TOOL: "execute_tool",
        MODEL: "chat text_completion generate_content",
        AGENT: "invoke_agent invoke_workflow",
        SIDE: "embeddings retrieval create_agent",
    },
    "mcp.method.name": {TOOL: "tools/call"},
    "openinference.span.kind": {TOOL: "tool", MODEL: "llm", AGENT: "agent chain", SIDE: _SIDES},
    "traceloop.span.kind": {TOOL: "tool", AGENT: "agent workflow"},
    "llm.request.type": {MODEL: "chat completion unknown", SIDE: "embedding rerank"},
    "ai.operationId": {
        TOOL: "ai.toolcall",
        MODEL: " ".join(f"{name}.{how}" for name in _VERCEL for how in ("dogenerate", "dostream")),
        AGENT: " ".join(_VERCEL),
    },
    "langsmith.span.kind": {TOOL: "tool", MODEL: "llm", AGENT: "agent chain", SIDE: _SIDES},
    "langfuse.observation.type": {TOOL: "tool", MODEL: "generation", AGENT: "agent chain", SIDE: _SIDES},
    "mlflow.spanType": {TOOL: "tool", MODEL: "llm chat_model", AGENT: "agent chain", SIDE: _SIDES},
}
"""The attributes that name a span's kind, and the values of each kind, in lower case."""
_KINDS = {
    (key, value): kind
    for key, values in _DIALECTS.items()
    for kind, listed in values.items()
    for value in listed.split()
}
_KEYS = _DIALECTS.keys()
_TOOL_NAMES = frozenset({"gen_ai.tool.name", "ai.toolCall.name"})
"""Attributes of a tool's span that mark it, unless it says that it is something else."""


def kinds_of(span: Span) -> int:
    """Return the kinds of a span; 0 if it has none that is known here."""
    attributes, kinds = span.attributes, 0
    for key in _KEYS & attributes.keys():
        # MLflow writes its texts as JSON.
        kinds |= _KINDS.get((key, str(attributes[key]).strip(' "').lower()), 0)
    if not kinds & (TOOL | MODEL | AGENT) and not _TOOL_NAMES.isdisjoint(attributes):
        kinds |= 0 if "mcp.method.name" in attributes else TOOL
    return kinds


def shows_calls(span: Span) -> bool:
    """Return whether a span is of a tool or a model, and so evidence of calls."""
    return bool(kinds_of(span) & (TOOL | MODEL))


def may_hold_calls(span: Span) -> bool:
    """Return whether a span is of a tool, or of a model whose answer may ask for tools."""
    kinds = kinds_of(span)
    if kinds & TOOL:
        return True
    return bool(kinds & MODEL) and (
        hides_calls(span) or not shows_answer(span) or bool(requested_calls(span))
    )
