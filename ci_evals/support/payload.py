"""Reads what servers and programs sent: bytes to valid JSON, error bodies to one short line. Pure."""

import json
import math
import re
from collections.abc import Iterable
from html import unescape
from itertools import islice
from typing import Any

from pydantic import JsonValue

from ci_evals.support.redaction import Redactor
from ci_evals.support.text import whole

MAX_ANSWER_MB = 16
"""Maximum size of an answer after decompression: 400 kB of gzip can hold 400 MB."""
MAX_ANSWER_BYTES = MAX_ANSWER_MB * 1_000_000

MAX_DEPTH = 100
"""Deeper branches are cut off: no agent nests so far, and writers of JSON give up at some 250 levels."""

MAX_VALUES = 100_000
"""A megabyte of brackets becomes a hundred of objects, and reading them takes seconds. A large trace holds
some thousand values."""

TOO_DEEP = f"(cut off here: nested deeper than {MAX_DEPTH} levels)"
MAX_EXCERPT = 300

# The input is untrusted: each of these reads a character a bounded number of times. A title ends at the next
# tag of any kind, since a search for its own end from every `<title>` would be quadratic.
_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)", re.IGNORECASE)
_HTML = re.compile(r"\s*(<!doctype\s+html|<html|<head|<body)", re.IGNORECASE)
_FEW = 50
"""So many signs are not worth telling from those in texts."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEXT_VALUE = re.compile(r'"[^"]*"|([,{[])(?!\s*[\]}])')
"""A text, or the sign before each value except the first; an empty list or object has none."""


class TooManyValuesError(ValueError):
    """JSON holds more values than allowed."""


class AnswerTooLargeError(Exception):
    """An answer is longer than allowed. No error of the network, since those are retried."""

    def __init__(self, max_mb: int = MAX_ANSWER_MB) -> None:
        super().__init__(f"answered with more than {max_mb} MB")


def parse(body: bytes, most_values: int = MAX_VALUES) -> JsonValue:
    """Parse and clean JSON (see `clean`); raise `ValueError` if it is none, too deep or too large."""
    try:
        is_ascii = body.isascii() and 0 not in body[:4]
        text = body.decode() if is_ascii else body.decode(json.detect_encoding(body), "surrogatepass")
        too_many = len(text) >= most_values and _count(text, most_values) > most_values
        value = None if too_many else _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    except ValueError:  # also bytes that are no text, and numbers of thousands of digits
        raise ValueError("not JSON") from None
    if too_many:
        raise TooManyValuesError(f"JSON of more than {most_values:,} values")
    return value if _is_clean(text, value) else clean(value)


def count_values(body: bytes) -> int:
    """Return the number of values in JSON, or of some more if there are few."""
    return _count(body.decode(errors="replace"), _FEW)


def _count(text: str, few: int) -> int:
    """Return the number of values in JSON, of which signs in texts may count as some if there are `few`.

    No more are counted than are refused in any case.
    """
    signs = text.count(",") + text.count("[") + text.count("{")
    if signs < few:
        return 1 + signs
    plain = text.replace("\\\\", "").replace('\\"', "")
    signs_outside_texts = (True for match in _NEXT_VALUE.finditer(plain) if match[1])
    return 1 + sum(islice(signs_outside_texts, max(few, MAX_VALUES)))


def _is_clean(text: str, value: JsonValue) -> bool:
    """Return whether `clean` would change nothing: half a surrogate pair may be an escape or bad UTF-8."""
    if "\\ud" in text or "\\uD" in text or not (text.isascii() or _SURROGATE.search(text) is None):
        return False
    return text.count("[") + text.count("{") <= MAX_DEPTH or _is_shallow(value)


def _is_shallow(value: JsonValue) -> bool:
    """Return whether no branch is deeper than `MAX_DEPTH`."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH):
        items = (outer.values() if isinstance(outer, dict) else outer for outer in level)
        level = [item for inner in items for item in inner if type(item) is dict or type(item) is list]
        if not level:
            return True
    return False


def _finite(number: str) -> float | None:
    return value if math.isfinite(value := float(number)) else None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _: None)
"""Reads numbers as `clean` leaves them."""


def clean(value: Any, depth: int = 0) -> JsonValue:
    """Return a JSON value that can be validated and written again.

    NaN and Infinity become null, a lone surrogate U+FFFD, and branches deeper than `MAX_DEPTH` a note.
    """
    match value:
        case str():
            return whole(value)
        case float():
            return value if math.isfinite(value) else None
        case dict() | list() if depth >= MAX_DEPTH:
            return TOO_DEEP
        case dict():
            return {whole(key): clean(item, depth + 1) for key, item in value.items()}
        case list():
            return [clean(item, depth + 1) for item in value]
        case _:
            return value  # type: ignore[no-any-return]  # null, a boolean or a whole number


def error_detail(body: bytes, redactor: Redactor) -> str:
    """Return the error in a body of any common format, on one short line.

    Secrets are removed before the text is shortened, or half of one might stay.
    """
    try:
        value = redactor.json(parse(body))
    except ValueError:
        return excerpt(body, redactor)
    text = explain(value)
    return shorten(text) if text else excerpt(body, redactor)


def explain(value: JsonValue) -> str | None:
    """Return the text of a JSON error: a text, an object with a known key, or a list of either."""
    match value:
        case str():
            return value.strip() or None
        case list():
            return "; ".join(text for item in value if (text := explain(item))) or None
        case dict():
            return _explain_object(value)
        case _:
            return None


def excerpt(body: bytes, redactor: Redactor) -> str:
    """Describe a body that is not JSON on one short line, without secrets."""
    text = body.decode(errors="replace")
    if not text.strip():
        return "an empty body"
    if not _HTML.match(text):
        return shorten(redactor.text(text))
    match = _TITLE.search(redactor.text(text))  # otherwise a title might end within a secret
    title = redactor.text(unescape(match[1])) if match else ""
    return f"an HTML page titled {shorten(title)!r}" if title.strip() else "an HTML page"


def shorten(text: str) -> str:
    """Return a text on one line of at most `MAX_EXCERPT` characters."""
    line = " ".join(text[: MAX_EXCERPT * 20].split())
    return line if len(line) <= MAX_EXCERPT else line[: MAX_EXCERPT - 1] + "…"


def member(value: JsonValue, key: str) -> JsonValue:
    """Return the value of a key; None if there is no such key, or no object."""
    return value.get(key) if isinstance(value, dict) else None


def filled(value: JsonValue) -> dict[str, JsonValue] | None:
    """Return the value if it is an object that is not empty."""
    return value if isinstance(value, dict) and value else None


def name(value: JsonValue, keys: Iterable[str] = ()) -> str | None:
    """Return a text that is not blank, or such a text under one of `keys`."""
    if isinstance(value, dict):
        return next((text for key in keys if (text := name(value.get(key)))), None)
    return value if isinstance(value, str) and value.strip() else None


def joined(content: JsonValue, *keys: str) -> str:
    """Return the text of a message's content: a text, or a list of texts and objects with one of `keys`."""
    match content:
        case str():
            return content
        case list():
            return "".join(joined(part, *keys) for part in content)
        case dict():
            return next((text for key in keys if isinstance(text := content.get(key), str) and text), "")
        case _:
            return ""


def _explain_object(value: dict[str, JsonValue]) -> str | None:
    if message := explain(value.get("msg")):  # a validation error with its location
        loc = value.get("loc")
        location = ".".join(str(part) for part in loc) if isinstance(loc, list) else ""
        return f"{location}: {message}" if location else message
    for key in ("detail", "errors", "error", "error_description", "reason"):
        if text := explain(value.get(key)):
            return text
    keys = ("field", "code", "description", "message", "details")
    parts = [text for key in keys if (text := explain(value.get(key)))]
    return ": ".join(parts) or None
