"""Suites of a shop, for tests of personas and languages."""

from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan

HELLO, THANKS = "Hello, I want my money back.", "Thank you, that is all."


def refund_test(name: str = "Refund", **fields) -> dict:
    """A test with fixed first and last messages, unless `turns` says otherwise."""
    turns = [{"user": HELLO}, {"user": "auto"}, {"user": THANKS}]
    check = {"strict": "not_escalated", "criterion": "No human"}
    return {"name": name, "guidelines": "You want a refund.", "turns": turns, "evaluations": [check]} | fields


def digests(loaded: LoadedSuite) -> dict[str, str]:
    (planned,) = plan([loaded], Selection(), 1).suites
    return dict(zip([test.name for test in planned.tests], planned.test_digests, strict=True))


def chosen(loaded: LoadedSuite, names: str | None = None, *, tags: str | None = None) -> list[str]:
    (planned,) = plan([loaded], Selection.of(names, tags), 1).suites
    return [test.name for test in planned.tests]
