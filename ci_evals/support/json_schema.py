"""JSON Schemas of strangers: checked, and applied without network and without endless patterns."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

import regex
from pydantic import JsonValue

PATTERN_SECONDS = 1.0
"""Time limit of one pattern on one text."""


class EndlessPatternError(Exception):
    """A pattern of the schema was searched without an end."""


def fault(schema: Mapping[str, JsonValue]) -> str | None:
    """Return what is wrong with a schema; None if it is one."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415  # 0.1 s, and few suites need it

    try:
        _validator().check_schema(schema)
    except SchemaError as error:
        return _at(error)
    return next(_outer_references(schema, frozenset(_values_of(schema, "$id"))), None)


def violation(schema: Mapping[str, JsonValue], value: JsonValue) -> str | None:
    """Return the most telling reason why a value is not valid under a schema; None if it is valid.

    Raises:
        EndlessPatternError: a pattern takes too long.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415  # see above
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    # A registry of its own: jsonschema's default one fetches references from the network.
    validator = _validator()(schema, registry=Registry())
    try:
        error = best_match(validator.iter_errors(value))
    except Unresolvable as reference:
        return f"the schema's reference {reference.ref!r} leads nowhere"
    except RecursionError:
        return "it is nested too deeply for this schema"
    return None if error is None else _at(error)


def _at(error: Any) -> str:
    """Return an error of jsonschema with its place."""
    return error.message if error.json_path == "$" else f"{error.json_path}: {error.message}"


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


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # see above
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415
    from jsonschema.validators import extend  # noqa: PLC0415

    def pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(value, str) and not _found(wanted, value):
            yield ValidationError(f"{value!r} does not match {wanted!r}")

    def pattern_properties(
        validator: Any, patterns: Mapping[str, Any], value: Any, _: Any
    ) -> Iterator[ValidationError]:
        for wanted, schema in patterns.items() if isinstance(value, dict) else ():
            for key in value:
                if _found(wanted, key):
                    yield from validator.descend(value[key], schema, path=key, schema_path=wanted)

    return extend(Draft202012Validator, {"pattern": pattern, "patternProperties": pattern_properties})


def _found(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        raise EndlessPatternError(pattern) from None
