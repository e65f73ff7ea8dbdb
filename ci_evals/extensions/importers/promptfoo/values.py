"""The values of promptfoo's assertions, as far as they can be carried over."""

import re
from typing import Any

from ci_evals.extension_support.drafting.draft import short_name


class UnmappedError(Exception):
    """The assertion has no counterpart here; the text says why."""


def text_of(value: Any) -> str:
    """Return a text or number as text."""
    match value:
        case str() if value.startswith(("file://", "package:")):
            raise UnmappedError("names a file, which is not read")
        case str() if "{{" in value or "{%" in value:
            raise UnmappedError(f"holds a template that cannot be filled: {templates_in(value)}")
        case str() if value.strip():
            return value
        case int() | float() if not isinstance(value, bool):
            return str(value)
    raise UnmappedError("has a value that ci-evals does not support")


_TEMPLATE = re.compile(r"\{\{.*?(?:\}\}|$)|\{%.*?(?:%\}|$)", re.DOTALL)
_MOST_SHOWN = 3


def templates_in(text: str) -> str:
    """Return the templates in a text, for a message."""
    found = list(dict.fromkeys(_TEMPLATE.findall(text)))
    more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    return ", ".join(short_name(one) for one in found[:_MOST_SHOWN]) + more


def list_of(value: Any) -> list[str]:
    """Return the texts of a list, or of one text that holds several between commas."""
    if not isinstance(value, str):
        return texts_of(value)
    texts = split_at_commas(text_of(value))
    if not texts:
        raise UnmappedError("has no value")
    if "" in texts:
        raise UnmappedError("holds an empty text, which every reply contains")
    return texts


def split_at_commas(text: str) -> list[str]:
    """Split a text as promptfoo splits the values of `contains-any` and its like.

    Blanks around a part are dropped, and so are empty parts. A part in double quotes may hold commas, and
    quotes that are doubled or follow a backslash.

    Raises:
        UnmappedError: a quote is not closed, or something follows it before the next comma.
    """
    parts: list[str] = []
    at = 0
    while found := _PART.match(text, at):
        at = found.end()
        quoted, plain = found["quoted"], found["plain"]
        if quoted is not None:
            parts.append(_ESCAPED.sub(lambda match: match[1] or match[2], quoted))
        elif plain.startswith('"'):
            raise UnmappedError(f"has a list with a quote that is not closed: {short_name(plain)}")
        else:
            parts.append(plain.strip())
        if at < len(text) and text[at] != ",":
            raise UnmappedError(f"has a list without a comma after a quote: {short_name(text[at:])}")
    return parts


_PART = re.compile(r'[\s,]*(?:"(?P<quoted>(?:\\["\\]|""|[^"])*+)"\s*|(?P<plain>[^\s,][^,]*))')
_ESCAPED = re.compile(r'\\(["\\])|"(")')


def texts_of(value: Any) -> list[str]:
    """Return a text, or each of a list."""
    texts = [text_of(item) for item in (value if isinstance(value, list) else [value])]
    if not texts:
        raise UnmappedError("has no value")
    return texts


def number_in(text: str, name: str) -> float:
    """Return the number that a text is; a `ValueError` calls it `name`."""
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", text.strip()):
        raise ValueError(f"{name}: {text[:60]!r} is not a number")
    return float(text)


def number_of(value: Any, least: float, most: float, name: str) -> float:
    """Return a number between two others; messages call it `name`."""
    if type(value) not in {int, float} or not least <= value <= most:  # NaN is within nothing
        raise UnmappedError(f"its {name} is not a number from {least:g} to {most:g}")
    return float(value)
