"""The receiver of spans, over HTTP: what it takes, what it refuses, and whose spans they are."""

import asyncio
import gc
import gzip
import io
import json
import math
import time
import zlib
from contextlib import asynccontextmanager

import aiohttp
import emitting
import pytest
from each_row import each_row
from emitting import AGENT, JSON, PROTOBUF, TOOL, as_json, as_protobuf, server, span

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.span_reading import spans as decoding
from ci_evals.extensions.spans import receiver as receiving
from ci_evals.extensions.spans import trial_trace
from ci_evals.extensions.spans.receiver import Receiver
from ci_evals.support.redaction import Redactor


@asynccontextmanager
async def running(**options):
    receiver = Receiver(**{"port": 0} | options)
    await receiver.start()
    try:
        yield receiver
    finally:
        await receiver.end()


@pytest.fixture
async def receiver():
    async with running() as one:
        yield one


async def post(receiver, body, content_type=JSON, **headers) -> tuple[int, str, str]:
    """Send an export; return the answer's status, type and text."""
    headers |= {"Content-Type": content_type} if content_type else {}
    async with (
        aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as client,
        client.post(f"{receiver.endpoint}/v1/traces", data=io.BytesIO(body), headers=headers) as answer,
    ):
        return answer.status, answer.content_type, await answer.text(errors="replace")


def begin_trial(receiver):
    trial = receiver.begin_trial()
    return trial, trial.begin_turn().headers["traceparent"]


ENCODINGS = {
    "json": (as_json, JSON, {}),
    "json with charset": (as_json, "application/json; charset=utf-8", {}),
    "protobuf": (as_protobuf, PROTOBUF, {}),
    "json, deflated": (lambda *s: zlib.compress(as_json(*s)), JSON, {"Content-Encoding": "deflate"}),
    "json, zipped": (lambda *s: gzip.compress(as_json(*s)), JSON, {"Content-Encoding": "gzip"}),
    "protobuf, zipped": (lambda *s: gzip.compress(as_protobuf(*s)), PROTOBUF, {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_spans_are_received_in_every_encoding(receiver, encoding):
    encode, content_type, headers = ENCODINGS[encoding]
    odd = {"list": [1, "two", 2.5, True], "object": {"deep": {"er": ["x"]}}, "empty": []}
    trial, header = begin_trial(receiver)
    event = {"name": "happened", "attributes": span(attributes={"why": "so"})["attributes"]}
    sent = server(header, attributes=TOOL | odd, events=[event], status={"code": 2})
    status, answered, _ = await post(receiver, encode(sent), content_type, **headers)
    assert (status, answered) == (200, content_type.partition(";")[0])
    (kept,) = trial.pending.values()
    assert (kept.attributes, kept.failed, kept.is_server, kept.scope) == (TOOL | odd, True, True, "agent")
    assert [(each.name, each.attributes) for each in kept.events] == [("happened", {"why": "so"})]
    assert kept.end_ns - kept.start_ns == 10**9


UNREADABLE = {
    "no type": (b"{}", "", 415),
    "another type": (b"{}", "text/plain", 415),
    "no JSON": (b"{", JSON, 400),
    "a list": (b"[]", JSON, 400),
    "no protobuf": (b"\xff\xff\xff", PROTOBUF, 400),
    "deep": (b'{"resourceSpans":' + b"[" * 100_000, JSON, 400),
    "many values": (b"[" + b"1," * 3_000_000 + b"1]", JSON, 400),
    "a long number": (b'{"x":' + b"9" * 5000 + b"}", JSON, 400),
    "too large": (b" " * (decoding.MAX_BYTES + 1), JSON, 413),
    "a bomb": (gzip.compress(b" " * 2 * decoding.MAX_BYTES, compresslevel=1), JSON, 413),
    "broken gzip": (b"\x1f\x8b\x08\x00no", JSON, 400),
    "half of gzip": (gzip.compress(as_json(span()))[:40], JSON, 400),
    "gzip with a broken end": (gzip.compress(as_json(span()))[:-8] + b"x" * 8, JSON, 400),
    "gzip with a broken middle": (gzip.compress(as_json(span()))[:20] + b"\xff" * 60, JSON, 400),
    "gzip and more": (gzip.compress(as_json(span())) + b"more", JSON, 400),
    "packed, but no JSON": (gzip.compress(b"{"), JSON, 400),
    "packed, but no protobuf": (gzip.compress(b"\xff\xff\xff"), PROTOBUF, 400),
    "half a message": (as_protobuf(span())[:-3], PROTOBUF, 400),
    "many spans": (as_protobuf(*[span()] * (decoding.MAX_SPANS + 1)), PROTOBUF, 400),
}
ENCODED = {
    "plain said to be gzip": (as_json(span()), "gzip", 400),
    "plain said to be deflate": (as_json(span()), "deflate", 400),
    "gzip said to be deflate": (gzip.compress(as_json(span())), "deflate", 400),
    "an empty body said to be gzip": (b"", "gzip", 400),
    "brotli": (b"\x8b\x02\x80{}\x03", "br", 415),
    "zstd": (b"(\xb5/\xfd", "zstd", 415),
    "several": (gzip.compress(gzip.compress(b"{}")), "gzip, gzip", 415),
    "nonsense": (b"{}", "x" * 500, 415),
}


REFUSED = {name: (*row, "gzip" if row[0][:2] == b"\x1f\x8b" else "") for name, row in UNREADABLE.items()}
REFUSED |= {name: (body, JSON, status, encoding) for name, (body, encoding, status) in ENCODED.items()}


@pytest.mark.parametrize("fault", REFUSED)
async def test_unreadable_export_is_refused_without_output(fault, capfd, caplog):
    body, content_type, expected, encoding = REFUSED[fault]
    headers = {"Content-Encoding": encoding} if encoding else {}
    async with running() as receiver:
        status, _, text = await post(receiver, body, content_type, **headers)
        assert (status, len(text) < 300, "Traceback" in text) == (expected, True, False)
        trial, header = begin_trial(receiver)
        assert ((await post(receiver, as_json(server(header))))[0], len(trial.pending)) == (200, 1)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def nested_arrays(levels):
    return {"arrayValue": {"values": [nested_arrays(levels - 1)]}} if levels else {"stringValue": "x"}


async def test_base64_ids_are_decoded_and_malformed_ids_dropped(receiver):
    malformed = [{"spanId": text} for text in ("12", "z" * 16, "é" * 12, "")]
    malformed.append({"traceId": 7, "spanId": None})
    trial, header = begin_trial(receiver)
    _, trace_id, parent_id, _ = header.split("-")
    ids = {"traceId": trace_id, "spanId": "ab" * 8, "parentSpanId": parent_id}
    encoded = span(header) | {name: emitting.base_64(value) for name, value in ids.items()}
    export = as_json(*(span(header) | each for each in malformed), encoded)
    assert (await post(receiver, export))[0] == 200
    assert [each.parent_id for each in trial.pending.values()] == [parent_id]


CUT_SPANS = {
    "whole": ({}, False),
    "dropped attributes": ({"droppedAttributesCount": 1}, True),
    "dropped events": ({"droppedEventsCount": 2}, True),
    "none dropped": ({"droppedAttributesCount": 0, "droppedEventsCount": "0"}, False),
    "too many attributes": ({"attributes": [{"key": str(n), "value": {}} for n in range(2001)]}, True),
    "too many events": ({"events": [{"name": "e", "attributes": []}] * 2001}, True),
}


@each_row("cut", CUT_SPANS)
@each_row(("encode", "content_type"), [(as_json, JSON), (as_protobuf, PROTOBUF)])
async def test_span_with_dropped_or_excess_parts_is_marked_as_truncated(cut, encode, content_type):
    fields, expected = CUT_SPANS[cut]
    async with running() as receiver:
        trial, header = begin_trial(receiver)
        assert (await post(receiver, encode(span(header) | fields), content_type))[0] == 200
        assert [each.cut for each in trial.pending.values()] == [expected]


ODD_VALUES = {
    "deep": nested_arrays(20),
    "deeper": nested_arrays(90),
    "nan": {"doubleValue": math.nan},
    "half": {"stringValue": "\ud800"},
    "unknown": {"someValue": 1},
    "long": {"intValue": "9" * 400},
}


async def test_malformed_span_values_are_left_out_and_the_call_is_read(receiver):
    attributes = [None, {"key": None, "value": {"stringValue": "x"}}, *span(attributes=TOOL)["attributes"]]
    attributes += [{"key": key, "value": value} for key, value in ODD_VALUES.items()]
    hostile = {"startTimeUnixNano": "9" * 400, "endTimeUnixNano": -5, "name": ["no", "text"], "status": "no"}
    hostile |= {"events": [None, {"name": 3, "attributes": "no"}], "attributes": attributes}
    trial, header = begin_trial(receiver)
    assert (await post(receiver, as_json(span(header) | hostile)))[0] == 200
    result = trial.settle()
    assert [call.name for call in result.calls] == ["refund"]
    json.dumps(result.spans, allow_nan=False).encode()


async def test_overlong_span_arguments_are_not_captured(receiver):
    long = "x" * 5_000_000
    trial, header = begin_trial(receiver)
    big = span(header, TOOL | {"gen_ai.tool.call.arguments": long, "prompt": long})
    await post(receiver, as_protobuf(big, server(header)), PROTOBUF)
    result = trial.settle()
    (call,) = result.calls
    assert call.arguments is None
    assert "more than 1,000,000 characters" in call.not_captured
    assert result.missing is None
    assert len(json.dumps(result.spans)) < 10_000


async def test_spans_beyond_turn_limit_make_only_that_turn_incomplete(receiver, monkeypatch):
    monkeypatch.setattr(trial_trace, "MAX_TURN_SPANS", 100)
    trial, header = begin_trial(receiver)
    await post(receiver, as_json(server(header), *(span(header) for _ in range(150))))
    assert len(trial.pending) == 100
    assert trial.settle().missing
    header = trial.begin_turn().headers["traceparent"]
    await post(receiver, as_json(server(header, attributes=AGENT)))
    assert trial.settle().missing is None


@pytest.fixture
def few_objects():
    """Leave the objects of other tests out of garbage collections, which would hold up the loop."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.slow  # it computes
@pytest.mark.usefixtures("few_objects")
async def test_decoding_large_export_does_not_block_event_loop(receiver):
    """While large exports are read, everything else goes on.

    Counted in processor time of the loop's thread, which neighbors on a busy machine do not lengthen.
    """
    trial, header = begin_trial(receiver)
    flood = as_protobuf(*(span(header, TOOL | {"more": "x" * 200}) for _ in range(10_000)))
    started = time.thread_time()
    decoding.read(flood, PROTOBUF)
    reading = time.thread_time() - started
    longest, done = 0.0, asyncio.Event()

    async def tick():
        nonlocal longest
        while not done.is_set():
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    assert (await post(receiver, flood, PROTOBUF))[0] == 200
    done.set()
    await ticking
    assert len(trial.pending) == 10_000
    assert longest < reading / 2


async def test_spans_belong_to_trial_by_header_or_conversation():
    async with running() as receiver:
        trials = [begin_trial(receiver) for _ in range(5)]
        sent = [span(header, TOOL | {"gen_ai.tool.name": f"t{i}"}) for i, (_, header) in enumerate(trials)]
        await post(receiver, as_json(*sent, span(attributes=TOOL)))
        names = [[call.name for call in trial.settle().calls] for trial, _ in trials]
        assert names == [[f"t{i}"] for i in range(5)]
        (note,) = receiver.notes(Redactor())
        assert note.startswith("1 spans")
    foreign = {"traceId": "d" * 32, "parentSpanId": ""}
    async with running() as receiver:
        trial, _ = begin_trial(receiver)
        receiver.name_conversation(trial, "c-1")
        root = span(attributes={"gen_ai.conversation.id": "c-1"}) | foreign
        below = span(attributes=TOOL) | foreign | {"parentSpanId": root["spanId"]}
        other = span(attributes={"session.id": "c-2"} | TOOL)
        await post(receiver, as_json(below, other))
        assert not trial.pending
        await post(receiver, as_json(root))
        result = trial.settle()
        assert ([call.name for call in result.calls], result.missing) == (["refund"], None)
        receiver.end_trial(trial)
        assert not receiver._trials
        assert not receiver._conversations


async def test_late_tool_spans_mark_turn_incomplete_or_cause_a_note():
    async with running() as receiver:
        trial, first = begin_trial(receiver)
        await post(receiver, as_json(server(first, attributes=AGENT)))
        assert trial.settle().missing is None
        for attributes, complete in (({}, True), (TOOL, False)):
            second = trial.begin_turn().headers["traceparent"]
            await post(receiver, as_json(span(first, attributes), server(second, attributes=AGENT)))
            result = trial.settle()
            assert (result.calls, result.missing is None) == ((), complete)
    async with running() as receiver:
        trial, header = begin_trial(receiver)
        receiver.end_trial(trial)
        await post(receiver, as_json(span(header, TOOL), span(header)))
        (note,) = receiver.notes(Redactor())
        assert note.startswith("1 spans with tool or model calls came after")
        assert "OTEL_BSP_SCHEDULE_DELAY=200" in note


@each_row(
    ("body", "content_type", "headers"),
    [
        (b"no protobuf", PROTOBUF, {}),
        (b"{}", "text/plain", {}),
        (b"not packed", JSON, {"Content-Encoding": "gzip"}),
        (b"x" * (decoding.MAX_BYTES + 1), JSON, {}),
    ],
)
async def test_refused_span_export_makes_only_current_turn_incomplete(body, content_type, headers):
    async with running() as receiver:
        trial, header = begin_trial(receiver)
        status, _, _ = await post(receiver, body, content_type, **headers)
        assert 400 <= status < 500
        await post(receiver, as_json(server(header, attributes=AGENT)))
        assert "refused" in trial.settle().missing
        header = trial.begin_turn().headers["traceparent"]
        await post(receiver, as_json(server(header, attributes=AGENT)))
        assert trial.settle().missing is None


async def test_spans_of_shared_trace_are_assigned_only_by_conversation_name():
    foreign = {"traceId": "d" * 32, "parentSpanId": ""}

    def of(name: str, tool: str) -> dict:
        return span(attributes=TOOL | {"gen_ai.tool.name": tool, "gen_ai.conversation.id": name}) | foreign

    async with running() as receiver:
        (one, _), (other, _) = begin_trial(receiver), begin_trial(receiver)
        receiver.name_conversation(one, "c-1")
        receiver.name_conversation(other, "c-2")
        unnamed = span(attributes=TOOL) | foreign
        await post(receiver, as_json(of("c-1", "a"), of("c-2", "b"), unnamed, of("c-1", "c")))
        result = [trial.settle() for trial in (one, other)]
        assert [[call.name for call in each.calls] for each in result] == [["a", "c"], ["b"]]
        assert all("several conversations" in each.missing for each in result)
        assert next(iter(receiver.notes(Redactor()))).startswith("1 spans")
    async with running() as receiver:
        trials = [begin_trial(receiver)[0] for _ in range(2)]
        for trial in trials:
            receiver.name_conversation(trial, "c-1")
        named = span(attributes=TOOL | {"gen_ai.conversation.id": "c-1"}, traceId="d" * 32, parentSpanId="")
        await post(receiver, as_json(named))
        assert [trial.settle() for trial in trials] == [None, None]


async def test_turn_is_incomplete_if_unassigned_spans_were_dropped(monkeypatch):
    """They may be spans of that turn."""
    monkeypatch.setattr(receiving, "MAX_UNCLAIMED_SPANS", 3)
    foreign = {"traceId": "d" * 32, "parentSpanId": ""}
    async with running() as receiver:
        trial, _ = begin_trial(receiver)
        receiver.name_conversation(trial, "c-1")
        await post(receiver, as_json(span(attributes=TOOL) | foreign))
        await post(receiver, as_json(*(span(attributes=TOOL, traceId=f"{n:032x}") for n in range(3))))
        await post(receiver, as_json(span(attributes={"gen_ai.conversation.id": "c-1"}) | foreign))
        assert trial.settle().missing


async def test_kept_unassigned_spans_are_capped_and_all_counted_in_a_note(monkeypatch):
    monkeypatch.setattr(receiving, "MAX_UNCLAIMED_SPANS", 10)
    async with running() as receiver:
        for number in range(30):
            await post(receiver, as_json(span(attributes=TOOL, traceId=f"{number:032x}"), scope=str(number)))
        assert sum(len(each.spans) for each in receiver._unclaimed.values()) <= 10
        (note,) = receiver.notes(Redactor())
    assert note.startswith("30 spans")


async def test_note_on_unassigned_spans_is_short_and_redacted():
    async with running() as receiver:
        for scope in ("key-5d1c0f77", "x" * 5000, *map(str, range(9))):
            await post(receiver, as_json(span(attributes=TOOL), scope=scope))
        (note,) = receiver.notes(Redactor(keys=["key-5d1c0f77"]))
    assert note.startswith("11 spans")
    assert ("key-5d1c0f77" in note, len(note) < 800) == (False, True)


async def test_unusable_port_or_host_is_usage_error():
    async with running() as first:
        port = int(first.endpoint.rpartition(":")[2])
        with pytest.raises(UsageError, match=rf"127\.0\.0\.1:{port}: .*in use; set `otlp_port=`"):
            Receiver(port=port)
        async with running() as second:
            assert second.endpoint != first.endpoint
    async with running(port=port):
        pass
    for host in ("192.0.2.1", "no.such.host.invalid", "two..dots", "x" * 80):
        with pytest.raises(UsageError, match="`otlp_host=`"):
            Receiver(host, 0)
    with pytest.raises(UsageError, match="the highest port is 65535"):
        Receiver(port=70_000)


async def test_agent_environment_points_to_receiver():
    async with running(host="0.0.0.0") as receiver:
        kept = {"OTEL_BSP_SCHEDULE_DELAY": "50", "A": "b"}
        environ = receiver.environment(kept | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://prod"})
        added = {"ENDPOINT": receiver.endpoint, "PROTOCOL": "http/protobuf"}
        assert environ == kept | {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in added.items()}
        assert receiver.endpoint.startswith("http://127.0.0.1:")


ABORTED_REQUESTS = {
    "a chunk that is none": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "half a chunk": b"Transfer-Encoding: chunked\r\n\r\n400\r\nhalf",
    "half a body": b"Content-Length: 1000\r\n\r\nhalf",
    "half of gzip": b"Content-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b\x08\x00",
    "no length": b"Content-Length: many\r\n\r\n{}",
}


async def begin_export(receiver, rest: bytes):
    _, port = receiver.endpoint.rsplit(":", 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + rest)
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("fault", ABORTED_REQUESTS)
async def test_aborted_export_leaves_no_traceback_and_receiver_continues(fault, capfd, caplog):
    async with running() as receiver:
        reader, writer = await begin_export(receiver, ABORTED_REQUESTS[fault])
        writer.write_eof()
        await reader.read()
        writer.close()
        trial, header = begin_trial(receiver)
        assert ((await post(receiver, as_json(server(header))))[0], len(trial.pending)) == (200, 1)
    assert "Traceback" not in "".join(capfd.readouterr())
    assert not [record for record in caplog.records if record.exc_info]


async def test_receiver_stops_despite_unfinished_export():
    async with running() as receiver:
        _, writer = await begin_export(receiver, ABORTED_REQUESTS["half a body"])
        started = time.monotonic()
    assert time.monotonic() - started < 30  # it would wait for 60
    writer.close()
