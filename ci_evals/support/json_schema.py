"""JSON Schemas of strangers: checked, and applied without network and in bounded time."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from ci_evals.support import json_schema_keywords
from ci_evals.support.json_schema_keywords import SECONDS, UnboundedError

_MOST_OF_MESSAGE = 1_000
"""Characters of a message: it may repeat the whole value."""


def fault(schema: Mapping[str, JsonValue]) -> str | None:
    """Return what is wrong with a schema; None if it is one."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415  # 0.1 s, and few suites need it

    try:
        json_schema_keywords.validator().check_schema(schema)
    except SchemaError as error:
        return _at(error)
    return next(_outer_references(schema, frozenset(_values_of(schema, "$id"))), None)


def violation(schema: Mapping[str, JsonValue], value: JsonValue, seconds: float = SECONDS) -> str | None:
    """Return the most telling reason why a value is not valid under a schema; None if it is valid.

    Raises:
        UnboundedError: that takes too long, or nests too deeply, so that nobody knows.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415  # see above
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    # A registry of its own: jsonschema's default one fetches references from the network.
    validator = json_schema_keywords.validator()(schema, registry=Registry())
    try:
        with json_schema_keywords.bounded(seconds):
            error = best_match(validator.iter_errors(value))
    except Unresolvable as reference:
        return f"the schema's reference {reference.ref!r} leads nowhere"
    except RecursionError:
        raise UnboundedError("it is nested too deeply for this schema") from None
    return None if error is None else _at(error)


def _at(error: Any) -> str:
    """Return an error of jsonschema with its place."""
    text = error.message if error.json_path == "$" else f"{error.json_path}: {error.message}"
    return text if len(text) <= _MOST_OF_MESSAGE else f"{text[:_MOST_OF_MESSAGE]}…"


def _outer_references(schema: Mapping[str, JsonValue], own: Collection[str]) -> Iterator[str]:
    """Yield a message on each reference to another file or address."""
    for reference in _values_of(schema, "$ref"):
        if not reference.startswith("#") and reference.partition("#")[0] not in own:
            yield f"the reference {reference!r} leads to another document; put its content under '$defs'"


def _values_of(schema: object, key: str) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(value := schema.get(key), str):
            yield value
        schema = [*schema.values()]
    for item in schema if isinstance(schema, list) else ():
        yield from _values_of(item, key)
