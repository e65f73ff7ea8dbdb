"""Results as spans, sent to a backend: what it is sent, and what happens if that fails."""

import json
import re
from dataclasses import replace

import commands
import pytest
import world
from each_row import each_row
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from werkzeug import Response

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extension_support.span_reading import spans as decoding
from ci_evals.extensions.otlp_export.export import HEADERS, LOGS, TRACES, ExportError, check, export, requests
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor

pytestmark = pytest.mark.slow


def contains(name, text):
    return {"criterion": name, "strict": "answer_matches", "match": "contains", "expected": text}


REFUND = {"criterion": "Refunds", "strict": "tool_called", "toolName": "refund"}
TESTS = {"Hello": [contains("Greets", "Hello"), REFUND], "Goodbye": [contains("Parts", "Farewell")]}
GREET = {"guidelines": "Greet."}
LISTED = [
    GREET | {"name": f"Says {text.lower()}", "turns": [{"user": text}], "evaluations": checks}
    for text, checks in TESTS.items()
]
SUITE = {"name": "Refunds", "adapter": "python:mine:reply", "tests": LISTED}
KEY = "export-key-7710fe2c"


class Backend:
    """A collector: keeps the bodies and headers of exports, and answers with `status` and a text.

    To a path of `answers` it answers with those bytes.
    """

    def __init__(self, server, status=200, text=""):
        self.url, self.bodies, self.headers = f"http://127.0.0.1:{server.port}", [], []
        self.status, self.text, self.refused, self.answers = status, text, None, {}
        server.expect_request(re.compile(".*")).respond_with_handler(self._take)

    def _take(self, request):
        self.bodies.append(request.data)
        self.headers.append((request.path, dict(request.headers)))
        body = self.answers.get(request.path, self.text)
        return Response(body, 404 if request.path == self.refused else self.status)


@pytest.fixture
def backend():
    with world.serving() as server:
        yield Backend(server)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Play the suite with an export to a backend; return the process and the results."""

    def play(url, *options, **environ):
        folder = tmp_path_factory.mktemp("run")
        (folder / "mine.py").write_text("def reply(message): return message")
        (folder / "suite.json").write_text(json.dumps(SUITE))
        own = ("--provider=offline", "--loops=2", "--agent-in-process", f"--otlp-endpoint={url}")
        done = commands.ci_evals("run", "suite.json", *own, *options, cwd=folder, env=environ)
        file = folder / "results/_results.json"
        return done, dataclass_json.from_json(Results, file.read_text()) if file.exists() else None

    return play


@pytest.fixture(scope="module")
def exported(run):
    """A run that was exported as spans and logs: the process, its results, and the backend."""
    with world.serving() as server:
        backend = Backend(server)
        return *run(f"{backend.url}/v1/traces"), backend


def test_each_test_is_a_span_with_verdict_events(run, backend):
    done, results = run(backend.url, "--otlp-events=span", OTEL_EXPORTER_OTLP_HEADERS=f"x-key=Bearer%20{KEY}")
    assert "warning" not in done.stderr
    ((path, headers),) = backend.headers
    assert (path, headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
    assert headers["X-Key"] == f"Bearer {KEY}"
    root, hello, goodbye = decoding.read(backend.bodies[0], "application/x-protobuf")
    assert root.attributes["ci_evals.run.id"] == results.run.id
    assert {hello.parent_id, goodbye.parent_id} == {root.span_id}
    names = ("test.case.name", "test.suite.name", "ci_evals.outcome")
    assert [hello.attributes[name] for name in names] == ["Says hello", "Refunds", "undecided"]
    assert "test.case.result.status" not in hello.attributes
    assert goodbye.attributes["test.case.result.status"] == "fail"
    assert goodbye.failed
    events = [(event.name, event.attributes["ci_evals.trial"]) for event in hello.events]
    assert events == [("gen_ai.evaluation.result", trial) for trial in (1, 1, 2, 2)]
    passed, undecided = (event.attributes for event in hello.events[:2])
    assert (passed["gen_ai.evaluation.name"], passed["gen_ai.evaluation.score.value"]) == ("Greets", 1.0)
    assert passed["gen_ai.evaluation.score.label"] == "pass"
    assert passed["gen_ai.evaluation.explanation"]
    assert "gen_ai.evaluation.score.value" not in undecided
    assert undecided["gen_ai.evaluation.score.label"] == "undecided"
    assert undecided["error.type"] == "no_evidence"
    message = ExportTraceServiceRequest.FromString(backend.bodies[0])
    resource = {each.key: each.value.string_value for each in message.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "ci-evals"


def attributes_of(record):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in record.attributes}


def test_each_verdict_is_a_log_record_of_its_test_span(exported):
    done, _, backend = exported
    assert ("warning" in done.stderr, [path for path, _ in backend.headers]) == (False, [TRACES, LOGS])
    assert {headers["Content-Type"] for _, headers in backend.headers} == {"application/x-protobuf"}
    root, hello, goodbye = decoding.read(backend.bodies[0], "application/x-protobuf")
    assert not any(span.events for span in (root, hello, goodbye))
    (of_resource,) = ExportLogsServiceRequest.FromString(backend.bodies[1]).resource_logs
    assert attributes_of(of_resource.resource)["service.name"] == "ci-evals"
    (of_scope,) = of_resource.scope_logs
    records = of_scope.log_records
    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    assert [record.span_id.hex() for record in records] == [hello.span_id] * 4 + [goodbye.span_id] * 2
    assert {record.trace_id.hex() for record in records} == {root.trace_id}
    assert all(record.time_unix_nano for record in records)
    passed, undecided, *_, failed = map(attributes_of, records)
    assert (passed["gen_ai.evaluation.name"], passed["gen_ai.evaluation.score.value"]) == ("Greets", 1.0)
    assert (passed["ci_evals.trial"], "gen_ai.evaluation.score.value" in undecided) == (1, False)
    assert undecided["gen_ai.evaluation.score.label"] == "undecided"
    assert (failed["gen_ai.evaluation.score.value"], failed["gen_ai.evaluation.score.label"]) == (0.0, "fail")


def test_failed_export_is_a_warning_and_keeps_the_verdict(run, backend):
    backend.refused, backend.text = LOGS, f"no such key {KEY}"
    done, results = run(backend.url, OTEL_EXPORTER_OTLP_HEADERS=f"x-key={KEY}")
    assert done.returncode == results.gate.exit_code
    assert "warning: the results were not exported: 127.0.0.1:" in done.stderr
    assert "answered /v1/logs with status 404: no such key ***" in done.stderr
    assert "set --otlp-events=span for a backend that takes only traces" in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_invalid_endpoint_is_refused_before_the_run(run):
    done, results = run("http://u:secret-of-mine@x")
    assert (done.returncode, results) == (2, None)
    assert "--otlp-endpoint must be an http(s):// address" in done.stderr
    assert "secret-of-mine" not in done.stderr
    assert "Traceback" not in done.stderr


REJECTED_SPANS = {"rejected_spans": 2, "error_message": f"too old, says {KEY}"}
REJECTED = {
    TRACES: ExportTraceServiceResponse(partial_success=REJECTED_SPANS).SerializeToString(),
    LOGS: ExportLogsServiceResponse(partial_success={"rejected_log_records": 1}).SerializeToString(),
}


async def send(results, url):
    """Export the results with a key."""
    await export(results, url, {HEADERS: f"x-key={KEY}"}, Redactor(), as_logs=True)


@pytest.mark.parametrize(("fields", "message", "paths"), [
    ({"status": 401, "text": f"no such key {KEY}"}, "answered /v1/traces with status 401: no such",
     [TRACES]),
    ({"status": 500, "text": "<html><title>Oh no</title>"}, "answered /v1/traces with status 500",
     [TRACES]),
    ({"url": "http://127.0.0.1:9"}, "127.0.0.1:9 could not be reached", []),
    ({"answers": {TRACES: REJECTED[TRACES]}}, "rejected 2 spans: too old, says ***", [TRACES, LOGS]),
    ({"answers": {LOGS: REJECTED[LOGS]}}, "rejected 1 log record: it does not say why", [TRACES, LOGS]),
], ids=["refused key", "broken", "away", "rejected spans", "rejected logs"])  # fmt: skip
async def test_failed_or_rejected_export_gives_reason_without_key(fields, message, paths, exported, backend):
    vars(backend).update(fields)
    with pytest.raises(ExportError) as failed:
        await send(exported[1], backend.url)
    assert str(failed.value).startswith("127.0.0.1:")
    assert (message in str(failed.value), KEY in str(failed.value)) == (True, False)
    assert [path for path, _ in backend.headers] == paths


async def test_success_response_with_any_body_is_no_failure(exported, backend):
    for answer in (b"", b"{}", b"ok", ExportTraceServiceResponse().SerializeToString()):
        backend.answers = {TRACES: answer, LOGS: answer}
        await send(exported[1], backend.url)
    assert [path for path, _ in backend.headers] == [TRACES, LOGS] * 4


def test_spans_and_logs_are_sent_in_parts(exported):
    _, results, _ = exported
    suite = results.suites[0]
    tests = [replace(suite.tests[0], name=f"t{number}") for number in range(250)]
    many = replace(results, suites=(replace(suite, tests=tests),))
    bodies = [body for path, body in requests(many, as_logs=True) if path == LOGS]
    logs = map(ExportLogsServiceRequest.FromString, bodies)
    assert [len(log.resource_logs[0].scope_logs[0].log_records) for log in logs] == [500, 500]
    paths, bodies = zip(*requests(many, as_logs=False), strict=True)
    assert {*paths} == {TRACES}
    spans = [decoding.read(body, "application/x-protobuf") for body in bodies]
    assert [len(some) for some in spans] == [100, 100, 51]
    assert len({span.span_id for some in spans for span in some}) == 251


@each_row(("url", "headers", "message"), [
    ("localhost:4318", "", "`otlp_endpoint=` must be an http(s):// address"),
    ("http://u:secret-of-mine@x", "", f"keys go into {HEADERS}"),
    ("http://x:99999", "", "`otlp_endpoint=` must be"),
    ("http://x", "nothing", f"{HEADERS} is not a list"),
    ("http://x", "key=a%0Ab", "no HTTP header can carry"),
])  # fmt: skip
def test_invalid_otlp_endpoint_or_headers_are_refused_without_showing_secrets(url, headers, message):
    with pytest.raises(UsageError) as refused:
        check(url, {HEADERS: headers})
    assert (message in str(refused.value), "secret-of-mine" in str(refused.value)) == (True, False)
