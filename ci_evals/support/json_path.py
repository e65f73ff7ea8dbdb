"""Paths into JSON, as RFC 9535 (JSONPath) writes them, held to work that is in proportion to the answer.

Who writes a path is trusted more than who writes the JSON it is applied to. So that no answer can hold up the
program, a search has a budget of steps, filters may only look at single places, and `match` and `search`,
whose patterns may come out of the answer itself, are left out.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from threading import local
from typing import Any

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError, JSONPathMatch
from jsonpath.filter import (
    FilterExpression,
    FilterQuery,
    InfixExpression,
    RelativeFilterQuery,
    StringLiteral,
    walk,
)
from jsonpath.segments import JSONPathChildSegment, JSONPathSegment
from jsonpath.selectors import Filter, IndexSelector, NameSelector, SliceSelector, WildcardSelector
from pydantic import JsonValue

MAX_LENGTH = 500
"""Characters of a path."""
MAX_STEPS = 50_000
"""The most steps of a search: a second at most. Replies of agents hold some hundred values."""


_Shortcut = Callable[[Sequence[Any]], list[Any]]


class JsonPath:
    """A path into a JSON value."""

    def __init__(self, text: str) -> None:
        """Read a path.

        Raises:
            ValueError: it is none, or one that is not allowed here; a clause to go after the path.
        """
        if len(text) > MAX_LENGTH:
            raise ValueError(f"is longer than {MAX_LENGTH} characters")
        if not text.startswith("$"):
            raise ValueError("is not a JSONPath: it must begin with '$'")
        try:
            path = _ENVIRONMENT.compile(text)
        except JSONPathError as error:
            raise ValueError(f"is not a JSONPath: {_reason(error, text)}") from None
        except OverflowError:
            raise ValueError("is not a JSONPath: it holds a number that is too large") from None
        if not isinstance(path, JSONPath):
            raise ValueError("is not a JSONPath: it is several")  # noqa: TRY004  # not a type that the caller chose
        _check(path)
        self.text = text
        self.single = path.singular_query()
        """True if it names one place, which a search finds or not."""
        self._segments = [(segment, _shortcut(segment), _chooses(segment)) for segment in path.segments]
        self._needed = _needed(path.segments)
        self._names_each = _name_of_each(path.segments)

    def find(self, value: JsonValue) -> tuple[JsonValue, ...] | None:
        """Return all matches, in their order.

        None if the path leads nowhere, which is no evidence. Empty if there is nothing to choose from:
        `$.tools[*]` is empty in `{"tools": []}`, and None in `{}`.

        Raises:
            ValueError: the value is too large for the path, with a clause to go after "the answer".
        """
        _budget.left = MAX_STEPS
        values: list[Any] = [value]
        for segment, shortcut, chooses in self._segments:
            matches = _matches(segment, shortcut, values, value)
            if not matches:
                return () if chooses and any(isinstance(v, list) or v == {} for v in values) else None
            values = matches
        return tuple(values)

    def rejects_all(self, value: JsonValue) -> bool:
        """Return True if `find` is empty although there was something to choose from.

        A filter or a slice that lets nothing through may be wrong: `$.events[?@.type == 'tool']`.
        """
        _budget.left = MAX_STEPS
        values: list[Any] = [value]
        for segment, shortcut, chooses in self._segments:
            matches = _matches(segment, shortcut, values, value)
            if not matches:
                return chooses and any(isinstance(each, list | dict) and each for each in values)
            values = matches
        return False

    def skips_some(self, value: JsonValue, names: Collection[str]) -> bool:
        """Return True if the path ends in a wildcard and one of these names, and an entry lacks that."""
        if self._names_each not in names:
            return False
        _budget.left = MAX_STEPS
        values: list[Any] = [value]
        for segment, shortcut, _ in self._segments[:-1]:
            values = _matches(segment, shortcut, values, value)
        return not all(isinstance(entry, dict) and self._names_each in entry for entry in values)

    def finds_none_in_list_of(self, item: JsonValue) -> bool:
        """Return True if `find([item])` would find nothing and that is seen at once. False says nothing."""
        if self._needed is None:
            return False
        name, text = self._needed
        if not isinstance(item, dict):
            return True
        return name not in item if text is None else item.get(name) != text


class _SearchBudget(local):
    left = 0

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise ValueError("holds too much to look through")


_budget = _SearchBudget()


class _Node(JSONPathMatch):
    """A match without its location: locations below a long key would fill the memory."""

    __slots__ = ()

    def __init__(self, value: object, root: Any) -> None:
        super().__init__(filter_context={}, obj=value, parent=None, path="", parts=(), root=root)

    def add_child(self, *children: JSONPathMatch) -> None:
        """Keep no children."""

    def new_child(self, obj: object, key: int | str) -> "_Node":  # noqa: ARG002  # as the library calls it
        _budget.spend()
        return _Node(obj, self.root)


class _Environment(JSONPathEnvironment):
    max_recursion_depth = 200  # twice what is kept of an answer's depth

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        for name in ("match", "search"):
            del self.function_extensions[name]

    def is_truthy(self, obj: object) -> bool:
        _budget.spend()  # asked for each candidate of a filter
        return super().is_truthy(obj)


_ENVIRONMENT = _Environment(strict=True)
_SELECTORS = (NameSelector, IndexSelector, SliceSelector, WildcardSelector, Filter)


def _check(path: JSONPath) -> None:
    selectors = [selector for segment in path.segments for selector in segment.selectors]
    if not all(isinstance(selector, _SELECTORS) for selector in selectors):
        raise ValueError("is not a JSONPath of RFC 9535")
    for selector in selectors:
        if isinstance(selector, Filter):
            queries = [part for part in walk(selector.expression) if isinstance(part, FilterQuery)]
            if not all(query.path.singular_query() for query in queries):
                raise ValueError("has a filter that looks at more than one place (`*`, `..`, `?` or a slice)")


def _matches(
    segment: JSONPathSegment, shortcut: _Shortcut | None, values: Sequence[Any], root: JsonValue
) -> list[Any]:
    """Return what a segment finds in values."""
    if shortcut:
        return shortcut(values)
    return [node.obj for node in segment.resolve([_Node(each, root) for each in values])]


def _shortcut(segment: JSONPathSegment) -> _Shortcut | None:
    """Return a function that finds what the segment does, only faster; None if there is none."""
    if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
        return None
    match segment.selectors[0]:
        case NameSelector(name=name):
            return partial(_named, name)
        case WildcardSelector():
            return _children
        case Filter(expression=FilterExpression(expression=InfixExpression() as comparison)):
            return _comparison(comparison)
    return None


def _comparison(comparison: InfixExpression) -> _Shortcut | None:
    """Return the shortcut of `?@.name == 'text'`; None for any other filter."""
    match comparison:
        case InfixExpression(
            left=RelativeFilterQuery(path=JSONPath(segments=[JSONPathChildSegment(selectors=[selector])])),
            operator="==",
            right=StringLiteral(value=text),
        ) if isinstance(selector, NameSelector):
            return partial(_equal, selector.name, text)
    return None


def _needed(segments: Sequence[JSONPathSegment]) -> tuple[str, str | None] | None:
    """Return the name, and its text if only one will do, that an item of a list needs for a match in it."""
    first, second, *_ = [*map(_shortcut, segments[:2]), None, None]
    if isinstance(first, partial) and first.func is _equal:
        name, text = first.args
        return name, text
    if first is _children and isinstance(second, partial) and second.func is _named:
        return second.args[0], None
    return None


def _name_of_each(segments: Sequence[JSONPathSegment]) -> str | None:
    """Return the name at the end of a path if it is that of each entry: `$.tools[*].name`; else None."""
    entries, last = [None, None, *map(_shortcut, segments)][-2:]
    if entries is _children and isinstance(last, partial) and last.func is _named:
        return str(last.args[0])
    return None


def _named(name: str, values: Sequence[Any]) -> list[Any]:
    _budget.spend(len(values))
    return [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(values: Sequence[Any]) -> list[Any]:
    children: list[Any] = []
    for value in values:
        if isinstance(value, dict | list):
            _budget.spend(len(value))
            children += value.values() if isinstance(value, dict) else value
    return children


def _equal(name: str, text: str, values: Sequence[Any]) -> list[Any]:
    return [child for child in _children(values) if isinstance(child, dict) and child.get(name) == text]


def _chooses(segment: JSONPathSegment) -> bool:
    """Return whether a segment chooses from a list or object, which may have nothing to choose."""
    return isinstance(segment, JSONPathChildSegment) and all(
        isinstance(selector, SliceSelector | WildcardSelector | Filter) for selector in segment.selectors
    )


def _reason(error: JSONPathError, text: str) -> str:
    message = str(error.message or "it cannot be read")
    if error.token is None or not 0 <= error.token.index < len(text):
        return message
    return f"{message} at character {error.token.index + 1}"
