"""JSON Patch (RFC 6902) by `jsonpatch`, with a limit to what patches may copy.

An agent could otherwise fill the memory with a few `copy` operations.
"""

from typing import Any

from jsonpatch import (
    JsonPatch,
    JsonPatchException,
    JsonPatchPathNotFound,
    JsonPatchTestFailed,
    JsonPointer,
    JsonPointerException,
)
from pydantic import JsonValue

MAX_COPIED = 100_000
"""Values that `copy` operations may make. Texts count as one more for each 100 characters."""
_CHARACTERS = 100


class PatchError(ValueError):
    """A patch does not apply; a clause that says which operation and why."""


class Patcher:
    """A document that patches change in place. All of them together may copy `MAX_COPIED` values."""

    def __init__(self, document: JsonValue) -> None:
        self.document: Any = document
        self._copies_left = MAX_COPIED

    def apply(self, patch: JsonValue) -> None:
        """Change the document.

        Raises:
            PatchError: it is no patch, or does not apply. The document may be changed in part.
        """
        if not isinstance(patch, list):
            raise PatchError("the patch is not a list of operations")
        for number, operation in enumerate(patch):
            try:
                self._apply_one(operation)
            except JsonPatchTestFailed:
                reason = "the values differ"
            except (JsonPatchPathNotFound, JsonPointerException):  # their messages show the whole document
                reason = "no such path"
            except JsonPatchException as error:
                reason = str(error)
            except RecursionError:
                reason = "the value is nested too deep"
            else:
                continue
            raise PatchError(f"operation {number}{_describe(operation)}: {reason}")

    def _apply_one(self, operation: Any) -> None:
        patch = JsonPatch([operation])
        if operation["op"] == "copy":
            source = operation.get("from")
            if isinstance(source, str):
                self._charge(JsonPointer(source).resolve(self.document))
        self.document = patch.apply(self.document, in_place=True)

    def _charge(self, value: Any) -> None:
        """Take a copy of the value from what is left."""
        rest = [value]
        while rest and self._copies_left >= 0:
            item = rest.pop()
            self._copies_left -= 1
            if isinstance(item, str):
                self._copies_left -= len(item) // _CHARACTERS
            elif isinstance(item, list):
                rest += item
            elif isinstance(item, dict):
                rest += item
                rest += item.values()
        if self._copies_left < 0:
            raise JsonPatchException(f"copies more than {MAX_COPIED:,} values")


def _describe(operation: Any) -> str:
    """Return an operation's name and paths for a message, or nothing if it has none."""
    if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
        return ""
    paths = [operation[key] for key in ("from", "path") if isinstance(operation.get(key), str)]
    shown = " to ".join(repr(path if len(path) <= 100 else f"{path[:99]}…") for path in paths)
    return f" ({operation['op'][:20]} {shown})"
