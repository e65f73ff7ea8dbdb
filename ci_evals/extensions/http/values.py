"""The values that the paths of an HTTP agent find, read as evidence. Pure.

Null is unknown. Of a list every entry must be readable: the one that is not may be the one that matters.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.agents.aui import trace as aui_trace
from ci_evals.domain.checks.matcher import Matcher
from ci_evals.domain.checks.matching import ABSENT, PatternSearch, Value, meets
from ci_evals.domain.transcript import Integration, ToolCall
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

NAMES = ("name", "code", "key")
"""The keys that may hold the name of a workflow, a rule or a parameter."""
_MAX_TOKENS = 10**12
_NO = frozenset({"", "false", "no", "0", "none", "null"})
"""Texts that mean no, in lower case."""

Matches = tuple[JsonValue, ...] | None
"""The values at a path; None if there is no path, or nothing at it."""


def items_of(matches: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the matches and the items of lists among them, without nulls."""
    items: list[JsonValue] = []
    for value in matches:
        items += value if isinstance(value, list) else [value]
    return [item for item in items if item is not None]


def with_texts_of_parts(matches: Matches) -> Matches:
    """Return the matches with the text of each part of a list: `{"type": "text", "text": …}`."""
    if matches is None:
        return None
    return tuple(
        [part.get("text") if isinstance(part, dict) else part for part in match]
        if isinstance(match, list)
        else match
        for match in matches
    )


def known_items(matches: Matches) -> list[JsonValue] | None:
    """Return the items; None if all matches are null, by which servers mean that they do not know."""
    if matches is None:
        return None
    items = items_of(matches)
    empty = not items and (not matches or [] in matches)
    return items if items or empty else None


def number_text(item: JsonValue) -> str | None:
    """Return a number as text; None if it is none."""
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else None


def names_in(matches: Matches) -> tuple[str, ...] | None:
    """Return names; None if they are unknown, or one cannot be read."""
    items = known_items(matches)
    if items is None:
        return None
    names = tuple(name for item in items if (name := payload.name(item, NAMES)))
    # An unreadable one may be the one that matters.
    return names if len(names) == len(items) else None


def calls_in(matches: Matches) -> tuple[ToolCall, ...] | None:
    """Return tool calls; None if they are unknown, or one cannot be read."""
    items = known_items(matches)
    return None if items is None else tool_calls.read_all(items)


def integrations_in(matches: Matches) -> tuple[Integration, ...] | None:
    """Return calls of integrations; None if they are unknown, or one cannot be read."""
    items = known_items(matches)
    if items is None:
        return None
    calls = tuple(call for item in items if (call := _integration(item)))
    return calls if len(calls) == len(items) else None


def _integration(item: JsonValue) -> Integration | None:
    code = payload.name(item, ("code", "name"))
    if code is None:
        return None
    statuses = (payload.member(item, key) for key in ("status", "statusCode", "status_code"))
    error = payload.member(item, "error")
    return Integration(
        code=code,
        status=next((s for value in statuses if (s := aui_trace.status_of(value)) is not None), None),
        type=payload.name(payload.member(item, "type")),
        error=payload.explain(error) if error else None,
    )


def escalated(matches: Matches, wanted: Matcher | None) -> bool | None:
    """Return whether any value says that the agent hands over; None if that is unknown.

    Without a condition only `true` and `false` say so.

    Raises:
        UnclearValueError: there is another value, and no condition.
    """
    if matches is None:
        return None
    if wanted is not None:
        return _any_meets(matches, wanted)
    items = known_items(matches)
    if items is None:
        return None
    for item in items:
        if not isinstance(item, bool):
            raise UnclearValueError(item)
    return any(items)


def _any_meets(matches: Sequence[JsonValue], wanted: Matcher) -> bool | None:
    """Return whether a value, or an item of a list, meets a condition; None if a pattern took too long."""
    search = PatternSearch()
    candidates: list[Value] = []
    for value in matches:
        candidates.append(value)
        if isinstance(value, list):
            candidates += value
    answers = {meets(value, wanted, search) for value in candidates or [ABSENT]}
    if True in answers:
        return True
    null_says_nothing = None in candidates and wanted.exists is None
    return None if None in answers or null_says_nothing else False


class UnclearValueError(ValueError):
    """A value that says neither yes nor no."""

    def __init__(self, value: JsonValue) -> None:
        super().__init__()
        self.value = value


def error(matches: Matches, redactor: Redactor) -> tuple[bool | None, str | None]:
    """Return whether there was an error, and its text. Null instead of an error means none."""
    if matches is None:
        return None, None
    errors: Iterable[Any] = [item for item in items_of(matches) if is_true(item)]
    texts = [text for error in errors if (text := payload.explain(redactor.json(error)))]
    return bool(errors), payload.shorten("; ".join(texts)) if texts else None


def is_true(value: JsonValue) -> bool:
    """Return whether a value says yes."""
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


def tokens(matches: Matches) -> int | None:
    """Return the sum of the counts; None if there is none."""
    counts = [
        int(item)
        for item in items_of(matches or ())
        if isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item == int(item)
    ]
    return min(sum(counts), _MAX_TOKENS) if counts else None
