"""Values compared with the conditions of a matcher."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import regex
from pydantic import JsonValue

from ci_evals.domain.checks import answer_matching
from ci_evals.domain.checks.matcher import Conditions, ExpectedAnswer, Matcher

PATTERN_SECONDS = 1.0
"""Limit of the processor time of a check's regular expressions: a bad one could block the program for hours.

It is no limit of the clock on the wall, by which a busy machine would leave good checks undecided.
"""


class PatternSearch:
    """Searches for the patterns of one check, all within one time limit: a bad one may meet many texts."""

    def __init__(self) -> None:
        self._left = PATTERN_SECONDS

    def is_found(self, pattern: str, text: str) -> bool | None:
        """Return whether a text has a match; None if the time was over before that was known."""
        if self._left <= 0:
            return None
        begun = time.thread_time()
        try:
            found = regex.search(pattern, text, timeout=self._left) is not None
        except TimeoutError:
            self._left = 0.0
            return None
        self._left -= time.thread_time() - begun
        return found


@dataclass(frozen=True)
class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
"""Stands for a value that is not there."""

Value = JsonValue | _Absent


def meets(value: Value, conditions: Conditions, search: PatternSearch | None = None) -> bool | None:
    """Return whether a value meets all conditions; None if a pattern was searched without an end."""
    search = search or PatternSearch()
    return all_hold(_meets(name, value, conditions, search) for name in conditions.conditions)


def all_hold(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all of these are true; None if one is not known and none is false."""
    known = set(answers)
    if False in known:
        return False
    return None if None in known else True


def _meets(  # noqa: PLR0911  # one case a condition
    name: str, value: Value, wanted: Conditions, search: PatternSearch
) -> bool | None:
    if isinstance(value, _Absent):
        return name == "exists" and wanted.exists is False
    match name:
        case "exists":
            return (value is not None) is wanted.exists
        case "equals":
            return is_equal(value, wanted.equals)
        case "contains":
            return _contains(value, wanted.contains)
        case "regex":
            text = _text(value)
            return text is not None and search.is_found(wanted.regex or "", text)
        case "min":
            number = _number(value)
            return number is not None and wanted.min is not None and number >= wanted.min
        case "max":
            number = _number(value)
            return number is not None and wanted.max is not None and number <= wanted.max
        case "one_of":
            return any(is_equal(value, each) for each in wanted.one_of or ())
        case _:
            text, answer = _text(value), wanted.answer
            return text is not None and answer is not None and answer_matching.answers(text, answer)


def _text(value: JsonValue) -> str | None:
    """Return a text, or a number or truth value as JSON; None of what holds others, and of null."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def _contains(value: JsonValue, part: JsonValue) -> bool:
    match value:
        case str():
            text = part if isinstance(part, str) else shown(part)
            return text in value
        case list():
            return any(is_equal(item, part) for item in value)
        case dict() if isinstance(part, dict):
            return all(key in value and is_equal(value[key], wanted) for key, wanted in part.items())
    return False


def _number(value: JsonValue) -> float | None:
    """Return a number, also one that is written as text."""
    if isinstance(value, str):
        value = _as_json(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value


def is_equal(value: JsonValue, expected: JsonValue) -> bool:
    """Return whether two parameter values are equal. Numbers and booleans are compared as JSON and as text.

    Within lists and objects they are compared as JSON alone: there `true` is not 1, and "1" is not 1.
    """
    if isinstance(value, list | dict) or isinstance(expected, list | dict):
        return _equal(value, expected)
    if type(value) is type(expected) or {type(value), type(expected)} == {int, float}:
        return value == expected
    for plain, text in ((value, expected), (expected, value)):
        if isinstance(plain, bool | int | float) and isinstance(text, str):
            return text == json.dumps(plain) or is_equal(_as_json(text), plain)
    return False


def _equal(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two JSON values are the same. In Python `True == 1`, in JSON not."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _as_json(text: str) -> JsonValue:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float) else None


def shown(value: Value) -> str:
    """Return a value as JSON. It is not truncated here: half a secret would not be known as one."""
    return "absent" if isinstance(value, _Absent) else json.dumps(value, ensure_ascii=False)


def described(conditions: Conditions) -> str:
    """Return what is wanted, as a noun phrase: `42`, `at least 40`, `one of "a", "b"`."""
    return " and ".join(_described(name, conditions) for name in conditions.conditions)


def _described(name: str, wanted: Conditions) -> str:  # noqa: PLR0911  # one case a condition
    match name:
        case "equals":
            return shown(wanted.equals)
        case "contains":
            return f"something with {shown(wanted.contains)}"
        case "regex":
            return f"a text like /{wanted.regex}/"
        case "min":
            return f"at least {wanted.min:g}"
        case "max":
            return f"at most {wanted.max:g}"
        case "one_of":
            return "one of " + ", ".join(map(shown, wanted.one_of or ()))
        case "exists":
            return "a value" if wanted.exists else "no value"
        case _:
            return "" if wanted.answer is None else _described_answer(wanted.answer)


def _described_answer(wanted: ExpectedAnswer) -> str:
    texts = " or ".join(map(repr, wanted.expected))
    return f"{texts} ({wanted.match})"


def args_match(
    arguments: Mapping[str, JsonValue],
    wanted: Mapping[str, Matcher],
    search: PatternSearch | None = None,
    *,
    exact: bool = False,
) -> bool | None:
    """Return whether arguments are those wanted; with `exact`, without others. None if it cannot be told."""
    if exact and not arguments.keys() <= wanted.keys():
        return False
    search = search or PatternSearch()
    return all_hold(meets(arguments.get(name, ABSENT), each, search) for name, each in wanted.items())


def args_described(wanted: Mapping[str, Matcher] | None) -> str:
    """Return the arguments that are wanted, in parentheses; nothing if any will do."""
    if wanted is None:
        return ""
    arguments = ", ".join(f"{name}: {described(each)}" for name, each in wanted.items())
    return f"({arguments})"
