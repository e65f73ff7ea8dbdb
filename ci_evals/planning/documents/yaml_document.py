"""YAML read into plain data, with the position of every value and key.

PyYAML reads YAML 1.1, mostly by libyaml. What 1.2 reads otherwise is refused here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.document import MAX_DEPTH, TOO_LONG, Document, Path, Position, refuse, short
from ci_evals.support.text import whole

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # without libyaml PyYAML takes six times as long, and refuses a `?` between brackets
    from yaml import SafeLoader  # type: ignore[assignment]

MAX_NODES = 500_000
"""Aliases can make a YAML text of some hundred bytes grow without end."""

_MAX_DIGITS = 4000
"""Python itself refuses to read longer whole numbers (4,300 digits)."""
_TAG = "tag:yaml.org,2002:"
_COLLECTION_TAGS = (f"{_TAG}map", f"{_TAG}seq")


class Loader(SafeLoader):
    """PyYAML's loader with the implicit types of JSON and no others, and with a limit to its recursion."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own form
    _depth = 0

    def descend_resolver(self, current_node: yaml.Node | None, current_index: object) -> None:
        """Begin a node; libyaml's composer would recurse until the process crashes."""
        del current_index
        self._depth += 1
        if current_node and self._depth > MAX_DEPTH + 1:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=current_node.start_mark)

    def ascend_resolver(self) -> None:
        """End a node."""
        self._depth -= 1


_PATTERNS: dict[str, re.Pattern[str]] = {}
"""The plain texts of each type that is no string, by the name of its tag."""
for _name, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-+0123456789"),
):
    _PATTERNS[_name] = re.compile(rf"(?:{_pattern})\Z")
    Loader.add_implicit_resolver(_TAG + _name, _PATTERNS[_name], [*_first])
Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"\Z"), [""])

_VALUES: dict[str, Callable[[str], Any]] = {
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": float,
}

_HINTS = {
    "mapping values are not allowed": "quote text that contains ': '",
    "cannot start any token": "indent with spaces, and quote text that starts with such a character",
    "block collection": "indent this line like the one that it belongs to",
    "block mapping": "indent this line like the one that it belongs to",
}
_NEVER_CLOSED = {
    "quoted scalar": "the quote that opens here is never closed",
    "flow": "the bracket that opens here is never closed",
}
_NAMED = re.compile(r"\*[\w-]+|.", re.DOTALL)
"""An alias, or any character, as a message shows it."""
_NOT_PRINTABLE = re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no YAML has, and line breaks of YAML 1.1 that are none in 1.2."""
_MISREAD = re.compile(r"&[\w-]++[^\s\w,\[\]{}-]|(?:&[\w-]++(?:\s++|#.*+)*+)?!(?![^\s,])", re.ASCII)
"""How a node begins that 1.1 reads otherwise: an anchor like `&a:b`, or the tag `!`."""

_MAYBE_MISREAD_KEY = re.compile(r"[\[{,\s]\?[^\s,\[\]{}]", re.ASCII)


def read(text: str, document: Document) -> None:
    """Read YAML into `document`.

    Raises:
        SuiteError: the text is no YAML, with the position of the error.
    """
    if match := _NOT_PRINTABLE.search(text):
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - text.rfind("\n", 0, match.start())
        code = f"{ord(match[0]):04X}"
        hint = f'write it as "\\u{code}", in double quotes'
        raise refuse(document, line, column, f"not YAML: the character U+{code} cannot stand here; {hint}")
    if not text.endswith("\n"):
        text += "\n"  # the last line of a block ends too
    try:
        if _MAYBE_MISREAD_KEY.search(text):
            _refuse_misread_keys(text, document)
        node = yaml.compose(text, Loader)
    except yaml.MarkedYAMLError as error:
        raise _refusal(error, text, document) from error
    except yaml.YAMLError as error:
        raise refuse(document, 1, 1, f"not YAML: {str(error).splitlines()[0]}") from error
    if node is None:
        raise refuse(document, 1, 1, "the file is empty")
    document.value = _YamlWalker(document, text).value(node, ())


def _refuse_misread_keys(text: str, document: Document) -> None:
    """Refuse text between brackets that starts with `?`, which 1.1 reads as a key without it."""
    for token in yaml.scan(text, Loader):
        if not isinstance(token, yaml.KeyToken):
            continue
        start, end = token.start_mark, token.end_mark  # the same where a key has no mark
        if end.index > start.index and _MAYBE_MISREAD_KEY.match(text, start.index - 1):
            raise refuse(
                document, start.line + 1, start.column + 1, "put text that starts with '?' in quotes"
            )


def _refusal(error: yaml.MarkedYAMLError, text: str, document: Document) -> SuiteError:
    """Return PyYAML's error with its position, and what to do about it."""
    message = ", ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    if mark and (shown := _NAMED.match(text, mark.index)) and message.endswith(("alias", "any token")):
        message += f": {shown[0]!r}"
    hints = [hint for fault, hint in _HINTS.items() if fault in message]
    start = error.context_mark
    if mark and start and (mark.index >= len(text.rstrip()) or "unexpected" in message):
        line, column = start.line + 1, start.column + 1
        hints = [hint for fault, hint in _NEVER_CLOSED.items() if fault in message]
    return refuse(document, line, column, "; ".join([f"not YAML: {message}", *hints[:1]]))


class _YamlWalker:
    """Turns YAML's nodes into plain data, noting positions and duplicate keys."""

    def __init__(self, document: Document, text: str) -> None:
        self.document = document
        self.text = text
        self.nodes = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        position = self._position(node)
        self.document.values[path] = position
        self._count(position)
        if len(path) > MAX_DEPTH:
            raise refuse(self.document, *position, "nested too deeply by aliases")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _COLLECTION_TAGS:
            self._note_tag(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]

    def _count(self, position: Position) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise refuse(self.document, *position, "too large because of aliases")

    def _position(self, node: yaml.Node) -> Position:
        """Return where a node begins, or refuse what YAML 1.2 reads otherwise."""
        mark = node.start_mark
        position = (mark.line + 1, mark.column + 1)
        if match := _MISREAD.match(self.text, mark.index):
            raise refuse(self.document, *position, f"not YAML: {match[0]!r} cannot stand here")
        return position

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        value: dict[str, object] = {}
        merged: list[yaml.Node] = []
        for key_node, item in node.value:
            if key_node.value == "<<" and not key_node.style:
                merged.append(item)
            else:
                self._add(value, key_node, item, path)
        for key_node, item in self._inherited(merged):
            if self._key(key_node)[0] not in value:  # a mapping's own keys come before those it merges in
                self._add(value, key_node, item, path)
        return value

    def _inherited(self, merged: list[yaml.Node]) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """Yield the keys and values that `<<` merges in, from one mapping or a list of them."""
        for node in merged:
            for mapping in node.value if isinstance(node, yaml.SequenceNode) else [node]:
                position = self._position(mapping)
                if not isinstance(mapping, yaml.MappingNode):
                    raise refuse(self.document, *position, "<< must be a mapping, or a list of mappings")
                for pair in mapping.value:
                    self._count(position)
                    yield pair

    def _add(self, mapping: dict[str, object], key_node: yaml.Node, item: yaml.Node, path: Path) -> None:
        key, position = self._key(key_node)
        self.document.note_key((*path, key), position)
        mapping[key] = self.value(item, (*path, key))

    def _key(self, node: yaml.Node) -> tuple[str, Position]:
        position = self._position(node)
        if not isinstance(node, yaml.ScalarNode) or not (node.value or node.style):
            hint = "; put '{{…}}' in quotes" if isinstance(node, yaml.MappingNode) else ""
            raise refuse(self.document, *position, f"a key must be a string{hint}")
        return str(node.value), position

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text, kind = str(node.value), node.tag.removeprefix(_TAG)
        if kind == "str":
            return whole(text)
        if kind not in _PATTERNS or not _PATTERNS[kind].match(text):
            return self._note_tag(node, path)
        if kind == "int" and len(text) > _MAX_DIGITS:
            return self._note(path, TOO_LONG)
        return _VALUES[kind](text)

    def _note_tag(self, node: yaml.Node, path: Path) -> None:
        self._note(path, f"the YAML tag {short(node.tag)} is not supported")

    def _note(self, path: Path, fault: str) -> None:
        self.document.problems.append(self.document.problem(path, fault))
