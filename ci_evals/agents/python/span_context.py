"""The turn's span as the parent of the spans that an agent's code makes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def attached(headers: Mapping[str, str]) -> Iterator[None]:
    """Make the span of these headers the current one of opentelemetry-api, if that is installed."""
    if not headers:
        yield
        return
    try:
        from opentelemetry import context  # noqa: PLC0415  # the agent's own package
        from opentelemetry.baggage.propagation import W3CBaggagePropagator  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )
    except ImportError:
        yield
        return
    extracted = TraceContextTextMapPropagator().extract(headers)
    token = context.attach(W3CBaggagePropagator().extract(headers, extracted))
    try:
        yield
    finally:
        context.detach(token)
