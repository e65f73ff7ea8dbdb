"""Base classes and types of all values of the domain."""

from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Self

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

    def slim(self) -> None:
        """Takes a third of the memory from now on: forgets which fields were given, and calls all so."""
        self._compact(_all_fields(type(self)))

    def slim_copy(self, **update: Any) -> Self:
        """Return a slim copy with some values changed, which are not checked."""
        copy = self._blank()
        for name, value in self.__dict__.items():
            object.__setattr__(copy, name, update.get(name, value))
        return copy

    def like(self, **update: Any) -> Self:
        """Return a slim copy of a slim record, as `slim_copy` does, in less than half the time."""
        copy = self._blank()
        values = self.__dict__.copy()  # which shares the names too
        values.update(update)
        object.__setattr__(copy, "__dict__", values)
        return copy

    def _blank(self) -> Self:
        """Return a slim record without values."""
        copy = object.__new__(type(self))
        object.__setattr__(copy, "__pydantic_fields_set__", _all_fields(type(self)))
        object.__setattr__(copy, "__pydantic_extra__", None)
        object.__setattr__(copy, "__pydantic_private__", None)
        return copy


@cache
def _shared(names: frozenset[str]) -> set[str]:
    """The names of given fields that all values share which were given these."""
    return set(names)


@cache
def _all_fields(model: type[BaseModel]) -> set[str]:
    """The field names that all slim records of a type share."""
    return set(model.model_fields)


CleanText = Annotated[str, Clean()]

_MOST_TOKENS = 10**9
"""The most tokens of one answer: more is no count."""


def token_count(value: object) -> int | None:
    """A count of tokens that somebody reports; None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


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


class Interval(Record):
    """A 95 % interval, in points."""

    low: Points
    high: Points
