"""OpenTelemetry: the export of results."""
