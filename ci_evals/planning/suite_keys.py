"""Keys that extensions add to suites: they are taken out of a suite's data, checked, and then applied to it.

The part `suite_keys` of an extension has `SUITE_KEYS` and `TEST_KEYS`, models of the keys that it adds to
suites and tests, each with a default, and `expand(written)`, which takes a `WrittenSuite` and returns an
`Expansion`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from ci_evals.domain.errors import Problem
from ci_evals.domain.suite import Suite, Test, suite_schema
from ci_evals.extension_registry import suite_bases, suite_keys
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.validation import problems_in
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class WrittenSuite:
    """A suite as it is written, and what it says under the keys of an extension."""

    suite: Suite
    keys: Any
    """The extension's keys of the suite, a `SUITE_KEYS`."""
    test_keys: Sequence[Any]
    """The extension's keys of each test, a `TEST_KEYS` each."""
    document: Document
    """Says where a problem is."""
    reading: Reading


@dataclass(frozen=True)
class Expansion:
    """The tests that are played, each with the place of the test from which it comes."""

    tests: tuple[tuple[int, Test], ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The traits of the simulated user, by the name of a test: each makes the test harder."""
    written: Mapping[str, Mapping[Path, str]] = field(default_factory=dict)
    """Strings with secrets of the test with this name alone, as they are written, by their places in it."""


class ExpandedSuite(NamedTuple):
    """A suite with the tests that are played."""

    suite: Suite
    places: tuple[int, ...]
    """The place in the file of each test."""
    warnings: tuple[Problem, ...]
    users: Mapping[str, tuple[str, ...]]
    """The traits of simulated users, by the names of tests."""
    written: Mapping[str, Mapping[Path, str]]
    """The same as of an `Expansion`."""


@dataclass
class _Added:
    module: ModuleType
    suite: BaseModel
    tests: list[BaseModel]


class AddedKeys:
    """The keys of extensions in the data of one suite, which loses them."""

    def __init__(self, document: Document, value: Any, redactor: Redactor) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._added = []
        if isinstance(value, dict):
            self._added = [self._taken(module, value, redactor) for module in suite_keys()]

    def _taken(self, module: ModuleType, value: JsonObject, redactor: Redactor) -> _Added:
        def read(model: type[BaseModel], owner: JsonObject, under: Path) -> BaseModel:
            own = {key: owner.pop(key) for key in _names(model) if key in owner}
            try:
                return model.model_validate_json(json.dumps(own), strict=True, by_alias=True, by_name=False)
            except ValidationError as error:
                self.problems += problems_in(
                    self._document, own, error, redactor=redactor, root=model, under=under
                )
                return model()

        added = _Added(module, read(module.SUITE_KEYS, value, ()), [])
        tests = value.get("tests")
        for index, test in enumerate(tests if isinstance(tests, list) else ()):
            owner = test if isinstance(test, dict) else {}
            added.tests.append(read(module.TEST_KEYS, owner, ("tests", index)))
        return added

    def expand(self, suite: Suite, reading: Reading) -> ExpandedSuite:
        """Apply the keys of each extension to what those before it made of the suite."""
        places = tuple(range(len(suite.tests)))
        warnings: list[Problem] = []
        users: dict[str, tuple[str, ...]] = {}
        written: dict[str, Mapping[Path, str]] = {}
        for added in self._added:
            document = replace(self._document, test_places=places)
            test_keys = [added.tests[place] for place in places]
            expansion = added.module.expand(WrittenSuite(suite, added.suite, test_keys, document, reading))
            self.problems += expansion.problems
            warnings += expansion.warnings
            users |= expansion.users
            written |= expansion.written
            suite = suite.copy_with(tests=tuple(test for _, test in expansion.tests))
            places = tuple(places[index] for index, _ in expansion.tests)
        return ExpandedSuite(suite, places, tuple(warnings), users, written)


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield info.alias or name


def schema_with_added_keys() -> JsonObject:
    """The JSON Schema of a suite, with the keys of extensions."""
    schema = suite_schema()
    for module in suite_keys():
        for keys, owner in ((module.SUITE_KEYS, schema), (module.TEST_KEYS, schema["$defs"]["Test"])):
            added = keys.model_json_schema(mode="validation", by_alias=True)
            owner["properties"] |= added["properties"]
            schema["$defs"] |= added.get("$defs", {})
    for base in suite_bases():
        added = base.SUITE_KEYS.model_json_schema(mode="validation", by_alias=True)
        schema["properties"] |= added["properties"]
        schema["$defs"] |= added.get("$defs", {})
        schema["required"] = [key for key in schema["required"] if key != "tests"]
        schema["anyOf"] = [{"required": ["tests"]}, {"required": ["extends"]}]
    return schema
