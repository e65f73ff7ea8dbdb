"""Checks of tool calls, of the state of the world, and of replies that are JSON; and those that are code."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.checks.criterion import Criterion, JsonPathText, TurnChoice
from ci_evals.domain.checks.matcher import Conditions, MatcherField
from ci_evals.support import json_schema

Args = dict[NonBlank, MatcherField]


class CallCount(Model):
    """How many calls are wanted."""

    min: int = Field(0, ge=0, description="Minimum number of calls.")
    max: int | None = Field(None, ge=0, description="Maximum number of calls.")

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.max is None and not self.min:
            raise PydanticCustomError("no_count", "needs a 'min' of at least 1, a 'max', or both")
        if self.max is not None and self.min > self.max:
            raise PydanticCustomError("no_count", "no number of calls can meet it: 'min' is above 'max'")
        return self

    def __str__(self) -> str:
        if self.max is None:
            return f"at least {self.min}"
        if self.min == self.max:
            return f"exactly {self.min}" if self.min else "none"
        return f"{self.min} to {self.max}" if self.min else f"at most {self.max}"


def _as_count(value: Any) -> Any:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


_ONCE_OR_MORE = CallCount(min=1)


class ToolCalled(Criterion):
    """Passes if the tool was called with such arguments, as often as `times` says."""

    strict: Literal["tool_called"]
    tool_name: NonBlank = Field(description="The tool's name.")
    args: Args | None = Field(
        None, description="Arguments by name: a plain value to be equal to, or an object with conditions."
    )
    args_mode: Literal["subset", "exact"] = Field(
        "subset", description="`subset`: other arguments are allowed. `exact`: they are not."
    )
    times: Annotated[
        CallCount, BeforeValidator(_as_count, json_schema_input_type=Annotated[int, Field(ge=0)] | CallCount)
    ] = Field(
        _ONCE_OR_MORE, description="How many such calls: a number, or `{min, max}`; by default `{min: 1}`."
    )
    turn: TurnChoice = Field("any", description="Calls in which turn: its number, `last`, or `any`.")
    status: Literal["ok", "error"] | None = Field(
        None, description="Count only calls that succeeded (`ok`), or failed (`error`)."
    )

    @property
    def forbids(self) -> bool:
        """True if no such call may be made."""
        return self.times.max == 0


class WantedCall(Model):
    """A call in a sequence."""

    name: NonBlank = Field(description="The tool's name.")
    args: Args | None = Field(None, description="Arguments by name; others are allowed.")


def _as_call(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


SequenceMode = Literal["in_order", "strict", "unordered", "subset", "superset"]


class ToolSequence(Criterion):
    """Passes if the calls of the conversation match a list of calls."""

    strict: Literal["tool_sequence"]
    tools: Annotated[
        list[Annotated[WantedCall, BeforeValidator(_as_call, json_schema_input_type=NonBlank | WantedCall)]],
        Field(min_length=1),
    ] = Field(description="Names of tools, or objects with `name` and `args`.")
    mode: SequenceMode = Field(
        "in_order",
        description="`in_order`: these calls in this order, with others between. `strict`: exactly these "
        "calls in this order. `unordered`: exactly these in any order. `subset`: only these calls. "
        "`superset`: at least these, in any order.",
    )

    @property
    def limits(self) -> bool:
        """True if further calls can make it fail."""
        return self.mode not in {"in_order", "superset"}


class MaxToolCalls(Criterion):
    """Passes if the agent made at most `calls` calls of tools."""

    strict: Literal["max_tool_calls"]
    calls: int = Field(ge=0, description="The maximum number of calls in the conversation.")
    tool_name: NonBlank | None = Field(None, description="Count only the calls of this tool.")


class JsonSchema(Criterion):
    """Passes if the reply is JSON and valid under a JSON Schema."""

    strict: Literal["json_schema"]
    schema_: dict[str, JsonValue] | NonBlank = Field(
        alias="schema", description="The schema, or the path of its file next to the suite."
    )
    turn: TurnChoice = Field("last", description="Which reply of the agent: its number, `last`, or `any`.")

    @field_validator("schema_")
    @classmethod
    def _is_schema(cls, schema: dict[str, JsonValue] | str) -> dict[str, JsonValue] | str:
        if isinstance(schema, dict) and (fault := json_schema.fault(schema)):
            raise PydanticCustomError("no_schema", "is not a JSON Schema: {fault}", {"fault": fault})
        return schema


class StateCheck(Conditions, Criterion):
    """Passes if what a probe returned after the conversation meets the conditions."""

    strict: Literal["state"]
    probe: NonBlank = Field(description="The probe's name, as in `probes`.")
    path: JsonPathText | None = Field(
        None, description="A JSONPath into what the probe returned; without one, all of it."
    )


def _is_function(name: str) -> str:
    module, colon, attribute = name.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))):
        raise PydanticCustomError("no_function", "must be 'module:attribute', such as 'checks:refunded'")
    return name


class PythonCheck(Criterion):
    """Passes if a Python function says so."""

    strict: Literal["python"]
    function: Annotated[NonBlank, AfterValidator(_is_function)] = Field(
        description="`module:attribute`. It gets the conversation, the trace and what the probes returned, "
        "and returns true or false, a share from 0 to 1, or a pair of one of these and a reason."
    )
