"""When a request may be sent again, and how long to wait before. Pure."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RESENDS = 2
MAX_WAIT_SECONDS = 60.0

_WAITS_SECONDS = (1.0, 2.0)
_JITTER = 0.1


def may_resend(status: int, *, idempotent: bool, told_to_wait: bool) -> bool:
    """Whether a request that was answered with this status may be sent again.

    One that is not idempotent may only where the server cannot have acted on it: it refused for
    the rate (429), or said that it is not there for now (503 with Retry-After).
    """
    if idempotent:
        return status in (408, 429) or status >= 500
    return status == 429 or (status == 503 and told_to_wait)


def wait_seconds(resend: int, told: float | None, luck: float) -> float:
    """Seconds to wait before a resend: what the server told, or else 1 and 2; at most 60.

    Args:
        resend: Which resend it is, from 0.
        told: What the server asked for; the wait is never shorter, but up to 10 % longer, so that many
            conversations do not return at once.
        luck: A random number, 0 to 1.
    """
    if told is not None:
        return min(told * (1 + _JITTER * luck), MAX_WAIT_SECONDS)
    return _WAITS_SECONDS[min(resend, len(_WAITS_SECONDS) - 1)] * (1 + _JITTER * (2 * luck - 1))


def told_seconds(retry_after: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or an HTTP date; none if unreadable."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):  # the last two for years and zones that no calendar has
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())
