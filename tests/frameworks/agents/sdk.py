"""An agent without a framework: spans of its own, by the SDK of OpenTelemetry."""

import json
import os

import serving
from opentelemetry import trace

serving.provider()
tracer = trace.get_tracer("agent")
CAPTURE = os.environ.get("CAPTURE") != "off"


def answer(message):
    with tracer.start_as_current_span("invoke_agent refunds") as agent:
        agent.set_attribute("gen_ai.operation.name", "invoke_agent")
        agent.set_attribute("gen_ai.agent.name", "refunds")
        for name, arguments in serving.calls():
            with tracer.start_as_current_span(f"execute_tool {name}") as span:
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", name)
                if CAPTURE:
                    span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))


serving.serve(answer, server_span=True)
