"""YAML read into plain data, with the position of every value and key."""

import re
from typing import Any

import yaml

from ci_evals.planning.documents.document import MAX_DEPTH, TOO_LONG, Document, Path, Position, refuse, short
from ci_evals.support.text import whole

MAX_NODES = 500_000
"""Aliases can make a YAML text of some hundred bytes grow without end."""

_MAX_DIGITS = 4000
"""Python itself refuses to read longer whole numbers (4,300 digits)."""
_COLLECTION_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


_BLANK = "\0 \t\r\n\x85\u2028\u2029"
_FLOW = ",[]{}"
"""Signs that end a plain text between brackets, beside the blank ones."""


class Loader(yaml.SafeLoader):
    """PyYAML with the implicit types of JSON and no others, and with the plain texts of YAML 1.2.

    PyYAML scans YAML 1.1, where `?` ends a text between brackets, and refuses tabs between tokens.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own form

    def check_key(self) -> bool:
        """Return whether the `?` here begins a key: only if it stands alone, also between brackets."""
        return self.peek(1) in _BLANK + (_FLOW if self.flow_level else "")

    def check_plain(self) -> bool:
        """Return whether a plain text begins here."""
        sign = self.peek()
        if sign in "-?" or (sign == ":" and not self.flow_level):
            return self.peek(1) not in _BLANK + (_FLOW if self.flow_level else "")
        return sign not in _BLANK + ",[]{}#&*!|>'\"%@`"

    def scan_plain(self) -> yaml.ScalarToken:
        """Read a plain text, as PyYAML does but for the signs that end it between brackets."""
        chunks: list[str] = []
        spaces: list[str] | None = []
        start = end = self.get_mark()
        indent = self.indent + 1
        closing = _FLOW if self.flow_level else ""
        while self.peek() != "#":
            length = 0
            while (sign := self.peek(length)) not in _BLANK + closing:
                if sign == ":" and self.peek(length + 1) in _BLANK + closing:
                    break
                length += 1
            if length == 0:
                break
            self.allow_simple_key = False
            chunks += [*(spaces or ()), self.prefix(length)]
            self.forward(length)
            end = self.get_mark()
            spaces = self.scan_plain_spaces(indent, start)
            if not spaces or (not self.flow_level and self.column < indent):
                break
        return yaml.ScalarToken("".join(chunks), plain=True, start_mark=start, end_mark=end)

    def scan_to_next_token(self) -> None:
        """Skip what stands between tokens; tabs too, unless they would indent a block."""
        while True:
            super().scan_to_next_token()
            if self.peek() != "\t" or (self.allow_simple_key and not self.flow_level):
                return
            self.forward()


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-+0123456789"),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), [*_first])
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])


_HINTS = {
    "mapping values are not allowed": "quote text that contains ': '",
    "cannot start any token": "indent with spaces, and quote text that starts with such a character",
    "expected <block end>": "indent this line like the one that it belongs to",
    "quoted scalar": "the quote that opens here is never closed",
}


def read(text: str, document: Document) -> None:
    """Read YAML into `document`.

    Raises:
        SuiteError: the text is no YAML, with the position of the error.
    """
    try:
        node = yaml.compose(text, Loader)
    except yaml.MarkedYAMLError as error:
        unclosed = "quoted scalar" in (error.context or "")
        mark = error.context_mark if unclosed else error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message = ", ".join(part for part in (error.context, error.problem) if part)
        hint = next((f"; {hint}" for fault, hint in _HINTS.items() if fault in message), "")
        raise refuse(document, line, column, f"not YAML: {message}{hint}") from error
    except yaml.YAMLError as error:
        raise refuse(document, 1, 1, f"not YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise refuse(document, 1, 1, "nested too deeply") from error
    if node is None:
        raise refuse(document, 1, 1, "the file is empty")
    document.value = _YamlWalker(document).value(node, ())


class _YamlWalker:
    """Turns YAML's nodes into plain data, noting positions and duplicate keys."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        position = (node.start_mark.line + 1, node.start_mark.column + 1)
        self.document.values[path] = position
        self.nodes += 1
        if len(path) > MAX_DEPTH or self.nodes > MAX_NODES:
            raise refuse(self.document, *position, "nested too deeply, or too large because of aliases")
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
            raise refuse(self.document, *position, f"a key must be a string{hint}")
        return str(node.value), position

    def _merged(self, node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
        """Return the keys and values that `<<` merges in, from one mapping or a list of them."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(item, yaml.MappingNode) for item in nodes):
            line, column = node.start_mark.line + 1, node.start_mark.column + 1
            raise refuse(self.document, line, column, "<< must be a mapping, or a list of mappings")
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
                fault = TOO_LONG if tag == "int" else f"the YAML tag {node.tag} is not supported"
                self.document.problems.append(self.document.problem(path, fault))
                value = None
        return value
