"""Tool calls that are streamed in pieces, as OpenAI's and LangChain's clients get them: joined again. Pure.

The first piece of a call has its name and mostly its id; the others continue its arguments. Pieces of one
call have its `index`; without one they have its id, or follow it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.support import payload

WRAPPERS = ("function", "functionCall", "function_call", "custom")
"""The keys that may hold a call's name and arguments."""
NAME_KEYS = ("name", "toolName", "tool_name", "tool", "function")
"""The keys that may hold a call's name."""
ID_KEYS = ("toolCallId", "tool_call_id", "callId", "call_id", "id")
_ARGUMENTS = ("arguments", "args", "input")
_OF_ANY_PIECE = frozenset({"index", "type", *ID_KEYS, *_ARGUMENTS, *WRAPPERS, *NAME_KEYS})

Object = dict[str, JsonValue]


@dataclass
class _Open:
    """A call as far as its pieces have come."""

    first: Object
    id: str | None
    name: str | None
    texts: list[str] = field(default_factory=list)
    pieces: int = 1
    is_broken: bool = False
    """True if its pieces can be read in more than one way."""

    @property
    def is_complete(self) -> bool:
        """True if its arguments are whole."""
        last = next((text for text in reversed(self.texts) if text.strip()), "")
        if not last.rstrip().endswith("}"):
            return False
        try:
            json.loads("".join(self.texts))
        except (ValueError, RecursionError):
            return False
        return True

    def joined(self) -> JsonValue:
        """Return the whole call; null if it cannot be read, or has no name."""
        if self.pieces == 1:
            return self.first
        if self.is_broken or self.name is None:
            return None
        key = next((key for key in WRAPPERS if isinstance(self.first.get(key), dict)), None)
        inner = {**_inner(self.first), "name": self.name}
        inner[next((one for one in _ARGUMENTS if one in inner), "arguments")] = "".join(self.texts)
        whole = {**self.first, key: inner} if key else {**self.first, **inner}
        return {**whole, "id": self.id} if self.id else whole


def join(items: Iterable[JsonValue]) -> Sequence[JsonValue]:
    """Return the calls, those that came in pieces whole; null instead of one that cannot be put together."""
    listed = [*items]
    if not any(isinstance(item, dict) and _may_continue(item) for item in listed):
        return listed
    calls: list[JsonValue | _Open] = []
    by_index: dict[int, _Open] = {}
    by_id: dict[str, _Open] = {}
    last: _Open | None = None
    for item in listed:
        if not isinstance(item, dict):
            calls.append(item)
            last = None
            continue
        index, call_id = _index(item), _id(item)
        before = by_id.get(call_id) if call_id else last
        if index is not None:
            before = by_index.get(index)
        if before is None or not _continues(item, before):
            before = _Open(item, call_id, payload.name(_inner(item), NAME_KEYS), _texts(item))
            calls.append(before)
        else:
            _add(item, before)
        last = before
        if index is not None:
            by_index[index] = before
        if before.id:
            by_id[before.id] = before
    return [call.joined() if isinstance(call, _Open) else call for call in calls]


def _may_continue(item: Object) -> bool:
    """Return whether an item may be a piece that is not the first: most lists have none."""
    return _index(item) is not None or (payload.name(_inner(item), NAME_KEYS) is None and bool(_texts(item)))


def _continues(item: Object, call: _Open) -> bool:
    call_id, name = _id(item), payload.name(_inner(item), NAME_KEYS)
    if call_id and call.id and call_id != call.id:
        return False
    if name is None:
        return _OF_ANY_PIECE.issuperset(item)
    if call.name is None:
        return True
    if _index(item) is None and not call_id:
        return False
    return not call.is_complete


def _add(item: Object, call: _Open) -> None:
    name = payload.name(_inner(item), NAME_KEYS)
    if name is not None and call.name not in (None, name):
        call.is_broken = True  # a part of the name, or another call
    call.name, call.id = call.name or name, call.id or _id(item)
    call.is_broken |= _has_whole_arguments(item) or _has_whole_arguments(call.first)
    call.texts += _texts(item)
    call.pieces += 1


def _inner(item: Object) -> Object:
    """Return what holds the name and the arguments of a call, or a part of them."""
    return next((inner for key in WRAPPERS if isinstance(inner := item.get(key), dict)), item)


def _texts(item: Object) -> list[str]:
    inner = _inner(item)
    return [text for key in _ARGUMENTS if isinstance(text := inner.get(key), str)]


def _has_whole_arguments(item: Object) -> bool:
    """Return whether arguments are no text, which other pieces could continue."""
    inner = _inner(item)
    return any(inner.get(key) is not None and not isinstance(inner[key], str) for key in _ARGUMENTS)


def _index(item: Object) -> int | None:
    index = item.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _id(item: Object) -> str | None:
    return next((text for key in ID_KEYS if (text := payload.name(item.get(key)))), None)
