"""Rubrics: the dimensions and levels by which a criterion is graded.

A rubric has dimensions, and each dimension has levels of which a judge names one. What a grade comes to is
told in `ci_evals.domain.verdict.Grade`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ci_evals.domain.base import Model, NonBlank, ResultPart, Share
from ci_evals.support import dataclass_json

BUILT_IN_FILE = "domain/checks/dimensions.json"
"""The meanings of the built-in dimensions, and their own levels."""

BuiltIn = Literal["correctness", "completeness", "clarity", "usefulness", "reasoning"]

WHOLE = "criterion"
"""The one dimension of a rubric that names none: the criterion itself."""

CANNOT_TELL = "cannot_tell"
"""The answer that a judge gives instead of a level; so no level is called that."""


class Level(Model):
    """One step of a rubric."""

    score: Share = Field(description="What it is worth, 0 to 1.")
    name: NonBlank = Field(description="What the judge calls it.")
    description: NonBlank | None = Field(
        None, description="What a conversation at this level is like, and how it differs from the next level."
    )


def key_of(name: str) -> str:
    """The name without case and white space, which tell no two names apart."""
    return " ".join(name.casefold().split())


Levels = Annotated[tuple[Level, ...], Field(min_length=1)]


def _problem(message: str, *path: int | str) -> InitErrorDetails:
    """A problem of a list, with the path in there."""
    error = PydanticCustomError("rubric", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=path, input=None)


def _refuse(problems: list[InitErrorDetails]) -> None:
    if problems:
        raise ValidationError.from_exception_data("rubric", problems)


def _twice(names: Iterable[str]) -> Iterator[InitErrorDetails]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        before = first.setdefault(key_of(name), index)
        if before != index:
            yield _problem(f"the name {name!r} is already used by item [{before}]", index, "name")


def distinct_levels(levels: tuple[Level, ...] | None) -> tuple[Level, ...] | None:
    """Check that levels can be distinguished."""
    if levels is None:
        return None
    problems = [*_twice(level.name for level in levels)]
    for index, level in enumerate(levels):
        if key_of(level.name).replace(" ", "_") == CANNOT_TELL:
            message = f"{level.name!r} is what a judge answers if it cannot tell a level; use another name"
            problems.append(_problem(message, index, "name"))
    if len({level.score for level in levels}) < 2:
        problems.append(_problem("needs at least two levels with different scores"))
    _refuse(problems)
    return levels


class Dimension(Model):
    """One thing that a rubric looks at."""

    name: NonBlank = Field(description="What the judge calls it; one that is built in may be changed so.")
    description: NonBlank | None = Field(None, description="What is looked at, in plain language.")
    weight: float = Field(
        1.0, ge=0, le=1_000_000, description="Share of the criterion's score; higher counts more."
    )
    rubric: Levels | None = Field(None, description="Its own levels, instead of those of the criterion.")
    steps: bool | None = Field(
        None,
        description="Whether the judge is shown what the trace says that the agent did. Without any trace "
        "the criterion is undecided then.",
    )

    _rubric = field_validator("rubric")(distinct_levels)


def _form(value: Any) -> str:
    return "named" if isinstance(value, str) else "written"


Dimensions = tuple[
    Annotated[Annotated[BuiltIn, Tag("named")] | Annotated[Dimension, Tag("written")], Discriminator(_form)],
    ...,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricDimension(ResultPart):
    """A dimension with everything that the judge sees of it."""

    name: str
    description: str | None = None
    weight: Annotated[float, Field(ge=0, le=1_000_000)] = 1
    levels: Levels
    """The best first."""
    steps: bool = False
    """True if it is judged by what the agent's trace reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric(ResultPart):
    """The rubric of a criterion, with the built-in dimensions spelled out."""

    pass_at: Share
    """Minimum score to pass the criterion."""
    dimensions: Annotated[tuple[RubricDimension, ...], Field(min_length=1)]

    @property
    def steps(self) -> bool:
        """True if a judge needs to see what the agent did."""
        return any(dimension.steps for dimension in self.dimensions)


def complete_dimensions(dimensions: Dimensions | None, info: ValidationInfo) -> Dimensions | None:
    """Check that dimensions can be distinguished, all have levels, and some of them count."""
    if dimensions is None:
        return None
    written = [_written(dimension) for dimension in dimensions]
    problems = [*_twice(dimension.name for dimension in written)]
    for index, dimension in enumerate(written):
        bare = dimension.rubric is None and key_of(dimension.name) not in _built_in()
        if bare and "rubric" in info.data and info.data["rubric"] is None:
            message = f"{dimension.name!r} has no levels: give it, or the criterion, a 'rubric'"
            problems.append(_problem(message, index))
    if not any(dimension.weight for dimension in written):
        problems.append(_problem("all weights are 0: nothing could be graded"))
    _refuse(problems)
    return dimensions


def resolved(levels: tuple[Level, ...] | None, dimensions: Dimensions | None, pass_at: float) -> Rubric:
    """The rubric with all that it leaves to others filled in: its own levels count before those built in."""
    if dimensions is None:
        whole = RubricDimension(name=WHOLE, levels=_best_first(levels or ()))
        return Rubric(pass_at=pass_at, dimensions=(whole,))
    return Rubric(pass_at=pass_at, dimensions=tuple(_resolved(_written(one), levels) for one in dimensions))


def _resolved(dimension: Dimension, levels: tuple[Level, ...] | None) -> RubricDimension:
    built_in = _built_in().get(key_of(dimension.name))
    own = dimension.rubric or levels or (built_in.levels if built_in else ())
    steps = dimension.steps
    return RubricDimension(
        name=dimension.name,
        description=dimension.description or (built_in.description if built_in else None),
        weight=dimension.weight,
        levels=_best_first(own),
        steps=steps if steps is not None else bool(built_in and built_in.steps),
    )


def _written(dimension: BuiltIn | Dimension) -> Dimension:
    return Dimension(name=dimension) if isinstance(dimension, str) else dimension


def _best_first(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    return tuple(sorted(levels, key=lambda level: level.score, reverse=True))


@cache
def _built_in() -> dict[str, RubricDimension]:
    text = files("ci_evals").joinpath(BUILT_IN_FILE).read_text(encoding="utf-8")
    return {
        name: dataclass_json.from_value(RubricDimension, {"name": name, **fields})
        for name, fields in json.loads(text).items()
    }
