"""JSON or YAML read into plain data, with the position of every value and key.

The standard JSON parser reports no positions, and PyYAML refuses some JSON (tab indents), so JSON has a small
walker of its own. YAML is read by its JSON schema: `yes` and `2026-05-04` are strings.
"""

import json
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since Python 2, untyped
from pathlib import PurePath
from typing import Any

from ci_evals.planning.documents.document import MAX_DEPTH, TOO_LONG, Document, Path, Position, refuse
from ci_evals.support.text import whole


def read(text: str, file: str) -> Document:
    """Read a suite's text; the extension of `file` says in which format.

    Raises:
        SuiteError: the text is neither JSON nor YAML, with the position of the error.
    """
    document = Document(file)
    if PurePath(file).suffix.lower() in {".yaml", ".yml"}:
        from ci_evals.planning.documents import yaml_document  # noqa: PLC0415  # most suites are JSON

        yaml_document.read(text, document)
    else:
        _JsonWalker(text, document).read()
    return document


_TEST = 2
"""Steps to a test of a suite, the deepest value whose place is wanted although nothing is wrong."""
_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
"""Half of a surrogate pair."""


class _JsonWalker:
    """Walks a text that `json` accepts, noting positions and duplicate keys.

    What is deeper than a test is left to `json`, many times as fast, until a problem is to be located.
    """

    SPACE = re.compile(r"[ \t\n\r]*")
    NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
    WORDS = (("null", None), ("true", True), ("false", False))

    def __init__(self, text: str, document: Document) -> None:
        self.text = text
        self.document = document
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        self.usual = not _HALF.search(text)

    def read(self) -> None:
        try:
            value = json.loads(self.text, parse_constant=_no_constant, object_pairs_hook=self._pairs)
        except json.JSONDecodeError as error:
            hint = "" if self.text.strip() else " (the file is empty)"
            raise refuse(self.document, error.lineno, error.colno, f"not JSON: {error.msg}{hint}") from error
        except _ConstantError as error:
            line, column = self._position(self.text.index(str(error)))
            raise refuse(self.document, line, column, f"not JSON: {error} is not a number") from error
        except RecursionError as error:
            raise refuse(self.document, 1, 1, "nested too deeply") from error
        except ValueError as error:
            raise refuse(self.document, 1, 1, f"not JSON: {TOO_LONG}") from error
        if not self.usual or _is_deep(value):
            self.document.value = self.walk(MAX_DEPTH)
            return
        self.walk(_TEST)
        text, self.document.value = self.text, value
        self.document.locate = lambda document: _JsonWalker(text, document).walk(MAX_DEPTH)

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        self.usual &= len(value) == len(pairs)
        return value

    def walk(self, depth: int) -> Any:
        """Note the positions of values that are no deeper, and return the whole one."""
        self.document.locate = lambda _: None
        self.document.values.clear()
        self.document.keys.clear()
        self.depth = depth
        return self._value(self._skip(0), ())[0]

    def _position(self, index: int) -> Position:
        line = bisect_right(self.newlines, index - 1)
        start = self.newlines[line - 1] + 1 if line else 0
        return line + 1, index - start + 1

    def _skip(self, index: int) -> int:
        match = self.SPACE.match(self.text, index)
        return match.end() if match else index

    def _value(self, index: int, path: Path) -> tuple[Any, int]:
        self.document.values[path] = self._position(index)
        if len(path) > MAX_DEPTH:
            raise refuse(self.document, *self._position(index), "nested too deeply")
        if len(path) == self.depth < MAX_DEPTH:
            return _raw_decode(self.text, index)
        match self.text[index]:
            case "{":
                return self._object(index + 1, path)
            case "[":
                return self._array(index + 1, path)
            case '"':
                return self._string(index)
        for word, value in self.WORDS:
            if self.text.startswith(word, index):
                return value, index + len(word)
        number = self.NUMBER.match(self.text, index)
        assert number is not None  # noqa: S101  # `json` has read this text
        return json.loads(number.group()), number.end()

    def _string(self, index: int) -> tuple[str, int]:
        text, end = scanstring(self.text, index + 1)
        return whole(text), end

    def _object(self, index: int, path: Path) -> tuple[dict[str, Any], int]:
        value: dict[str, Any] = {}
        index = self._skip(index)
        while self.text[index] != "}":
            start = index
            key, index = self._string(index)
            here = (*path, key)
            position = self._position(start)
            self.document.note_key(here, position)
            value[key], index = self._value(self._skip(self._skip(index) + 1), here)
            index = self._skip(index)
            if self.text[index] == ",":
                index = self._skip(index + 1)
        return value, index + 1

    def _array(self, index: int, path: Path) -> tuple[list[Any], int]:
        value: list[Any] = []
        index = self._skip(index)
        while self.text[index] != "]":
            item, index = self._value(index, (*path, len(value)))
            value.append(item)
            index = self._skip(index)
            if self.text[index] == ",":
                index = self._skip(index + 1)
        return value, index + 1


_raw_decode = json.JSONDecoder().raw_decode


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for part in level
            if isinstance(part, (dict, list))
            for item in (part.values() if isinstance(part, dict) else part)
        ]
    return bool(level)


class _ConstantError(Exception):
    """NaN or Infinity, which Python's parser would accept."""


def _no_constant(name: str) -> None:
    raise _ConstantError(name)
