"""Agents that a library's caller made."""

from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import Suite
from ci_evals.runner import Cast


def cast_of(found: object, suite: Suite) -> Cast:
    """Who plays in a suite, made of an object with an agent's methods.

    Raises:
        UsageError: it has none of them.
    """
    raise UsageError(f"{type(found).__name__} is no agent of the suite {suite.name!r}")
