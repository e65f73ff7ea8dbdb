"""The form of `adapterOptions` of `aui`."""

from pydantic import Field

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.choices import AgentIdLocation


class AuiOptions(Model):
    """Options of `aui`: the details in which servers of AUI's task API differ."""

    key_header: str = Field(
        "x-network-api-key",
        pattern=r"^[A-Za-z0-9_!#$%&'*+.^`|~-]+$",
        description="The header with the agent's key.",
    )
    agent_id_in: AgentIdLocation = Field(
        AgentIdLocation.TOP,
        description="Field that names the agent when a task is created: `top` is `agent_id`, `nested` is "
        "`agent.agent_id`; or `both`, `none`.",
    )
    escalation_tools: tuple[NonBlank, ...] = Field(
        (), description="Tools that hand over to a person, where tool calls come from spans (`trace: otlp`)."
    )
    task_origin_type: NonBlank = Field("web-widget", description="The `task_origin_type` of tasks.")
