"""The models, keys and SDKs of providers."""

from collections.abc import Mapping
from typing import NamedTuple

from ci_evals.adapters.models import openai_llm
from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.domain.choices import Provider
from ci_evals.domain.prices import LOCAL


class DefaultModels(NamedTuple):
    """A middle tier to judge, and a small model to play the user, if neither option nor suite names one."""

    judge: str
    user: str


DEFAULT_MODELS: Mapping[str, DefaultModels] = {
    Provider.OPENAI: DefaultModels(judge="gpt-6.1-terra", user="gpt-6-luna"),
    Provider.ANTHROPIC: DefaultModels(judge="claude-sonnet-5-5", user="claude-haiku-5-5"),
    Provider.CLAUDE_CODE: DefaultModels(judge="sonnet", user="haiku"),
    Provider.COPILOT: DefaultModels(judge="gpt-5.4", user="gpt-5.4"),
}
DEFAULT_EMBEDDING_MODELS: Mapping[str, str] = {Provider.OPENAI: "text-embedding-3-small"}

WITHOUT_KEY = frozenset({Provider.CLAUDE_CODE, Provider.COPILOT, Provider.OFFLINE})
REPORTS_COST = frozenset({Provider.CLAUDE_CODE})
"""Providers that report the cost of a call themselves, so that no table of prices is needed."""


class ProviderKey(NamedTuple):
    """A key, or a bearer token instead of it, or neither."""

    key: str | None = None
    token: str | None = None


def llm_key_of(provider: str, option: str | None, environ: Mapping[str, str]) -> ProviderKey:
    """The key of the option, else of `LLM_API_KEY`, else of the variables that the provider's tools read."""
    if provider in WITHOUT_KEY:
        return ProviderKey()
    vendor = sdk_of(provider, environ).vendor
    if key := option or environ.get("LLM_API_KEY") or environ.get(vendor.key):
        return ProviderKey(key=key)
    return ProviderKey(token=(environ.get(vendor.bearer) or None) if vendor.bearer else None)


def no_key(provider: str, environ: Mapping[str, str]) -> str:
    """The message for a plan that needs an LLM and has no key for it."""
    vendor = sdk_of(provider, environ).vendor
    own = f"{vendor.key} or {vendor.bearer}" if vendor.bearer else vendor.key
    return (
        f"no key for the LLM ({provider}) that plays the user and judges: set LLM_API_KEY or {own} "
        "(in a workflow the input llm-key), or run without an LLM: --provider=offline"
    )


def embedding_model(provider: str, option: str | None) -> str | None:
    """The model that compares meanings: that of the option, else the provider's own, if there is one."""
    return option or DEFAULT_EMBEDDING_MODELS.get(provider)


def runs_here(model: str) -> bool:
    """Return whether an embedding model needs no provider."""
    return model.startswith(LOCAL)


def sdk_of(provider: str, environ: Mapping[str, str]) -> type[SdkLLM]:
    """The class of a provider's models that are called over its SDK."""
    if provider == Provider.ANTHROPIC:
        return AnthropicLLM
    return openai_llm.AzureOpenAILLM if openai_llm.is_azure(environ) else openai_llm.OpenAILLM
