"""`{{names}}` in texts and JSON that a suite's author wrote, and their values."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

Lookup = Callable[[str], JsonValue]
"""The value that stands for a name; null where there is none."""

_PLACE = re.compile(r"\{\{([^{}]*)\}\}")


def names(value: Any) -> Iterator[str]:
    """Yield every name in a text, or in those of a JSON value. Keys of objects are not looked at."""
    match value:
        case str():
            yield from (found[1].strip() for found in _PLACE.finditer(value))
        case dict():
            for item in value.values():
                yield from names(item)
        case list() | tuple():
            for item in value:
                yield from names(item)


def filled(value: JsonValue, lookup: Lookup) -> JsonValue:
    """Return a JSON value with its names replaced by their values.

    A text that is nothing but one `{{name}}` becomes the value itself, be it an object; in other text a value
    is written out (`text`).
    """
    match value:
        case str():
            whole = _PLACE.fullmatch(value)
            return lookup(whole[1].strip()) if whole else text(value, lookup)
        case dict():
            return {key: filled(item, lookup) for key, item in value.items()}
        case list():
            return [filled(item, lookup) for item in value]
        case _:
            return value


def text(template: str, lookup: Lookup, encode: Callable[[str], str] = str) -> str:
    """Return a text with its names replaced by their values, each passed through `encode`.

    A text goes in as it is, null as nothing, anything else as JSON. What went in is not looked at again.
    """
    return _PLACE.sub(lambda found: encode(_written(lookup(found[1].strip()))), template)


def member(value: JsonValue, path: str) -> JsonValue:
    """Return the value at a dotted path (`plan.name`, `pets.0`); None if there is none."""
    for step in path.split("."):
        match value:
            case dict():
                value = value.get(step)
            case list() if step.isascii() and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            case _:
                return None
    return value


def lookup_in(values: Mapping[str, JsonValue]) -> Lookup:
    """Return a lookup of names among values: `userInfo.plan` is a part of the value `userInfo`."""

    def lookup(name: str) -> JsonValue:
        return values[name] if name in values else member(dict(values), name)

    return lookup


def _written(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)
