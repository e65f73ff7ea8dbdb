"""Suites of a shop, for tests of personas and languages."""

HELLO, THANKS = "Hello, I want my money back.", "Thank you, that is all."


def refund_test(name: str = "Refund", **fields) -> dict:
    """A test with fixed first and last messages, unless `turns` says otherwise."""
    return {
        "name": name,
        "guidelines": "You want a refund.",
        "turns": [{"user": HELLO}, {"user": "auto"}, {"user": THANKS}],
        "evaluations": [{"strict": "not_escalated", "criterion": "No human"}],
    } | fields
