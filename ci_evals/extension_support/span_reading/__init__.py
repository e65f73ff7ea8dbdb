"""Spans of agents (OpenTelemetry), read as evidence of their tool calls."""
