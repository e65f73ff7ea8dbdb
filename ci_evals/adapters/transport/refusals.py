"""Reads a server's limits in headers and in the bodies of its refusals. Pure.

Values that cannot be read are ignored. The caller sets an upper bound for waits.

Headers: `Retry-After` (RFC 9110, seconds or a date), `retry-after-ms`; OpenAI's
`x-ratelimit-remaining-requests` with `x-ratelimit-reset-requests: 6m0s`; Anthropic's
`anthropic-ratelimit-requests-remaining` with a time of RFC 3339; and `X-RateLimit-Reset`, which is seconds,
or a time since 1970.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ci_evals.support import payload

Headers = Mapping[str, str]
"""The headers of an answer, by name whatever its case: those of aiohttp or httpx2."""

_MAX_LENGTH = 64
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|us|µs|ns|h|m|s|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_UNIT_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_EPOCH, _EPOCH_MS = 1e9, 1e12
"""Numbers from here on are times since 1970, in seconds or milliseconds."""

_NOTHING_LEFT = re.compile(r"\s*0+(\.0*)?\s*", re.ASCII)
_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
# How codes and messages of errors begin, in lower case.
_USED_UP = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "insufficient_balance",
    "your credit balance is too low",
    "you have reached your specified api usage limits",
    "you have reached your specified workspace api usage limits",
)
_WRONG_KEY = (
    "no_db_connection",
    "auth_error",
    "authentication_error",
    "invalid_api_key",
    "api_key_invalid",
    "api key not valid",
    "authentication error",
    "incorrect api key",
    "invalid api key",
    "invalid proxy server token",
    "no api key",
    "no connected db",
)
_TOO_LARGE = ("request too large",)
_LACKS_PERMISSION = re.compile(r"\bscopes?\b|permission|lacks the required", re.IGNORECASE)
_FIRST_ERROR, _UNAUTHORIZED, _PAYMENT_REQUIRED, _FORBIDDEN = 400, 401, 402, 403


def requested_wait(headers: Headers, now: datetime) -> float | None:
    """Return the seconds that a refusal requests to wait; None if it does not.

    A time is relative to the server's own `Date`, or to `now` without one.
    """
    now = _at_server(headers, now)
    if (text := headers.get("retry-after-ms", "").strip()) and (number := _number(text)) is not None:
        return number / 1000
    if (wait := seconds_until(headers.get("retry-after", ""), now)) is not None:
        return wait
    if (wait := used_up(headers, now)) is not None:
        return wait
    if any("remaining" in name.lower() for name in headers):
        return None  # no counted limit is used up, so its reset does not matter
    resets = [seconds_until(headers.get(name, ""), now) for name in _RESETS]
    return max((reset for reset in resets if reset is not None), default=None)


def used_up(headers: Headers, now: datetime) -> float | None:
    """Return the seconds until no limit is used up any more; None if none is.

    A successful answer may show it too, if it was the last one for now.
    """
    waits: list[float | None] = []
    for name, value in headers.items():
        lower = name.lower()
        if "remaining" in lower and "limit" in lower and _NOTHING_LEFT.fullmatch(value):
            reset = headers.get(lower.replace("remaining", "reset"), "")
            waits.append(seconds_until(reset, _at_server(headers, now)))
    return max((wait for wait in waits if wait is not None), default=None)


def seconds_until(text: str | None, now: datetime) -> float | None:
    """Return the seconds that a header's value means; 0 for a time in the past, None if unreadable.

    It may be a number of seconds, a time since 1970 in seconds or milliseconds, a duration such as `6m0s` or
    `120ms`, a time of RFC 3339 or an HTTP date.
    """
    text = (text or "").strip()
    if len(text) > _MAX_LENGTH:
        return math.inf if text.isascii() and text.isdigit() else None
    number = _number(text)
    if number is not None and number >= _EPOCH:
        at_second = number / 1000 if number >= _EPOCH_MS else number
        return max(0.0, at_second - now.timestamp())
    if number is not None:
        return number
    if _DURATION.fullmatch(text):
        return sum(float(count) * _UNIT_SECONDS[unit] for count, unit in _PART.findall(text))
    at = _time(text)
    return None if at is None else max(0.0, (at - now).total_seconds())


def quota_used_up(status: int, body: bytes) -> bool:
    """Return whether a budget or quota is used up, so that no wait helps."""
    return status == _PAYMENT_REQUIRED or _says(body, _USED_UP)


def is_too_large(body: bytes) -> bool:
    """Return whether the request alone exceeds the limit, so that no wait helps."""
    return _says(body, _TOO_LARGE)


def refuses_key(status: int, body: bytes) -> bool:
    """Return whether the answer to a free request shows that the key is no good for any other.

    A 401 may also mean a missing permission: OpenAI and Azure have keys that may use models but not list
    them.
    """
    if _is_wrong_key(status, body):
        return True
    if status == _UNAUTHORIZED:
        return not any(_LACKS_PERMISSION.search(text) for text in _error_texts(body))
    return status >= _FIRST_ERROR and quota_used_up(status, body)


def denies_key(status: int, body: bytes, *, accepted_before: bool) -> bool:
    """Return whether an answer denies access to the key.

    Once the key was accepted, a 403 is about one request.
    """
    if status == _UNAUTHORIZED:
        return True
    return not accepted_before and (status == _FORBIDDEN or _is_wrong_key(status, body))


def _is_wrong_key(status: int, body: bytes) -> bool:
    """Return whether a 400 is really a 401: LiteLLM without a database and Gemini answer a wrong key so."""
    return status == _FIRST_ERROR and _says(body, _WRONG_KEY)


def _says(body: bytes, phrases: tuple[str, ...]) -> bool:
    """Return whether an error's code or message begins like this: the rest may quote a conversation."""
    return any(text.strip().lower().startswith(phrases) for text in _error_texts(body))


def _error_texts(body: bytes) -> list[str]:
    """Return the codes and messages of an error: at the top of the body, and under `error`."""
    try:
        value = payload.parse(body)
    except ValueError:
        return []
    top = value[0] if isinstance(value, list) and value else value
    error = payload.member(top, "error")
    values = [payload.member(holder, key) for holder in (top, error) for key in ("code", "type", "message")]
    return [text for text in (*values, error) if isinstance(text, str)]


def _number(text: str) -> float | None:
    return float(text) if len(text) <= _MAX_LENGTH and _NUMBER.fullmatch(text) else None


def _at_server(headers: Headers, now: datetime) -> datetime:
    text = headers.get("date", "")
    return (_time(text) if 0 < len(text) <= _MAX_LENGTH else None) or now


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if text[:4].isdigit() else parsedate_to_datetime(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return at.astimezone(UTC)
    except (ValueError, OverflowError, TypeError):  # the last two for years and zones that no calendar has
        return None
