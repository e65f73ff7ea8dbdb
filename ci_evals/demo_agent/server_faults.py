"""Faults of the demo server, to see how a client copes with them."""

from enum import StrEnum


class ServerFault(StrEnum):
    """One way to answer a message badly. All other calls are answered as usual."""

    SLOW = "slow"
    """Every answer takes the server's delay."""
    RATE_LIMITED = "rate_limited"
    """429 with Retry-After to every second message of the server, from the first on; it is not taken."""
    UNAVAILABLE_ONCE = "unavailable_once"
    """503 with Retry-After to the first message of each task; it is not taken."""
    SERVER_ERROR = "server_error"
    """500 with the four fields of an AUI error."""
    MODERATION = "moderation"
    """400 with the four fields of an AUI error."""
    HTML = "html"
    """200 with a proxy's page; the message was taken."""
    EMPTY = "empty"
    """200 with an empty body; the message was taken."""
    DROPPED = "dropped"
    """The connection is closed without an answer; the message was taken."""
    NULLS = "nulls"
    """Nulls, lists for maps, and other shapes of older servers."""
    NO_TRACE = "no_trace"
    """No trace in the answer, even on request. The trace can still be fetched."""
    NO_EVIDENCE = "no_evidence"
    """No trace anywhere, and no `executed_workflows`."""
