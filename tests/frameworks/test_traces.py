"""Agents of real frameworks, traced by real instrumentations: only `make frameworks` runs these.

With RECORD=1 the spans of agents that behave well are written to tests/extensions/spans/recorded/, where the
normal tests read them.
"""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import commands
import pytest
import world
from frameworks.environments import AGENTS, environment
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from werkzeug import Response

pytestmark = pytest.mark.frameworks
RECORDED = Path(__file__).parents[1] / "extensions/spans/recorded"
SDK = ["opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2"]
NODE = [
    "@opentelemetry/api@1.9.1",
    "@opentelemetry/sdk-trace-node@2.12.0",
    "@opentelemetry/exporter-trace-otlp-http@0.223.1",
]
FRAMEWORKS = {
    "sdk": ("sdk.py", SDK, {}),
    "sdk-json": (
        "sdk.py",
        ["opentelemetry-exporter-otlp-json-http==0.66b1", "opentelemetry-sdk==1.45.1"],
        {"ENCODING": "json"},
    ),
    "node-json": ("node_agent.mjs", NODE, {}),
    "pydantic-ai": ("pydantic_ai_agent.py", [*SDK, "pydantic-ai-slim==2.68.0"], {}),
    "langgraph": (
        "langgraph_agent.py",
        [*SDK, "langgraph==1.2.22", "openinference-instrumentation-langchain==0.1.80"],
        {},
    ),
}
REFUND = {"toolName": "refund", "args": {"order": "A-1", "amount": 42}}
CHECKS = {
    "order": {"strict": "tool_sequence", "tools": ["lookup", "refund"]},
    "amount, once": {"strict": "tool_called", **REFUND, "times": 1},
    "no second refund": {"strict": "max_tool_calls", "calls": 1, "toolName": "refund"},
}
SUITE = {
    "name": "Refunds", "adapter": "http", "trace": "otlp",
    "adapterOptions": {
        "send": {"path": "/chat", "body": {"message": "{{message}}"}}, "reply": {"text": "$.text"},
    },
    "tests": [{
        "name": "Refund", "guidelines": "You want order A-1 refunded.",
        "turns": [{"user": "Refund order A-1"}],
        "evaluations": [{"criterion": name, **check} for name, check in CHECKS.items()],
    }],
}  # fmt: skip
PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"
OUTCOMES = {
    "": (PASSED, PASSED, PASSED),
    "amount": (PASSED, FAILED, PASSED),
    "twice": (PASSED, FAILED, FAILED),
    "order": (FAILED, PASSED, PASSED),
    "claims": (FAILED, FAILED, PASSED),
    "lost": (UNDECIDED, UNDECIDED, UNDECIDED),
}
SWITCHES = {
    "sdk": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    "sdk-json": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    "node-json": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    "pydantic-ai": "include_content=True",
    "langgraph": "OPENINFERENCE_HIDE_INPUTS=false",
}


@contextmanager
def agent(framework, endpoint, **environ):
    """An agent of a framework that exports to an endpoint; yields its address."""
    script, packages, own = FRAMEWORKS[framework]
    folder = environment(packages, node=packages is NODE)
    program = [folder / "bin/python", AGENTS / script]
    if packages is NODE:  # modules are looked for beside the program
        program = ["node", shutil.copy(AGENTS / script, folder)]
    variables = {
        "PATH": os.environ["PATH"], "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "200",
    }  # fmt: skip
    with subprocess.Popen(
        program, env=variables | own | environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def findings(framework, folder, **environ) -> list[dict]:
    """Play the suite with an agent of a framework; return the findings."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "suite.json").write_text(json.dumps(SUITE))
    with agent(framework, f"http://127.0.0.1:{port}", **environ) as url:
        done = commands.ci_evals(
            "run", "suite.json", "--provider=offline", f"--base-url={url}", f"--otlp-port={port}", cwd=folder
        )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    results = json.loads((folder / "results/_results.json").read_text())
    return results["suites"][0]["tests"][0]["trials"][0]["findings"]


def outcomes(found):
    return tuple(finding["outcome"] for finding in found)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_traced_agent_passes_with_calls_in_order(framework, tmp_path):
    assert outcomes(findings(framework, tmp_path)) == OUTCOMES[""]


@pytest.mark.parametrize("wrong", [wrong for wrong in OUTCOMES if wrong])
@pytest.mark.parametrize("framework", ["sdk", "pydantic-ai", "langgraph"])
def test_traced_agent_with_a_wrong_amount_fails_for_that_reason(framework, wrong, tmp_path):
    result = findings(framework, tmp_path, WRONG=wrong)
    assert outcomes(result) == OUTCOMES[wrong]
    if wrong == "lost":
        assert {finding["cause"] for finding in result} == {"no_trace"}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_spans_without_arguments_leave_argument_checks_undecided(framework, tmp_path):
    """The reason names what switches them on."""
    result = findings(framework, tmp_path, CAPTURE="off")
    assert outcomes(result) == (PASSED, UNDECIDED, PASSED)
    assert SWITCHES[framework] in result[1]["reason"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_recorded_spans_have_the_attributes_of_the_real_framework(framework):
    """The same names of attributes as those that the normal tests read."""
    spans = recorded(framework)
    file = RECORDED / f"{framework}.json"
    if os.environ.get("RECORD"):
        file.write_text(json.dumps(spans, indent=1) + "\n")
    assert shapes(json.loads(file.read_text())) == shapes(spans)


def recorded(framework) -> dict:
    """One turn's spans of an agent, as OTLP/JSON, below a fixed parent."""
    bodies = []

    def take(request):
        bodies.append((request.content_type, request.data))
        return Response("{}", content_type=request.content_type)

    with world.serving() as server:
        server.expect_request(re.compile(".*")).respond_with_handler(take)
        with agent(framework, f"http://127.0.0.1:{server.port}") as url:
            headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "Content-Type": "application/json"}
            sent = urllib.request.Request(f"{url}/chat", b'{"message": "Refund"}', headers)
            urllib.request.urlopen(sent).close()
            until = time.monotonic() + 120
            while not bodies and time.monotonic() < until:
                time.sleep(0.2)
            time.sleep(2)  # several times the delay of the exporter
    resource_spans = []
    for kind, body in bodies:
        plain = json.loads(body) if kind == "application/json" else _as_json(body)
        for each in plain["resourceSpans"]:
            each.pop("resource", None)
            resource_spans.append(each)
    return {"resourceSpans": resource_spans}


def _as_json(body) -> dict:
    plain = MessageToDict(ExportTraceServiceRequest.FromString(body))
    for span in (span for r in plain["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]):
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:
                span[key] = base64.b64decode(span[key]).hex()
    return plain


def shapes(plain) -> set:
    """The names of spans, with those of their attributes."""
    spans = [span for r in plain["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]]
    return {
        (span["name"], tuple(sorted({each["key"] for each in span.get("attributes", ())}))) for span in spans
    }
