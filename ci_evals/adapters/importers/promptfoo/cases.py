"""The test cases of a promptfoo configuration, with inherited fields and lists of values unrolled."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ci_evals.adapters.importers.imported import MOST_TESTS, JsonObject
from ci_evals.domain.errors import SuiteError
from ci_evals.planning.document import Document, Path

_TEMPLATES = "#/assertionTemplates/"
_MERGED = ("vars", "options", "metadata")


_Located = tuple[Path, JsonObject]
_Merged = tuple[Path, JsonObject, list[Any]]
"""A case with inherited fields, and all its assertions."""


@dataclass(frozen=True)
class PromptfooCase:
    """One test case, with the fields of `defaultTest` and its scenario."""

    path: Path
    fields: JsonObject
    """All its fields."""
    asserts: list[tuple[Path, Any]]
    """Its assertions and their positions; sets that require all of theirs are resolved."""

    @property
    def variables(self) -> JsonObject:
        """Its variables, one value each, except those in other files."""
        return {name: value for name, value in self._all.items() if not _is_file(value)}

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Its variables whose values are in other files."""
        return tuple(name for name, value in self._all.items() if _is_file(value))

    @property
    def _all(self) -> JsonObject:
        return _object(self.fields.get("vars"))

    @property
    def metadata(self) -> JsonObject:
        """Its `metadata`."""
        return _object(self.fields.get("metadata"))

    @property
    def options(self) -> JsonObject:
        """Its `options`."""
        return _object(self.fields.get("options"))

    @property
    def description(self) -> str:
        """Its author's name for it."""
        return str(self.fields.get("description") or "").strip()

    @property
    def provider(self) -> str:
        """The provider of this case alone; empty for that of the configuration."""
        given = self.fields.get("provider")
        return str(_object(given).get("id") or "") if isinstance(given, dict) else str(given or "")

    @property
    def provider_config(self) -> JsonObject:
        """The configuration of that provider."""
        return _object(_object(self.fields.get("provider")).get("config"))


def cases(document: Document, notes: list[str]) -> Iterator[PromptfooCase]:
    """Every case in the file; those in other files are noted in `notes`.

    Raises:
        SuiteError: there are too many, or one is no object.
    """
    config = document.value
    count = 0
    for path, fields, asserts in _merged(document, notes):
        for values in _unrolled(fields, document, path):
            count += 1
            if count > MOST_TESTS:
                raise SuiteError([document.problem(path, f"more than {MOST_TESTS:,} tests; split the file")])
            yield PromptfooCase(path, fields | {"vars": values}, list(_resolved(asserts, config)))


def _merged(document: Document, notes: list[str]) -> Iterator[_Merged]:
    config = document.value
    default = config.get("defaultTest")
    if default is not None and not isinstance(default, dict):
        notes.append(str(document.problem(("defaultTest",), "is another file, which is not read")))
    base = ("defaultTest",), _object(default)
    for path, test in _listed(document, ("tests",), config.get("tests"), notes):
        yield _together(base, (path, test))
    for position, scenario in _listed(document, ("scenarios",), config.get("scenarios"), notes):
        if left := sorted(str(key) for key in set(scenario) - {"config", "tests"}):
            notes.append(str(document.problem(position, f"nothing here is like its {', '.join(left)}")))
        shared = list(_listed(document, (*position, "config"), scenario.get("config"), notes))
        for part, (path, test) in itertools.product(
            shared or [(position, {})],
            list(_listed(document, (*position, "tests"), scenario.get("tests"), notes)) or [(position, {})],
        ):
            yield _together(base, part, (path, test))


def _listed(document: Document, path: Path, given: Any, notes: list[str]) -> Iterator[_Located]:
    for i, item in enumerate(given if isinstance(given, list) else [] if given is None else [given]):
        here = (*path, i) if isinstance(given, list) else path
        if isinstance(item, str) or (isinstance(item, dict) and isinstance(item.get("path"), str)):
            notes.append(str(document.problem(here, "is another file, which is not read")))
        elif not isinstance(item, dict):
            raise SuiteError([document.problem(here, "wants an object")])
        else:
            yield here, item


def _together(*parts: _Located) -> _Merged:
    """Fields of the later parts come before those of the earlier; assertions are those of all."""
    fields: JsonObject = {}
    asserts: list[Any] = []
    for path, part in parts:
        given = part.get("assert")
        without = _object(parts[-1][1].get("options")).get("disableDefaultAsserts") is True
        if isinstance(given, list) and not (without and path == ("defaultTest",)):
            asserts += [((*path, "assert", i), item) for i, item in enumerate(given)]
        joined = {key: _object(fields.get(key)) | _object(part.get(key)) for key in _MERGED}
        fields = fields | part | {key: item for key, item in joined.items() if item}
    return parts[-1][0], fields, asserts


def _unrolled(fields: JsonObject, document: Document, path: Path) -> Iterator[JsonObject]:
    """Every combination of the values of variables that are lists of texts."""
    given = _object(fields.get("vars"))
    if _object(fields.get("options")).get("disableVarExpansion") is True:
        return iter([given])
    choices = [
        item if isinstance(item, list) and item and all(isinstance(one, str) for one in item) else [item]
        for item in given.values()
    ]
    if math.prod(len(values) for values in choices) > MOST_TESTS:
        message = f"its variables have more than {MOST_TESTS:,} combinations"
        raise SuiteError([document.problem(path, message)])
    return (dict(zip(given, values, strict=True)) for values in itertools.product(*choices))


def _resolved(
    asserts: list[tuple[Path, Any]], config: JsonObject, depth: int = 0
) -> Iterator[tuple[Path, Any]]:
    templates = _object(config.get("assertionTemplates"))
    for path, given in asserts:
        item = given
        reference = item.get("$ref") if isinstance(item, dict) else None
        if isinstance(reference, str) and reference.startswith(_TEMPLATES):
            item = templates.get(reference.removeprefix(_TEMPLATES), item)
        inner = item.get("assert") if isinstance(item, dict) and item.get("type") == "assert-set" else None
        if isinstance(inner, list) and set(item) <= {"type", "assert"} and depth == 0:
            inside = [((*path, "assert", i), one) for i, one in enumerate(inner)]
            yield from _resolved(inside, config, depth + 1)
        else:
            yield path, item


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("file://")


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
