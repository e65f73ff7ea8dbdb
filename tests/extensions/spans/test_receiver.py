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
    """A receiver on a free port."""
    receiver = Receiver(**{"port": 0} | options)
    await receiver.start()
    try:
        yield receiver
    finally:
        await receiver.end()


async def post(receiver, body, content_type=JSON, **headers) -> tuple[int, str, str]:
    """Send an export; return the answer's status, type and text."""
    headers |= {"Content-Type": content_type} if content_type else {}
    async with (
        aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as client,
        client.post(f"{receiver.endpoint}/v1/traces", data=io.BytesIO(body), headers=headers) as answer,
    ):
        return answer.status, answer.content_type, await answer.text(errors="replace")


def begun(receiver):
    """A trial with one turn, and the header of its requests."""
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
async def test_spans_arrive_in_every_encoding(encoding):
    """With every kind of value, and the answer is in the encoding of the question."""
    encode, content_type, headers = ENCODINGS[encoding]
    odd = {"list": [1, "two", 2.5, True], "object": {"deep": {"er": ["x"]}}, "empty": []}
    async with running() as receiver:
        trial, header = begun(receiver)
        event = {"name": "happened", "attributes": span(attributes={"why": "so"})["attributes"]}
        sent = server(header, attributes=TOOL | odd, events=[event], status={"code": 2})
        status, answered, _ = await post(receiver, encode(sent), content_type, **headers)
        assert (status, answered) == (200, content_type.partition(";")[0])
        (kept,) = trial.pending.values()
    assert kept.attributes == TOOL | odd
    assert (kept.failed, kept.is_server, kept.scope) == (True, True, "agent")
    assert [(each.name, each.attributes) for each in kept.events] == [("happened", {"why": "so"})]
    assert kept.end_ns - kept.start_ns == 10**9


BAD = {
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
    "a half message": (as_protobuf(span())[:-3], PROTOBUF, 400),
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


@pytest.mark.parametrize("fault", [*BAD, *ENCODED])
async def test_unreadable_input_is_refused(fault, capfd, caplog):
    """With one line to its sender; nothing is printed, and the next export is taken."""
    if fault in ENCODED:
        body, encoding, expected = ENCODED[fault]
        content_type, headers = JSON, {"Content-Encoding": encoding}
    else:
        body, content_type, expected = BAD[fault]
        headers = {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    async with running() as receiver:
        status, _, text = await post(receiver, body, content_type, **headers)
        assert status == expected
        assert len(text) < 300
        assert "Traceback" not in text
        trial, header = begun(receiver)
        assert (await post(receiver, as_json(server(header))))[0] == 200
        assert len(trial.pending) == 1
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def depth(levels):
    nested = {"stringValue": "x"}
    for _ in range(levels):
        nested = {"arrayValue": {"values": [nested]}}
    return nested


ODD = {
    "no ids": {"traceId": 7, "spanId": None},
    "short ids": {"spanId": "12"},
    "ids of letters": {"spanId": "z" * 16},
    "ids beyond ASCII": {"spanId": "é" * 12},
    "empty": {"spanId": ""},
}


@pytest.mark.parametrize("oddity", ODD)
async def test_spans_with_ids_of_a_wrong_form_are_left_out(oddity):
    """The others of the export are kept."""
    async with running() as receiver:
        trial, header = begun(receiver)
        assert (await post(receiver, as_json(span(header) | ODD[oddity], server(header))))[0] == 200
        assert [each.is_server for each in trial.pending.values()] == [True]


CUT = {
    "whole": ({}, False),
    "dropped attributes": ({"droppedAttributesCount": 1}, True),
    "dropped events": ({"droppedEventsCount": 2}, True),
    "none dropped": ({"droppedAttributesCount": 0, "droppedEventsCount": "0"}, False),
    "too many attributes": (
        {"attributes": span(attributes={str(n): n for n in range(2001)})["attributes"]},
        True,
    ),
    "too many events": ({"events": [{"name": "e", "attributes": []}] * 2001}, True),
}


@each_row("cut", CUT)
@each_row(("encode", "content_type"), [(as_json, JSON), (as_protobuf, PROTOBUF)])
async def test_a_span_says_if_a_part_of_it_is_missing(cut, encode, content_type):
    """Its exporter dropped that, or it is beyond the limit."""
    fields, expected = CUT[cut]
    async with running() as receiver:
        trial, header = begun(receiver)
        assert (await post(receiver, encode(span(header) | fields), content_type))[0] == 200
        assert [each.cut for each in trial.pending.values()] == [expected]


async def test_ids_in_base_64_are_read():
    """As JSON written by protobuf's own rules has them."""
    async with running() as receiver:
        trial, header = begun(receiver)
        _, trace_id, parent_id, _ = header.split("-")
        encoded = {
            "traceId": emitting.base_64(trace_id),
            "spanId": emitting.base_64("ab" * 8),
            "parentSpanId": emitting.base_64(parent_id),
        }
        await post(receiver, as_json(span(header) | encoded))
        assert [each.parent_id for each in trial.pending.values()] == [parent_id]


async def test_spans_that_make_no_sense_do_no_harm():
    """Times of the far future, depths, numbers that JSON has not, halves of characters."""
    hostile = {
        "startTimeUnixNano": "9" * 400,
        "endTimeUnixNano": -5,
        "name": ["no", "text"],
        "events": [None, {"name": 3, "attributes": "no"}],
        "status": "no",
        "attributes": [
            None,
            {"key": None, "value": {"stringValue": "x"}},
            {"key": "deep", "value": depth(20)},
            {"key": "deeper", "value": depth(90)},
            {"key": "nan", "value": {"doubleValue": math.nan}},
            {"key": "half", "value": {"stringValue": "\ud800"}},
            {"key": "unknown", "value": {"someValue": 1}},
            {"key": "long", "value": {"intValue": "9" * 400}},
            *span(attributes=TOOL)["attributes"],
        ],
    }
    async with running() as receiver:
        trial, header = begun(receiver)
        assert (await post(receiver, as_json(span(header) | hostile)))[0] == 200
        found = trial.settle()
    assert [call.name for call in found.calls] == ["refund"]
    json.dumps(found.spans, allow_nan=False).encode()


async def test_a_span_of_ten_megabytes():
    """Its texts are not kept, so arguments that long are unknown; the others are."""
    long = "x" * 5_000_000
    async with running() as receiver:
        trial, header = begun(receiver)
        big = span(header, TOOL | {"gen_ai.tool.call.arguments": long, "prompt": long})
        await post(receiver, as_protobuf(big, server(header)), PROTOBUF)
        found = trial.settle()
    (call,) = found.calls
    assert call.arguments is None
    assert "more than 1,000,000 characters" in call.not_captured
    assert found.missing is None
    assert len(json.dumps(found.spans)) < 10_000


async def test_a_flood_of_spans(monkeypatch):
    """What is beyond the limit is dropped, the turn is incomplete, and the next one is whole."""
    monkeypatch.setattr(trial_trace, "MAX_TURN_SPANS", 100)
    async with running() as receiver:
        trial, header = begun(receiver)
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


@pytest.mark.usefixtures("few_objects")
async def test_a_flood_does_not_hold_up_the_run():
    """While large exports are read, everything else goes on.

    Counted in processor time of the loop's thread, which neighbors on a busy machine do not lengthen.
    """
    async with running() as receiver:
        trial, header = begun(receiver)
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


async def test_trials_side_by_side_get_their_own_spans():
    """Also from one export of an agent that serves them all."""
    async with running() as receiver:
        trials = [begun(receiver) for _ in range(5)]
        sent = [span(header, TOOL | {"gen_ai.tool.name": f"t{i}"}) for i, (_, header) in enumerate(trials)]
        await post(receiver, as_json(*sent, span(attributes=TOOL)))
        names = [[call.name for call in trial.settle().calls] for trial, _ in trials]
        assert names == [[f"t{i}"] for i in range(5)]
        (note,) = receiver.notes(Redactor())
        assert note.startswith("1 spans")


async def test_late_spans_of_an_earlier_turn_make_this_one_incomplete():
    """The earlier turn was read without them, so that nothing holds for all turns. Others do not matter."""
    async with running() as receiver:
        trial, first = begun(receiver)
        await post(receiver, as_json(server(first, attributes=AGENT)))
        assert trial.settle().missing is None
        for attributes, complete in (({}, True), (TOOL, False)):
            second = trial.begin_turn().headers["traceparent"]
            await post(receiver, as_json(span(first, attributes), server(second, attributes=AGENT)))
            found = trial.settle()
            assert (found.calls, found.missing is None) == ((), complete)


async def test_spans_after_the_end_of_their_trial():
    """Are counted if they show calls, and noted with what to do about it."""
    async with running() as receiver:
        trial, header = begun(receiver)
        receiver.end_trial(trial)
        await post(receiver, as_json(span(header, TOOL), span(header)))
        (note,) = receiver.notes(Redactor())
        assert note.startswith("1 spans with tool or model calls came after")
        assert "OTEL_BSP_SCHEDULE_DELAY=200" in note


async def test_traces_that_name_the_conversation():
    """All of their spans belong to it, also those that came before, and the evidence may be complete."""
    foreign = {"traceId": "d" * 32, "parentSpanId": ""}
    async with running() as receiver:
        trial, _ = begun(receiver)
        receiver.name_conversation(trial, "c-1")
        root = span(attributes={"gen_ai.conversation.id": "c-1"}) | foreign
        below = span(attributes=TOOL) | foreign | {"parentSpanId": root["spanId"]}
        other = span(attributes={"session.id": "c-2"} | TOOL)
        await post(receiver, as_json(below, other))
        assert not trial.pending
        await post(receiver, as_json(root))
        found = trial.settle()
        assert ([call.name for call in found.calls], found.missing) == (["refund"], None)
        receiver.end_trial(trial)
        assert not receiver._trials
        assert not receiver._conversations


@pytest.mark.parametrize(
    ("body", "content_type", "headers"),
    [
        (b"no protobuf", PROTOBUF, {}),
        (b"{}", "text/plain", {}),
        (b"not packed", JSON, {"Content-Encoding": "gzip"}),
        (b"x" * (decoding.MAX_BYTES + 1), JSON, {}),
    ],
    ids=["unreadable", "type", "packing", "size"],
)
async def test_a_refused_export_leaves_the_turn_incomplete(body, content_type, headers):
    """The call that was not to happen may be in it."""
    async with running() as receiver:
        trial, header = begun(receiver)
        status, _, _ = await post(receiver, body, content_type, **headers)
        assert 400 <= status < 500
        await post(receiver, as_json(server(header, attributes=AGENT)))
        assert "refused" in trial.settle().missing
        header = trial.begin_turn().headers["traceparent"]
        await post(receiver, as_json(server(header, attributes=AGENT)))
        assert trial.settle().missing is None


async def test_a_trace_over_several_conversations_crosses_none():
    """Spans go where they say; of what says nothing nobody knows whose it is, and both are incomplete."""
    foreign = {"traceId": "d" * 32, "parentSpanId": ""}

    def of(name: str, tool: str) -> dict:
        return span(attributes=TOOL | {"gen_ai.tool.name": tool, "gen_ai.conversation.id": name}) | foreign

    async with running() as receiver:
        (one, _), (other, _) = begun(receiver), begun(receiver)
        receiver.name_conversation(one, "c-1")
        receiver.name_conversation(other, "c-2")
        unnamed = span(attributes=TOOL) | foreign
        await post(receiver, as_json(of("c-1", "a"), of("c-2", "b"), unnamed, of("c-1", "c")))
        found = [trial.settle() for trial in (one, other)]
        assert [[call.name for call in each.calls] for each in found] == [["a", "c"], ["b"]]
        assert all("several conversations" in each.missing for each in found)
        assert next(iter(receiver.notes(Redactor()))).startswith("1 spans")


async def test_name_shared_by_two_trials_identifies_neither():
    """An agent that gives the same id to all is no evidence for the last one."""
    async with running() as receiver:
        trials = [begun(receiver)[0] for _ in range(2)]
        for trial in trials:
            receiver.name_conversation(trial, "c-1")
        named = span(attributes=TOOL | {"gen_ai.conversation.id": "c-1"}, traceId="d" * 32, parentSpanId="")
        await post(receiver, as_json(named))
        assert [trial.settle() for trial in trials] == [None, None]


async def test_a_trace_that_lost_spans_before_it_was_claimed_is_incomplete(monkeypatch):
    monkeypatch.setattr(receiving, "MAX_UNCLAIMED_SPANS", 3)
    foreign = {"traceId": "d" * 32, "parentSpanId": ""}
    async with running() as receiver:
        trial, _ = begun(receiver)
        receiver.name_conversation(trial, "c-1")
        await post(receiver, as_json(span(attributes=TOOL) | foreign))
        await post(receiver, as_json(*(span(attributes=TOOL, traceId=f"{n:032x}") for n in range(3))))
        await post(receiver, as_json(span(attributes={"gen_ai.conversation.id": "c-1"}) | foreign))
        assert trial.settle().missing


async def test_notes_hold_no_secret_and_are_short():
    """Names of instrumentations are text of strangers."""
    async with running() as receiver:
        for scope in ("key-5d1c0f77", "x" * 5000, *map(str, range(9))):
            await post(receiver, as_json(span(attributes=TOOL), scope=scope))
        (note,) = receiver.notes(Redactor(keys=["key-5d1c0f77"]))
    assert note.startswith("11 spans")
    assert "key-5d1c0f77" not in note
    assert len(note) < 800


async def test_strangers_fill_no_memory(monkeypatch):
    """Unclaimed spans are kept up to a limit, and counted."""
    monkeypatch.setattr(receiving, "MAX_UNCLAIMED_SPANS", 10)
    async with running() as receiver:
        for number in range(30):
            await post(receiver, as_json(span(attributes=TOOL, traceId=f"{number:032x}"), scope=str(number)))
        assert sum(len(each.spans) for each in receiver._unclaimed.values()) <= 10
        (note,) = receiver.notes(Redactor())
    assert note.startswith("30 spans")


async def test_a_port_in_use_is_one_clear_error():
    """It names the port and the option; a host that is not ours names the other."""
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


async def test_the_environment_of_agents():
    """Leads to the receiver, whatever else was set; a delay of the user's stays."""
    async with running(host="0.0.0.0") as receiver:
        environ = receiver.environment(
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://prod", "OTEL_BSP_SCHEDULE_DELAY": "50", "A": "b"}
        )
        assert environ == {
            "A": "b",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        assert receiver.endpoint.startswith("http://127.0.0.1:")


HALF = {
    "a chunk that is none": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "half a chunk": b"Transfer-Encoding: chunked\r\n\r\n400\r\nhalf",
    "half a body": b"Content-Length: 1000\r\n\r\nhalf",
    "half of gzip": b"Content-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b\x08\x00",
    "no length": b"Content-Length: many\r\n\r\n{}",
}


@pytest.mark.parametrize("half", HALF)
async def test_a_sender_that_breaks_off_leaves_no_traceback(half, capfd, caplog):
    """Whatever it had sent; the next export is taken."""
    async with running() as receiver:
        _, port = receiver.endpoint.rsplit(":", 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + HALF[half]
        )
        await writer.drain()
        writer.write_eof()
        await reader.read()
        writer.close()
        trial, header = begun(receiver)
        assert (await post(receiver, as_json(server(header))))[0] == 200
        assert len(trial.pending) == 1
    assert "Traceback" not in "".join(capfd.readouterr())
    assert not [record for record in caplog.records if record.exc_info]


async def test_unfinished_export_does_not_hold_up_the_end():
    """A sender that never finishes its export holds up no run."""
    async with running() as receiver:
        _, port = receiver.endpoint.rsplit(":", 1)
        _, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
        await writer.drain()
        started = time.monotonic()
    assert time.monotonic() - started < 30  # it would wait for 60
    writer.close()
