"""Base classes and types of all values of the domain."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints
from pydantic.alias_generators import to_camel

from ci_evals.support.redaction import Clean


class _Value(BaseModel):
    """A frozen value, camelCase in JSON."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
        defer_build=True,  # at the first use: a run begins before it needs most of them
    )

    def copy_with(self, **changes: Any) -> Self:
        """Return a copy with other values of these fields, which mypy checks (`mypy_plugin.py`)."""
        return self.model_copy(update=changes)

    def _compact(self, given: set[str]) -> None:
        """Take half the memory: values that are set one by one share a table of names (PEP 412)."""
        values = self.__dict__
        object.__setattr__(self, "__pydantic_fields_set__", given)
        object.__delattr__(self, "__dict__")
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Model(_Value):
    """A frozen value that a person writes: camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(extra="forbid")

    def model_post_init(self, _context: Any) -> None:
        """Keep it small: a suite may hold thousands."""
        self._compact(_shared(frozenset(self.model_fields_set)))


class Record(_Value):
    """A frozen value that the tool writes: camelCase in JSON, keys of a newer version are passed over."""

    model_config = ConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPart:
    """A value of a run's results, camelCase in JSON; keys of a newer version are passed over.

    Types are checked by mypy where it is made, and by pydantic where it is read from a file
    (`support.dataclass_json`). Of many there may be 100,000, so they have slots.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False, extra="ignore"
    )


@cache
def _shared(names: frozenset[str]) -> set[str]:
    """The names of given fields that all values share which were given these."""
    return set(names)


CleanText = Annotated[str, Clean()]

_MOST_TOKENS = 10**9
"""The most tokens of one answer: more is no count."""


def token_count(value: object) -> int | None:
    """A count of tokens that somebody reports; None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


_LONGEST_MODEL = 200
"""The most characters of a model's name: a longer text is none."""


def model_names(values: Iterable[object]) -> tuple[str, ...]:
    """The names of models that somebody reports, each once; what cannot be a name is left out."""
    texts = (value.strip() for value in values if isinstance(value, str))
    return tuple(dict.fromkeys(text for text in texts if 0 < len(text) <= _LONGEST_MODEL))


NonBlank = Annotated[str, StringConstraints(pattern=r"\S")]
"""A string with at least one visible character."""

Percent = Annotated[float, Field(ge=0, le=100)]
"""A score in points, 0 to 100."""

Points = Annotated[float, Field(ge=-100, le=100)]
"""A difference of scores."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole, 0 to 1."""

Seconds = Annotated[float, Field(ge=0, le=1e9)]

MOST = 10**15
"""The largest `Amount`: no run has more of anything, and sums of what is told stop there."""

Amount = Annotated[int, Field(ge=0, le=MOST)]
"""A number of things."""

Positive = Annotated[int, Field(ge=1, le=10**6)]
"""The place of a thing in a row, or how many there are."""

MOST_DOLLARS = 1e12
Dollars = Annotated[float, Field(ge=0, le=MOST_DOLLARS)]
"""US dollars."""

_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)

Instant = Annotated[
    AwareDatetime,
    Field(ge=_FIRST, lt=datetime(9999, 1, 1, tzinfo=UTC)),
    PlainSerializer(lambda at: at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), return_type=str),
]
"""A moment in UTC, `2026-11-21T09:30:00.125Z`."""


def instant(at: datetime) -> datetime:
    """Return the nearest moment that an `Instant` can hold: a wrong clock must not end a run."""
    return min(max(at, _FIRST), _LAST)


@cache
def as_written(number: float) -> Fraction:
    """A number as its author wrote it: 0.1 is a tenth, not the nearest binary number."""
    return Fraction(repr(number))


JSON_SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
"""The key by which a JSON Schema names its dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(ResultPart):
    """A 95 % interval, in points."""

    low: Points
    high: Points
