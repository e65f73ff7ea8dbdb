"""A JSON or YAML text read into plain data, with the place of every value and key.

The standard JSON parser tells no places, and PyYAML refuses some JSON (tab indents), so JSON has a small
walker of its own. YAML is read by its JSON schema: `yes` and `2026-05-04` are strings, not a boolean and a
date.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since Python 2, untyped
from pathlib import PurePath
from typing import Any

import yaml

from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.domain.text import whole

Path = tuple[str | int, ...]
"""Where a value is: `("tests", 2, "name")`."""

Position = tuple[int, int]
"""Line and column, both counted from 1."""

MAX_DEPTH = 60
MAX_NODES = 500_000
"""Aliases can make a YAML text of some hundred bytes grow without end."""


_LONGEST_NAME = 60
_MAX_DIGITS = 4000
"""Python itself refuses to read longer whole numbers (4,300 digits)."""
_COLLECTION_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_TOO_LONG = "a number with thousands of digits"


def show(path: Path) -> str:
    """The path as a reader writes it: `tests[2].evaluations[0].strict`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{short(step)}" if text else short(step)
    return text


def short(name: str) -> str:
    """A key or name for a message; a hostile one can have millions of characters."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


@dataclass
class Document:
    """Plain data and where it stands in its file."""

    file: str
    value: Any = None
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """A fault at `path`, or at the nearest thing around it that stands in the file."""
        places: Mapping[Path, Position] = self.keys if at_key else self.values
        near = path
        while near and near not in places:
            near, places = near[:-1], self.values
        line, column = places.get(near, (1, 1))
        return Problem(self.file, line, column, show(path), message)

    def note_key(self, path: Path, position: Position) -> None:
        """Remembers where a key stands; one that stands there already is a problem."""
        if path in self.keys:
            message = f"key given twice (first in line {self.keys[path][0]})"
            self.problems.append(Problem(self.file, *position, show(path), message))
        else:
            self.keys[path] = position


def read(text: str, file: str) -> Document:
    """Reads a suite's text; `file` tells the format by its ending.

    Raises:
        SuiteError: the text is neither JSON nor YAML, with the place where it goes wrong.
    """
    document = Document(file)
    if PurePath(file).suffix.lower() in {".yaml", ".yml"}:
        _read_yaml(text, document)
    else:
        _JsonWalker(text, document).walk()
    return document


def _refuse(document: Document, line: int, column: int, message: str) -> SuiteError:
    return SuiteError([Problem(document.file, line, column, "", message)])


class _JsonWalker:
    """Walks a text that `json` has found to be sound, noting places and duplicate keys."""

    SPACE = re.compile(r"[ \t\n\r]*")
    NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
    WORDS = (("null", None), ("true", True), ("false", False))

    def __init__(self, text: str, document: Document) -> None:
        self.text = text
        self.document = document
        self.newlines = [found.start() for found in re.finditer("\n", text)]

    def walk(self) -> None:
        try:
            json.loads(self.text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            hint = "" if self.text.strip() else " (the file is empty)"
            raise _refuse(self.document, error.lineno, error.colno, f"not JSON: {error.msg}{hint}") from error
        except _ConstantError as error:
            line, column = self._position(self.text.index(str(error)))
            raise _refuse(self.document, line, column, f"not JSON: {error} is no number") from error
        except RecursionError as error:
            raise _refuse(self.document, 1, 1, "nested too deeply") from error
        except ValueError as error:
            raise _refuse(self.document, 1, 1, f"not JSON: {_TOO_LONG}") from error
        self.document.value, _ = self._value(self._skip(0), ())

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
            raise _refuse(self.document, *self._position(index), "nested too deeply")
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


class _ConstantError(Exception):
    """NaN or Infinity, which Python's parser would let pass."""


def _no_constant(name: str) -> None:
    raise _ConstantError(name)


class Loader(yaml.SafeLoader):
    """PyYAML with the implicit types of JSON and no others."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own form


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-+0123456789"),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), [*_first])
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])


_HINTS = {
    "mapping values are not allowed": "put a text that holds ': ' in quotes",
    "cannot start any token": "indent by spaces, and put a text that begins with such a sign in quotes",
}


def _read_yaml(text: str, document: Document) -> None:
    try:
        node = yaml.compose(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        said = ", ".join(part for part in (error.context, error.problem) if part)
        hint = next((f"; {told}" for fault, told in _HINTS.items() if fault in said), "")
        raise _refuse(document, line, column, f"not YAML: {said}{hint}") from error
    except yaml.YAMLError as error:
        raise _refuse(document, 1, 1, f"not YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise _refuse(document, 1, 1, "nested too deeply") from error
    if node is None:
        raise _refuse(document, 1, 1, "the file is empty")
    document.value = _YamlWalker(document).value(node, ())


class _YamlWalker:
    """Turns YAML's nodes into plain data, noting places and duplicate keys."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        position = (node.start_mark.line + 1, node.start_mark.column + 1)
        self.document.values[path] = position
        self.nodes += 1
        if len(path) > MAX_DEPTH or self.nodes > MAX_NODES:
            raise _refuse(self.document, *position, "nested too deeply, or grown too large by aliases")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _COLLECTION_TAGS:
            fault = f"the YAML tag {short(node.tag)} is not supported"
            self.document.problems.append(self.document.problem(path, fault))
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        value: dict[str, Any] = {}
        inherited: list[tuple[yaml.Node, yaml.Node]] = []
        for key_node, item in node.value:
            if key_node.value == "<<" and key_node.style is None:
                inherited += self._merged(item)
                continue
            key, position = self._key(key_node)
            here = (*path, key)
            self.document.note_key(here, position)
            value[key] = self.value(item, here)
        for key_node, item in inherited:
            key, position = self._key(key_node)
            if key not in value:  # a mapping's own keys come before those it merges in
                self.document.note_key((*path, key), position)
                value[key] = self.value(item, (*path, key))
        return value

    def _key(self, node: yaml.Node) -> tuple[str, Position]:
        position = (node.start_mark.line + 1, node.start_mark.column + 1)
        if not isinstance(node, yaml.ScalarNode):
            hint = "; put '{{…}}' in quotes" if isinstance(node, yaml.MappingNode) else ""
            raise _refuse(self.document, *position, f"a key must be a string{hint}")
        return str(node.value), position

    def _merged(self, node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
        """The keys and values that `<<` brings in, from one mapping or a list of them."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(item, yaml.MappingNode) for item in nodes):
            line, column = node.start_mark.line + 1, node.start_mark.column + 1
            raise _refuse(self.document, line, column, "<< wants a mapping, or a list of mappings")
        return [pair for item in nodes for pair in item.value]

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        text = str(node.value)
        match node.tag.rpartition(":")[2]:
            case "null":
                value: Any = None
            case "bool":
                value = text.lower() == "true"
            case "int" if len(text) <= _MAX_DIGITS:
                value = int(text)
            case "float":
                value = float(text)
            case "str":
                value = whole(text)
            case tag:
                fault = _TOO_LONG if tag == "int" else f"the YAML tag {node.tag} is not supported"
                self.document.problems.append(self.document.problem(path, fault))
                value = None
        return value
