"""Spans of each dialect as evidence: every call once, in order, with its arguments."""

import json

import pytest

from ci_evals.adapters.otlp import evidence
from ci_evals.adapters.otlp.evidence import Progress, TurnSpan
from ci_evals.adapters.otlp.spans import TOO_LONG, Event, Span

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


@pytest.mark.parametrize("dialect", DIALECTS)
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


@pytest.mark.parametrize(
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


def test_an_answer_too_long_to_be_kept_may_hold_calls():
    """So the evidence is not complete."""
    model = below("chat", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": TOO_LONG})
    assert "more than 1,000,000 characters" in read(model).missing


@pytest.mark.parametrize(
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


def test_spans_of_a_web_framework_alone_say_nothing_of_tools():
    """One span of an agent, a model or a graph does."""
    request = below("SELECT", {"some.key": 1})
    assert "none of its spans is of a tool, a model or an agent" in read(request).missing
    for attributes in (
        {"gen_ai.operation.name": "invoke_agent"},
        {"openinference.span.kind": "CHAIN"},
        {"traceloop.span.kind": "workflow"},
        {"ai.operationId": "ai.generateText"},
    ):
        assert read(request, below("turn", attributes)).missing is None


def test_an_operation_that_is_a_list_is_none():
    """An agent may send any value under any name."""
    found = read(below("chat", {"gen_ai.operation.name": ["chat"]}))
    assert (found.calls, found.input_tokens, found.missing) == ((), None, None)


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
        evidence.AS_BEFORE,
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
    by_turn = evidence.by_turn(spans, turns, {"e" * 16: "a" * 16})
    assert by_turn == {"a" * 16: [first, background, early, settled], "b" * 16: [second, orphan]}


def test_a_circle_of_parents_ends():
    """Hostile spans hold nothing up."""
    one, two = span("x", "2" * 16, span_id="3" * 16), span("y", "3" * 16, span_id="2" * 16)
    assert evidence.read([one, two]).calls == ()
    assert evidence.progress([one, two], TURN, 1) == Progress.BROKEN
    turns = [TurnSpan(TURN, 0)]
    assert evidence.by_turn({each.span_id: each for each in (one, two)}, turns, {}) == {TURN: [one, two]}
