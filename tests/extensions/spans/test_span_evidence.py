"""Spans of each dialect as evidence: every call once, in order, with its arguments."""

import json

import pytest
from each_row import each_row

from ci_evals.extension_support.span_reading import evidence
from ci_evals.extension_support.span_reading.belonging import TurnSpan, by_turn
from ci_evals.extension_support.span_reading.evidence import Progress
from ci_evals.extension_support.span_reading.for_people import AS_BEFORE
from ci_evals.extension_support.span_reading.spans import TOO_LONG, Event, Span

TURN = "f" * 16
ARGUMENTS = {"order": "A-1", "amount": 42}
_count = iter(range(1, 10**6))


def span(name: str, parent: str = TURN, at: int = 0, took: int = 10, **fields) -> Span:
    """A span of one trace; times are milliseconds."""
    attributes = fields.pop("attributes", {})
    return Span(
        trace_id="a" * 32,
        span_id=fields.pop("span_id", f"{next(_count):016x}"),
        parent_id=parent,
        name=name,
        start_ns=at * 10**6,
        end_ns=(at + took) * 10**6,
        attributes=attributes,
        **fields,
    )


def root(**fields) -> Span:
    return span("POST /chat", took=1000, span_id="1" * 16, **fields)


def read(*spans: Span):
    return evidence.read([root(), *spans])


def below(name: str, attributes: dict, **fields) -> Span:
    return span(name, parent=fields.pop("parent", "1" * 16), attributes=attributes, **fields)


TEXT, RESULT = json.dumps(ARGUMENTS), '{"ok": true}'
TOOL = {"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c1"}
GENAI = {"gen_ai.operation.name": "execute_tool", **TOOL}
CAPTURED = GENAI | {"gen_ai.tool.call.arguments": TEXT, "gen_ai.tool.call.result": RESULT}
DIALECTS = {
    "genai": CAPTURED,
    "genai structured": CAPTURED | {"gen_ai.tool.call.arguments": ARGUMENTS},
    "pydantic-ai, older": TOOL | {"tool_arguments": TEXT, "tool_response": RESULT},
    "mcp": CAPTURED | {"mcp.method.name": "tools/call"},
    "openinference": {
        "openinference.span.kind": "TOOL",
        "tool.name": "refund",
        "tool.id": "c1",
        "input.value": TEXT,
        "input.mime_type": "application/json",
        "output.value": RESULT,
    },
    "vercel": {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "refund",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": TEXT,
        "ai.toolCall.result": RESULT,
    },
    "traceloop": {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "refund",
        "gen_ai.tool.call.id": "c1",
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": ARGUMENTS}),
        "traceloop.entity.output": RESULT,
    },
    "traceloop with genai": CAPTURED | {"traceloop.span.kind": "tool"},
}
WITHOUT_ID = {key: value for key, value in CAPTURED.items() if not key.endswith("id")}


@each_row("dialect", DIALECTS)
def test_a_tool_span_is_a_call(dialect):
    """With its id, arguments, result, status and times."""
    found = read(below("tool", DIALECTS[dialect], at=5, took=20))
    (call,) = found.calls
    assert call.model_dump(exclude={"started_at"}) == {
        "id": "c1",
        "name": "refund",
        "arguments": ARGUMENTS,
        "result": {"ok": True},
        "status": "ok",
        "duration_ms": 20.0,
        "agent": None,
        "not_captured": None,
    }
    assert found.missing is None


def requested(name="refund", call_id="c1", arguments=TEXT) -> dict[str, dict]:
    """A model's answer that asks for the call, in each dialect."""
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": json.loads(arguments)}
    oi = "llm.output_messages.0.message.tool_calls.0.tool_call."
    openai = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]
    return {
        "genai": {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}]),
        },
        "openinference": {
            "openinference.span.kind": "LLM",
            oi + "function.name": name,
            oi + "id": call_id,
            oi + "function.arguments": arguments,
        },
        "vercel": {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.response.toolCalls": json.dumps(
                [{"toolCallId": call_id, "toolName": name, "input": json.loads(arguments)}]
            ),
        },
        "traceloop": {
            "llm.request.type": "chat",
            "gen_ai.completion.0.tool_calls.0.id": call_id,
            "gen_ai.completion.0.tool_calls.0.name": name,
            "gen_ai.completion.0.tool_calls.0.arguments": arguments,
        },
        "pydantic-ai, older": {
            "gen_ai.operation.name": "chat",
            "events": json.dumps([{"event.name": "gen_ai.choice", "message": {"tool_calls": openai}}]),
        },
    }


@pytest.mark.parametrize("dialect", requested())
def test_a_call_in_a_models_answer_and_its_tool_span_are_one(dialect):
    """By id, or without one by name and arguments; what only one of them has is kept."""
    model = below("chat", requested()[dialect], at=1)
    for attributes in (
        DIALECTS["genai"],
        {k: v for k, v in DIALECTS["genai"].items() if not k.endswith("id")},
    ):
        (call,) = read(model, below("tool", attributes, at=20)).calls
        assert (call.id, call.arguments, str(call.status)) == ("c1", ARGUMENTS, "ok")
    bare = {k: v for k, v in DIALECTS["genai"].items() if "arguments" not in k}
    (call,) = read(model, below("tool", bare, at=20)).calls
    assert call.arguments == ARGUMENTS
    assert call.not_captured is None
    (alone,) = read(model).calls
    assert (alone.arguments, str(alone.status), alone.duration_ms) == (ARGUMENTS, "unknown", None)


def test_events_of_the_older_names_hold_calls():
    """A choice with the message of the model."""
    calls = [{"id": "c1", "function": {"name": "refund", "arguments": TEXT}}]
    chat = below("chat", {"gen_ai.operation.name": "chat"})
    events = (Event("gen_ai.choice", {"message": {"tool_calls": calls}}),)
    (call,) = read(span("chat", "1" * 16, attributes=chat.attributes, events=events)).calls
    assert call.arguments == ARGUMENTS


def test_two_equal_calls_are_two():
    """One after the other, each with an answer of the model, without any id."""
    tool = WITHOUT_ID
    model = requested()["genai"]
    both = read(
        below("chat", model, at=1),
        below("tool", tool, at=20),
        below("chat", requested(call_id="c2")["genai"], at=40),
        below("tool", tool, at=60),
    )
    assert [call.id for call in both.calls] == ["c1", "c2"]


def test_two_instrumentations_of_one_call_are_one():
    """At the same time with the same arguments, or one within the other."""
    inner = {k: v for k, v in DIALECTS["openinference"].items() if k != "tool.id"}
    outer = WITHOUT_ID
    first = below("tool", outer, at=10, took=20, scope="a")
    assert len(read(first, below("refund", inner, at=11, took=18, scope="b")).calls) == 1
    assert len(read(first, below("refund", inner, at=11, took=5, parent=first.span_id, scope="a")).calls) == 1
    assert len(read(first, below("refund", inner, at=11, took=5, scope="a")).calls) == 2
    assert len(read(first, below("refund", inner, at=50, scope="b")).calls) == 2


def test_a_tool_that_ran_twice_is_two_calls():
    """Also if both runs have the id of one request, and each has spans of two instrumentations."""
    runs = [
        below("tool", DIALECTS[dialect], at=at, scope=scope)
        for at in (10, 30)
        for dialect, scope in (("genai", "a"), ("openinference", "b"))
    ]
    model = below("chat", requested()["genai"], at=0, took=5)
    assert [call.id for call in read(model, *runs).calls] == ["c1", "c1"]


def test_a_tool_that_ran_twice_within_a_span_of_its_call_is_two_calls():
    """The inner spans are one after the other; one of each side is one call."""
    outer = below("tool", WITHOUT_ID, at=10, took=100)
    inner = [below("tool", WITHOUT_ID, at=at, parent=outer.span_id) for at in (20, 50)]
    assert len(read(outer, *inner).calls) == 2
    assert len(read(outer, inner[0]).calls) == 1
    innermost = below("tool", WITHOUT_ID, at=22, took=3, parent=inner[0].span_id)
    assert len(read(outer, inner[0], innermost).calls) == 1
    assert len(read(outer, *inner, innermost).calls) == 2


def test_a_tool_within_another_of_its_name_is_a_call_of_its_own():
    """Unless its arguments may be the same."""
    outer = below("tool", WITHOUT_ID, at=10, took=50)
    other = WITHOUT_ID | {"gen_ai.tool.call.arguments": '{"order": "A-2"}'}
    assert len(read(outer, below("tool", other, at=20, parent=outer.span_id)).calls) == 2


def test_a_request_that_two_instrumentations_saw_is_one():
    """Side by side, or one within the other where only the inner one has the answer."""
    first = below("chat", requested()["genai"], scope="a")
    assert len(read(first, below("chat", requested()["openinference"], scope="b")).calls) == 1
    outer = below("chat", {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}, took=50)
    inner = below("chat", requested()["genai"], parent=outer.span_id)
    found = read(outer, inner)
    assert ([call.id for call in found.calls], found.input_tokens) == (["c1"], 7)


def test_calls_are_in_the_order_in_which_they_began():
    """Whatever order they arrived in."""
    late = below("tool", DIALECTS["genai"] | {"gen_ai.tool.name": "late", "gen_ai.tool.call.id": "c2"}, at=30)
    early = below("tool", DIALECTS["genai"], at=10, took=100)
    assert [call.name for call in read(late, early).calls] == ["refund", "late"]


@pytest.mark.parametrize(
    ("attributes", "hint"),
    [
        (GENAI, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
        (GENAI | {"traceloop.workflow.name": "w"}, "TRACELOOP_TRACE_CONTENT=true"),
        (GENAI | {"gen_ai.tool.call.arguments": TOO_LONG}, "more than 1,000,000 characters"),
        (
            {"openinference.span.kind": "TOOL", "tool.name": "refund", "input.value": "__REDACTED__"},
            "hide_inputs",
        ),
        (
            {"openinference.span.kind": "TOOL", "tool.name": "refund", "input.value": "A-1"},
            "without its name",
        ),
        (GENAI | {"gen_ai.tool.call.arguments": "[1]"}, "no JSON object"),
    ],
)
def test_arguments_that_were_not_captured(attributes, hint):
    """Unknown, with what to do about it."""
    (call,) = read(below("tool", attributes)).calls
    assert call.arguments is None
    assert hint in call.not_captured


def test_the_name_of_a_bare_value_comes_from_schema_or_model():
    """LangChain's instrumentation leaves it out where a tool has one argument."""
    tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": "A-1"}
    schema = json.dumps({"type": "object", "properties": {"order": {"type": "string"}}})
    (call,) = read(below("lookup", tool | {"tool.parameters": schema})).calls
    assert call.arguments == {"order": "A-1"}
    model = requested("lookup", "c1", '{"order": "A-1"}')["openinference"]
    (call,) = read(below("chat", model, at=1), below("lookup", tool, at=20)).calls
    assert (call.id, call.arguments) == ("c1", {"order": "A-1"})


def test_a_failed_tool_and_its_sub_agent():
    """By the span's status, and the nearest agent above it."""
    agent = below(
        "invoke_agent refunds", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refunds"}
    )
    tool = below("tool", DIALECTS["genai"], parent=agent.span_id, failed=True)
    (call,) = read(agent, tool).calls
    assert (str(call.status), call.agent) == ("error", "refunds")


def test_an_error_that_a_graph_caught():
    """LangChain's message of it has the status and the call's id, while the span is fine."""
    message = {"type": "tool", "data": {"content": "no", "tool_call_id": "c1", "status": "error"}}
    tool = DIALECTS["openinference"] | {"output.value": json.dumps(message)}
    (call,) = read(below("tool", {k: v for k, v in tool.items() if k != "tool.id"})).calls
    assert (str(call.status), call.id) == ("error", "c1")


def test_tokens_of_model_calls_are_added_once():
    """A span within another of the same call is not counted."""
    usage = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
    }
    outer = below("chat", usage)
    inner = below(
        "chat", {"openinference.span.kind": "LLM", "llm.token_count.prompt": 10}, parent=outer.span_id
    )
    found = read(outer, inner, below("chat", usage, at=50))
    assert (found.input_tokens, found.output_tokens) == (20, 4)
    assert read().input_tokens is None


def test_the_switch_for_content_is_that_of_the_instrumentation():
    """By the name that its spans carry."""
    for scope, switch in (
        ("pydantic-ai", "include_content=True"),
        ("openinference.instrumentation.langchain", "OPENINFERENCE_HIDE_INPUTS=false"),
        ("gcp.vertex.agent", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"),
        ("ai", "recordInputs: true"),
        ("opentelemetry.util.genai", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
    ):
        (call,) = read(below("tool", GENAI, scope=scope)).calls
        assert switch in call.not_captured


@each_row(
    ("spans", "expected"),
    [
        ((), Progress.NOTHING),
        ((root(),), Progress.WHOLE),
        ((root(is_server=True),), Progress.ANSWERED),
        ((root(is_server=True), below("tool", GENAI)), Progress.ANSWERED),
        ((below("tool", GENAI),), Progress.BROKEN),
        ((root(is_server=True), below("tool", GENAI, parent="2" * 16)), Progress.BROKEN),
        ((span("a trace of its own", parent=""),), Progress.WHOLE),
    ],
)
def test_how_much_of_a_trace_has_arrived(spans, expected):
    """Its roots, the parent of each span, and the server's span of each request."""
    assert evidence.progress(spans, TURN, 1) == expected
    if expected == Progress.ANSWERED:
        assert evidence.progress(spans, TURN, 2) == Progress.WHOLE  # another request has no span yet
        assert evidence.progress(spans, TURN, 0) == Progress.WHOLE


CUT = {
    "too long": {"gen_ai.output.messages": TOO_LONG},
    "cut off": {"gen_ai.output.messages": '[{"parts": [{"type": "text"'},
    "Vercel": {"ai.response.text": "Hello", "ai.response.toolCalls": '[{"toolName": "ref'},
    "pydantic-ai, older": {"events": '[{"event.name": "gen_ai.choi'},
}


@pytest.mark.parametrize("how", CUT)
def test_an_answer_of_which_a_part_is_missing_may_hold_calls(how):
    """So the evidence is not complete, although other tools have spans."""
    model = below("chat", {"gen_ai.operation.name": "chat"} | CUT[how])
    assert "may hold more tool calls" in read(model).missing
    assert "may hold more tool calls" in read(model, below("tool", GENAI, at=50)).missing


def test_an_event_of_which_a_part_is_missing_may_hold_calls():
    """It is no answer that shows all calls."""
    events = (Event("gen_ai.choice", {"message": TOO_LONG}),)
    chat = below("chat", {"gen_ai.operation.name": "chat"}, events=events)
    assert "may hold more tool calls" in read(chat).missing


@each_row(
    ("attributes", "missing"),
    [
        ({}, "content on: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
        (
            {"gen_ai.response.finish_reasons": ["stop"]},
            "do not show what they answered",
        ),  # Gemini's with calls
        ({"gen_ai.output.messages": "[]"}, "do not show what they answered"),
        ({"gen_ai.completion.0.finish_reason": "stop", "traceloop.workflow.name": "w"}, "TRACE_CONTENT=true"),
        (
            {"openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "__REDACTED__"},
            "content on",
        ),
        ({"gen_ai.output.messages": '[{"parts": [{"type": "text"}]}]'}, None),
        ({"gen_ai.completion.0.content": "Hello"}, None),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": "Hello"}, None),
        ({"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}, None),
    ],
)
def test_a_model_whose_answer_is_not_shown_may_have_called_tools(attributes, missing):
    """With what switches the capture on; where tools have spans of their own these show it."""
    model = below("chat", {"gen_ai.operation.name": "chat"} | attributes)
    if missing is None:
        assert read(model).missing is None
        return
    assert missing in read(model).missing
    assert read(model, below("tool", GENAI, at=20)).missing is None
    answered = below("chat", {"gen_ai.operation.name": "chat"} | attributes, failed=True)
    assert read(answered).missing is None  # a failure is an answer without calls


EXECUTES = {"gen_ai.operation.name": "execute_tool"}
NAMED = {
    "the span's name": ("execute_tool refund", EXECUTES),
    "MCP": ("tools/call refund", {"mcp.method.name": "tools/call"}),
    "LangSmith": ("refund", EXECUTES | {"langsmith.span.kind": "tool", "langsmith.trace.name": "refund"}),
    "LangSmith without an operation": (
        "x",
        {"langsmith.span.kind": "tool", "langsmith.trace.name": "refund"},
    ),
    "OpenInference": ("x", EXECUTES | {"openinference.span.kind": "TOOL", "tool.name": "refund"}),
    "Traceloop": ("x", EXECUTES | {"traceloop.span.kind": "tool", "traceloop.entity.name": "refund"}),
    "Traceloop by its span": ("refund.tool", {"traceloop.span.kind": "tool"}),
    "Vercel": ("x", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "refund"}),
    "a name that is no text": ("execute_tool refund", EXECUTES | {"gen_ai.tool.name": ["lookup"]}),
    "a blank name": ("execute_tool refund", EXECUTES | {"gen_ai.tool.name": " "}),
    "an unknown operation": ("x", {"gen_ai.operation.name": "run_tool", "gen_ai.tool.name": "refund"}),
}


@each_row("by", NAMED)
def test_a_tool_is_named_by_its_span(by):
    """By the span's name, or by what an instrumentation writes, if the convention's name is missing."""
    name, attributes = NAMED[by]
    found = read(below(name, attributes))
    assert [call.name for call in found.calls] == ["refund"]
    assert found.missing is None


UNNAMED = {
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


@each_row("by", UNNAMED)
def test_a_tool_that_is_not_named_may_be_any(by):
    """The turn is incomplete. A span's name that is usually the tool's is a call that was seen, no more."""
    name, attributes, seen = UNNAMED[by]
    found = read(below(name, attributes))
    assert [call.name for call in found.calls] == seen
    assert "does not say which" in found.missing


def test_a_tool_that_is_not_named_has_the_name_that_a_model_gave_it():
    """By the id of the call."""
    model = below("chat", requested()["genai"])
    found = read(model, below("x", EXECUTES | {"gen_ai.tool.call.id": "c1"}, at=20))
    assert [(call.name, str(call.status)) for call in found.calls] == [("refund", "ok")]
    assert found.missing is None


def wrapped(**fields) -> str:
    return json.dumps({"input_str": str(ARGUMENTS), "tags": None, "metadata": {}, **fields})


TRACELOOP = {"traceloop.span.kind": "tool", "traceloop.entity.name": "refund"}
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
    "a request": (
        json.dumps({"name": "refund", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}),
        ARGUMENTS,
    ),
    "an MCP request": (json.dumps({"tool_name": "refund", "arguments": ARGUMENTS}), ARGUMENTS),
    "JSON within JSON": (json.dumps(TEXT), ARGUMENTS),
    "Python": (str(ARGUMENTS), ARGUMENTS),
    "arguments of such names": (
        json.dumps({"name": "x", "args": ARGUMENTS}),
        {"name": "x", "args": ARGUMENTS},
    ),
    "arguments": (TEXT, ARGUMENTS),
}


@each_row("attribute", ["gen_ai.tool.call.arguments", "traceloop.entity.input"])
@each_row("how", WRAPPED)
def test_arguments_are_what_an_instrumentation_wraps(how, attribute):
    """Never the wrapper: if nothing in it can be read they are unknown."""
    text, expected = WRAPPED[how]
    (call,) = read(below("refund.tool", TRACELOOP | EXECUTES | {attribute: text})).calls
    assert call.arguments == expected
    assert (call.not_captured is None) == (expected is not None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"args": [], "kwargs": ARGUMENTS}), ARGUMENTS),
        (json.dumps({"kwargs": ARGUMENTS}), ARGUMENTS),
        (json.dumps({"args": ["A-1"], "kwargs": {}}), None),
        (json.dumps({"input_str": str(ARGUMENTS)}), ARGUMENTS),
        (json.dumps({"inputs": ARGUMENTS}), ARGUMENTS),
    ],
)
def test_arguments_of_a_decorated_function_or_a_callback(text, expected):
    """Of Traceloop alone: elsewhere these are names of arguments."""
    (call,) = read(below("x", TRACELOOP | {"traceloop.entity.input": text})).calls
    assert call.arguments == expected
    (call,) = read(below("execute_tool refund", EXECUTES | {"gen_ai.tool.call.arguments": text})).calls
    assert call.arguments == json.loads(text)


def test_an_object_that_cannot_be_read_is_not_the_value_of_the_only_argument():
    """LangChain once wrote all arguments as Python does."""
    tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup"}
    schema = {"tool.parameters": json.dumps({"properties": {"order": {}}})}
    for text, expected in (
        ("{'order': 'A-1'}", {"order": "A-1"}),
        ("{'order': ", None),
        ("A-1", {"order": "A-1"}),
    ):
        (call,) = read(below("lookup", tool | schema | {"input.value": text})).calls
        assert call.arguments == expected


OF_AGENTS = {
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
ASIDE = {
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


@each_row("aside", ASIDE)
def test_spans_of_what_surrounds_an_agent_say_nothing_of_tools(aside):
    """One span of a tool, a model or an agent does."""
    around = below("SELECT", ASIDE[aside])
    assert "none of its spans is of a tool, a model or an agent" in read(around).missing


@each_row("of", OF_AGENTS)
def test_a_span_of_a_tool_a_model_or_an_agent_says_that_the_turn_is_traced(of):
    """Also beside others; not if it is a part of a guardrail, which has a model of its own."""
    for attributes in ASIDE.values():
        assert read(below("SELECT", attributes), below("turn", OF_AGENTS[of])).missing is None
    for kind in ("GUARDRAIL", "EVALUATOR", "RETRIEVER"):
        outer = below("check", {"openinference.span.kind": kind})
        middle = below("x", {}, parent=outer.span_id)
        found = read(outer, middle, below("turn", OF_AGENTS[of], parent=middle.span_id))
        assert "none of its spans" in found.missing
        assert [call.name for call in found.calls] == (["refund"] if of == "tool" else [])


def test_an_operation_that_is_a_list_is_none():
    """An agent may send any value under any name; it shows nothing of tools."""
    found = read(below("chat", {"gen_ai.operation.name": ["chat"]}))
    assert (found.calls, found.input_tokens) == ((), None)
    assert "none of its spans is of a tool" in found.missing


def test_a_text_that_spans_repeat_is_kept_once_for_people():
    """Every call of a model is sent the same instructions; calls of tools stay as they are."""
    instructions, other = "Be kind. " * 50, "Be brief. " * 50
    texts = [instructions, instructions, other, instructions, "short", "short"]
    models = [
        below("chat", {"gen_ai.operation.name": "chat", "gen_ai.system_instructions": text}, at=at)
        for at, text in enumerate(texts)
    ]
    long = CAPTURED | {"gen_ai.tool.call.arguments": json.dumps({"note": "x" * 500})}
    tools = [below("tool", long | {"gen_ai.tool.call.id": f"c{at}"}, at=20 * at) for at in (1, 2)]
    found = read(*models, *tools)
    kept = [one["attributes"].get("gen_ai.system_instructions") for one in found.spans]
    assert list(filter(None, kept)) == [
        instructions,
        AS_BEFORE,
        other,
        instructions,
        "short",
        "short",
    ]
    assert [call.arguments for call in found.calls] == [{"note": "x" * 500}] * 2


def test_more_calls_than_anybody_checks():
    """They end somewhere, and are incomplete then."""
    flood = [below("tool", GENAI | {"gen_ai.tool.call.id": f"c{i}"}, at=i) for i in range(1500)]
    found = read(*flood)
    assert (len(found.calls), found.missing is None) == (1000, False)


def test_spans_belong_to_their_turn():
    """By their ancestors, whenever they arrive; without any by the time at which they began."""
    turns = [TurnSpan("a" * 16, 0), TurnSpan("b" * 16, 100 * 10**6)]
    first, second = span("POST", "a" * 16, at=5), span("POST", "b" * 16, at=105)
    background = span("work", first.span_id, at=150)
    orphan, early = span("other", "c" * 16, at=120), span("other", "", at=20)
    settled = span("late", "e" * 16, at=130)
    spans = {each.span_id: each for each in (first, second, background, orphan, early, settled)}
    belonging = by_turn(spans, turns, {"e" * 16: "a" * 16})
    assert belonging == {"a" * 16: [first, background, early, settled], "b" * 16: [second, orphan]}


def test_a_circle_of_parents_ends():
    """Hostile spans hold nothing up."""
    one, two = span("x", "2" * 16, span_id="3" * 16), span("y", "3" * 16, span_id="2" * 16)
    assert evidence.read([one, two]).calls == ()
    assert evidence.progress([one, two], TURN, 1) == Progress.BROKEN
    turns = [TurnSpan(TURN, 0)]
    assert by_turn({each.span_id: each for each in (one, two)}, turns, {}) == {TURN: [one, two]}


@pytest.mark.parametrize(
    ("attributes", "complete"),
    [
        ({"gen_ai.operation.name": "chat", "gen_ai.completion.0.content": "Hello"}, False),
        (GENAI, False),
        ({}, False),
        ({"openinference.span.kind": "RETRIEVER"}, True),
        ({"gen_ai.operation.name": "invoke_agent"}, True),
    ],
)
def test_a_span_of_which_attributes_were_dropped_may_have_shown_calls(attributes, complete):
    """SDKs keep 128, and may drop the calls of a model, or what makes a span one of a tool."""
    agent = below("turn", {"gen_ai.operation.name": "invoke_agent"})
    found = read(agent, below("x", attributes, cut=True))
    assert (found.missing is None) == complete
    assert complete or "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in found.missing
    assert read(agent, below("x", attributes)).missing is None
