"""When a request may be sent again, and after how long."""

from each_row import each_row

from ci_evals.adapters.transport import retry


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
def test_message_is_resent_only_for_statuses_that_prove_it_was_not_received(
    status, value, message, other, limits
):
    """The agent may have acted on one that failed otherwise. Limits deserve more patience than faults."""
    assert retry.may_resend(status, idempotent=False, wait_requested=value) is message
    assert retry.may_resend(status, idempotent=True, wait_requested=value) is other
    assert retry.limits_rate(status, wait_requested=value) is limits


def test_waits_double_with_jitter_up_to_a_minute():
    """A broken server recovers at once, or needs some seconds."""
    assert [retry.wait_seconds(n, None, 1) for n in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [retry.wait_seconds(4, None, luck) for luck in (0, 0.25, 0.5)] == [0, 2, 4]
    assert retry.wait_seconds(10**9, None, 1) == 60
    assert [retry.wait_seconds(n * retry.BROKEN_STEP, None, 1) for n in range(3)] == [0.5, 4, 32]


def test_wait_is_at_least_as_requested_and_at_most_one_minute():
    """Nothing at all is no time."""
    assert 7 <= retry.wait_seconds(0, 7, 0.3) <= 7.7
    assert [retry.wait_seconds(n, 0.001, 0) for n in range(6)] == [0.001, 0.001, 0.001, 0.5, 1, 2]
    assert retry.wait_seconds(0, 3600, 0) == retry.wait_seconds(0, float("inf"), 0) == 60
    assert retry.wait_seconds(5, 0, 0.5) == retry.wait_seconds(5, None, 0.5) == 8
