"""When a request may be sent again, and after how long."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters.transport import retry

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "told", "message", "other"),
    [
        (429, False, True, True),
        (503, True, True, True),
        (503, False, False, True),
        (500, True, False, True),
        (408, False, False, True),
        (400, True, False, False),
        (404, False, False, False),
    ],
)
def test_a_message_is_sent_again_only_where_it_cannot_have_been_taken(
    status: int, told: bool, message: bool, other: bool
) -> None:
    """The agent may have acted on a message that failed in any other way."""
    assert retry.may_resend(status, idempotent=False, told_to_wait=told) is message
    assert retry.may_resend(status, idempotent=True, told_to_wait=told) is other


def test_waits_grow_and_vary_by_a_tenth() -> None:
    """One second, then two, spread by 10 % each way."""
    assert [retry.wait_seconds(0, None, luck) for luck in (0, 0.5, 1)] == pytest.approx([0.9, 1, 1.1])
    assert [retry.wait_seconds(1, None, luck) for luck in (0, 0.5, 1)] == pytest.approx([1.8, 2, 2.2])


def test_the_server_says_how_long_to_wait() -> None:
    """What Retry-After asks for is waited at least, and a minute at most."""
    assert 7 <= retry.wait_seconds(0, 7, 0.3) <= 7.7
    assert retry.wait_seconds(0, 3600, 0) == 60


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("5", 5),
        (" 0.25 ", 0.25),
        ("Sat, 21 Nov 2026 09:30:12 GMT", 12),
        ("Sat, 21 Nov 2026 09:00:00 GMT", 0),
        ("soon", None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999", None),
        ("1 Jan 99999999999999999999 0:0:0 GMT", None),
        ("Mon, 01 Jan 2024 00:00:00 -0000", 0),
        ("-1", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, expected: float | None) -> None:
    """Both forms of the header are read; anything else counts as not told."""
    assert retry.told_seconds(header, NOW) == expected


DATES = st.tuples(
    *(st.integers(-(10**20), 10**20) | st.integers(0, 60) for _ in range(5)), st.integers(-(10**15), 10**15)
).map(lambda n: f"{n[0]} Jan {n[1]} {n[2]}:{n[3]}:{n[4]} {n[5]:+05}")


@given(st.text(max_size=40) | DATES)
def test_no_header_breaks_the_reader(header: str) -> None:
    """Whatever a server puts there, the wait is a number of seconds within a minute, or our own."""
    told = retry.told_seconds(header, NOW)
    assert 0 <= retry.wait_seconds(0, told, 1.0) <= retry.MAX_WAIT_SECONDS
