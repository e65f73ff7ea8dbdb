"""The test cases of a promptfoo configuration: each with what `defaultTest` and its scenario add."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ci_evals.extensions.importers.imported import ImportedSuite
from ci_evals.extensions.importers.promptfoo.configuration import Configuration
from ci_evals.extensions.importers.promptfoo.places import Place
from ci_evals.extensions.importers.promptfoo.sources import FILE, Located, Sources
from ci_evals.extensions.importers.records import MOST_TESTS, kind_of
from ci_evals.support.json_text import JsonObject

_TEMPLATES = "#/assertionTemplates/"
_MERGED = ("vars", "options", "metadata")
_OF_SCENARIO = {"config", "tests"}


@dataclass(frozen=True)
class PromptfooCase:
    """One test case, with the fields of `defaultTest` and its scenario."""

    place: Place
    fields: JsonObject
    """All its fields."""
    asserts: list[Located]
    """Its assertions and their positions; sets that require all of theirs are resolved."""

    def part(self, key: str) -> JsonObject:
        """One of its fields that are objects: `vars`, `metadata`, `options`."""
        return _object(self.fields.get(key))

    @property
    def variables(self) -> JsonObject:
        """Its variables, one value each, except those in other files."""
        return {name: value for name, value in self.part("vars").items() if not _is_file(value)}

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Its variables whose values are in other files."""
        return tuple(name for name, value in self.part("vars").items() if _is_file(value))

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
        return _object(self.part("provider").get("config"))


@dataclass(frozen=True)
class _Part:
    """The parts of a case that a test, a scenario or `defaultTest` gives."""

    place: Place
    fields: JsonObject
    asserts: Sequence[Located]


def cases(configuration: Configuration, sources: Sources, imported: ImportedSuite) -> list[PromptfooCase]:
    """Every case of a configuration. Those that are not valid are left out of `imported`.

    Raises:
        SuiteError: `defaultTest` is not valid, or there are too many cases.
    """
    found: list[PromptfooCase] = []
    for parts in _combined(configuration, sources, imported):
        with imported.leaving_out():
            case = _together(parts)
            unrolled = list(_unrolled(case))
            asserts = list(_resolved(case.asserts, configuration.fields, sources))
            found += [
                PromptfooCase(case.place, case.fields | {"vars": values}, asserts) for values in unrolled
            ]
        if len(found) > MOST_TESTS:
            raise parts[-1].place.fault(f"more than {MOST_TESTS:,} tests; split the file")
    return found


def _combined(
    configuration: Configuration, sources: Sources, imported: ImportedSuite
) -> Iterator[tuple[_Part, ...]]:
    """Yield the parts of each case, the more definite ones later."""
    base = _part(*configuration.default, sources)
    for test in _tests(configuration.tests, sources, imported):
        yield base, test
    for at, scenario in configuration.scenarios:
        found: list[tuple[_Part, _Part]] = []
        with imported.leaving_out():
            if not isinstance(scenario, dict):
                raise at.fault(f"must be an object, found {kind_of(scenario)}")
            if left := sorted(str(key) for key in set(scenario) - _OF_SCENARIO):
                imported.note(at.problem(f"no counterpart for its {', '.join(left)}"))
            whole = _Part(at, {}, ())
            shared, tests = (
                _tests(_listed(at.at(key), scenario.get(key), items), sources, imported)
                for key, items in (("config", sources.items), ("tests", sources.tests))
            )
            pairs = itertools.product(shared or [whole], tests or [whole])
            found = list(itertools.islice(pairs, MOST_TESTS + 1))
        for pair in found:
            yield base, *pair


def _listed(place: Place, given: Any, items: Callable[[Place, Any], Iterator[Located]]) -> Iterator[Located]:
    if given is not None and not isinstance(given, list | str):
        raise place.fault(f"must be a list of objects or the name of a file, found {kind_of(given)}")
    return items(place, given)


def _tests(located: Iterable[Located], sources: Sources, imported: ImportedSuite) -> list[_Part]:
    found: list[_Part] = []
    for at, item in located:
        with imported.leaving_out():
            if not isinstance(item, dict):
                raise at.fault(f"must be an object, found {kind_of(item)}")
            found.append(_part(at, item, sources))
        if len(found) > MOST_TESTS:
            raise at.fault(f"more than {MOST_TESTS:,} tests; split the file")
    return found


def _part(place: Place, given: JsonObject, sources: Sources) -> _Part:
    """Return a test with the types of its fields checked, so that none of them is ignored later.

    Raises:
        SuiteError: a field is of a type that promptfoo does not take either.
    """
    for key, kinds, wanted in _TYPES:
        value = given.get(key)
        if value is not None and not isinstance(value, kinds):
            raise place.at(key).fault(f"must be {wanted}, found {kind_of(value)}")
    fields = given | {"vars": sources.objects(place.at("vars"), given.get("vars"))}
    for path, kinds, wanted in _TYPES_WITHIN:
        value = _object(given.get(path[0])).get(path[1])
        if value is not None and not isinstance(value, kinds):
            raise place.at(*path).fault(f"must be {wanted}, found {kind_of(value)}")
    tags = _object(given.get("metadata")).get("tags")
    if isinstance(tags, list) and not all(isinstance(tag, str) for tag in tags):
        raise place.at("metadata", "tags").fault("must be a list of strings")
    return _Part(place, fields, list(_assertions(place.at("assert"), given.get("assert"), sources)))


_TYPES = (
    ("metadata", dict, "an object"),
    ("options", dict, "an object"),
    ("provider", str | dict, "a string or an object"),
    ("description", str | int | float, "a string"),
    ("assert", list | str, "a list of assertions"),
)
_TYPES_WITHIN = (
    (("options", "disableVarExpansion"), bool, "true or false"),
    (("options", "disableDefaultAsserts"), bool, "true or false"),
    (("provider", "id"), str, "a string"),
    (("provider", "config"), dict, "an object"),
    (("metadata", "tags"), str | list, "a string or a list of strings"),
    (("metadata", "conversationId"), str | int, "a string"),
)


def _assertions(place: Place, given: Any, sources: Sources) -> Iterator[Located]:
    if isinstance(given, str) and not given.startswith(FILE):
        raise place.fault(f"must be a list of assertions, found {kind_of(given)}")
    yield from sources.items(place, given, only_marked=True)


def _together(parts: tuple[_Part, ...]) -> _Part:
    """Join parts: fields of the later ones come before those of the earlier; assertions are those of all."""
    fields: JsonObject = {}
    asserts: list[Located] = []
    without = _object(parts[-1].fields.get("options")).get("disableDefaultAsserts") is True
    for number, part in enumerate(parts):
        if number or not without:
            asserts += part.asserts
        joined = {key: _object(fields.get(key)) | _object(part.fields.get(key)) for key in _MERGED}
        fields = fields | part.fields | {key: item for key, item in joined.items() if item}
    return _Part(parts[-1].place, fields, asserts)


def _unrolled(case: _Part) -> Iterator[JsonObject]:
    """Every combination of the values of variables that are lists of texts."""
    given = _object(case.fields.get("vars"))
    if _object(case.fields.get("options")).get("disableVarExpansion") is True:
        return iter([given])
    choices = [
        item if isinstance(item, list) and item and all(isinstance(one, str) for one in item) else [item]
        for item in given.values()
    ]
    if math.prod(len(values) for values in choices) > MOST_TESTS:
        raise case.place.fault(f"its variables have more than {MOST_TESTS:,} combinations")
    return (dict(zip(given, values, strict=True)) for values in itertools.product(*choices))


def _resolved(
    asserts: Sequence[Located], config: JsonObject, sources: Sources, depth: int = 0
) -> Iterator[Located]:
    templates = _object(config.get("assertionTemplates"))
    for place, given in asserts:
        item = given
        reference = item.get("$ref") if isinstance(item, dict) else None
        if isinstance(reference, str) and reference.startswith(_TEMPLATES):
            item = templates.get(reference.removeprefix(_TEMPLATES), item)
        inner = item.get("assert") if isinstance(item, dict) and item.get("type") == "assert-set" else None
        if isinstance(inner, list) and set(item) <= {"type", "assert"} and depth == 0:
            inside = list(sources.items(place.at("assert"), inner, only_marked=True))
            yield from _resolved(inside, config, sources, depth + 1)
        else:
            yield place, item


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(FILE)


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
