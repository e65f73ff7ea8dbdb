"""The headers that join an agent's spans to the turn under way (W3C Trace Context)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

LATE_SECONDS = 2.0
"""Silence after a trial's end after which no more of its spans are expected."""


@dataclass
class TraceContext:
    """The context that every request to an agent carries while its spans are received."""

    headers: Mapping[str, str]
    requests: int = 0
    """How many requests to the agent's server have carried it."""


_CURRENT: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)


@contextmanager
def carried(context: TraceContext | None) -> Iterator[None]:
    """Let requests of this block carry the context."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def trace_headers() -> Mapping[str, str]:
    """Return the headers that join spans to the turn under way; none if they are not received."""
    context = _CURRENT.get()
    return context.headers if context else {}


def request_headers() -> Mapping[str, str]:
    """Return the same for one request to the agent's server, which is expected to have a span of its own."""
    if context := _CURRENT.get():
        context.requests += 1
    return trace_headers()
