"""Events that a session is given."""

from types import SimpleNamespace


def Event(author, content):  # noqa: N802  # as there
    """Return an event."""
    return SimpleNamespace(author=author, content=content)
