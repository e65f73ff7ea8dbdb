"""Spans of each dialect as evidence: every call once, in order, with its arguments.

`recorded/` has spans that real instrumentations sent, recorded by `make frameworks`.
"""

import json
from pathlib import Path

from each_row import each_row

from ci_evals.domain.transcript import Integration, Reply, ToolCall
from ci_evals.extension_support.span_reading import evidence, spans
from ci_evals.extension_support.span_reading.belonging import TurnSpan, by_turn
from ci_evals.extension_support.span_reading.evidence import Progress
from ci_evals.extension_support.span_reading.for_people import AS_BEFORE
from ci_evals.extension_support.span_reading.spans import TOO_LONG, Event, Span
from ci_evals.extensions.spans.contradiction import contradiction
from ci_evals.extensions.spans.gaps import Gaps

TURN = "f" * 16
ARGUMENTS = {"order": "A-1", "amount": 42}
_count = iter(range(1, 10**6))


def span(name: str, parent: str = TURN, at: int = 0, took: int = 10, **fields) -> Span:
    """A span of one trace; times are milliseconds."""
    fields = {"attributes": {}, "span_id": f"{next(_count):016x}", "parent_id": parent, "name": name} | fields
    return Span(trace_id="a" * 32, start_ns=at * 10**6, end_ns=(at + took) * 10**6, **fields)


def root(**fields) -> Span:
    return span("POST /chat", took=1000, span_id="1" * 16, **fields)


def read(*spans: Span):
    return evidence.read([root(), *spans])


def child(name: str, attributes: dict, **fields) -> Span:
    return span(name, parent=fields.pop("parent", "1" * 16), attributes=attributes, **fields)


TEXT, RESULT = json.dumps(ARGUMENTS), '{"ok": true}'
CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c1"}
GENAI = {"gen_ai.operation.name": "execute_tool", **TOOL}
OPENINFERENCE = {"openinference.span.kind": "TOOL", "tool.name": "refund"}
TRACELOOP = {"traceloop.span.kind": "tool", "traceloop.entity.name": "refund"}
CAPTURED = GENAI | {"gen_ai.tool.call.arguments": TEXT, "gen_ai.tool.call.result": RESULT}
DIALECTS = {
    "genai": CAPTURED,
    "genai structured": CAPTURED | {"gen_ai.tool.call.arguments": ARGUMENTS},
    "pydantic-ai, older": TOOL | {"tool_arguments": TEXT, "tool_response": RESULT},
    "mcp": CAPTURED | {"mcp.method.name": "tools/call"},
    "openinference": OPENINFERENCE
    | {"tool.id": "c1", "input.value": TEXT, "input.mime_type": "application/json", "output.value": RESULT},
    "vercel": {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "refund", "ai.toolCall.id": "c1"}
    | {"ai.toolCall.args": TEXT, "ai.toolCall.result": RESULT},
    "traceloop": TRACELOOP
    | {"gen_ai.tool.call.id": "c1", "traceloop.entity.output": RESULT}
    | {"traceloop.entity.input": json.dumps({"args": [], "kwargs": ARGUMENTS})},
    "traceloop with genai": CAPTURED | {"traceloop.span.kind": "tool"},
}
WITHOUT_ID = {key: value for key, value in CAPTURED.items() if not key.endswith("id")}


@each_row("dialect", DIALECTS)
def test_tool_span_of_every_instrumentation_is_read_as_call(dialect):
    result = read(child("tool", DIALECTS[dialect], at=5, took=20))
    (call,) = result.calls
    expected = {"id": "c1", "name": "refund", "arguments": ARGUMENTS, "result": {"ok": True}, "status": "ok"}
    expected |= {"duration_ms": 20.0, "agent": None, "not_captured": None}
    assert (call.model_dump(exclude={"started_at"}), result.missing) == (expected, None)


def answers_with_call(name="refund", call_id="c1", arguments=TEXT) -> dict[str, dict]:
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": json.loads(arguments)}
    oi = "llm.output_messages.0.message.tool_calls.0.tool_call."
    traceloop = "gen_ai.completion.0.tool_calls.0."
    vercel = [{"toolCallId": call_id, "toolName": name, "input": json.loads(arguments)}]
    openai = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]
    events = [{"event.name": "gen_ai.choice", "message": {"tool_calls": openai}}]
    return {
        "genai": CHAT | {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}])},
        "openinference": {"openinference.span.kind": "LLM", oi + "function.name": name}
        | {oi + "id": call_id, oi + "function.arguments": arguments},
        "vercel": {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.response.toolCalls": json.dumps(vercel),
        },
        "traceloop": {"llm.request.type": "chat", traceloop + "id": call_id}
        | {traceloop + "name": name, traceloop + "arguments": arguments},
        "pydantic-ai, older": CHAT | {"events": json.dumps(events)},
    }


@each_row("dialect", answers_with_call())
def test_call_in_model_answer_and_its_tool_span_are_one_call(dialect):
    model = child("chat", answers_with_call()[dialect], at=1)
    for attributes in (CAPTURED, WITHOUT_ID):
        (call,) = read(model, child("tool", attributes, at=20)).calls
        assert (call.id, call.arguments, str(call.status)) == ("c1", ARGUMENTS, "ok")
    bare = {k: v for k, v in DIALECTS["genai"].items() if "arguments" not in k}
    (call,) = read(model, child("tool", bare, at=20)).calls
    assert (call.arguments, call.not_captured) == (ARGUMENTS, None)
    (alone,) = read(model).calls
    assert (alone.arguments, str(alone.status), alone.duration_ms) == (ARGUMENTS, "unknown", None)


def test_model_answers_and_choice_events_name_calls():
    calls = [{"id": "c1", "function": {"name": "refund", "arguments": TEXT}}]
    events = (Event("gen_ai.choice", {"message": {"tool_calls": calls}}),)
    (call,) = read(child("chat", CHAT, events=events)).calls
    assert call.arguments == ARGUMENTS
    model = child("chat", answers_with_call()["genai"])
    result = read(model, child("x", EXECUTES | {"gen_ai.tool.call.id": "c1"}, at=20))
    assert [(call.name, str(call.status)) for call in result.calls] == [("refund", "ok")]
    assert result.missing is None


def test_repeated_calls_are_counted_separately():
    models = [child("chat", answers_with_call(call_id=f"c{i}")["genai"], at=40 * i) for i in (1, 2)]
    tools = [child("tool", WITHOUT_ID, at=at) for at in (60, 100)]
    assert [call.id for call in read(models[0], tools[0], models[1], tools[1]).calls] == ["c1", "c2"]
    dialects = (("genai", "a"), ("openinference", "b"))
    runs = [child("tool", DIALECTS[name], at=at, scope=scope) for at in (10, 30) for name, scope in dialects]
    model = child("chat", answers_with_call()["genai"], at=0, took=5)
    assert [call.id for call in read(model, *runs).calls] == ["c1", "c1"]
    outer = child("tool", WITHOUT_ID, at=10, took=100)
    inner = [child("tool", WITHOUT_ID, at=at, parent=outer.span_id) for at in (20, 50)]
    assert (len(read(outer, *inner).calls), len(read(outer, inner[0]).calls)) == (2, 1)
    innermost = child("tool", WITHOUT_ID, at=22, took=3, parent=inner[0].span_id)
    assert len(read(outer, inner[0], innermost).calls) == 1
    assert len(read(outer, *inner, innermost).calls) == 2
    outer = child("tool", WITHOUT_ID, at=10, took=50)
    other = WITHOUT_ID | {"gen_ai.tool.call.arguments": '{"order": "A-2"}'}
    assert len(read(outer, child("tool", other, at=20, parent=outer.span_id)).calls) == 2


def test_spans_of_two_instrumentations_count_once():
    inner = {k: v for k, v in DIALECTS["openinference"].items() if k != "tool.id"}
    first = child("tool", WITHOUT_ID, at=10, took=20, scope="a")
    assert len(read(first, child("refund", inner, at=11, took=18, scope="b")).calls) == 1
    assert len(read(first, child("refund", inner, at=11, took=5, parent=first.span_id, scope="a")).calls) == 1
    assert len(read(first, child("refund", inner, at=11, took=5, scope="a")).calls) == 2
    assert len(read(first, child("refund", inner, at=50, scope="b")).calls) == 2
    first = child("chat", answers_with_call()["genai"], scope="a")
    assert len(read(first, child("chat", answers_with_call()["openinference"], scope="b")).calls) == 1
    outer = child("chat", CHAT | {"gen_ai.usage.input_tokens": 7}, took=50)
    inner = child("chat", answers_with_call()["genai"], parent=outer.span_id)
    result = read(outer, inner)
    assert ([call.id for call in result.calls], result.input_tokens) == (["c1"], 7)


def test_span_calls_are_ordered_by_start_and_capped_at_1000():
    late = child("tool", DIALECTS["genai"] | {"gen_ai.tool.name": "late", "gen_ai.tool.call.id": "c2"}, at=30)
    early = child("tool", DIALECTS["genai"], at=10, took=100)
    assert [call.name for call in read(late, early).calls] == ["refund", "late"]
    flood = [child("tool", GENAI | {"gen_ai.tool.call.id": f"c{i}"}, at=i) for i in range(1500)]
    result = read(*flood)
    assert (len(result.calls), result.missing is None) == (1000, False)


def test_tokens_of_nested_model_spans_count_once():
    usage = CHAT | {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    outer = child("chat", usage)
    inner = child(
        "chat", {"openinference.span.kind": "LLM", "llm.token_count.prompt": 10}, parent=outer.span_id
    )
    result = read(outer, inner, child("chat", usage, at=50))
    assert (result.input_tokens, result.output_tokens, read().input_tokens) == (20, 4, None)


SPAN_ONLY = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"


@each_row(
    ("attributes", "scope", "hint"),
    [
        (GENAI, "", SPAN_ONLY),
        (GENAI | {"traceloop.workflow.name": "w"}, "", "TRACELOOP_TRACE_CONTENT=true"),
        (GENAI | {"gen_ai.tool.call.arguments": TOO_LONG}, "", "more than 1,000,000 characters"),
        (OPENINFERENCE | {"input.value": "__REDACTED__"}, "", "hide_inputs"),
        (OPENINFERENCE | {"input.value": "A-1"}, "", "without its name"),
        (GENAI | {"gen_ai.tool.call.arguments": "[1]"}, "", "no JSON object"),
        (GENAI, "pydantic-ai", "include_content=True"),
        (GENAI, "openinference.instrumentation.langchain", "OPENINFERENCE_HIDE_INPUTS=false"),
        (GENAI, "gcp.vertex.agent", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"),
        (GENAI, "ai", "recordInputs: true"),
        (GENAI, "opentelemetry.util.genai", SPAN_ONLY),
    ],
)
def test_uncaptured_arguments_have_hint_with_cause_or_setting(attributes, scope, hint):
    (call,) = read(child("tool", attributes, scope=scope)).calls
    assert (call.arguments, hint in call.not_captured) == (None, True)


def test_bare_argument_value_gets_parameter_name_from_schema_or_model_call():
    tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": "A-1"}
    schema = json.dumps({"type": "object", "properties": {"order": {"type": "string"}}})
    (call,) = read(child("lookup", tool | {"tool.parameters": schema})).calls
    assert call.arguments == {"order": "A-1"}
    model = answers_with_call("lookup", "c1", '{"order": "A-1"}')["openinference"]
    (call,) = read(child("chat", model, at=1), child("lookup", tool, at=20)).calls
    assert (call.id, call.arguments) == ("c1", {"order": "A-1"})
    tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup"}
    schema = {"tool.parameters": json.dumps({"properties": {"order": {}}})}
    known = {"order": "A-1"}
    for text, expected in (("{'order': 'A-1'}", known), ("{'order': ", None), ("A-1", known)):
        (call,) = read(child("lookup", tool | schema | {"input.value": text})).calls
        assert call.arguments == expected


def test_failed_call_has_error_status_and_its_agent():
    agent = child("x", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refunds"})
    tool = child("tool", DIALECTS["genai"], parent=agent.span_id, failed=True)
    (call,) = read(agent, tool).calls
    assert (str(call.status), call.agent) == ("error", "refunds")
    message = {"type": "tool", "data": {"content": "no", "tool_call_id": "c1", "status": "error"}}
    tool = DIALECTS["openinference"] | {"output.value": json.dumps(message)}
    (call,) = read(child("tool", {k: v for k, v in tool.items() if k != "tool.id"})).calls
    assert (str(call.status), call.id) == ("error", "c1")


@each_row(
    ("spans", "expected"),
    [
        ((), Progress.NOTHING),
        ((root(),), Progress.WHOLE),
        ((root(is_server=True),), Progress.ANSWERED),
        ((root(is_server=True), child("tool", GENAI)), Progress.ANSWERED),
        ((child("tool", GENAI),), Progress.BROKEN),
        ((root(is_server=True), child("tool", GENAI, parent="2" * 16)), Progress.BROKEN),
        ((span("a trace of its own", parent=""),), Progress.WHOLE),
    ],
)
def test_span_progress_is_derived_from_root_parent_and_server_spans(spans, expected):
    assert evidence.progress(spans, TURN, 1) == expected
    if expected == Progress.ANSWERED:
        assert evidence.progress(spans, TURN, 2) == Progress.WHOLE  # another request has no span yet
        assert evidence.progress(spans, TURN, 0) == Progress.WHOLE


OPENINFERENCE_LLM = {"openinference.span.kind": "LLM"}
LONG_EVENT = (Event("gen_ai.choice", {"message": TOO_LONG}),)


@each_row(
    ("truncated", "events"),
    [
        ({"gen_ai.output.messages": TOO_LONG}, ()),
        ({"gen_ai.output.messages": '[{"parts": [{"type": "text"'}, ()),
        ({"ai.response.text": "Hello", "ai.response.toolCalls": '[{"toolName": "ref'}, ()),
        ({"events": '[{"event.name": "gen_ai.choi'}, ()),  # pydantic-ai, older
        ({}, LONG_EVENT),
    ],
)
def test_truncated_model_answer_leaves_calls_incomplete(truncated, events):
    model = child("chat", CHAT | truncated, events=events)
    assert "may hold more tool calls" in read(model).missing
    assert "may hold more tool calls" in read(model, child("tool", GENAI, at=50)).missing


@each_row(
    ("attributes", "missing"),
    [
        ({}, "content on: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
        # Gemini's with calls
        ({"gen_ai.response.finish_reasons": ["stop"]}, "do not show what they answered"),
        ({"gen_ai.output.messages": "[]"}, "do not show what they answered"),
        ({"gen_ai.completion.0.finish_reason": "stop", "traceloop.workflow.name": "w"}, "TRACE_CONTENT=true"),
        (OPENINFERENCE_LLM | {"llm.output_messages.0.message.content": "__REDACTED__"}, "content on"),
        ({"gen_ai.output.messages": '[{"parts": [{"type": "text"}]}]'}, None),
        ({"gen_ai.completion.0.content": "Hello"}, None),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": "Hello"}, None),
        (OPENINFERENCE_LLM | {"llm.output_messages.0.message.role": "assistant"}, None),
    ],
)
def test_model_span_without_answer_leaves_calls_incomplete(attributes, missing):
    model = child("chat", CHAT | attributes)
    if missing is None:
        assert read(model).missing is None
        return
    assert missing in read(model).missing
    assert read(model, child("tool", GENAI, at=20)).missing is None
    answered = child("chat", CHAT | attributes, failed=True)
    assert read(answered).missing is None  # a failure is an answer without calls


EXECUTES = {"gen_ai.operation.name": "execute_tool"}
NAMED_TOOLS = {
    "the span's name": ("execute_tool refund", EXECUTES),
    "MCP": ("tools/call refund", {"mcp.method.name": "tools/call"}),
    "LangSmith": ("refund", EXECUTES | {"langsmith.span.kind": "tool", "langsmith.trace.name": "refund"}),
    "LangSmith, bare": ("x", {"langsmith.span.kind": "tool", "langsmith.trace.name": "refund"}),
    "OpenInference": ("x", EXECUTES | {"openinference.span.kind": "TOOL", "tool.name": "refund"}),
    "Traceloop": ("x", EXECUTES | {"traceloop.span.kind": "tool", "traceloop.entity.name": "refund"}),
    "Traceloop by its span": ("refund.tool", {"traceloop.span.kind": "tool"}),
    "Vercel": ("x", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "refund"}),
    "a name that is no text": ("execute_tool refund", EXECUTES | {"gen_ai.tool.name": ["lookup"]}),
    "a blank name": ("execute_tool refund", EXECUTES | {"gen_ai.tool.name": " "}),
    "an unknown operation": ("x", {"gen_ai.operation.name": "run_tool", "gen_ai.tool.name": "refund"}),
}


@each_row("by", NAMED_TOOLS)
def test_tool_name_is_read_from_span_or_instrumentation(by):
    name, attributes = NAMED_TOOLS[by]
    result = read(child(name, attributes))
    assert ([call.name for call in result.calls], result.missing) == (["refund"], None)


UNNAMED_TOOLS = {
    "no name": ("refund", EXECUTES, []),
    "the operation alone": ("execute_tool", EXECUTES, []),
    "a blank rest": ("execute_tool  ", EXECUTES, []),
    "LangSmith": ("RunnableLambda", {"langsmith.span.kind": "tool"}, []),
    "MCP": ("POST", {"mcp.method.name": "tools/call"}, []),
    "OpenInference": ("refund", {"openinference.span.kind": "TOOL"}, ["refund"]),
    "Langfuse": ("refund", {"langfuse.observation.type": "tool"}, ["refund"]),
    "MLflow": ("refund", {"mlflow.spanType": '"TOOL"'}, ["refund"]),
    "Traceloop": ("refund", {"traceloop.span.kind": "tool"}, ["refund"]),
}


@each_row("by", UNNAMED_TOOLS)
def test_unnamed_tool_makes_turn_incomplete(by):
    name, attributes, seen = UNNAMED_TOOLS[by]
    result = read(child(name, attributes))
    assert [call.name for call in result.calls] == seen
    assert "does not say which" in result.missing


def wrapped(**fields) -> str:
    return json.dumps({"input_str": str(ARGUMENTS), "tags": None, "metadata": {}, **fields})


WRAPPED = {
    "inputs": (wrapped(inputs=ARGUMENTS, kwargs={"color": "green", "name": "refund"}), ARGUMENTS),
    "inputs as JSON": (wrapped(inputs=TEXT, kwargs={}), ARGUMENTS),
    "no inputs": (wrapped(inputs=None, kwargs={"color": "green"}), ARGUMENTS),
    "empty inputs": (wrapped(inputs={}, kwargs={}), ARGUMENTS),
    "no arguments at all": (wrapped(input_str="", inputs={}), {}),
    "more than is known": (wrapped(inputs=ARGUMENTS, run_id="r1"), ARGUMENTS),
    "input_str as JSON": (json.dumps({"input_str": TEXT, "tags": []}), ARGUMENTS),
    "input_str as Python": (json.dumps({"input_str": str(ARGUMENTS), "tags": []}), ARGUMENTS),
    "a text": (wrapped(input_str="A-1", inputs=None), None),
    "half of Python": (wrapped(input_str="{'order': 'A-1', ", inputs=None), None),
    "Python, but no JSON": (wrapped(input_str="{'order': {1, 2}}", inputs=None), None),
    "a call": (wrapped(input_str="{'order': open('x')}", inputs=None), None),
    "deep Python": (wrapped(input_str="{'a': " + "[" * 5000, inputs=None), None),
    "request": (json.dumps({"name": "refund", "args": ARGUMENTS, "id": "c", "type": "tool_call"}), ARGUMENTS),
    "an MCP request": (json.dumps({"tool_name": "refund", "arguments": ARGUMENTS}), ARGUMENTS),
    "JSON within JSON": (json.dumps(TEXT), ARGUMENTS),
    "Python": (str(ARGUMENTS), ARGUMENTS),
    "names only": (json.dumps({"name": "x", "args": ARGUMENTS}), {"name": "x", "args": ARGUMENTS}),
    "arguments": (TEXT, ARGUMENTS),
}


@each_row("attribute", ["gen_ai.tool.call.arguments", "traceloop.entity.input"])
@each_row("how", WRAPPED)
def test_wrapped_call_arguments_are_unwrapped_or_unknown(how, attribute):
    text, expected = WRAPPED[how]
    (call,) = read(child("refund.tool", TRACELOOP | EXECUTES | {attribute: text})).calls
    assert call.arguments == expected
    assert (call.not_captured is None) == (expected is not None)


@each_row(
    ("text", "expected"),
    [
        (json.dumps({"args": [], "kwargs": ARGUMENTS}), ARGUMENTS),
        (json.dumps({"kwargs": ARGUMENTS}), ARGUMENTS),
        (json.dumps({"args": ["A-1"], "kwargs": {}}), None),
        (json.dumps({"input_str": str(ARGUMENTS)}), ARGUMENTS),
        (json.dumps({"inputs": ARGUMENTS}), ARGUMENTS),
    ],
)
def test_only_traceloop_inputs_are_unwrapped_from_kwargs_and_inputs(text, expected):
    (call,) = read(child("x", TRACELOOP | {"traceloop.entity.input": text})).calls
    assert call.arguments == expected
    (call,) = read(child("execute_tool refund", EXECUTES | {"gen_ai.tool.call.arguments": text})).calls
    assert call.arguments == json.loads(text)


AGENT_SPANS = {
    "agent": {"gen_ai.operation.name": "invoke_agent"},
    "workflow": {"gen_ai.operation.name": "invoke_workflow"},
    "chain": {"openinference.span.kind": "CHAIN"},
    "Traceloop's workflow": {"traceloop.span.kind": "workflow"},
    "Vercel": {"ai.operationId": "ai.generateText"},
    "LangSmith": {"langsmith.span.kind": "chain"},
    "Langfuse": {"langfuse.observation.type": "agent"},
    "MLflow": {"mlflow.spanType": '"AGENT"'},
    "model": {"gen_ai.operation.name": "chat", "gen_ai.completion.0.content": "Hello"},
    "tool": TOOL,
}
SURROUNDING = {
    "web framework": {"some.key": 1},
    "embeddings": {"gen_ai.operation.name": "embeddings"},
    "retrieval": {"gen_ai.operation.name": "retrieval"},
    "creation of an agent": {"gen_ai.operation.name": "create_agent"},
    "unknown operation": {"gen_ai.operation.name": "apply_guardrail"},
    **{
        f"OpenInference {kind}": {"openinference.span.kind": kind}
        for kind in ("EMBEDDING", "RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT", "UNKNOWN")
    },
    "Traceloop's task": {"traceloop.span.kind": "task", "traceloop.entity.name": "embed"},
    "Traceloop's embedding": {"llm.request.type": "embedding", "gen_ai.system": "openai"},
    "Traceloop's reranking": {"llm.request.type": "rerank"},
    "Vercel's embedding": {"ai.operationId": "ai.embed"},
    "Vercel's inner embedding": {"ai.operationId": "ai.embedMany.doEmbed"},
    "MCP's list": {"mcp.method.name": "tools/list", "gen_ai.tool.name": "refund"},
    "MCP's prompt": {"mcp.method.name": "prompts/get", "gen_ai.prompt.name": "refund"},
    "MCP's beginning": {"mcp.method.name": "initialize"},
    "an evaluation": {"gen_ai.evaluation.name": "relevance"},
    "LangSmith's retriever": {"langsmith.span.kind": "retriever"},
    "Langfuse's guardrail": {"langfuse.observation.type": "guardrail"},
    "a conversation's id": {"gen_ai.conversation.id": "c1"},
}


@each_row("aside", SURROUNDING)
def test_turn_without_tool_model_or_agent_span_is_untraced(aside):
    around = child("SELECT", SURROUNDING[aside])
    assert "none of its spans is of a tool, a model or an agent" in read(around).missing


@each_row("of", AGENT_SPANS)
def test_turn_is_traced_by_tool_model_or_agent_span_outside_guardrails(of):
    for attributes in SURROUNDING.values():
        assert read(child("SELECT", attributes), child("turn", AGENT_SPANS[of])).missing is None
    for kind in ("GUARDRAIL", "EVALUATOR", "RETRIEVER"):
        outer = child("check", {"openinference.span.kind": kind})
        middle = child("x", {}, parent=outer.span_id)
        result = read(outer, middle, child("turn", AGENT_SPANS[of], parent=middle.span_id))
        assert "none of its spans" in result.missing
        assert [call.name for call in result.calls] == (["refund"] if of == "tool" else [])


def test_malformed_operations_and_cyclic_parents_are_ignored():
    result = read(child("chat", {"gen_ai.operation.name": ["chat"]}))
    assert (result.calls, result.input_tokens) == ((), None)
    assert "none of its spans is of a tool" in result.missing
    one, two = span("x", "2" * 16, span_id="3" * 16), span("y", "3" * 16, span_id="2" * 16)
    assert evidence.read([one, two]).calls == ()
    assert evidence.progress([one, two], TURN, 1) == Progress.BROKEN
    turns = [TurnSpan(TURN, 0)]
    assert by_turn({each.span_id: each for each in (one, two)}, turns, {}) == {TURN: [one, two]}


def test_text_repeated_by_consecutive_spans_is_kept_once():
    instructions, other = "Be kind. " * 50, "Be brief. " * 50
    texts = [instructions, instructions, other, instructions, "short", "short"]
    chats = [CHAT | {"gen_ai.system_instructions": text} for text in texts]
    models = [child("chat", chat, at=at) for at, chat in enumerate(chats)]
    long = CAPTURED | {"gen_ai.tool.call.arguments": json.dumps({"note": "x" * 500})}
    tools = [child("tool", long | {"gen_ai.tool.call.id": f"c{at}"}, at=20 * at) for at in (1, 2)]
    result = read(*models, *tools)
    kept = [one["attributes"].get("gen_ai.system_instructions") for one in result.spans]
    assert [*filter(None, kept)] == [instructions, AS_BEFORE, other, instructions, "short", "short"]
    assert [call.arguments for call in result.calls] == [{"note": "x" * 500}] * 2


def test_spans_belong_to_the_turn_of_their_ancestor_or_start_time():
    turns = [TurnSpan("a" * 16, 0), TurnSpan("b" * 16, 100 * 10**6)]
    first, second = span("POST", "a" * 16, at=5), span("POST", "b" * 16, at=105)
    background = span("work", first.span_id, at=150)
    orphan, early = span("other", "c" * 16, at=120), span("other", "", at=20)
    settled = span("late", "e" * 16, at=130)
    spans = {each.span_id: each for each in (first, second, background, orphan, early, settled)}
    belonging = by_turn(spans, turns, {"e" * 16: "a" * 16})
    assert belonging == {"a" * 16: [first, background, early, settled], "b" * 16: [second, orphan]}


@each_row(
    ("attributes", "complete"),
    [
        (CHAT | {"gen_ai.completion.0.content": "Hello"}, False),
        (GENAI, False),
        ({}, False),
        ({"openinference.span.kind": "RETRIEVER"}, True),
        ({"gen_ai.operation.name": "invoke_agent"}, True),
    ],
)
def test_span_with_dropped_attributes_makes_calls_incomplete(attributes, complete):
    agent = child("turn", {"gen_ai.operation.name": "invoke_agent"})
    result = read(agent, child("x", attributes, cut=True))
    assert (result.missing is None) == complete
    assert complete or "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in result.missing
    assert read(agent, child("x", attributes)).missing is None


RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
RECORDED_CALLS = [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": 42})]


def test_every_framework_has_a_recording():
    assert {file.stem for file in RECORDED} == {"sdk", "sdk-json", "node-json", "pydantic-ai", "langgraph"}


@each_row("file", RECORDED)
def test_recorded_spans_show_each_call_once_in_order(file):
    received, parent = spans.read(file.read_bytes(), "application/json"), "b" * 16
    assert {span.trace_id for span in received} == {"a" * 32}
    turn = by_turn({each.span_id: each for each in received}, [TurnSpan(parent, 0)], {})[parent]
    assert evidence.progress(turn, parent, 1) >= Progress.WHOLE
    result = evidence.read(turn)
    assert (result.missing, [(call.name, call.arguments) for call in result.calls]) == (None, RECORDED_CALLS)
    assert result.models == (("function:respond:",) if file.stem == "pydantic-ai" else ())
    if file.stem in {"sdk", "pydantic-ai"}:
        assert {call.agent for call in result.calls} == {"refunds"}


def traceparent(number: int) -> str:
    return f"00-{number:032x}-{'b' * 16}-01"


def test_late_spans_mark_earlier_turns_incomplete_with_first_reason_announced_once():
    heard = []
    gaps = Gaps(listen=lambda traces, *, earlier: heard.append((sorted(traces), earlier)))
    for number in range(3):
        gaps.begin(traceparent(number))
    gaps.add(traceparent(0), "late")
    gaps.add(traceparent(0), "later")
    gaps.add_before(2, "of nobody", {"under way"})
    gaps.add_before(1, "earlier", ())
    gaps.begin(traceparent(3))
    assert [gaps.reason(traceparent(number)) for number in range(4)] == ["late", "of nobody", None, None]
    assert gaps.reason(None) is gaps.reason(traceparent(9)) is None
    assert heard == [([traceparent(0).split("-")[1]], False), (["under way"], True)]


def call(name: str, arguments: dict | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


LOOKUP, REFUND = call("lookup", {"order": 1}), call("refund", {"amount": 42})
BARE = call("refund")
CONTRADICTIONS = {
    "nothing": ({"tool_calls": ()}, [], None),
    "the same": ({"tool_calls": (LOOKUP, REFUND)}, [REFUND, LOOKUP], None),
    "less": ({"tool_calls": (LOOKUP, REFUND)}, [LOOKUP], None),
    "more": ({"tool_calls": (LOOKUP,)}, [LOOKUP, REFUND], "'refund'"),
    "once more": ({"tool_calls": (REFUND,)}, [REFUND, REFUND], "'refund'"),
    "other arguments": ({"tool_calls": (REFUND,)}, [call("refund", {"amount": 24})], "other than"),
    "unknown arguments": ({"tool_calls": (REFUND,)}, [BARE], None),
    "arguments that are not reported": ({"tool_calls": (BARE,)}, [REFUND], None),
    "one known, one not": ({"tool_calls": (REFUND, BARE)}, [BARE, REFUND], None),
    "two for one": ({"tool_calls": (BARE,)}, [BARE, REFUND], "'refund'"),
    "a workflow": ({"workflows": ("refund",)}, [REFUND, REFUND], None),
    "no workflow": ({"workflows": ()}, [REFUND], "'refund'"),
    "an integration": ({"workflows": (), "integrations": (Integration(code="refund"),)}, [REFUND], None),
    "integration's tool": ({"integrations": (Integration(code="mcp", tools=(BARE,)),)}, [REFUND], None),
}


@each_row("case", CONTRADICTIONS)
def test_call_in_spans_missing_from_agent_report_is_a_contradiction(case):
    reported, shown, expected = CONTRADICTIONS[case]
    result = contradiction(Reply(agent="", latency_seconds=0, **reported), shown)
    assert result is None if expected is None else expected in result
