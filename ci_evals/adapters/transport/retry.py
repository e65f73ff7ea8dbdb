"""When a request may be sent again, how often, and how long to wait before. Pure."""

from dataclasses import dataclass

MAX_RESENDS = 2
MAX_LIMITED_RESENDS = 16
MAX_WAIT_SECONDS = 60.0
MAX_LIMITED_SECONDS = 480.0

GAVE_UP = f"it refused every such request, for {MAX_LIMITED_SECONDS / 60:g} minutes of waiting in this run"
"""The end of the message once no more is waited."""

BROKEN_STEP = 3
"""Steps of waiting from one resend to the next after an error that is none of the rate: up to half a second,
then four. Most of what broke is well at once, and what is not takes its time."""

_FIRST_WAIT_SECONDS = 0.5
_JITTER = 0.1
_BELIEVED = 3
"""So often a wait is taken as it was told. Whoever refuses after that tells less than it means."""
_TOO_MANY_REQUESTS, _UNAVAILABLE, _OVERLOADED = 429, 503, 529


@dataclass(frozen=True)
class Patience:
    """How often a request is sent again."""

    broken: int = MAX_RESENDS
    """After an error that is none of the rate: what is broken seldom mends within seconds."""
    limited: int = MAX_LIMITED_RESENDS
    """After a refusal for the rate: the server is well, and says so."""
    limited_seconds: float = MAX_LIMITED_SECONDS
    """The wait of all calls of one kind together for a server that refuses every one for the rate. After that
    none is sent again: it is a quota of hours or days, and a run that waited for it would find no end."""


PATIENT = Patience()


def may_resend(status: int, *, idempotent: bool, told_to_wait: bool) -> bool:
    """Whether a request that was answered with this status may be sent again.

    One that is not idempotent may only where the server cannot have acted on it: it refused for
    the rate (429), or said that it is not there for now (503 with Retry-After).
    """
    if idempotent:
        return status in (408, _TOO_MANY_REQUESTS) or status >= 500
    return status == _TOO_MANY_REQUESTS or (status == _UNAVAILABLE and told_to_wait)


def limits_rate(status: int, *, told_to_wait: bool) -> bool:
    """Whether a server that answers so is well, and has too much to do: 429, 503 with Retry-After, 529."""
    return status in (_TOO_MANY_REQUESTS, _OVERLOADED) or (status == _UNAVAILABLE and told_to_wait)


def wait_seconds(resend: int, told: float | None, luck: float) -> float:
    """Seconds to wait before a resend: what the server told, or else up to 0.5, 1, 2, …; at most 60.

    Args:
        resend: Which resend it is, from 0.
        told: What the server asked for; the wait is never shorter, but up to 10 % longer, so that many
            programs with one key do not return at once. Where it told 0 it is given time all the same, and so
            it is where it refused again and again after what it told.
        luck: A random number, 0 to 1. Where nothing was told it spreads waits over their whole length, which
            is what empties a crowd fastest.
    """
    if told:
        least = _doubled(resend - _BELIEVED) if resend >= _BELIEVED else 0.0
        return min(max(told * (1 + _JITTER * luck), least), MAX_WAIT_SECONDS)
    return luck * _doubled(resend)


def _doubled(times: int) -> float:
    return min(_FIRST_WAIT_SECONDS * 2.0 ** min(times, 10), MAX_WAIT_SECONDS)
