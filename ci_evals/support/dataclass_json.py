"""Dataclasses to JSON and back, by pydantic: what is read is checked against the types of their fields."""

import ast
import inspect
import sys
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

T = TypeVar("T")


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def from_value(kind: type[T], value: object) -> T:
    """Return a dataclass of this `kind`, as a value of JSON has it.

    Raises:
        ValidationError: it does not have its form.
    """
    read: T = _adapter(kind).validate_python(value)
    return read


def from_json(kind: type[T], text: str | bytes) -> T:
    """Return a dataclass of this `kind`, as JSON has it.

    Raises:
        ValidationError: it is no JSON, or does not have its form.
    """
    read: T = _adapter(kind).validate_json(text)
    return read


def to_json(value: object, indent: int | None = None) -> str:
    """Return a dataclass as JSON.

    Raises:
        PydanticSerializationError: a text is not valid Unicode.
    """
    return _adapter(type(value)).dump_json(value, by_alias=True, indent=indent).decode()


def to_plain(value: object) -> Any:
    """Return what `from_value` reads: dicts and lists, in which every text is as it is."""
    return _adapter(type(value)).dump_python(value, by_alias=True)


def to_value(value: object) -> Any:
    """Return a dataclass as a value of JSON, in which every key is valid Unicode."""
    return _adapter(type(value)).dump_python(value, mode="json", by_alias=True)


def check(value: object) -> None:
    """Check a dataclass that was computed, as if it was read.

    JSON has no NaN and writes null instead, so its values are checked as they are.

    Raises:
        ValidationError: a value does not have the form or the range of its field.
    """
    from_value(value.__class__, to_plain(value))


def schemas(*kinds: type) -> tuple[dict[type, JsonSchemaValue], dict[str, JsonSchemaValue]]:
    """Return the JSON Schema of each kind as it is written, and the definitions that they share.

    The docstrings of fields describe them.
    """
    mode: JsonSchemaMode = "serialization"
    inputs = [(kind, mode, _adapter(kind)) for kind in kinds]
    schemas, definitions = TypeAdapter.json_schemas(
        inputs, by_alias=True, schema_generator=_DescribedByDocstrings
    )
    return {kind: schemas[kind, mode] for kind in kinds}, definitions["$defs"]


class _DescribedByDocstrings(GenerateJsonSchema):
    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        described = super().dataclass_schema(schema)
        docstrings: dict[str, str] = {}
        for kind in filter(is_dataclass, reversed(schema["cls"].__mro__)):
            docstrings |= _docstrings(kind.__module__).get(kind.__name__, {})
        for field in schema["schema"]["fields"]:
            key = field.get("serialization_alias", field["name"])
            if field["name"] in docstrings:
                described["properties"][key]["description"] = docstrings[field["name"]]
        return described

    def encode_default(self, dft: Any) -> Any:
        return to_value(dft) if is_dataclass(dft) else super().encode_default(dft)


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of fields, by class and field: each is the text below the field."""
    classes: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if not isinstance(node, ast.ClassDef):
            continue
        docstrings = classes.setdefault(node.name, {})
        for field, below in zip(node.body, node.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    docstrings[name] = " ".join(text.split())
    return classes
