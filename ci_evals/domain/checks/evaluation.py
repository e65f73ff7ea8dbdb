"""Evaluations: one criterion each, judged by a model or strict (checked by a program).

A strict kind is told by its `strict` key; without it a criterion is judged: graded if it has a rubric, and
with `claims` about what the agent says that it did.
The kinds, their fields and their meaning are those of `@aui.io/evals`, plus those for agents of every kind.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from ci_evals.domain.base import Share
from ci_evals.domain.checks.evidence import find_gap
from ci_evals.domain.checks.rubric import (
    Dimension,
    Dimensions,
    Level,
    Rubric,
    complete_dimensions,
    distinct_levels,
    resolved,
)
from ci_evals.domain.checks.strict import (
    disclosure,
    error_replies,
    escalation,
    expected_answers,
    functions,
    integrations,
    json_replies,
    limits,
    parameters,
    rules,
    state,
    text_search,
    tool_calls,
    workflows,
)
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Finding, Verdict

PASS_AT = 0.7
"""Good in everything passes, and so does a little less in some; half way in everything does not."""


class Judged(Criterion):
    """A criterion that the judge decides after reading the whole conversation."""

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        """Return the later turns that could undo a pass: none, since the judge knows of lines never sent."""
        del later
        return ()


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


class ClaimsBacked(Judged):
    """A criterion that is met if a tool call backs each thing that the agent says it has done.

    The judge lists these claims, whatever the criterion's own words. If not all tool calls are known, it is
    undecided, and no judge is asked.
    """

    own_prompts: ClassVar[tuple[str, ...]] = (
        "grading/prompts/claims_system.md.j2",
        "grading/prompts/claims.md.j2",
    )

    claims: Literal["backed"] = Field(
        description="`backed`: each thing that the agent says it has done is backed by a tool call that did "
        "not fail, made by then, and of the same object."
    )

    @property
    def claims_kind(self) -> Literal["backed"]:
        """The requirement on the agent's claims."""
        return self.claims

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        """Return the later turns that could undo a pass: any of them, by a claim that nothing backs."""
        return later

    def without_evidence(self, transcript: Transcript) -> Verdict | None:
        """Return the verdict if not all tool calls are known; else None."""
        gap = find_gap(tool_calls.CALLS, transcript)
        return gap.verdict("what the agent claims there could be backed or not") if gap else None


def is_offline(evaluation: Criterion) -> bool:
    """Return whether an evaluation is decided without a model and without the suite's own code."""
    compares = expected_answers.compares_meanings(evaluation)
    return not (isinstance(evaluation, Judged | functions.PythonCheck) or compares)


def judged(finding: Finding, rubric: Rubric | None) -> Judged:
    """Return the evaluation that a judged finding is of, graded by `rubric` if there is one.

    Raises:
        ValidationError: it is none that a suite may have.
    """
    if finding.claims:
        return ClaimsBacked(criterion=finding.criterion, claims=finding.claims)
    if rubric is None:
        return Judged(criterion=finding.criterion)
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
    return Graded(criterion=finding.criterion, dimensions=dimensions, pass_at=rubric.pass_at)


JUDGED = "judged"
GRADED = "graded"
CLAIMS = "a check of claims"
"""The tag of checks of claims; no key is called so."""
STRICT = "a strict check"
"""The tag of all strict kinds; no key of any is called so."""
RUBRIC_KEYS = frozenset({"rubric", "dimensions"})
"""Either key makes a judged criterion a graded one."""
_CLAIMS_KEY = "claims"


def _kind(value: Any) -> str:  # noqa: PLR0911  # one line a kind
    """Return the tag of the union: strict if there is such a key, else claims, graded or judged."""
    match value:
        case StrictCheck():
            return STRICT
        case ClaimsBacked():
            return CLAIMS
        case Graded():
            return GRADED
        case dict() if value.get("strict") is not None:
            return STRICT
        case dict() if _CLAIMS_KEY in value:
            return CLAIMS
        case dict() if RUBRIC_KEYS & value.keys():
            return GRADED
    return JUDGED


STRICT_CHECKS: tuple[type[StrictCheck], ...] = (
    *escalation.FAMILY,
    *workflows.FAMILY,
    *parameters.FAMILY,
    *error_replies.FAMILY,
    *rules.FAMILY,
    *integrations.FAMILY,
    *text_search.FAMILY,
    *expected_answers.FAMILY,
    *limits.FAMILY,
    *tool_calls.FAMILY,
    *disclosure.FAMILY,
    *json_replies.FAMILY,
    *state.FAMILY,
    *functions.FAMILY,
)
"""All kinds of strict checks, in the order of the docs."""
STRICT_KINDS: Mapping[str, type[StrictCheck]] = {check.kind(): check for check in STRICT_CHECKS}
"""All kinds of strict checks by the name in their `strict` key."""


def _any_strict(_source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
    any_kind = reduce(or_, STRICT_CHECKS)
    return handler.generate_schema(Annotated[any_kind, Field(discriminator="strict")])


Strict = Annotated[StrictCheck, GetPydanticSchema(_any_strict)]
"""A strict check; pydantic reads it as the kind that its key `strict` names."""

Evaluation = Annotated[
    Annotated[Judged, Tag(JUDGED)]
    | Annotated[Graded, Tag(GRADED)]
    | Annotated[ClaimsBacked, Tag(CLAIMS)]
    | Annotated[Strict, Tag(STRICT)],
    Discriminator(_kind),
]
