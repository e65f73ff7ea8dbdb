"""The form of `adapterOptions` of `rasa`."""

from typing import Any

from pydantic import Field, JsonValue, field_validator

from ci_evals.agents.options import OF_A_TEST, Headers, ServerOptions, check_names, headers_field
from ci_evals.domain.base import NonBlank


class RasaOptions(ServerOptions):
    """Options of `rasa`, for assistants behind Rasa's REST channel."""

    channel: str = Field("rest", pattern=r"^[\w-]+$", description="The channel's name in its address.")
    tracker: bool = Field(
        default=True, description="Whether to look up what the assistant did; needs `rasa run --enable-api`."
    )
    slots: dict[str, JsonValue] = Field(
        default_factory=dict, description="Slots to set before the first message; `{{userInfo.plan}}`."
    )
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="The `metadata` of every message; `{{userInfo.plan}}`."
    )
    headers: Headers = headers_field("the parameter `token`")
    escalation_tools: tuple[NonBlank, ...] = Field(
        (),
        description="Actions that hand over to a person, in addition to those that pause the conversation.",
    )

    @field_validator("slots", "metadata")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return check_names(value, OF_A_TEST)
