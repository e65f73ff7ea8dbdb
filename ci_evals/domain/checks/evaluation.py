"""Evaluations: one criterion each, judged by a model or strict (checked by a program).

A strict kind is told by its `strict` key; without it a criterion is judged, and graded where it has a rubric.
The kinds, their fields and their meaning are those of `@aui.io/evals`, plus those for agents of every kind.
"""

from typing import Annotated, Any, Self, TypeGuard

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ci_evals.domain.base import Share
from ci_evals.domain.checks.criterion import Criterion
from ci_evals.domain.checks.rubric import (
    Dimension,
    Dimensions,
    Level,
    Rubric,
    complete_dimensions,
    distinct_levels,
    resolved,
)
from ci_evals.domain.checks.text_checks import (
    AnswerMatches,
    Contains,
    MaxAgentTurns,
    MaxLatency,
    NotContains,
    NotRegex,
    Regex,
)
from ci_evals.domain.checks.tool_checks import (
    JsonSchema,
    MaxToolCalls,
    PythonCheck,
    StateCheck,
    ToolCalled,
    ToolSequence,
)
from ci_evals.domain.checks.trace_checks import (
    Escalated,
    EscalatedDueToError,
    IntegrationCalled,
    NotEscalated,
    NotEscalatedDueToError,
    ParamEquals,
    ParamExists,
    ParamNotExists,
    RuleNotTriggered,
    RuleTriggered,
    ToolNotUsed,
    ToolUsed,
)

PASS_AT = 0.7
"""Good in everything passes, and so does a little less in some; half way in everything does not."""


class Judged(Criterion):
    """A criterion that the judge decides after reading the whole conversation."""


class Graded(Judged):
    """A criterion that the judge grades by a rubric: it may be met in part."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["rubric"]}, {"required": ["dimensions"]}]}
    )

    rubric: tuple[Level, ...] | None = Field(
        None,
        min_length=1,
        description="The levels, in any order: those of the criterion, or of every dimension without "
        "its own.",
    )
    dimensions: Dimensions | None = Field(
        None,
        min_length=1,
        description="What is looked at, each by itself: the name of a built-in dimension, or one of your own "
        "as an object. Without them the criterion is looked at as a whole.",
    )
    pass_at: Share = Field(
        PASS_AT,
        description="Minimum score, 0 to 1, to pass the criterion. The test's score counts the grade itself.",
    )

    _rubric = field_validator("rubric")(distinct_levels)
    _dimensions = field_validator("dimensions")(complete_dimensions)

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        if self.rubric is None and self.dimensions is None:
            raise PydanticCustomError("no_levels", "needs a 'rubric', 'dimensions' or both")
        return self

    @property
    def whole_rubric(self) -> Rubric:
        """The rubric with everything that a judge is told of it."""
        return resolved(self.rubric, self.dimensions, self.pass_at)


def judged(criterion: str, rubric: Rubric | None) -> Judged:
    """The evaluation that asks a judge for `criterion`, graded by `rubric` if there is one.

    Raises:
        ValidationError: the rubric is none that a suite may have.
    """
    if rubric is None:
        return Judged(criterion=criterion)
    dimensions = tuple(
        Dimension(
            name=one.name,
            description=one.description,
            weight=one.weight,
            rubric=one.levels,
            steps=one.steps,
        )
        for one in rubric.dimensions
    )
    return Graded(criterion=criterion, dimensions=dimensions, pass_at=rubric.pass_at)


def compares_meanings(evaluation: Criterion) -> TypeGuard[AnswerMatches]:
    """Return whether an embedding model is asked to decide it."""
    return isinstance(evaluation, AnswerMatches) and evaluation.match == "semantic"


JUDGED = "judged"
GRADED = "graded"
STRICT = "a strict check"
"""The tag of all strict kinds; no key of any is called so."""
RUBRIC_KEYS = frozenset({"rubric", "dimensions"})
"""Either key makes a judged criterion a graded one."""


def _kind(value: Any) -> str:
    """Return the tag of the union: strict if there is such a key, else graded or judged."""
    fields = value if isinstance(value, dict) else {}
    if (fields.get("strict") if fields else getattr(value, "strict", None)) is not None:
        return STRICT
    return GRADED if isinstance(value, Graded) or RUBRIC_KEYS & fields.keys() else JUDGED


Strict = (
    Escalated
    | NotEscalated
    | ToolUsed
    | ToolNotUsed
    | ParamEquals
    | ParamExists
    | ParamNotExists
    | EscalatedDueToError
    | NotEscalatedDueToError
    | RuleTriggered
    | RuleNotTriggered
    | IntegrationCalled
    | Contains
    | NotContains
    | Regex
    | NotRegex
    | AnswerMatches
    | MaxAgentTurns
    | MaxLatency
    | ToolCalled
    | ToolSequence
    | MaxToolCalls
    | JsonSchema
    | StateCheck
    | PythonCheck
)


Evaluation = Annotated[
    Annotated[Judged, Tag(JUDGED)]
    | Annotated[Graded, Tag(GRADED)]
    | Annotated[Annotated[Strict, Field(discriminator="strict")], Tag(STRICT)],
    Discriminator(_kind),
]
