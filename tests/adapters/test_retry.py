"""When a request may be sent again, and after how long."""

import pytest
from each_row import each_row

from ci_evals.adapters.transport import retry


@each_row(
    ("status", "value", "message", "other"),
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
def test_a_message_is_sent_again_only_where_it_cannot_have_been_taken(status, value, message, other):
    """The agent may have acted on a message that failed in any other way."""
    assert retry.may_resend(status, idempotent=False, wait_requested=value) is message
    assert retry.may_resend(status, idempotent=True, wait_requested=value) is other


@pytest.mark.parametrize(
    ("status", "value", "limits"),
    [(429, False, True), (529, False, True), (503, True, True), (503, False, False), (500, True, False)],
)
def test_a_server_that_limits_the_rate_is_not_broken(status, value, limits):
    """It deserves more patience, and fewer calls at a time."""
    assert retry.limits_rate(status, wait_requested=value) is limits


def test_waits_double_and_lie_anywhere_within():
    """Up to half a second, one, two, and never more than a minute."""
    assert [retry.wait_seconds(n, None, 1) for n in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [retry.wait_seconds(4, None, luck) for luck in (0, 0.25, 0.5)] == [0, 2, 4]
    assert retry.wait_seconds(10**9, None, 1) == 60


def test_what_is_broken_is_given_more_time():
    """It is well at once, or needs some seconds."""
    assert [retry.wait_seconds(n * retry.BROKEN_STEP, None, 1) for n in range(3)] == [0.5, 4, 32]


def test_the_server_says_how_long_to_wait():
    """What it asks for is waited at least, and a minute at most; nothing at all is no time."""
    assert 7 <= retry.wait_seconds(0, 7, 0.3) <= 7.7
    assert [retry.wait_seconds(n, 0.001, 0) for n in range(6)] == [0.001, 0.001, 0.001, 0.5, 1, 2]
    assert retry.wait_seconds(0, 3600, 0) == retry.wait_seconds(0, float("inf"), 0) == 60
    assert retry.wait_seconds(5, 0, 0.5) == retry.wait_seconds(5, None, 0.5) == 8
