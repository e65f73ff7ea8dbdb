"""Limits that servers report, and whether and when a refused request may be sent again."""

import json
from datetime import UTC, datetime, timedelta, timezone

import httpx2
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters.transport import refusals, retry

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
EPOCH = int(NOW.timestamp())


EPOCH_12 = str(EPOCH + 12)
WAITS = {
    None: None, "5": 5, " 0.25 ": 0.25, ".5": 0.5, "1s": 1, "6m0s": 360, "120ms": 0.12, "1h2m3.5s": 3723.5,
    "1d": 86400, EPOCH_12: 12, EPOCH_12 + "000": 12, str(EPOCH - 12): 0, "9" * 400: float("inf"),
    "2026-11-21T09:30:12Z": 12, "2026-11-21T10:30:12.5+01:00": 12.5, "2026-11-21T09:00:00Z": 0,
    "Sat, 21 Nov 2026 09:30:12 GMT": 12, "Sat, 21 Nov 2026 09:00:00 GMT": 0,
    "Mon, 01 Jan 2024 00:00:00 -0000": 0,
}  # fmt: skip
UNREADABLE = [
    *("soon", "", "-1", "nan", "inf", "1e9", "s", "1x", "1s" * 40_000, "x" * 1_000_000),
    *("Mon, 01 Jan 2024 00:00:00 +99999999999999", "1 Jan 99999999999999999999 0:0:0 GMT"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "２０２６-11-21T09:30:12Z"),
]


def test_retry_after_is_parsed_as_seconds_date_or_duration():
    for header, expected in (WAITS | dict.fromkeys(UNREADABLE)).items():
        result = refusals.seconds_until(header, NOW)
        assert result == (None if expected is None else pytest.approx(expected)), header


OPENAI = {
    "x-ratelimit-limit-requests": "5000", "x-ratelimit-limit-tokens": "160000",
    "x-ratelimit-remaining-requests": "4999", "x-ratelimit-remaining-tokens": "159976",
    "x-ratelimit-reset-requests": "12ms", "x-ratelimit-reset-tokens": "9ms",
}  # fmt: skip
ANTHROPIC = {
    "anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2026-11-21T09:30:03Z",
    "anthropic-ratelimit-input-tokens-remaining": "0",
    "anthropic-ratelimit-input-tokens-reset": "2026-11-21T09:30:41Z",
    "anthropic-ratelimit-output-tokens-remaining": "8000",
    "anthropic-ratelimit-output-tokens-reset": "2026-11-21T09:31:00Z",
}  # fmt: skip


@each_row(("headers", "expected"), [
    ({}, None),
    (OPENAI, None),
    (OPENAI | {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360),
    (ANTHROPIC, 41),
    ({"RateLimit-Remaining": "0", "RateLimit-Reset": "30"}, 30),
    ({"RateLimit-Remaining": "1", "RateLimit-Reset": "30"}, None),
    ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(EPOCH + 30)}, 30),
    ({"X-Rate-Limit-Remaining": " 0 ", "X-Rate-Limit-Reset": "30"}, 30),
    ({"X-RateLimit-Remaining": "0"}, None),
    ({"X-RateLimit-Remaining": "-1", "X-RateLimit-Reset": "30"}, None),
    ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "nan"}, None),
    ({"RateLimit-Policy": '"default";q=0;w=30'}, None),
])  # fmt: skip
def test_exhausted_rate_limit_waits_for_longest_reset(headers, expected):
    assert refusals.used_up(httpx2.Headers(headers), NOW) == expected


@each_row(("headers", "expected"), [
    ({}, None),
    ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
    ({"retry-after-ms": "soon", "Retry-After": "2"}, 2),
    ({"Retry-After": "2", **ANTHROPIC}, 2),
    ({"Retry-After": "soon", **ANTHROPIC}, 41),
    (OPENAI, None),
    ({"X-RateLimit-Reset": str(EPOCH + 30)}, 30),
    ({"RateLimit-Reset": "20", "X-RateLimit-Reset": "30"}, 30),
    ({"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "30"}, None),
    ({"Retry-After": "0"}, 0),
    ({"Date": "Sat, 21 Nov 2026 11:30:00 GMT", "Retry-After": "Sat, 21 Nov 2026 11:30:07 GMT"}, 7),
    ({"Date": "Sat, 21 Nov 2026 08:30:00 GMT", "X-RateLimit-Reset": str(EPOCH - 3590)}, 10),
    ({"Date": "soon", "Retry-After": "Sat, 21 Nov 2026 09:30:07 GMT"}, 7),
])  # fmt: skip
def test_requested_wait_is_read_from_retry_after_before_resets(headers, expected):
    """Its own word first, then the reset of what is used up, then a reset alone; by its own clock."""
    assert refusals.requested_wait(httpx2.Headers(headers), NOW) == expected


NAMES = st.sampled_from([*OPENAI, *ANTHROPIC, "Retry-After", "retry-after-ms", "x-ratelimit-reset", "Date"])
DATES = st.tuples(
    *(st.integers(-(10**20), 10**20) | st.integers(0, 60) for _ in range(5)), st.integers(-(10**15), 10**15)
).map(lambda n: f"{n[0]} Jan {n[1]} {n[2]}:{n[3]}:{n[4]} {n[5]:+05}")
ZONES = st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m)))
TIMES = st.datetimes(timezones=ZONES).map(str)
VALUES = st.one_of(
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=40), DATES, TIMES,
    st.sampled_from(["0", "nan", "-1", "9" * 400]), st.from_regex(r"[0-9.hms;,=rtµ ]{0,70}", fullmatch=True),
)  # fmt: skip


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_wait_from_arbitrary_headers_is_at_most_one_minute(pairs):
    headers = httpx2.Headers([(name.encode(), value.encode("latin-1")) for name, value in pairs])
    for result in (refusals.requested_wait(headers, NOW), refusals.used_up(headers, NOW)):
        assert 0 <= retry.wait_seconds(0, result, 1.0) <= retry.MAX_WAIT_SECONDS


def error(**fields: object) -> bytes:
    return json.dumps({"error": fields}).encode()


@each_row(("status", "body", "used_up"), [
    (402, b"", True),
    (429, error(code="insufficient_quota"), True),
    (429, error(type="insufficient_quota", message="You exceeded your current quota"), True),
    (429, b'[{"error": {"code": "billing_hard_limit_reached"}}]', True),
    (403, b'{"code": "insufficient_balance"}', True),
    (400, error(message="Your credit balance is too low to access the API"), True),
    (400, error(message="You have reached your specified workspace API usage limits."), True),
    (429, error(code="rate_limit_exceeded", message="Rate limit reached"), False),
    (429, error(message="You exceeded your current quota, please retry in 20 s"), False),
    (400, error(message="cannot read 'Your credit balance is too low'"), False),
    (422, b'{"detail": [{"input": {"message": "insufficient_quota"}}]}', False),
    (429, b"insufficient_quota <html>", False),
    (429, error(code=["insufficient_quota"], message=None), False),
    (429, b"[" * 100_000, False),
])  # fmt: skip
def test_used_up_quota_is_recognized_by_code_or_start_of_message(status, body, used_up):
    """Elsewhere the words may be a conversation's."""
    assert refusals.quota_used_up(status, body) is used_up


@each_row(("status", "body", "refused"), [
    (401, b"", True),
    (401, error(message="Incorrect API key provided"), True),
    (401, error(message="You have insufficient permissions. Missing scopes: model.read"), False),
    (401, error(code="PermissionDenied", message="The principal lacks the required data action"), False),
    (403, b"", False),
    (402, b"", True),
    (429, error(code="insufficient_quota"), True),
    (200, error(code="insufficient_quota"), False),
    (400, error(message="No connected db.", type="no_db_connection", code="400"), True),
    (400, error(message="Authentication Error, Invalid proxy server token passed."), True),
    (400, error(message="API key not valid. Please pass a valid API key.", code=400), True),
    (400, error(message="cannot read 'Invalid API key'"), False),
    (400, error(message="max_tokens is too large", code="invalid_request_error"), False),
    (422, error(message="Invalid API key"), False),
])  # fmt: skip
def test_rejected_key_is_recognized_by_status_and_error_body(status, body, refused):
    """Only what holds for every other request too."""
    assert refusals.refuses_key(status, body) is refused


@each_row(("status", "body", "at_first", "later"), [
    (401, b"{}", True, True),
    (403, b"{}", True, False),
    (400, b'{"error": {"code": "invalid_api_key"}}', True, False),
    (400, b'{"error": {"message": "No such model"}}', False, False),
    (404, b'{"error": {"code": "invalid_api_key"}}', False, False),
    (500, b"{}", False, False),
])  # fmt: skip
def test_only_status_401_rejects_previously_accepted_key(status, body, at_first, later):
    """Any other refusal is about one request."""
    assert refusals.denies_key(status, body, accepted_before=False) is at_first
    assert refusals.denies_key(status, body, accepted_before=True) is later


@each_row(("status", "value", "message", "other", "limits"), [
    (429, False, True, True, True),
    (529, False, False, True, True),
    (503, True, True, True, True),
    (503, False, False, True, False),
    (500, True, False, True, False),
    (408, False, False, True, False),
    (400, True, False, False, False),
    (404, False, False, False, False),
])  # fmt: skip
def test_message_is_resent_only_if_status_proves_it_was_not_received(status, value, message, other, limits):
    """The agent may have acted on one that failed otherwise. Limits deserve more patience than faults."""
    assert retry.may_resend(status, idempotent=False, wait_requested=value) is message
    assert retry.may_resend(status, idempotent=True, wait_requested=value) is other
    assert retry.limits_rate(status, wait_requested=value) is limits


def test_waits_are_as_requested_or_double_with_jitter_up_to_a_minute():
    """A broken server recovers at once, or needs some seconds."""
    assert [retry.wait_seconds(n, None, 1) for n in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [retry.wait_seconds(4, None, luck) for luck in (0, 0.25, 0.5)] == [0, 2, 4]
    assert retry.wait_seconds(10**9, None, 1) == 60
    assert [retry.wait_seconds(n * retry.BROKEN_STEP, None, 1) for n in range(3)] == [0.5, 4, 32]
    assert 7 <= retry.wait_seconds(0, 7, 0.3) <= 7.7
    assert [retry.wait_seconds(n, 0.001, 0) for n in range(6)] == [0.001, 0.001, 0.001, 0.5, 1, 2]
    assert retry.wait_seconds(0, 3600, 0) == retry.wait_seconds(0, float("inf"), 0) == 60
    assert retry.wait_seconds(5, 0, 0.5) == retry.wait_seconds(5, None, 0.5) == 8
