"""The option `--otlp-endpoint` of `run`: send the results to an OpenTelemetry backend."""
