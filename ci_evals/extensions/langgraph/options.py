"""The form of `adapterOptions` of `langgraph`."""

from typing import Any, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from ci_evals.agents.options import OF_A_TEST, Headers, ServerOptions, check_names, headers_field
from ci_evals.domain.base import NonBlank
from ci_evals.support import placeholders


class LangGraphOptions(ServerOptions):
    """Options of `langgraph`, for assistants of a LangGraph Server."""

    input: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="More of the graph's input, in addition to the message; `{{userInfo.plan}}`.",
    )
    context: dict[str, JsonValue] = Field(
        default_factory=dict, description="The run's `context`, such as the user's id; `{{userInfo.id}}`."
    )
    config: dict[str, JsonValue] = Field(default_factory=dict, description="The run's `config`.")
    messages: NonBlank = Field("messages", description="The key of the graph's state that holds messages.")
    resume: JsonValue = Field(
        "{{message}}", description="What answers an interrupt of the graph: the user's message."
    )
    headers: Headers = headers_field("`x-api-key`")

    @field_validator("input", "context", "config")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return check_names(value, ("message", "session", *OF_A_TEST))

    @field_validator("resume")
    @classmethod
    def _answers(cls, resume: JsonValue) -> JsonValue:
        check_names(resume, ("message", "session", *OF_A_TEST))
        if "message" not in placeholders.names(resume):
            raise ValueError("says nothing: it does not hold {{message}}")
        return resume

    @model_validator(mode="after")
    def _leaves_the_messages(self) -> Self:
        if self.messages in self.input:
            raise ValueError(f"input may not hold {self.messages!r}: ci-evals writes the conversation")
        return self
