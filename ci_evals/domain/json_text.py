"""JSON as text, fast: what is sent, shown or measured many times in every conversation."""

import json

from pydantic import JsonValue
from pydantic_core import to_json


def written(value: object, indent: int | None = None) -> str:
    """A JSON value as text in Unicode, as `json.dumps` writes it, in a small part of the time.

    Only the exponents of small numbers differ, `1e-7` for `1e-07`, and without an indent there are no blanks.
    """
    try:
        return to_json(value, indent=indent).decode()
    except ValueError:  # half of a surrogate pair, or nested more deeply than that
        return json.dumps(value, ensure_ascii=False, indent=indent)


def canonical(value: JsonValue) -> str:
    """The same text for equal values: keys in order, and 1 as 1.0, which are one number in JSON."""
    return written(value) if isinstance(value, str) else json.dumps(_evened(value), sort_keys=True)


def _evened(value: JsonValue) -> JsonValue:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_evened(item) for item in value]
        case dict():
            return {key: _evened(item) for key, item in value.items()}
    return value
