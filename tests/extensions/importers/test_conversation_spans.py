"""Spans in files as conversations: the forms of files, the dialects, and what belongs to a turn."""

import base64
import json
import re
from pathlib import Path

import pytest
from each_row import each_row
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.conversations import otlp
from ci_evals.extensions.importers.conversations.recorded_file import RecordedFile
from ci_evals.extensions.importers.imported import ImportedSuite

RECORDED = Path(__file__).parents[1] / "spans/recorded"


def value(item):
    if isinstance(item, str):
        return {"stringValue": item}
    return {"intValue": str(item)} if isinstance(item, int) else {"stringValue": json.dumps(item)}


def span(number, name, parent=0, trace=1, **attributes):
    """A span that begins in the second of its number; `__` in names of attributes is a point."""
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str(number * 10**9 + 5 * 10**8),
        "attributes": [
            {"key": key.replace("__", "."), "value": value(item)} for key, item in attributes.items()
        ],
    }


def request(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def messages(role, *texts):
    return [{"role": role, "parts": [{"type": "text", "content": text}]} for text in texts]


def turn(number, user_text, answered, conversation="c-1"):
    """A turn in GenAI's words: an agent, its tool and the model that answers."""
    return [
        span(number, "invoke_agent", trace=number, gen_ai__operation__name="invoke_agent",
             gen_ai__conversation__id=conversation),
        span(number + 1, "execute_tool refund", number, number, gen_ai__operation__name="execute_tool",
             gen_ai__tool__name="refund", gen_ai__tool__call__arguments={"order": user_text[-3:]}),
        span(number + 2, "chat", number, number, gen_ai__operation__name="chat",
             gen_ai__input__messages=messages("user", user_text),
             gen_ai__output__messages=messages("assistant", answered)),
    ]  # fmt: skip


TURNS = [*turn(10, "refund A-1", "Done"), *turn(20, "refund B-2", "Done too")]
TURNS += turn(30, "refund C-3", "ok", "c-2")


def read(data, name="spans.json"):
    imported = ImportedSuite("-")
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return otlp.read(RecordedFile(name, raw), imported), imported


def turns_of(conversations):
    return [
        (one.name, [(t.user, t.agent, [(c.name, c.arguments) for c in t.tool_calls]) for t in one.turns])
        for one in conversations
    ]


EXPECTED = [
    ("c-1", [
        ("refund A-1", "Done", [("refund", {"order": "A-1"})]),
        ("refund B-2", "Done too", [("refund", {"order": "B-2"})]),
    ]),
    ("c-2", [("refund C-3", "ok", [("refund", {"order": "C-3"})])]),
]  # fmt: skip


def packed(*spans):
    return ParseDict(hexed(request(*spans)), ExportTraceServiceRequest()).SerializeToString()


def hexed(data):
    """Ids as protobuf's own JSON wants them, in base 64."""
    text = json.dumps(data)
    for one in data["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            text = text.replace(f'"{one[key]}"', f'"{base64.b64encode(bytes.fromhex(one[key])).decode()}"')
    return json.loads(text)


def snake(item):
    if isinstance(item, dict):
        return {re.sub(r"([A-Z])", r"_\1", key).lower(): snake(inner) for key, inner in item.items()}
    return [snake(inner) for inner in item] if isinstance(item, list) else item


FILES = {
    "a request": json.dumps(request(*TURNS)).encode(),
    "a request a line": b"\n".join(json.dumps(request(one)).encode() for one in TURNS),
    "protobuf": packed(*TURNS),
    "protobuf after lengths": b"".join(
        len(one).to_bytes(4, "big") + one for one in (packed(*TURNS[:4]), packed(*TURNS[4:]))
    ),
    "Phoenix's list": json.dumps({"data": snake(TURNS), "next_cursor": None}).encode(),
    "Phoenix's download": json.dumps(snake(request(*TURNS))).encode(),
    "a list of spans": json.dumps(TURNS).encode(),
}


@each_row("data", FILES.values(), ids=FILES)
def test_every_file_format_of_spans_gives_the_same_conversations(data):
    conversations, imported = read(data)
    assert turns_of(conversations) == EXPECTED
    assert imported.notes == []
    assert conversations[0].turns[0].latency_seconds == 0.5


@pytest.mark.parametrize("name", ["langgraph", "pydantic-ai"])
def test_recorded_framework_traces_give_user_message_answer_and_calls(name):
    [(_, [(user_text, answered, calls)])] = turns_of(read((RECORDED / f"{name}.json").read_bytes())[0])
    assert (user_text, answered) == ("Refund", "Done")
    assert calls == [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": 42})]


DIALECTS = {
    "OpenInference": [
        span(1, "agent", openinference__span__kind="AGENT", session__id="s", input__value="refund A-1",
             output__value="Done"),
        span(2, "refund", 1, openinference__span__kind="TOOL", tool__name="refund",
             input__value={"order": "A-1"}),
    ],
    "Langfuse": [
        span(1, "turn", langfuse__observation__type="agent", langfuse__session__id="s",
             langfuse__observation__input={"messages": [{"role": "user", "content": "refund A-1"}]},
             langfuse__observation__output={"role": "assistant", "content": "Done"}),
        span(2, "refund", 1, langfuse__observation__type="tool",
             langfuse__observation__input={"order": "A-1"}),
    ],
    "LangSmith": [
        span(1, "graph", langsmith__span__kind="chain", langsmith__metadata__session_id="s",
             gen_ai__prompt={"messages": [{"role": "human", "content": "refund A-1"}]},
             gen_ai__completion={"messages": [{"role": "ai", "content": "Done"}]}),
        span(2, "refund", 1, langsmith__span__kind="tool", langsmith__trace__name="refund",
             gen_ai__prompt={"order": "A-1"}),
    ],
    "Traceloop": [
        span(1, "chat", llm__request__type="chat", traceloop__association__properties__session_id="s",
             gen_ai__prompt__0__role="user", gen_ai__prompt__0__content="refund A-1",
             gen_ai__completion__0__role="assistant", gen_ai__completion__0__content="Done"),
        span(2, "refund.tool", 1, traceloop__span__kind="tool", traceloop__entity__name="refund",
             traceloop__entity__input={"inputs": {"order": "A-1"}, "input_str": ""}),
    ],
    "AI SDK": [
        span(1, "ai.generateText", ai__operationId="ai.generateText", ai__telemetry__metadata__sessionId="s",
             ai__prompt={"messages": [{"role": "user", "content": "refund A-1"}]}, ai__response__text="Done"),
        span(2, "ai.toolCall", 1, ai__operationId="ai.toolCall", ai__toolCall__name="refund",
             ai__toolCall__args={"order": "A-1"}),
    ],
}  # fmt: skip


@each_row("spans", DIALECTS.values(), ids=DIALECTS)
def test_every_span_convention_gives_the_same_turn(spans):
    conversations, _ = read(request(*spans))
    assert turns_of(conversations) == [("s", [("refund A-1", "Done", [("refund", {"order": "A-1"})])])]


AT = "2026-11-28T10:00:{:02}"
PHOENIX = [
    {
        "name": name, "span_kind": kind, "parent_id": parent,
        "context": {"trace_id": "t", "span_id": span_id},
        "start_time": AT.format(number) + "+00:00", "end_time": AT.format(number + 1) + "+00:00",
        "status_code": "OK", "attributes": {"session.id": "s", **attributes},
    }
    for number, (span_id, parent, name, kind, attributes) in enumerate([
        ("1", None, "agent", "AGENT", {"input.value": "refund A-1", "output.value": "Done"}),
        ("2", "1", "refund", "TOOL", {"tool.name": "refund", "input.value": {"order": "A-1"}}),
    ])
]  # fmt: skip
LANGFUSE = [
    {
        "id": "1", "traceId": "t", "parentObservationId": None, "type": "AGENT", "name": "turn",
        "startTime": AT.format(0) + ".000Z", "endTime": AT.format(1) + ".000Z",
        "input": {"messages": [{"role": "user", "content": "refund A-1"}]},
        "output": {"role": "assistant", "content": "Done"},
    },
    {
        "id": "2", "traceId": "t", "parentObservationId": "1", "type": "TOOL", "name": "refund",
        "startTime": AT.format(0) + ".100Z", "endTime": AT.format(0) + ".200Z", "input": {"order": "A-1"},
    },
]  # fmt: skip
LANGSMITH = [
    {
        "id": "1", "trace_id": "1", "parent_run_id": None, "run_type": "chain", "name": "graph",
        "start_time": AT.format(0), "end_time": AT.format(1), "extra": {"metadata": {"thread_id": "s"}},
        "inputs": {"messages": [{"role": "user", "content": "refund A-1"}]},
        "outputs": {"messages": [{"type": "ai", "content": "Done"}]},
    },
    {
        "id": "2", "trace_id": "1", "parent_run_id": "1", "run_type": "tool", "name": "refund",
        "start_time": AT.format(0), "end_time": AT.format(1), "inputs": {"order": "A-1"},
    },
]  # fmt: skip
EXPORTS = {
    "Phoenix, a span a line": b"\n".join(json.dumps(row).encode() for row in PHOENIX),
    "Phoenix, a list": json.dumps(PHOENIX).encode(),
    "Langfuse, a trace": json.dumps({"id": "t", "sessionId": "s", "observations": LANGFUSE}).encode(),
    "Langfuse, a file of observations": b"\n".join(
        json.dumps(snake({**row, "sessionId": "s"})).encode() for row in LANGFUSE
    ),
    "LangSmith, runs": json.dumps(LANGSMITH).encode(),
}


@each_row("data", EXPORTS.values(), ids=EXPORTS)
def test_vendor_exports_give_the_same_turn_with_its_latency(data):
    conversations, _ = read(data)
    assert turns_of(conversations) == [("s", [("refund A-1", "Done", [("refund", {"order": "A-1"})])])]
    assert conversations[0].turns[0].latency_seconds == 1


def model(number, user_text, answered, calls=(), conversation="c"):
    """A call of a model that is a trace of its own, with all earlier messages."""
    output = messages("assistant", answered) if answered else [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": name, "name": name, "arguments": {}}
                                        for name in calls]}
    ]  # fmt: skip
    return span(number, "chat", trace=number, gen_ai__operation__name="chat",
                gen_ai__conversation__id=conversation, gen_ai__input__messages=messages("user", *user_text),
                gen_ai__output__messages=output)  # fmt: skip


def test_model_calls_are_joined_into_turns_by_their_user_messages():
    """A model is called again after a tool; a repeated user message is a turn of its own."""
    spans = [model(1, ["yes"], "", ["look"]), model(2, ["yes"], "First"), model(3, ["yes", "yes"], "Second")]
    [(_, turns)] = turns_of(read(request(*spans))[0])
    assert turns == [("yes", "First", [("look", {})]), ("yes", "Second", [])]


def test_agents_with_one_input_in_one_trace_are_one_turn():
    first, second = (
        span(number, "agent", trace=9, openinference__span__kind="AGENT", session__id="s",
             input__value="refund A-1", output__value=answered)
        for number, answered in ((1, "I pass you on"), (2, "Done"))
    )  # fmt: skip
    [(_, turns)] = turns_of(read(request(first, second))[0])
    assert [(user_text, answered) for user_text, answered, _ in turns] == [("refund A-1", "Done")]


def test_spans_without_content_are_left_out_and_missing_times_give_0_latency():
    mute = span(40, "chat", trace=40, gen_ai__operation__name="chat", gen_ai__conversation__id="mute")
    conversations, imported = read(request(*TURNS, mute))
    assert [one.name for one in conversations] == ["c-1", "c-2"]
    [note] = imported.left_out
    assert "mute: its spans do not show what the user said" in note
    times = {"startTimeUnixNano": "0", "endTimeUnixNano": "1795453855136000000"}
    spans = [one | times for one in turn(10, "refund A-1", "Done")]
    [conversation], _ = read(request(*spans))
    assert conversation.turns[0].latency_seconds == 0


def test_invalid_span_file_is_refused_with_the_reason():
    for data, message in (
        (b"", "the file is empty"),
        (FILES["a request"][:90], "not JSON"),
        (FILES["protobuf"][:90], "neither JSON nor OTLP in protobuf"),
        (b"\x1f\x8b\x08", "is packed by gzip. Unpack it first."),
        (b"{}", "is neither an OTLP request"),
        (json.dumps(request()).encode(), "the file holds no spans"),
    ):
        with pytest.raises(UsageError) as caught:
            read(data)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
