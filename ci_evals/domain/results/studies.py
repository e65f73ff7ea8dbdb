"""Findings of studies on a saved run, kept in its results under a key for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, JsonValue, PlainSerializer

from ci_evals.domain.base import CleanText, ResultPart
from ci_evals.support import dataclass_json

_MAX_DEPTH = 50
"""The deepest nesting in the JSON of an unknown study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(ResultPart):
    """The findings of a study on a run. Each study has its own types."""

    KEY: ClassVar[str]

    @property
    def key(self) -> str:
        """The name in the file."""
        return self.KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownStudy(Study):
    """A study of another version, kept as it is."""

    name: CleanText
    value: Annotated[JsonValue, BeforeValidator(lambda value: _bounded(value, _MAX_DEPTH))]

    @property
    def key(self) -> str:
        """The name in the file."""
        return self.name


def _bounded(value: JsonValue, depth: int) -> JsonValue:
    """Refuse what is nested too deeply to be written again."""
    if depth == 0:
        raise ValueError("nested too deeply")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _bounded(item, depth - 1)
    return value


def _unknown(value: object) -> object:
    """Take the JSON of studies as it is; whoever knows their types has parsed them before."""
    if not isinstance(value, dict):
        return value
    return tuple(UnknownStudy(name=key, value=item) for key, item in value.items() if item is not None)


def _by_key(studies: Sequence[Study]) -> dict[str, JsonValue]:
    return {
        study.key: study.value if isinstance(study, UnknownStudy) else dataclass_json.to_value(study)
        for study in studies
    }


Studies = Annotated[
    tuple[Study, ...],
    BeforeValidator(_unknown),
    PlainSerializer(_by_key, return_type=dict[str, JsonValue]),
]
"""All studies of a run: in JSON an object with a key for each."""
