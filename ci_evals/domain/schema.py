"""The JSON Schemas of what people and programs write and read."""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from ci_evals.domain.base import Record
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.domain.suite import Suite

_DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def suite_schema() -> dict[str, Any]:
    """The schema of a suite, open for `$schema` and `x-…` keys."""
    return _open_for_comments(_DIALECT | Suite.model_json_schema(mode="validation", by_alias=True))


def results_schema(studies: Mapping[str, type[Study]]) -> dict[str, Any]:
    """The schema of a `_results.json`, with these types of studies by their keys."""
    models: list[tuple[type[Record], JsonSchemaMode]] = [(Results, "serialization")]
    models += [(kind, "serialization") for kind in studies.values()]
    references, definitions = models_json_schema(models, by_alias=True)
    shared = definitions["$defs"]
    results = shared.pop(references[Results, "serialization"]["$ref"].rpartition("/")[2])
    results["properties"]["studies"] |= {
        "properties": {key: references[kind, "serialization"] for key, kind in studies.items()},
        "additionalProperties": True,
    }
    schema: dict[str, Any] = _DIALECT | results | {"$defs": shared}
    return schema


def _open_for_comments(schema: dict[str, Any]) -> dict[str, Any]:
    """Lets `$schema` and `x-…` keys pass in every object that refuses unknown keys."""
    definitions = schema.get("$defs")
    objects = [schema, *(definitions.values() if isinstance(definitions, dict) else ())]
    for item in objects:
        if item.get("additionalProperties") is False:
            item["patternProperties"] = {"^(\\$schema$|x-)": True}
    return schema
