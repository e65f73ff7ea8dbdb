"""OpenTelemetry: spans of an agent, received over OTLP/HTTP and read as evidence of its tool calls."""
