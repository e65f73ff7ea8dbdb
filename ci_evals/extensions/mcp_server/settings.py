"""The options of `mcp`."""

from dataclasses import dataclass, field
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import (
    Adapter,
    AdapterOptions,
    AgentId,
    AgentKey,
    BaseUrl,
    SuiteSettings,
    TrustSuites,
)
from ci_evals.domain.options import Group, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import providers

AGENT_OPTIONS = ("adapter", "adapter_options", "agent_id", "agent_key", "base_url", "trust_suites")
"""Options that every command with suites has."""


@dataclass(frozen=True, kw_only=True)
class McpSettings:
    """Options of `mcp`. Other options of `run` and `plan` are set by their variables."""

    max_cost: Annotated[
        float,
        OptionSpec(
            "Maximum cost of all runs of this server together, in US dollars.\n\n"
            "A run whose estimate is above what is left is refused before anything is played.",
            group=Group.LIMITS,
            metavar="USD",
            minimum=0,
        ),
    ] = 1.0
    max_trials: Annotated[
        int,
        OptionSpec(
            "Maximum number of trials of one run.\n\nA run that may play more is refused.",
            group=Group.LIMITS,
            minimum=1,
            maximum=100_000,
        ),
    ] = 100
    adapter: Adapter = None
    adapter_options: AdapterOptions = None
    agent_id: AgentId = None
    agent_key: AgentKey = field(default=None, repr=False)
    base_url: BaseUrl = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    provider: Annotated[
        str,
        OptionSpec(
            "Model provider of judge and simulated user.", group=Group.MODELS, metavar="NAME", words=providers
        ),
    ] = OPENAI.name

    def of_suites(self, suites: list[str]) -> SuiteSettings:
        """Return the options of suites and of their agent."""
        return SuiteSettings(suites=suites, **{name: getattr(self, name) for name in AGENT_OPTIONS})
