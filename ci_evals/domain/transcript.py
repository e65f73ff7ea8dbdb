"""What was said and done in one trial."""

from enum import StrEnum

from pydantic import Field, JsonValue

from ci_evals.domain.base import Amount, Record, Seconds

ESCALATION = "CONVERSATION_FORWARDING"
"""The workflow, or the prefix of its name, by which an agent hands over to a person."""


class UserSource(StrEnum):
    """Who wrote a user's message."""

    FIXED = "fixed"
    AUTO = "auto"


class Integration(Record):
    """One call of an outside system by the agent."""

    code: str
    status: int | None = Field(
        default=None, description="HTTP status; null where the call has none (RAG, MCP)."
    )
    type: str | None = Field(default=None, description="REST, RAG, MCP, as the agent names it.")
    error: str | None = None


class Reply(Record):
    """The agent's answer to one message. A null trace field means *no evidence*, never *nothing happened*."""

    agent: str = Field(description="The agent's text.")
    latency_seconds: Seconds
    workflows: tuple[str, ...] | None = Field(default=None, description="Workflows executed for this reply.")
    handed_over: bool | None = Field(
        default=None,
        description="Whether the agent hands over to a person, where it says so apart from workflows.",
    )
    workflows_derived: bool = Field(
        default=False, description="Whether the workflows were read from the trace, the reply naming none."
    )
    params: dict[str, JsonValue] | None = Field(default=None, description="Parameters extracted, by code.")
    named_params: tuple[str, ...] = Field(
        default=(), description="Parameters extracted whose value was not told."
    )
    rules: tuple[str, ...] | None = Field(default=None, description="Codes of the rules that fired.")
    integrations: tuple[Integration, ...] | None = Field(default=None, description="Integrations called.")
    error_response: bool | None = Field(
        default=None, description="Whether the agent marked this reply as an error."
    )
    error_detail: str | None = None
    input_tokens: Amount | None = Field(
        default=None, description="Tokens that the agent says it read for it."
    )
    output_tokens: Amount | None = Field(default=None, description="Tokens that it says it wrote.")
    trace: JsonValue = Field(default=None, description="The trace as the agent sent it.")
    raw: JsonValue = Field(
        default=None, description="The whole reply as the agent sent it; only with --debug."
    )

    @property
    def escalated(self) -> bool:
        """Whether this reply hands over to a person."""
        named = any(name.startswith(ESCALATION) for name in self.workflows or ())
        return named or bool(self.handed_over)


class Exchange(Reply):
    """One user message and the agent's reply, as it happened."""

    index: int = Field(description="Counted from 1.")
    user: str
    user_source: UserSource


class EndState(StrEnum):
    """Why a trial ended."""

    COMPLETED = "completed"
    """All turns were played."""
    STOPPED = "stopped"
    """The simulated user said that it is done."""
    ESCALATED = "escalated"
    """The agent handed over to a person."""
    AGENT_ERROR = "agent_error"
    """The agent answered with an error."""
    FAILED = "failed"
    """Timeout, HTTP failure, unreadable reply, or no simulated user."""
    INTERRUPTED = "interrupted"
    """The run was stopped while the trial was under way."""


class Transcript(Record):
    """The exchanges of one trial and why it stopped."""

    exchanges: tuple[Exchange, ...] = ()
    status: EndState
    error: str | None = None
    closing_remark: str | None = Field(
        default=None, description="What the simulated user wrote beside the stop marker; never sent."
    )
