"""Evaluations: one criterion each, judged by a model or strict (checked by a program).

A strict kind is told by its `strict` key; without it a criterion is judged, and graded where it has a rubric.
The kinds, their fields and their meaning are those of `@aui.io/evals`, plus those for agents of every kind.
"""

from typing import Annotated, Any, Literal, Self, TypeGuard

import regex
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ci_evals.domain.answers import Mode, comparable
from ci_evals.domain.base import Model, NonBlank, Share
from ci_evals.domain.rubric import (
    Dimension,
    Dimensions,
    Level,
    Rubric,
    complete_dimensions,
    distinct_levels,
    resolved,
)


def _compiles(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles), Field(min_length=1)]
TurnNumber = Annotated[int, Field(ge=1)]

PASS_AT = 0.7
"""Good in everything passes, and so does a little less in some; half way in everything does not."""


class Criterion(Model):
    """The fields that all evaluations have."""

    criterion: NonBlank = Field(description="What must be true of the conversation, in plain language.")
    weight: float = Field(
        1.0, ge=0, le=1_000_000, description="Share of the test's score; higher counts more."
    )
    category: NonBlank | None = Field(None, description="A name to group results by, such as `tone`.")
    aui_logic: tuple[NonBlank, ...] = Field(
        (), alias="aui_logic", description="Ids of the AUI logic rules behind this criterion."
    )


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
        description="The levels, in any order: those of the criterion, or of every dimension that has none "
        "of its own.",
    )
    dimensions: Dimensions | None = Field(
        None,
        min_length=1,
        description="What is looked at, each by itself: the name of a built-in dimension, or one of your own "
        "as an object. Without them the criterion is looked at as a whole.",
    )
    pass_at: Share = Field(
        PASS_AT,
        description="The least score, 0 to 1, with which the criterion is passed. The test's score counts "
        "the grade itself.",
    )

    _rubric = field_validator("rubric")(distinct_levels)
    _dimensions = field_validator("dimensions")(complete_dimensions)

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        if self.rubric is None and self.dimensions is None:
            raise PydanticCustomError("no_levels", "wants a 'rubric', 'dimensions' or both")
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


class Escalated(Criterion):
    """Passes if the agent forwarded the conversation to a person."""

    strict: Literal["escalated"]


class NotEscalated(Criterion):
    """Passes if the agent did not forward the conversation to a person."""

    strict: Literal["not_escalated"]


class ToolUsed(Criterion):
    """Passes if the workflow was executed."""

    strict: Literal["tool_used"]
    tool_name: NonBlank = Field(description="A workflow's name, as in `executed_workflows`.")


class ToolNotUsed(Criterion):
    """Passes if the workflow was not executed (before turn `beforeTurn`, where that is given)."""

    strict: Literal["tool_not_used"]
    tool_name: NonBlank = Field(description="A workflow's name, as in `executed_workflows`.")
    before_turn: TurnNumber | None = Field(
        None, description="Counted from 1. Used at this turn or later, the workflow does no harm."
    )


class ParamEquals(Criterion):
    """Passes if the parameter's last non-empty value equals `paramValue`."""

    strict: Literal["param_equals"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")
    param_value: JsonValue = Field(description="The value wanted. Numbers and booleans also match as text.")


class ParamExists(Criterion):
    """Passes if the parameter was extracted with a value that is not empty."""

    strict: Literal["param_exists"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")


class ParamNotExists(Criterion):
    """Passes if the parameter was not extracted, or only empty."""

    strict: Literal["param_not_exists"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")


class EscalatedDueToError(Criterion):
    """Passes if the agent answered with an error response."""

    strict: Literal["escalated_due_to_error"]


class NotEscalatedDueToError(Criterion):
    """Passes if no reply of the agent was an error response."""

    strict: Literal["not_escalated_due_to_error"]


class RuleTriggered(Criterion):
    """Passes if the rule fired in any turn."""

    strict: Literal["rule_triggered"]
    rule_code: NonBlank = Field(description="A rule's code, as in `decisions[].rule.code`.")


class RuleNotTriggered(Criterion):
    """Passes if the rule fired in no turn."""

    strict: Literal["rule_not_triggered"]
    rule_code: NonBlank = Field(description="A rule's code, as in `decisions[].rule.code`.")


class IntegrationCalled(Criterion):
    """Passes if the integration was called and answered with HTTP status 200."""

    strict: Literal["integration_called"]
    integration_code: NonBlank = Field(
        description="An integration's code, as in `decisions[].integration.code`."
    )


class _TextCheck(Criterion):
    turn: TurnNumber | Literal["last", "any"] = Field(
        "last", description="Which reply of the agent: its number, `last`, or `any`."
    )


class Contains(_TextCheck):
    """Passes if the agent's text contains `text` (case counts)."""

    strict: Literal["contains"]
    text: str = Field(min_length=1, description="The text to look for.")


class NotContains(_TextCheck):
    """Passes if the agent's text does not contain `text`; with `any`, if no reply does."""

    strict: Literal["not_contains"]
    text: str = Field(min_length=1, description="The text that must not appear.")


class Regex(_TextCheck):
    """Passes if the regular expression is found in the agent's text."""

    strict: Literal["regex"]
    pattern: Pattern = Field(description="A regular expression in Python's syntax.")


class NotRegex(_TextCheck):
    """Passes if the regular expression is not found; with `any`, in no reply."""

    strict: Literal["not_regex"]
    pattern: Pattern = Field(description="A regular expression in Python's syntax.")


def _as_list(value: Any) -> Any:
    """One text is a list of one."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(value)
    raise PydanticCustomError("no_text", "wants a text or a list of texts; put a number in quotes")


_Texts = Annotated[tuple[NonBlank, ...], Field(min_length=1)]

_MODES_OF = {
    "threshold": ("fuzzy", "semantic"),
    "tolerance": ("numeric",),
    "rel_tolerance": ("numeric",),
}
_THRESHOLDS = {"fuzzy": 0.9, "semantic": 0.8}


class AnswerMatches(_TextCheck):
    """Passes if the agent's text answers what was expected, compared as `match` says."""

    strict: Literal["answer_matches"]
    match: Mode = Field(
        "gaia",
        description="How the two are compared. `gaia`: as the GAIA benchmark does, numbers as numbers, lists "
        "item by item, texts without case, white space and punctuation. `bidirectional`: one contains the "
        "other, without case and punctuation. `exact`, `contains`: without case and white space. `fuzzy`: "
        "alike by `threshold`. `numeric`: the last number in the text, within `tolerance` or `relTolerance`. "
        "`semantic`: alike in meaning by `threshold`, as an embedding model has it.",
    )
    expected: Annotated[_Texts, BeforeValidator(_as_list, json_schema_input_type=NonBlank | _Texts)] = Field(
        description="The right answer, or a list of answers of which each is right."
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Least similarity, 0 to 1: of `fuzzy` (default 0.9) and `semantic` (default 0.8).",
    )
    tolerance: float | None = Field(
        None, ge=0, description="`numeric`: how far the number may be from the expected one."
    )
    rel_tolerance: float | None = Field(
        None, ge=0, description="`numeric`: the same, as a share of the expected one; 0.01 is 1 %."
    )

    @field_validator("expected")
    @classmethod
    def _can_be_compared(cls, expected: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        mode = info.data.get("match")
        for text in expected:
            if mode and not comparable(text, mode):
                why = "is no number" if mode == "numeric" else f"holds nothing that {mode} compares"
                raise PydanticCustomError("incomparable", "{text} {why}", {"text": repr(text), "why": why})
        return expected

    @field_validator("threshold", "tolerance", "rel_tolerance")
    @classmethod
    def _belongs_to_the_mode(cls, value: float | None, info: ValidationInfo) -> float | None:
        mode, modes = info.data.get("match"), _MODES_OF[str(info.field_name)]
        if value is not None and mode and mode not in modes:
            of = " and ".join(modes)
            raise PydanticCustomError(
                "foreign", "belongs to match {of}, not to {mode}", {"of": of, "mode": mode}
            )
        return value

    @property
    def least(self) -> float:
        """The similarity that is wanted, 0 to 1, where the mode knows one."""
        return _THRESHOLDS.get(self.match, 1) if self.threshold is None else self.threshold


class MaxAgentTurns(Criterion):
    """Passes if the agent replied at most `turns` times."""

    strict: Literal["max_agent_turns"]
    turns: TurnNumber = Field(description="The most replies that the conversation may take.")


class MaxLatency(Criterion):
    """Passes if the slowest reply took at most `seconds`."""

    strict: Literal["max_latency"]
    seconds: float = Field(gt=0, description="The longest that a reply may take, in seconds.")


def compares_meanings(evaluation: Criterion) -> TypeGuard[AnswerMatches]:
    """Return whether an embedding model is asked to decide it."""
    return isinstance(evaluation, AnswerMatches) and evaluation.match == "semantic"


JUDGED = "judged"
GRADED = "graded"
RUBRIC_KEYS = frozenset({"rubric", "dimensions"})
"""Either key makes a judged criterion a graded one."""


def _kind(value: Any) -> str | None:
    """The tag of the union: a strict kind's name, or where there is none `graded` or `judged`."""
    fields = value if isinstance(value, dict) else {}
    kind = fields.get("strict") if fields else getattr(value, "strict", None)
    if kind is None:
        return GRADED if isinstance(value, Graded) or RUBRIC_KEYS & fields.keys() else JUDGED
    return kind if isinstance(kind, str) else None


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
)

Evaluation = Annotated[
    Annotated[Judged, Tag(JUDGED)]
    | Annotated[Graded, Tag(GRADED)]
    | Annotated[Escalated, Tag("escalated")]
    | Annotated[NotEscalated, Tag("not_escalated")]
    | Annotated[ToolUsed, Tag("tool_used")]
    | Annotated[ToolNotUsed, Tag("tool_not_used")]
    | Annotated[ParamEquals, Tag("param_equals")]
    | Annotated[ParamExists, Tag("param_exists")]
    | Annotated[ParamNotExists, Tag("param_not_exists")]
    | Annotated[EscalatedDueToError, Tag("escalated_due_to_error")]
    | Annotated[NotEscalatedDueToError, Tag("not_escalated_due_to_error")]
    | Annotated[RuleTriggered, Tag("rule_triggered")]
    | Annotated[RuleNotTriggered, Tag("rule_not_triggered")]
    | Annotated[IntegrationCalled, Tag("integration_called")]
    | Annotated[Contains, Tag("contains")]
    | Annotated[NotContains, Tag("not_contains")]
    | Annotated[Regex, Tag("regex")]
    | Annotated[NotRegex, Tag("not_regex")]
    | Annotated[AnswerMatches, Tag("answer_matches")]
    | Annotated[MaxAgentTurns, Tag("max_agent_turns")]
    | Annotated[MaxLatency, Tag("max_latency")],
    Discriminator(_kind),
]
