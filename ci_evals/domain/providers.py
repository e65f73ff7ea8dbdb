"""The providers of models: one row each, from which choices, help, defaults, prices and masks follow.

To add one: a row here, and a module in `adapters/models` with its class.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


@dataclass(frozen=True)
class ProviderRow:
    """What is known of a provider before any of its models is built."""

    model_class: str = ""
    """`MODULE:CLASS` of its models in `adapters/models`; empty if it has none."""
    judge: str = ""
    """A middle tier to judge, if neither option nor suite names a model."""
    user: str = ""
    """A small model to play the user, likewise."""
    embeddings: str = ""
    """The model that compares meanings; empty if it has none."""
    needs_key: bool = False
    secrets: tuple[str, ...] = ()
    """Variables of the environment that hold its keys and tokens, hidden in everything that a run writes."""
    reports_cost: bool = False
    """True if it reports the cost of a call itself, so that no table of prices is needed."""
    bills_tokens: bool = True
    """False if what a call costs does not depend on its tokens."""


_NO_ROW = ProviderRow()


class Provider(StrEnum):
    """The provider of the models behind judge and simulated user."""

    row: ProviderRow

    def __new__(cls, name: str, row: ProviderRow = _NO_ROW) -> Self:
        """Make a member that equals its name and knows its row."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.row = row
        return member

    OPENAI = (
        "openai",
        ProviderRow(
            "openai_llm:OpenAILLM",
            judge="gpt-6.1-terra",
            user="gpt-6-luna",
            embeddings="text-embedding-3-small",
            needs_key=True,
            secrets=("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        ),
    )
    ANTHROPIC = (
        "anthropic",
        ProviderRow(
            "anthropic_llm:AnthropicLLM",
            judge="claude-sonnet-5-5",
            user="claude-haiku-5-5",
            needs_key=True,
            secrets=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        ),
    )
    CLAUDE_CODE = (
        "claude-code",
        ProviderRow(
            "claude_code_llm:ClaudeCodeLLM",
            judge="sonnet",
            user="haiku",
            secrets=("CLAUDE_CODE_OAUTH_TOKEN",),
            reports_cost=True,
        ),
    )
    COPILOT = (
        "copilot",
        ProviderRow(
            "copilot_llm:CopilotLLM",
            judge="gpt-5.4",
            user="gpt-5.4",
            secrets=("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
            bills_tokens=False,
        ),
    )
    OFFLINE = "offline", _NO_ROW
    """A scripted user and no judge."""


WITH_MODELS = tuple(provider for provider in Provider if provider.row.model_class)
"""The providers that can judge."""
