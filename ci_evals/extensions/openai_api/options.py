"""The form of `adapterOptions` of `openai`."""

from typing import Literal

from pydantic import Field, JsonValue, field_validator

from ci_evals.agents.options import ServerOptions

_NOT_IN_REQUEST = {
    "messages": "ci-evals writes the conversation",
    "input": "ci-evals writes the conversation",
    "previous_response_id": "ci-evals writes the conversation",
    "conversation": "each test begins a new one",
    "background": "an answer is waited for",
    "model": "name it by the suite's 'model'",
    "stream": "answers are read whole",
}


class ChatOptions(ServerOptions):
    """Options of `openai`, for endpoints that are compatible with OpenAI's chat completions or responses."""

    api: Literal["chat", "responses"] = Field(
        "chat", description="What the endpoint speaks: chat completions, or the Responses API."
    )
    request: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="More of the request's body: `temperature`, `tools`, …; no `messages`, `input`, `model`, "
        "`stream`",
    )
    query: dict[str, str] = Field(
        default_factory=dict, description="Parameters of the address, such as `api-version`."
    )
    tool_results: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="What tools return that the endpoint leaves to its caller to run, by the tool's name.",
    )
    user_info: Literal["system", "metadata", "none"] = Field(
        "system",
        description="How `userInfo` is sent: in the system message or `instructions`, as `metadata`, or not.",
    )

    @field_validator("request")
    @classmethod
    def _leaves_ours(cls, request: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for key, hint in _NOT_IN_REQUEST.items():
            if key in request:
                raise ValueError(f"may not hold {key!r}: {hint}")
        return request
