"""Values of a call's arguments that the user gave, in words or as data."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.support.json_text import canonical

_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)*(?![\w])")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SHORTEST = 2
"""Characters from which a text in the user's words is no accident."""


class Given(NamedTuple):
    """A value that the user gave, as the condition that an argument is checked with."""

    condition: JsonValue


class GivenValues:
    """What a user has given up to a call: the words of the messages, and `userInfo`.

    A value counts as given if it stands in a message as a whole word, or is a value of `userInfo`. So an id,
    a date or a time that the agent or a tool made up is not given, and neither is a date that the agent
    worked out from "tomorrow": these vary from run to run.
    """

    def __init__(self, messages: Iterable[str], user_info: Mapping[str, JsonValue]) -> None:
        self._words = "\n".join(messages)
        self._folded = _folded(self._words)
        self._numbers = {
            canonical(number) for text in _NUMBER.findall(self._words) for number in _numbers(text)
        }
        self._data = {canonical(leaf) for leaf in _leaves(dict(user_info)) if not _is_empty(leaf)}

    def condition(self, value: JsonValue) -> Given | None:
        """Return the condition that an argument with this value must meet; None if nobody gave the value.

        A text that the user wrote with other capitals or spaces is compared without them. Of an object, the
        keys with given values count.
        """
        match value:
            case str():
                return self._text(value)
            case dict():
                given = {key: item for key, item in value.items() if self._is_given(item)}
                if not given:
                    return None
                return Given({"equals": value} if len(given) == len(value) else {"contains": given})
            case _:
                return Given(value) if self._is_given(value) else None

    def _text(self, value: str) -> Given | None:
        if self._is_given(value):
            return Given(value)
        folded = _folded(value)
        if len(folded) >= _SHORTEST and _stands_in(folded, self._folded):
            return Given({"answer": {"expected": value, "match": "exact"}})
        return None

    def _is_given(self, value: JsonValue) -> bool:
        if _is_empty(value) or isinstance(value, bool):
            return False
        if canonical(value) in self._data:
            return True
        match value:
            case str():
                return len(value.strip()) >= _SHORTEST and _stands_in(value, self._words)
            case dict():
                return all(map(self._is_given, value.values()))
            case list():
                return all(map(self._is_given, value))
        return canonical(value) in self._numbers


def _is_empty(value: JsonValue) -> bool:
    return value is None or value in ("", [], {})


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _stands_in(text: str, words: str) -> bool:
    """Return whether a text stands in others as whole words."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", words) is not None


def _numbers(text: str) -> Iterator[float]:
    """Yield the numbers that a text may mean: in 1.250 the sign may separate thousands."""
    if _THOUSANDS.fullmatch(text.lstrip("-")):
        yield float(re.sub(r"[.,]", "", text))
    *whole, last = re.split(r"[.,]", text)
    yield float(f"{''.join(whole)}.{last}" if whole else last)


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    """Yield all values within a value, and itself."""
    yield value
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
