"""Settings of an agent, as the adapters get them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from ci_evals.domain.suite import Test
from ci_evals.ports import Agent


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


class AgentHost(Protocol):
    """A process for agents in Python."""

    def agent(self, name: str, settings: AgentSettings) -> Agent:
        """Return the agent of that name, which is loaded when the process starts."""
        ...


@dataclass(frozen=True)
class CodeEnvironment:
    """The place where agents run that are code of the user's."""

    environ: Mapping[str, str] = field(repr=False)
    """The variables that they get, as far as they may see them."""
    host: Callable[[], AgentHost] | None = None
    """Returns the process for agents in Python; None if they run in this one."""
