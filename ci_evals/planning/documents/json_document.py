"""JSON read into plain data, with the position of every value and key: the standard parser reports none."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since Python 2, untyped
from typing import Any

from ci_evals.planning.documents.document import MAX_DEPTH, TOO_LONG, Document, Path, Position, refuse
from ci_evals.support.text import whole

_TEST = 2
"""Steps to a test of a suite, the deepest value whose place is wanted although nothing is wrong."""
_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
"""Half of a surrogate pair."""
_BETWEEN = re.compile(r"[ \t\n\r]*[,:]?[ \t\n\r]*")
"""What separates keys and values."""
_raw_decode = json.JSONDecoder().raw_decode


def read(text: str, document: Document) -> None:
    """Read JSON into `document`.

    Raises:
        SuiteError: the text is no JSON, with the position of the error.
    """
    locator = _Locator(text, document)
    repeated_keys = False

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, object]:
        nonlocal repeated_keys
        value = dict(pairs)
        repeated_keys |= len(value) < len(pairs)
        return value

    def refuse_constant(name: str) -> None:
        position = locator.position(text.index(name))
        raise refuse(document, *position, f"not JSON: {name} is not a number")

    try:
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=to_object)
    except json.JSONDecodeError as error:
        hint = "" if text.strip() else " (the file is empty)"
        raise refuse(document, error.lineno, error.colno, f"not JSON: {error.msg}{hint}") from error
    except RecursionError as error:
        raise refuse(document, 1, 1, "nested too deeply") from error
    except ValueError as error:
        raise refuse(document, 1, 1, f"not JSON: {TOO_LONG}") from error
    has_halves = _HALF.search(text) is not None
    if repeated_keys or has_halves or _is_deep(value):
        locator.locate(MAX_DEPTH + 1)
    else:
        locator.locate(_TEST)
        document.locate = lambda _: locator.locate(MAX_DEPTH + 1)
    document.value = _whole(value) if has_halves else value


class _Locator:
    """Notes the positions of values and keys in a text that `json` accepts, and keys that are repeated."""

    def __init__(self, text: str, document: Document) -> None:
        self._text = text
        self._document = document
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._depth = 0

    def locate(self, depth: int) -> None:
        """Note what is at most so many steps deep."""
        self._document.locate = lambda _: None
        self._document.values.clear()
        self._document.keys.clear()
        self._depth = depth
        self._value(self._next(0), ())

    def position(self, index: int) -> Position:
        line = bisect_right(self._newlines, index - 1)
        start = self._newlines[line - 1] + 1 if line else 0
        return line + 1, index - start + 1

    def _value(self, index: int, path: Path) -> int:
        """Note a value and what is in it, and return where it ends."""
        self._document.values[path] = self.position(index)
        if len(path) > MAX_DEPTH:
            raise refuse(self._document, *self.position(index), "nested too deeply")
        opening = self._text[index]
        if len(path) == self._depth or opening not in "{[":
            return int(_raw_decode(self._text, index)[1])
        index, number = self._next(index + 1), 0
        while self._text[index] not in "}]":
            step: str | int = number
            if opening == "{":
                key, end = scanstring(self._text, index + 1)
                step = whole(key)
                self._document.note_key((*path, step), self.position(index))
                index = self._next(end)
            index = self._next(self._value(index, (*path, step)))
            number += 1
        return index + 1

    def _next(self, index: int) -> int:
        """Return where the next key, value or bracket begins."""
        match = _BETWEEN.match(self._text, index)
        return match.end() if match else index


def span_of(path: Path, document: Document, text: str) -> tuple[int, int]:
    """Return where the value at a path of a JSON text begins and ends, as indices of the text."""
    position = document.problem(path, "")
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: position.line - 1])) + position.column - 1
    _, end = _raw_decode(text, start)
    return start, end


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [item for part in level if isinstance(part, dict | list) for item in _items(part)]
    return bool(level)


def _items(part: dict[str, object] | list[Any]) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


def _whole(value: Any) -> Any:
    match value:
        case str():
            return whole(value)
        case dict():
            return {whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value
