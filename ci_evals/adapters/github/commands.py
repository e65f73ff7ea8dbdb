"""Workflow commands: lines that GitHub's runner obeys when a step prints them. Pure.

The runner splits a line at `::` and its properties at `:` and `,`: these are escaped as its own toolkit does.
"""

from ci_evals.adapters.github.workflow import escape_data

MOST = 10
"""Annotations of one level that GitHub shows of a step."""

MESSAGE_LIMIT = 4096
"""Characters: the runner cuts there."""


def command(name: str, message: str = "", **properties: str | int | None) -> str:
    """The line that is the command `name`, such as `error`; properties without a value are left out."""
    given = [(key, str(value)) for key, value in properties.items() if value is not None]
    told = ",".join(f"{key}={_escape_property(value)}" for key, value in given)
    return f"::{name}{' ' if told else ''}{told}::{escape_data(message[:MESSAGE_LIMIT])}"


def _escape_property(text: str) -> str:
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
