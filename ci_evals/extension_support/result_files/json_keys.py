"""Keys that an object of a JSON document has twice, of which parsers keep the last without a word."""

import json
import re
from collections.abc import Iterable
from typing import Any

_KEY = re.compile(rb'(?<!\\)"\s*:')
_BLANKS = (b" :", b"\t:", b"\n:", b"\r:")


def repeated_key(data: bytes, value: Any) -> str | None:
    """Return the first key that an object has twice, with its place: `results[3].success`.

    Args:
        data: The document.
        value: What it was parsed into: if it has as many keys as are written, none was lost.

    Returns:
        None if there is none.
    """
    return None if _kept(value) == _written(data) else _search(data)


def _kept(value: Any) -> int:
    """Return how many keys the objects within a value have."""
    keys = 0
    open_values = [value]
    while open_values:
        one = open_values.pop()
        if type(one) is dict:
            keys += len(one)
            inner: Iterable[Any] = one.values()
        elif type(one) is list:
            inner = one
        else:
            continue
        open_values += [item for item in inner if type(item) is dict or type(item) is list]
    return keys


def _written(data: bytes) -> int:
    """Return how many keys are written; -1 if only a parser can tell."""
    if rb"\\" in data and rb'\\"' in data:  # the end of a text, or a quote within it
        return -1
    if any(blank in data for blank in _BLANKS):
        return len(_KEY.findall(data))
    return data.count(b'":') - data.count(rb"\":")


class _Object(list[tuple[str, Any]]):
    """The members of an object, also those that are there twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=str, parse_float=str, strict=False)


def _search(data: bytes) -> str | None:
    try:
        document = _DECODER.decode(data.decode("utf-8-sig").strip())
    except (ValueError, RecursionError):  # nothing of it was parsed
        return None
    open_values: list[tuple[str, Any]] = [("", document)]
    while open_values:
        place, value = open_values.pop()
        if isinstance(value, _Object):
            seen = set()
            inner = []
            for key, item in value:
                where = f"{place}.{key[:100]}" if place else key[:100]
                if key in seen:
                    return where
                seen.add(key)
                inner.append((where, item))
            open_values += inner[::-1]
        elif isinstance(value, list):
            open_values += [(f"{place}[{index}]", item) for index, item in enumerate(value)][::-1]
    return None
