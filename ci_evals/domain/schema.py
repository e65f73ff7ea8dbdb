"""The JSON Schemas of what people and programs write and read."""

from typing import Any

from ci_evals.domain.results.run import Results
from ci_evals.domain.suite import Suite

_DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def suite_schema() -> dict[str, Any]:
    """Of a suite, open for `$schema` and `x-…` keys."""
    return _open_for_comments(_DIALECT | Suite.model_json_schema(mode="validation", by_alias=True))


def results_schema() -> dict[str, Any]:
    """Of a `_results.json`."""
    return _DIALECT | Results.model_json_schema(mode="serialization", by_alias=True)


def _open_for_comments(made: dict[str, Any]) -> dict[str, Any]:
    """Lets `$schema` and `x-…` keys pass in every object that refuses unknown keys."""
    definitions = made.get("$defs")
    objects = [made, *(definitions.values() if isinstance(definitions, dict) else ())]
    for item in objects:
        if item.get("additionalProperties") is False:
            item["patternProperties"] = {"^(\\$schema$|x-)": True}
    return made
