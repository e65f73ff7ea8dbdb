"""The form of `adapterOptions` of `a2a`."""

from typing import Any

from pydantic import Field, JsonValue, field_validator

from ci_evals.agents.options import OF_A_TEST, ServerOptions, check_names
from ci_evals.domain.criterion import JsonPathText


class A2aOptions(ServerOptions):
    """Options of `a2a`, for agents behind the A2A protocol."""

    card: str = Field(
        "/.well-known/agent-card.json", description="The path of the agent card, after `baseUrl`."
    )
    stream: bool | None = Field(None, description="Whether answers are streamed; default: as the card says.")
    tool_calls: JsonPathText | None = Field(
        None,
        description="JSONPath of the tool calls in an answer, `{message}` or `{task}`: the protocol has no "
        "field for them. Often they are in `metadata`.",
    )
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="The `metadata` of every message; `{{userInfo.plan}}`."
    )

    @field_validator("card")
    @classmethod
    def _is_a_path(cls, card: str) -> str:
        if not card.startswith("/") or "?" in card or "#" in card:
            raise ValueError("must be a path, which begins with '/'")
        return card

    @field_validator("metadata")
    @classmethod
    def _knows_its_names(cls, value: Any) -> Any:
        return check_names(value, ("message", *OF_A_TEST))
