"""JSON Patch (RFC 6902), held to work that is in proportion to the patch.

python-jsonpath has one too, which reads a text as a document, takes operations and pointers beyond the
standard, and copies without a limit: an agent could fill the memory with a few `copy` operations.
"""

import re
from copy import deepcopy
from typing import Any

from pydantic import JsonValue

MAX_COPIED = 100_000
"""Values that `copy` operations may make."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_VALUE, _FROM = ("add", "replace", "test"), ("move", "copy")


class PatchError(ValueError):
    """A patch does not apply; a clause that says which operation and why."""


_ROOT = ""


class Patcher:
    """A document that patches change. All of them together may copy `MAX_COPIED` values."""

    def __init__(self, document: JsonValue) -> None:
        self._root: dict[str, Any] = {_ROOT: document}
        """Holds the document, so that the whole of it can be replaced like any of its members."""
        self._copies_left = MAX_COPIED

    @property
    def document(self) -> JsonValue:
        """The document, without a limit to its depth; null if it was removed."""
        document: JsonValue = self._root.get(_ROOT)
        return document

    @document.setter
    def document(self, document: JsonValue) -> None:
        self._root[_ROOT] = document

    def apply(self, patch: JsonValue) -> None:
        """Change the document.

        Raises:
            PatchError: it is no patch, or does not apply. The document may be changed in part.
        """
        if not isinstance(patch, list):
            raise PatchError("the patch is not a list of operations")
        for number, operation in enumerate(patch):
            try:
                self._do(operation)
            except PatchError as error:
                raise PatchError(f"operation {number}: {error}") from None
            except RecursionError:
                raise PatchError(f"operation {number}: the value is nested too deep") from None

    def _do(self, operation: JsonValue) -> None:
        fields = operation if isinstance(operation, dict) else {}
        op = fields.get("op")
        path = _tokens(fields.get("path"))
        if op in _VALUE and "value" not in fields:
            raise PatchError(f"{op} has no value")
        match op:
            case "add":
                self._add(path, deepcopy(fields["value"]))
            case "remove":
                self._remove(path)
            case "replace":
                holder, key = self._existing(path)
                holder[key] = deepcopy(fields["value"])
            case "test":
                holder, key = self._existing(path)
                if not _equal(holder[key], fields["value"]):
                    raise PatchError(f"the test at {_shown(path)} failed")
            case "move" | "copy":
                self._transfer(op, _tokens(fields.get("from")), path)
            case _:
                raise PatchError(f"{str(op)[:20]!r} is not an operation of JSON Patch")

    def _transfer(self, op: str, source: list[str], path: list[str]) -> None:
        if op == "move" and path[: len(source)] == source and path != source:
            raise PatchError(f"moves {_shown(source)} into itself")
        holder, key = self._existing(source)
        value = holder[key]
        if op == "move":
            self._remove(source)
        else:
            self._copies_left -= _count(value, self._copies_left + 1)
            if self._copies_left < 0:
                raise PatchError(f"copies more than {MAX_COPIED:,} values")
            value = deepcopy(value)
        self._add(path, value)

    def _add(self, path: list[str], value: Any) -> None:
        holder, key = self._place(path)
        if isinstance(holder, list):
            holder.insert(len(holder) if key == "-" else _index(key, len(holder), path), value)
        else:
            holder[key] = value

    def _remove(self, path: list[str]) -> None:
        holder, key = self._existing(path)
        del holder[key]

    def _existing(self, path: list[str]) -> tuple[Any, Any]:
        """Return the object or list that holds a value which is there, and its key."""
        holder, key = self._place(path)
        if isinstance(holder, list):
            return holder, _index(key, len(holder) - 1, path)
        if key not in holder:
            raise PatchError(f"nothing exists at {_shown(path)}")
        return holder, key

    def _place(self, path: list[str]) -> tuple[Any, str]:
        """Return the object or list in which a path ends, and its last token."""
        holder: Any = self._root
        *parents, last = [_ROOT, *path]
        for token in parents:
            if isinstance(holder, list):
                holder = holder[_index(token, len(holder) - 1, path)]
            elif isinstance(holder, dict) and token in holder:
                holder = holder[token]
            else:
                raise PatchError(f"nothing exists at {_shown(path)}")
        if not isinstance(holder, dict | list):
            raise PatchError(f"nothing exists at {_shown(path)}")
        return holder, last


def _tokens(pointer: JsonValue) -> list[str]:
    """Return the parts of a JSON Pointer (RFC 6901)."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError("has no JSON Pointer as its path")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _index(token: str, most: int, path: list[str]) -> int:
    if not _INDEX.fullmatch(token) or int(token) > most:
        raise PatchError(f"nothing exists at {_shown(path)}")
    return int(token)


def _shown(path: list[str]) -> str:
    text = "".join(f"/{part}" for part in path)
    return repr(text if len(text) <= 100 else f"{text[:99]}…")


def _count(value: Any, most: int) -> int:
    """Return the number of values in a value, or at least `most`."""
    count, level = 0, [value]
    while level and count < most:
        count += len(level)
        inner = (
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        )
        level = [item for items in inner for item in items]
    return count


def _equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
