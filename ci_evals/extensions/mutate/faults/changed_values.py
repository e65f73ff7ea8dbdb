"""Wrong values in place of right ones."""

import re

from pydantic import JsonValue

_NUMBER = re.compile(r"\d(?:[\d.,:/-]*\d)?")
"""A number, a date, a time or an amount."""


def changed(value: JsonValue) -> JsonValue:
    """Return another value of the same type; None for what has none: null, lists and objects."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return with_changed_number(value) or f"not {value}"
    return None


def with_changed_number(text: str) -> str | None:
    """Return the text with the last digit of its first number changed; None if it has no number."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    last = match.end() - 1
    digit = int(text[last])
    other = digit - 1 if digit > 1 else digit + 1  # days and months stay what they can be
    return f"{text[:last]}{other}{text[last + 1 :]}"


def first_number(text: str) -> str | None:
    """Return the first number of a text with the word after it, `5 working`; None if there is none."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    word = re.match(r" [^\W\d_]+", text[match.end() :])
    return match.group() + (word.group() if word else "")
