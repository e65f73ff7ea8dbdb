"""Settings of an agent, as the adapters get them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.domain.suite import Test


@dataclass(frozen=True)
class AgentSettings:
    """A suite's settings of its agent."""

    agent_id: str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    model: str | None = None
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    """The suite's `adapterOptions`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request to a server, over those of the options. Their values are secrets."""
    debug: bool = False
    """True if replies keep the raw answer."""

    def placeholder_values(self, test: Test) -> dict[str, JsonValue]:
        """Return the values of the placeholders that every test has."""
        return {
            "userInfo": dict(test.user_info),
            "agentId": self.agent_id,
            "model": self.model,
            "systemPrompt": test.system_prompt,
        }
