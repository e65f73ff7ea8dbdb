"""The retry policy: when a request may be repeated, how often, and after which wait. Pure."""

import math
from dataclasses import dataclass

MAX_RESENDS = 2
MAX_LIMITED_RESENDS = 16
MAX_WAIT_SECONDS = 60.0
MAX_LIMITED_SECONDS = 480.0

BUDGET_SPENT = (
    f"it refused every such request, for {MAX_LIMITED_SECONDS / 60:g} minutes of waiting in this run"
)
"""End of the message once a service is no longer waited for."""

BROKEN_STEP = 3
"""Steps of waiting from one retry to the next after other errors than a rate limit: up to half a second, then
four. Most of what broke works again at once, and the rest takes its time."""

_FIRST_WAIT_SECONDS = 0.5
_BELIEVED = 3
"""Requested waits that are believed in a row: a server that refuses again after them asks for too little."""
_TOO_MANY_REQUESTS, _UNAVAILABLE, _OVERLOADED = 429, 503, 529


@dataclass(frozen=True)
class RetryBudget:
    """Limits of retries."""

    broken: int = MAX_RESENDS
    """Retries after an error other than a rate limit."""
    limited: int = MAX_LIMITED_RESENDS
    """Retries after a refusal for the rate: the server works, and says so."""
    limited_seconds: float = MAX_LIMITED_SECONDS
    """Maximum wait of all calls of one kind for a server that refuses every one for the rate. A quota may
    last hours or days, and a run that waited for it would never end."""
    total_seconds: float = math.inf
    """Maximum wait of all calls together. If a server requests more than is left, the call fails at once."""
    max_jitter: float = 0.1
    """Maximum share added to a requested wait, so that programs with one key do not return at once."""


def may_resend(status: int, *, idempotent: bool, wait_requested: bool) -> bool:
    """Return whether a request that was answered with this status may be sent again.

    One that is not idempotent may only if the server cannot have acted on it: after 429, or after 503 with
    Retry-After.
    """
    if idempotent:
        return status in (408, _TOO_MANY_REQUESTS) or status >= 500
    return status == _TOO_MANY_REQUESTS or (status == _UNAVAILABLE and wait_requested)


def limits_rate(status: int, *, wait_requested: bool) -> bool:
    """Return whether the server works but has too much to do: 429, 503 with Retry-After, 529."""
    return status in (_TOO_MANY_REQUESTS, _OVERLOADED) or (status == _UNAVAILABLE and wait_requested)


def wait_seconds(
    resend: int, requested: float | None, jitter: float, *, max_jitter: float = RetryBudget.max_jitter
) -> float:
    """Return the seconds to wait before retry number `resend` (from 0), at most 60.

    That is what the server requested and up to `max_jitter` of it more, and longer if it refused again and
    again after such waits. Without a request it is a random part (`jitter`, 0 to 1) of 0.5, 1, 2, …, which
    empties a crowd fastest.
    """
    if requested:
        least = _doubled(resend - _BELIEVED) if resend >= _BELIEVED else 0.0
        return min(max(requested * (1 + max_jitter * jitter), least), MAX_WAIT_SECONDS)
    return jitter * _doubled(resend)


def _doubled(times: int) -> float:
    return min(_FIRST_WAIT_SECONDS * 2.0 ** min(times, 10), MAX_WAIT_SECONDS)
