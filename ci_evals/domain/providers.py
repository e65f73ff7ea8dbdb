"""The providers of models: one row each, from which choices, help, defaults, prices and masks follow.

Extensions have rows too: `extension_registry.providers` returns all.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """What is known of a provider before any of its models is built."""

    name: str
    models: str = ""
    """`MODULE:CLASS` of its models; empty if it has none."""
    judge: str = ""
    """A middle tier to judge, if neither option nor suite names a model."""
    user: str = ""
    """A small model to play the user, likewise."""
    embeddings: str = ""
    """The model that compares meanings; empty if it has none."""
    needs_key: bool = False
    """True if its models are called over a vendor's SDK, with a key."""
    secrets: tuple[str, ...] = ()
    """Variables of the environment that hold its keys and tokens, hidden in everything that a run writes."""
    job_tokens: tuple[str, ...] = ()
    """Those of them that hold, as a rule, the token which every job has."""
    reports_cost: bool = False
    """True if it reports the cost of a call itself, so that no table of prices is needed."""
    bills_tokens: bool = True
    """False if what a call costs does not depend on its tokens."""


OPENAI = Provider(
    "openai",
    "ci_evals.adapters.models.openai_llm:OpenAILLM",
    judge="gpt-6.1-terra",
    user="gpt-6-luna",
    embeddings="text-embedding-3-small",
    needs_key=True,
    secrets=("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
)
"""The default."""

ANTHROPIC = Provider(
    "anthropic",
    "ci_evals.adapters.models.anthropic_llm:AnthropicLLM",
    judge="claude-sonnet-5-5",
    user="claude-haiku-5-5",
    needs_key=True,
    secrets=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
)

OFFLINE = Provider("offline")
"""A scripted user and no judge."""

SECRETS = frozenset({
    *OPENAI.secrets,
    *ANTHROPIC.secrets,
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COPILOT_GITHUB_TOKEN",
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_PROVIDER_BEARER_TOKEN",
})  # fmt: skip
"""Secrets of all providers of this package. They stay hidden even if an extension that has a row of them is
missing or does not load."""
