"""Fields of foreign JSON, with their types checked: a wrong type is an error or nothing, never a row."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from ci_evals.domain.transcript import ToolCall
from ci_evals.extension_support.result_files.result_rows import Message, Undecided
from ci_evals.support.json_text import JsonObject

_MOST_OF_TEXT = 20_000
_MOST_MESSAGES = 400
_MOST_CALLS = 100
_ROLES = {"system": "system", "user": "user", "assistant": "assistant", "agent": "assistant", "tool": "tool"}
INFRASTRUCTURE, ERROR = Undecided.INFRASTRUCTURE, Undecided.ERROR
SKIPPED, EMPTY = Undecided.SKIPPED, Undecided.EMPTY


def name(value: Any, what: str) -> str:
    """Return a name or an id as text; a number is one too.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, bool) or not isinstance(value, str | int) or (isinstance(value, str) and not value):
        raise ValueError(f"{what} is not a name but {shown(value)}")
    return str(value)


def share(value: Any, what: str) -> float:
    """Return a score as number; true is 1. NaN stays, and makes its row an error (`reading.check`).

    Raises:
        ValueError: it is none, or outside of 0 to 1.
    """
    if is_nan(value):
        return math.nan
    if not isinstance(value, bool | int | float) or not 0 <= value <= 1:
        raise ValueError(f"{what} is not a number from 0 to 1 but {shown(value)}")
    return float(value)


def share_or_none(value: Any) -> float | None:
    """Return a number from 0 to 1, and None for everything else."""
    return float(value) if isinstance(value, bool | int | float) and 0 <= value <= 1 else None


class NoScore(float):
    """The NaN in the place of a score that is no number; its `repr` is what the file has there."""

    _quote: str

    def __new__(cls, value: Any) -> Self:
        """Return a NaN that quotes the value."""
        self = super().__new__(cls, math.nan)
        self._quote = shown(value)
        return self

    def __repr__(self) -> str:
        return self._quote


def score_or_none(value: Any) -> float | None:
    """Return the score of a row or a check; None if it has none.

    What is no number from 0 to 1 stays, and makes its row an error (`reading.check`).
    """
    if value is None:
        return None
    return float(value) if isinstance(value, bool | int | float) else NoScore(value)


def is_nan(value: Any) -> bool:
    """Return whether a value is the number that is none."""
    return isinstance(value, float) and math.isnan(value)


def test_name(value: Any) -> str:
    """Return the name of a test; empty if it has none, which makes its row an error (`reading.check`)."""
    return "" if value is None or value == "" else name(value, "the name of a test")


def truth(value: Any, what: str) -> bool:
    """Return a bool.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{what} is neither true nor false but {shown(value)}")  # noqa: TRY004  # noqa: TRY004
    return value


def table(value: Any, what: str) -> JsonObject:
    """Return a JSON object.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object but {shown(value)}")  # noqa: TRY004  # noqa: TRY004  # of a file, not of the program
    return value


def tables(value: Any, what: str) -> list[JsonObject]:
    """Return a list of JSON objects.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, list):
        raise ValueError(f"{what} is not a list but {shown(value)}")  # noqa: TRY004  # noqa: TRY004
    return [table(item, f"{what}[{i}]") for i, item in enumerate(value)]


def names(value: Any, what: str) -> list[str]:
    """Return a list of names.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, list):
        raise ValueError(f"{what} is not a list but {shown(value)}")  # noqa: TRY004  # noqa: TRY004
    return [name(item, f"{what}[{i}]") for i, item in enumerate(value)]


def amount(value: Any) -> float | None:
    """Return a number that may be told or not; None for what is no number."""
    return float(value) if type(value) in {int, float} and math.isfinite(value) and value >= 0 else None


def count(value: Any) -> int | None:
    """Return a whole number that may be told or not; None for what is none."""
    return value if type(value) is int and value >= 0 else None


def words(value: Any) -> str:
    """Return what a field says, in a bounded length; nothing where it is no text."""
    return value[:_MOST_OF_TEXT] if isinstance(value, str) else ""


def shown(value: Any) -> str:
    """Return a value as messages quote it."""
    return repr(value)[:60] if not isinstance(value, list | dict) else type(value).__name__


def message(role: Any, content: Any, calls: Iterable[ToolCall] = ()) -> Message | None:
    """Return a message in the shape that most tools share; None if its role is unknown."""
    known = _ROLES.get(role) if isinstance(role, str) else None
    if isinstance(content, list):
        parts = [words(part.get("text")) for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if part)
    return Message(known, words(content), tuple(calls)) if known else None  # type: ignore[arg-type]


def conversation(messages: Any) -> tuple[Message, ...]:
    """Return messages in the shape of chat completions: tool calls, and their results by id."""
    items = [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
    items = items[:_MOST_MESSAGES]
    results = {
        key: words_of(item) for item in items if item.get("role") == "tool" and (key := _call_id(item))
    }
    found = []
    for item in items:
        if item.get("role") == "tool" and _call_id(item):
            continue
        calls = item.get("tool_calls")
        called = (
            [call for one in calls[:_MOST_CALLS] if (call := tool_call(one, results))]
            if isinstance(calls, list)
            else []
        )
        if one := message(item.get("role"), item.get("content"), called):
            found.append(one)
    return tuple(found)


def words_of(item: Mapping[str, Any]) -> str:
    """Return the text of a message, whether it is one text or several parts."""
    one = message("tool", item.get("content"))
    return one.text if one else ""


def tool_call(value: Any, results: Mapping[str, str]) -> ToolCall | None:
    """Return a call as most tools write it: `name` or `function`, and `arguments`; None if it has no name."""
    if not isinstance(value, dict):
        return None
    function = value.get("function")
    inner = function if isinstance(function, dict) else {"name": function, **value}
    if not isinstance(called := inner.get("name") or function, str) or not called:
        return None
    arguments = inner.get("arguments")
    key = value.get("id") if isinstance(value.get("id"), str) else None
    return ToolCall(
        id=key,
        name=called[:200],
        arguments=arguments if isinstance(arguments, dict) else None,
        result=results.get(key) if key else None,
    )


def _call_id(item: Mapping[str, Any]) -> str | None:
    key = item.get("tool_call_id") or item.get("id")
    return key if isinstance(key, str) else None
