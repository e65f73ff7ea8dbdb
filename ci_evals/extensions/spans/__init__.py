"""Spans of an agent (OpenTelemetry), received over OTLP/HTTP as evidence of its tool calls."""
