"""JSON as text, fast enough for many times in a conversation; and the schema of an answer."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, JsonValue
from pydantic_core import to_json

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object in a form of somebody else's: a request or answer of a service, a file, a schema.

Mypy checks none of its keys. What only we read is a dataclass, a `TypedDict` or a `dict[str, object]`.
"""


def written(value: object, indent: int | None = None) -> str:
    """Return JSON, which may hold records, as text in Unicode, in a small part of the time of `json.dumps`.

    Only the exponents of small numbers differ, `1e-7` for `1e-07`, and without an indent there are no blanks.
    """
    try:
        return to_json(value, indent=indent).decode()
    except ValueError:  # half of a surrogate pair, or nested more deeply than that
        return json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)


def _plain(model: BaseModel) -> dict[str, object]:
    return model.model_dump(mode="json")


def canonical(value: JsonValue) -> str:
    """Return the same text for equal values: keys in order, and 1 as 1.0, which are one number in JSON."""
    return "null" if value is None else written(_evened(value))


def _evened(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _evened(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_evened(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def strict_object(properties: Mapping[str, Any]) -> dict[str, object]:
    """Return the JSON Schema of an object with exactly these properties, as all providers enforce it."""
    return {
        "type": "object",
        "properties": {**properties},
        "required": [*properties],
        "additionalProperties": False,
    }
