"""An agent's server: plain HTTP, text alone, and the lines that docs/traces.md tells users to add."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module

from opentelemetry import context, propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

WRONG = os.environ.get("WRONG", "")
"""How the agent misbehaves: `amount`, `twice`, `order`, `claims` or `lost`; empty if it does not."""
CALLS = {
    "": [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": 42})],
    "amount": [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": 24})],
    "twice": [
        ("lookup", {"order": "A-1"}),
        ("refund", {"order": "A-1", "amount": 42}),
        ("refund", {"order": "A-1", "amount": 42}),
    ],
    "order": [("refund", {"order": "A-1", "amount": 42}), ("lookup", {"order": "A-1"})],
    "claims": [("lookup", {"order": "A-1"})],
}
"""The tool calls of each way to behave; one that loses its trace behaves well."""


def calls():
    """Return the tool calls that the agent makes."""
    return CALLS[WRONG if WRONG in CALLS else ""]


def provider():
    """Return what exports the spans, as JSON if `ENCODING` says so."""
    encoding = os.environ.get("ENCODING", "proto")
    exporter = import_module(f"opentelemetry.exporter.otlp.{encoding}.http.trace_exporter")
    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(exporter.OTLPSpanExporter()))
    trace.set_tracer_provider(made)
    return made


def serve(answer, *, server_span=False):
    """Answer requests until the end, each within the caller's trace."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {} if WRONG == "lost" else {name.lower(): value for name, value in self.headers.items()}
            token = context.attach(propagate.extract(headers))
            try:
                if server_span:
                    tracer = trace.get_tracer("agent")
                    with tracer.start_as_current_span("POST /chat", kind=trace.SpanKind.SERVER):
                        answer(body["message"])
                else:
                    answer(body["message"])
            finally:
                context.detach(token)
            text = json.dumps({"text": "I refunded 42 for order A-1."}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    sys.stdin.close()
    server.serve_forever()
