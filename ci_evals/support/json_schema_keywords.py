"""The keywords of JSON Schema, each in bounded time.

Every keyword looks at a clock before it begins. Those that would do much between two looks are written anew:
jsonschema compares each two items of a list, and searches names by patterns without a time limit.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any

import regex

from ci_evals.support.json_text import canonical

SECONDS = 2.0
"""Limit of processor time for one value: an ordinary one takes milliseconds."""
PATTERN_SECONDS = 1.0
"""Time limit of one pattern on one text."""
_MOST_ITEMS = 2_000
"""Items up to which `unevaluatedItems` is applied: it compares each two."""

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]

_end: ContextVar[float] = ContextVar("_end")


class UnboundedError(Exception):
    """It cannot be said in bounded time whether a value is valid. Its text is a clause."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Limit the processor time of all keywords that are applied inside."""
    token = _end.set(time.thread_time() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


@cache
def validator() -> Any:
    """Return the class of validators whose keywords are bounded."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # 0.1 s, and few suites need it
    from jsonschema.validators import extend  # noqa: PLC0415  # as above

    keywords: Mapping[str, Keyword] = {**Draft202012Validator.VALIDATORS, **_OWN}
    return extend(Draft202012Validator, {name: _timed(keyword) for name, keyword in keywords.items()})


def _timed(keyword: Keyword) -> Keyword:
    @wraps(keyword)
    def timed(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any] | None:
        if time.thread_time() > _end.get():
            raise UnboundedError(f"it took more than {SECONDS:g} s to check it against the schema")
        return keyword(validator, wanted, value, schema)

    return timed


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415  # as above

    return ValidationError(message)


def _pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(wanted, value):
        yield _error(f"{value!r} does not match {wanted!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _: Any) -> Iterator[Any]:
    for wanted, schema in patterns.items() if isinstance(value, dict) else ():
        for key in value:
            if _matches(wanted, key):
                yield from validator.descend(value[key], schema, path=key, schema_path=wanted)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [key for key in value if key not in known and not _matches_any(patterns, key)]
    if isinstance(wanted, dict):
        for key in extra:
            yield from validator.descend(value[key], wanted, path=key)
    elif not wanted and extra:
        yield _error(f"Additional properties are not allowed ({_named(extra)} unexpected)")


def _unevaluated_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    evaluated = _evaluated(validator, value, schema)
    extra = [
        key for key in value if key not in evaluated and not _is_valid(validator.descend(value[key], wanted))
    ]
    if extra:
        yield _error(f"Unevaluated properties are not allowed ({_named(extra)} unexpected)")


def _evaluated(validator: Any, value: dict[str, object], schema: Any) -> set[str]:
    """Return the names that keywords of a schema, and of those which it applies, have looked at."""
    if not isinstance(schema, dict):
        return set()
    names = set(schema.get("properties", {})) & value.keys()
    names |= {key for key in value if _matches_any(schema.get("patternProperties", {}), key)}
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            names |= {key for key in value if _is_valid(validator.descend(value[key], schema[keyword]))}
    for inner, applied in _applied(validator, value, schema):
        names |= _evaluated(inner, value, applied)
    return names


def _applied(
    validator: Any, value: dict[str, object], schema: Mapping[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield the schemas in this one under which the value is valid too, each with its validator."""
    yield from _referenced(validator, schema)
    for name, applied in schema.get("dependentSchemas", {}).items():
        if name in value:
            yield validator, applied
    for keyword in ("allOf", "oneOf", "anyOf"):
        for applied in schema.get(keyword, []):
            if _is_valid(validator.descend(value, applied)):
                yield validator, applied
    if "if" in schema:
        is_met = validator.evolve(schema=schema["if"]).is_valid(value)
        for keyword in ("if", "then") if is_met else ("else",):
            if keyword in schema:
                yield validator, schema[keyword]


def _referenced(validator: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            target = validator._resolver.lookup(schema[keyword])  # noqa: SLF001  # as jsonschema's keywords do
            yield validator.evolve(schema=target.contents, _resolver=target.resolver), target.contents


def _unevaluated_items(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # as above

    if isinstance(value, list) and len(value) > _MOST_ITEMS:
        raise UnboundedError(
            f"a list of {len(value):,} items is too long for unevaluatedItems, which takes {_MOST_ITEMS:,}"
        )
    keyword: Keyword = Draft202012Validator.VALIDATORS["unevaluatedItems"]
    yield from keyword(validator, wanted, value, schema) or ()


def _unique_items(_: Any, wanted: bool, value: Any, __: Any) -> Iterator[Any]:  # as others
    if wanted and isinstance(value, list) and len(set(map(canonical, value))) < len(value):
        yield _error(f"{value!r} has non-unique elements")


_OWN: Mapping[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
    "uniqueItems": _unique_items,
}


def _is_valid(errors: Iterator[Any]) -> bool:
    return next(errors, None) is None


def _matches_any(patterns: Mapping[str, Any], text: str) -> bool:
    return any(_matches(pattern, text) for pattern in patterns)


def _matches(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        raise UnboundedError(f"/{pattern}/ was searched for {PATTERN_SECONDS:g} s without an end") from None


def _named(names: list[str]) -> str:
    verb = "was" if len(names) == 1 else "were"
    return f"{', '.join(map(repr, names))} {verb}"
