"""Sends results to an OpenTelemetry backend: a span for each test, and an event for each verdict.

An event is a log record of the test's span, as the conventions have it, or else a part of the span. The names
are those of the conventions for GenAI (docs/gen-ai/gen-ai-events.md, `gen_ai.evaluation.result`), tests
(`test.*`) and version control (`vcs.*`). Of conversations only the reasons of verdicts are sent.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ci_evals._version import __version__
from ci_evals.adapters.transport import addresses, http_client
from ci_evals.domain import numbers
from ci_evals.domain.errors import CiEvalsError, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import whole

TRACES = "/v1/traces"
LOGS = "/v1/logs"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
EVENT = "gen_ai.evaluation.result"
_TESTS_AT_ONCE = 100
_EVENTS_AT_ONCE = 500
_SECONDS = 15.0
_MAX_REASON = 4_000
_LABELS = {Outcome.PASSED: "pass", Outcome.FAILED: "fail", Outcome.UNDECIDED: "undecided"}
_TRACES_ALONE = "; set `otlp_events=span` for a backend that takes only traces"
_NOUNS = {TRACES: "span", LOGS: "log record"}
_STATUSES = {TestOutcome.PASSED: "pass", TestOutcome.FAILED: "fail"}


class ExportError(CiEvalsError):
    """Results could not be sent to an OpenTelemetry backend."""


def check(endpoint: str, environ: Mapping[str, str]) -> None:
    """Raise `UsageError` if results can never be sent to this address, or with the headers in `environ`."""
    _address(endpoint)
    _headers(environ)


def _address(endpoint: str) -> str:
    """Return the base of an endpoint as `OTEL_EXPORTER_OTLP_ENDPOINT` has it; one for traces is fine too."""
    try:
        parts = urlsplit(endpoint.strip())
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or parts.username is not None or parts.query or parts.fragment:
        raise UsageError(
            "`otlp_endpoint=` must be an http(s):// address without user name, password and '?', such as "
            f"http://localhost:4318; keys go into {HEADERS}"
        )
    return endpoint.strip().rstrip("/").removesuffix(TRACES)


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in environ.get(HEADERS, "").split(",") if pair.strip()]
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise UsageError(f"{HEADERS} is not a list of name=value pairs, separated by commas")
    return {
        name.strip(): addresses.header_value(unquote(value), f"the header {name.strip()!r} of {HEADERS}")
        for name, _, value in pairs
    }


async def export(
    results: Results, endpoint: str, environ: Mapping[str, str], redactor: Redactor, *, as_logs: bool
) -> None:
    """Send results, from which secrets are gone already.

    Args:
        results: The run.
        endpoint: The address of the backend.
        environ: The environment, which has the headers.
        redactor: Knows what a message may not show.
        as_logs: Whether events are log records.

    Raises:
        ExportError: the backend refused something, or is not there. What it rejects of a request that it
            accepts keeps nothing else from being sent.
        UsageError: nothing can be sent to such an address.
    """
    url, own = _address(endpoint), _headers(environ)
    redactor = redactor.knowing(keys=[part for value in own.values() for part in (value, *value.split())])
    where = redactor.text(addresses.host_of(url))
    client = http_client.new_client(
        proxy=addresses.proxy_for(url),
        timeout=_SECONDS,
        headers={"Content-Type": "application/x-protobuf"} | own,
    )
    rejected: Counter[str] = Counter()
    why = ""
    async with client:
        for path, body in requests(results, as_logs=as_logs):
            try:
                response = await client.post(url + path, content=body)
            except (httpx2.HTTPError, payload.AnswerTooLargeError) as error:
                reason = payload.shorten(redactor.text(str(error))) or type(error).__name__
                raise ExportError(f"{where} could not be reached: {reason}") from error
            if not response.is_success:
                detail = payload.error_detail(response.content, redactor)
                hint = _TRACES_ALONE if path == LOGS else ""
                raise ExportError(
                    f"{where} answered {path} with status {response.status_code}: {detail}{hint}"
                )
            number, reason = _rejected(path, response.content)
            rejected[_NOUNS[path]] += number
            why = why or payload.shorten(redactor.text(reason))
    lost = [numbers.count(number, noun) for noun, number in rejected.items() if number > 0]
    if lost:
        raise ExportError(f"{where} rejected {' and '.join(lost)}: {why or 'it does not say why'}")


def _rejected(path: str, answer: bytes) -> tuple[int, str]:
    """Return how much a backend rejects of a request that it accepted (`partial_success`), and why."""
    try:
        if path == TRACES:
            spans = ExportTraceServiceResponse.FromString(answer).partial_success
            number, reason = spans.rejected_spans, spans.error_message
        else:
            logs = ExportLogsServiceResponse.FromString(answer).partial_success
            number, reason = logs.rejected_log_records, logs.error_message
    except DecodeError:  # a text, such as "ok"
        return 0, ""
    return number, reason


def requests(results: Results, *, as_logs: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the requests that hold all results, each with the path that takes it."""
    spans = _spans(results)
    while batch := [*islice(spans, _TESTS_AT_ONCE)]:
        request = ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        _describe_resource(resource_spans.resource, results)
        scoped = resource_spans.scope_spans.add()
        scoped.scope.name, scoped.scope.version = "ci-evals", __version__
        for span in batch:
            own = scoped.spans.add()
            own.CopyFrom(span)
            if as_logs:
                own.ClearField("events")
        yield TRACES, request.SerializeToString()
    records = _log_records(_spans(results))
    while as_logs and (lines := [*islice(records, _EVENTS_AT_ONCE)]):
        logs = ExportLogsServiceRequest()
        resource_logs = logs.resource_logs.add()
        _describe_resource(resource_logs.resource, results)
        of_scope = resource_logs.scope_logs.add()
        of_scope.scope.name, of_scope.scope.version = "ci-evals", __version__
        of_scope.log_records.extend(lines)
        yield LOGS, logs.SerializeToString()


def _log_records(spans: Iterable[Span]) -> Iterator[LogRecord]:
    """Yield each event of these spans as a log record, which names its span."""
    for span in spans:
        for event in span.events:
            yield LogRecord(
                event_name=event.name,
                time_unix_nano=event.time_unix_nano,
                observed_time_unix_nano=event.time_unix_nano,
                severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
                trace_id=span.trace_id,
                span_id=span.span_id,
                attributes=event.attributes,
            )


def _describe_resource(resource: Resource, results: Results) -> None:
    git, tool = results.run.git, {"service.name": "ci-evals", "service.version": __version__}
    version_control = {
        "vcs.repository.name": git.repository,
        "vcs.ref.head.name": git.ref,
        "vcs.ref.head.revision": git.head_commit or git.commit,
        "vcs.change.id": None if git.pull_request is None else str(git.pull_request),
    }
    _describe(resource, tool | version_control)


def _spans(results: Results) -> Iterator[Span]:
    run = results.run
    trace_id = sha256(run.id.encode()).digest()[:16]
    root_id = trace_id[:8]
    started, ended = (int(time.timestamp() * 1e9) for time in (run.started_at, run.finished_at))
    root = Span(
        trace_id=trace_id,
        span_id=root_id,
        name="ci-evals run",
        start_time_unix_nano=started,
        end_time_unix_nano=ended,
    )
    _describe(
        root,
        {
            "ci_evals.run.id": run.id,
            "ci_evals.score": results.score,
            "ci_evals.passed": results.gate.passed,
            "ci_evals.exit_code": results.gate.exit_code,
        },
    )
    if not results.gate.passed:
        root.status.code = Status.STATUS_CODE_ERROR
    yield root
    tests = ((suite, test) for suite in results.suites for test in suite.tests)
    for number, (suite, test) in enumerate(tests):
        span = _test_span(suite, test)
        span.trace_id, span.parent_span_id = trace_id, root_id
        span.span_id = sha256(trace_id + number.to_bytes(8)).digest()[:8]
        span.start_time_unix_nano = started  # the results have how long a trial took, not when it began
        span.end_time_unix_nano = started + int(sum(t.duration_seconds for t in test.trials) * 1e9)
        for event in span.events:
            event.time_unix_nano = span.end_time_unix_nano
        _describe(span, {"ci_evals.run.id": run.id})
        yield span


def _test_span(suite: SuiteResult, test: TestResult) -> Span:
    span = Span(name=whole(f"test {test.name}"))
    _describe(
        span,
        {
            "test.suite.name": suite.name,
            "test.case.name": test.name,
            "test.case.result.status": _STATUSES.get(test.outcome),
            "gen_ai.agent.id": suite.agent_id,
            "ci_evals.outcome": str(test.outcome),
            "ci_evals.score": test.score,
            "ci_evals.trials": len(test.trials),
            "ci_evals.flaky": test.flaky,
        },
    )
    if test.outcome is not TestOutcome.PASSED:
        span.status.code = Status.STATUS_CODE_ERROR
    for trial in test.trials:
        for finding in trial.findings:
            _describe(span.events.add(name=EVENT), {**_verdict(finding), "ci_evals.trial": trial.index})
    return span


def _verdict(finding: Finding) -> dict[str, object]:
    decided = finding.outcome is not Outcome.UNDECIDED
    score = finding.grade.score if finding.grade else float(finding.outcome is Outcome.PASSED)
    return {
        "gen_ai.evaluation.name": finding.criterion,
        "gen_ai.evaluation.score.value": score if decided else None,
        "gen_ai.evaluation.score.label": _LABELS[finding.outcome],
        "gen_ai.evaluation.explanation": finding.reason[:_MAX_REASON],
        "error.type": str(finding.cause) if finding.cause else None,
        "ci_evals.category": finding.category,
    }


def _describe(described: Any, attributes: Mapping[str, Any]) -> None:
    """Add attributes to a span, event or resource; those that are None are unknown."""
    for key, plain in attributes.items():
        if plain is None:
            continue
        value = described.attributes.add(key=key).value
        match plain:
            case bool():
                value.bool_value = plain
            case int():
                value.int_value = plain
            case float():
                value.double_value = plain
            case _:
                value.string_value = whole(str(plain))
