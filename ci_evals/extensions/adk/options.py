"""The form of `adapterOptions` of `adk`."""

from typing import Literal

from pydantic import Field, JsonValue

from ci_evals.agents.options import ServerOptions
from ci_evals.domain.base import NonBlank


class AdkOptions(ServerOptions):
    """Options of `adk`, for agents behind a server of Google's Agent Development Kit."""

    state: dict[str, JsonValue] = Field(
        default_factory=dict, description="More of the session's first state, in addition to `userInfo`."
    )
    user_id: NonBlank | None = Field(
        None, description="The user of all sessions; by default each conversation has a new one."
    )
    stream: Literal["events", "tokens", "none"] = Field(
        "events",
        description="How a run is asked for: by `/run_sse`, there also with `streaming: true`, or by `/run`.",
    )
    confirmation: JsonValue = Field(
        None, description="What answers every request to confirm a tool call, such as `{confirmed: true}`."
    )
