"""A pack of tests filled with what a suite gives it under `with`. Pure: JSON in, JSON out.

`{{with.NAME}}` stands for a value. An object in a list that has `each: NAME` is repeated for each item of
that list, and so is what stands under a key `{{each NAME}}`; `{{item}}` is the item there.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_WITH = re.compile(r"\{\{with\.(\w+)\}\}")
_EACH = re.compile(r"\{\{each (\w+)\}\}")
_ITEM = "{{item}}"


def filled(value: Any, given: Mapping[str, Any]) -> Any:
    """Return JSON of a pack with the values given."""
    match value:
        case str():
            return _text(value, given)
        case list():
            return [item for written in value for item in _items(written, given)]
        case dict():
            return dict(_pairs(value, given))
    return value


def _text(text: str, given: Mapping[str, Any]) -> Any:
    if whole := _WITH.fullmatch(text):
        return given[whole[1]]
    return _WITH.sub(lambda name: str(given[name[1]]), text)


def _items(written: Any, given: Mapping[str, Any]) -> Iterator[Any]:
    if not isinstance(written, dict) or "each" not in written:
        yield filled(written, given)
        return
    once = {key: item for key, item in written.items() if key != "each"}
    for item in given[written["each"]]:
        yield filled(_with_item(once, item), given)


def _pairs(written: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in written.items():
        if each := _EACH.fullmatch(key):
            for item in given[each[1]]:
                yield item, filled(_with_item(value, item), given)
        else:
            yield key, filled(value, given)


def _with_item(value: Any, item: str) -> Any:
    match value:
        case str():
            return value.replace(_ITEM, item)
        case list():
            return [_with_item(part, item) for part in value]
        case dict():
            return {key: _with_item(part, item) for key, part in value.items()}
    return value
