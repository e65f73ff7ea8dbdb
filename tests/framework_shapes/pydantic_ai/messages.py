"""Messages that a run is given as its history."""

from types import SimpleNamespace


def ModelRequest(parts):  # noqa: N802  # as there
    """Return what was sent to a model."""
    asks = any(part.part_kind == "user-prompt" for part in parts)
    return SimpleNamespace(kind="request", asks=asks, parts=parts)


def ModelResponse(parts):  # noqa: N802  # as there
    """Return what a model answered."""
    return SimpleNamespace(kind="response", parts=parts)


def UserPromptPart(content):  # noqa: N802  # as there
    """Return the words of a user."""
    return SimpleNamespace(part_kind="user-prompt", content=content)


def TextPart(content):  # noqa: N802  # as there
    """Return the words of a model."""
    return SimpleNamespace(part_kind="text", content=content)
