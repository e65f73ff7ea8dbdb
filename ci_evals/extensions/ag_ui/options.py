"""The form of `adapterOptions` of `ag-ui`."""

from typing import Literal

from pydantic import Field, JsonValue

from ci_evals.agents.options import ServerOptions


class AgUiOptions(ServerOptions):
    """Options of `ag-ui`, for agents behind the Agent User Interaction Protocol."""

    user_info: Literal["context", "state", "forwardedProps", "none"] = Field(
        "context", description="The part of a run's input that holds `userInfo`."
    )
    state: dict[str, JsonValue] = Field(default_factory=dict, description="The state to begin with.")
    forwarded_props: dict[str, JsonValue] = Field(
        default_factory=dict, description="The `forwardedProps` of every run."
    )
    tools: tuple[dict[str, JsonValue], ...] = Field(
        (), description="Tools of the client: objects with `name`, `description` and `parameters`."
    )
    tool_results: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="What tools return that the agent leaves to its client to run, by the tool's name.",
    )
    resume: JsonValue = Field(
        None, description="The payload that answers every interrupt, such as `{approved: true}`."
    )
