"""Conditions on one value: an argument of a tool call, a parameter, a piece of state."""

from difflib import get_close_matches
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ci_evals.domain.answers import Mode, comparable
from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.criterion import Pattern


def _as_list(value: Any) -> Any:
    """Return one text as a list of one."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(value)
    raise PydanticCustomError("no_text", "must be a string or a list of strings; put a number in quotes")


_Texts = Annotated[tuple[NonBlank, ...], Field(min_length=1)]

_MODES_OF = {
    "threshold": ("fuzzy", "semantic"),
    "tolerance": ("numeric",),
    "rel_tolerance": ("numeric",),
}
_THRESHOLDS = {"fuzzy": 0.9, "semantic": 0.8}


class ExpectedAnswer(Model):
    """An expected answer, and how a text is compared with it."""

    match: Mode = Field(
        "gaia",
        description="How the two are compared. `gaia`: as the GAIA benchmark does, numbers as numbers, lists "
        "item by item, texts without case, white space and punctuation. `bidirectional`: one contains the "
        "other, without case and punctuation. `exact`, `contains`: without case and white space. `fuzzy`: "
        "alike by `threshold`. `numeric`: the last number in the text, within `tolerance` or `relTolerance`. "
        "`semantic`: alike in meaning by `threshold`, by an embedding model.",
    )
    expected: Annotated[_Texts, BeforeValidator(_as_list, json_schema_input_type=NonBlank | _Texts)] = Field(
        description="The right answer, or a list of answers of which each is right."
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Minimum similarity, 0 to 1: of `fuzzy` (default 0.9) and `semantic` (default 0.8).",
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
                why = "is not a number" if mode == "numeric" else f"holds nothing that {mode} compares"
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
        """The minimum similarity, 0 to 1, where the mode knows one."""
        return _THRESHOLDS.get(self.match, 1) if self.threshold is None else self.threshold


def _as_answer(value: Any) -> Any:
    return {"expected": value} if isinstance(value, str) else value


def _not_semantic(answer: ExpectedAnswer) -> ExpectedAnswer:
    if answer.match == "semantic":
        raise PydanticCustomError("semantic", "cannot be 'semantic' here: no model is asked about a value")
    return answer


class Conditions(Model):
    """The conditions that a value must meet, at least one; all of them must be met."""

    equals: JsonValue = Field(
        None, description="Equality: numbers by value (`42` is `42.0`), objects and lists deep."
    )
    contains: JsonValue = Field(
        None, description="A part of a string, an item of a list, or keys with their values of an object."
    )
    regex: Pattern | None = Field(None, description="A regular expression found in the text.")
    min: float | None = Field(None, description="The smallest number.")
    max: float | None = Field(None, description="The largest number.")
    one_of: Annotated[list[JsonValue], Field(min_length=1)] | None = Field(
        None, description="Values of which one is equal."
    )
    exists: bool | None = Field(
        None, description="`true`: there is a value, and not null. `false`: there is none."
    )
    answer: (
        Annotated[
            ExpectedAnswer,
            BeforeValidator(_as_answer, json_schema_input_type=NonBlank | ExpectedAnswer),
        ]
        | None
    ) = Field(None, description="An answer compared as `answer_matches` does, by any `match` but `semantic`.")

    @field_validator("answer")
    @classmethod
    def _no_model(cls, answer: ExpectedAnswer | None) -> ExpectedAnswer | None:
        return answer and _not_semantic(answer)

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if not self.conditions:
            wanted = ", ".join(KEYS)
            raise PydanticCustomError("no_condition", "needs a condition: {keys}", {"keys": wanted})
        for name in self.conditions:
            if name not in {"equals", "contains"} and getattr(self, name) is None:
                key = KEYS[[*Conditions.model_fields].index(name)]
                raise PydanticCustomError("null", "'{key}' is null, which is no condition", {"key": key})
        if self.min is not None and self.max is not None and self.min > self.max:
            raise PydanticCustomError("no_number", "is met by no number: 'min' is above 'max'")
        if self.exists is False and len(self.conditions) > 1:
            raise PydanticCustomError(
                "contradiction", "is met by no value: 'exists' is false, and there are other conditions"
            )
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, written: SerializerFunctionWrapHandler) -> Any:
        """Leave out conditions that were not given: null is a value to be equal to."""
        fields: dict[str, object] = written(self)
        for name, key in zip(Conditions.model_fields, KEYS, strict=True):
            if name not in self.model_fields_set:
                fields.pop(name, None)
                fields.pop(key, None)
        return fields

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of the fields that were given, in the order of their declaration."""
        return tuple(name for name in Conditions.model_fields if name in self.model_fields_set)


KEYS = tuple(info.alias or name for name, info in Conditions.model_fields.items())


class Matcher(Conditions):
    """Conditions as the value of a key: an object with conditions, or a plain value to be equal to."""

    @model_serializer(mode="wrap")
    def _as_written(self, written: SerializerFunctionWrapHandler) -> Any:
        """Write what `_as_matcher` reads as this matcher, whatever names the rest is written by."""
        del written
        if self.conditions == ("equals",) and _is_plain(self.equals):
            return self.equals
        keys = dict(zip(Conditions.model_fields, KEYS, strict=True))
        return {keys[name]: getattr(self, name) for name in self.conditions}


def _as_matcher(value: Any) -> Any:
    """Return a plain value as the matcher of its equality.

    An object without any condition is a plain value, unless a key looks like a misspelled condition: a
    comparison that nobody meant would be false for ever.
    """
    if isinstance(value, Matcher):
        return value
    if not isinstance(value, dict) or not value:
        return {"equals": value}
    if value.keys() & set(KEYS):
        return value
    for key in value:
        if folded := _condition_like(str(key)):
            raise PydanticCustomError(
                "misspelled",
                "has the key {key}, which looks like {condition}; "
                "an object to be equal to goes under 'equals'",
                {"key": repr(key), "condition": repr(folded)},
            )
    return {"equals": value}


def _is_plain(value: JsonValue) -> bool:
    """Return whether `_as_matcher` reads the value as the matcher of its equality."""
    if not isinstance(value, dict):
        return True
    return not any(key in KEYS or _condition_like(key) for key in value)


def _condition_like(key: str) -> str | None:
    """Return the condition that a key was probably meant to be."""
    folded = key.replace("_", "").replace("-", "").lower()
    slip = next(iter(get_close_matches(folded, _FOLDED, n=1, cutoff=_SLIP)), None)
    return _FOLDED[slip] if slip else None


_SLIP = 0.85
"""How alike a slip and the right word are, by difflib; of words with three letters none is that alike."""
_FOLDED = {key.lower(): key for key in KEYS} | {
    "equal": "equals", "eq": "equals", "is": "equals",
    "contain": "contains", "includes": "contains",
    "matches": "regex", "pattern": "regex", "regexp": "regex",
    "minimum": "min", "gte": "min", "maximum": "max", "lte": "max",
    "in": "oneOf", "anyof": "oneOf", "exist": "exists", "present": "exists",
}  # fmt: skip
"""Names of conditions elsewhere, or by a slip."""

MatcherField = Annotated[Matcher, BeforeValidator(_as_matcher, json_schema_input_type=Matcher | JsonValue)]
