"""promptfoo's configuration as a whole, or a file that holds tests alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import Any

from ci_evals.extensions.importers.imported import ImportedSuite
from ci_evals.extensions.importers.promptfoo.places import Place
from ci_evals.extensions.importers.promptfoo.sources import Located, Sources, as_tests, content_of
from ci_evals.extensions.importers.records import JSON_LINES, kind_of, whole_document
from ci_evals.planning.documents.document import Document
from ci_evals.support.json_text import JsonObject

_OF_SUITE = {"description", "prompts", "tests", "scenarios", "defaultTest", "providers", "targets", "$schema"}
_OF_SUITE |= {"evaluateOptions", "assertionTemplates"}
_TYPES = (
    ("description", str, "a string"),
    ("evaluateOptions", dict, "an object"),
    ("assertionTemplates", dict, "an object"),
    ("prompts", str | list | dict, "a string or a list of strings"),
)
"""Types of the fields of a configuration that say nothing of its tests."""


@dataclass(frozen=True)
class Configuration:
    """What a configuration consists of."""

    fields: JsonObject
    default: Located
    """`defaultTest`."""
    tests: Iterable[Located]
    scenarios: Iterable[Located]


def read_configuration(
    text: str, file: str, sources: Sources, imported: ImportedSuite
) -> tuple[Place, Configuration]:
    """Read a configuration, or a file that holds tests alone.

    Raises:
        SuiteError: it is neither.
    """
    config: Any = None
    place = Place(Document(file))
    if PurePath(file).suffix.lower() not in {".csv", *JSON_LINES}:
        place = Place(whole_document(text, file))
        config = place.document.value
        if not _is_configuration(config) and not _holds_tests(config):
            wanted = "promptfoo's configuration, with 'tests' or 'scenarios', or a list of tests"
            raise place.fault(f"must be {wanted}")
    if not _is_configuration(config):
        tests = as_tests(content_of(text, file, PurePosixPath(), imported), imported)
        return place, Configuration({}, (place, {}), sources.within(tests), ())
    _note_fields(place, config, imported)
    default = sources.one(place.at("defaultTest"), config.get("defaultTest"))
    return place, Configuration(
        config | {"prompts": sources.prompts(place, config.get("prompts"))},
        default or (place.at("defaultTest"), {}),
        sources.tests(place.at("tests"), config.get("tests")),
        sources.items(place.at("scenarios"), config.get("scenarios")),
    )


def _is_configuration(value: Any) -> bool:
    return isinstance(value, dict) and bool({"tests", "scenarios"} & set(value))


def _holds_tests(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return isinstance(value, dict) and bool({"vars", "assert"} & set(value))


def _note_fields(place: Place, config: JsonObject, imported: ImportedSuite) -> None:
    if left := sorted(str(key) for key in set(config) - _OF_SUITE):
        imported.fields["x-unmapped"] = left
        imported.notes.append(f"{place.document.file}: no counterpart for {', '.join(left)}")
    for key, kind, wanted in _TYPES:
        if config.get(key) is not None and not isinstance(config[key], kind):
            message = f"must be {wanted}, found {kind_of(config[key])}, and is left out"
            imported.note(place.at(key).problem(message))
    if isinstance(config.get("description"), str):
        imported.name = config["description"] or imported.name
