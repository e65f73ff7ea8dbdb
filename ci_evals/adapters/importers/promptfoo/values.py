"""The values of promptfoo's assertions, as far as they can be carried over."""

from typing import Any


class UnmappedError(Exception):
    """The assertion has no counterpart here; the text says why."""


def text_of(value: Any) -> str:
    """Return a text or number as text."""
    match value:
        case str() if value.startswith(("file://", "package:")):
            raise UnmappedError("names a file, which is not read")
        case str() if "{{" in value or "{%" in value:
            raise UnmappedError("holds a template that cannot be filled")
        case str() if value.strip():
            return value
        case int() | float() if not isinstance(value, bool):
            return str(value)
    raise UnmappedError("has a value that ci-evals does not support")


def texts_of(value: Any) -> list[str]:
    """Return a text, or each of a list."""
    texts = [text_of(item) for item in (value if isinstance(value, list) else [value])]
    if not texts:
        raise UnmappedError("has no value")
    return texts


def number_of(value: Any, least: float, most: float, name: str) -> float:
    """Return a number between two others; messages call it `name`."""
    if type(value) not in {int, float} or not least <= value <= most:  # NaN is within nothing
        raise UnmappedError(f"its {name} is not a number from {least:g} to {most:g}")
    return float(value)
