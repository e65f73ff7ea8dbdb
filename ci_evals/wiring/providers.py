"""Providers of models by name: their default models, their keys, and the SDK that calls them."""

from collections.abc import Mapping
from typing import NamedTuple

from ci_evals.adapters.models import anthropic_llm, claude_code_llm, openai_embedder, openai_llm
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.domain.prices import LOCAL
from ci_evals.domain.results.run import OFFLINE

LLM_TIMEOUT = 120.0
"""Seconds that each attempt to ask a model may take, if nobody says otherwise."""
CLAUDE_CODE = "claude-code"


class DefaultModels(NamedTuple):
    """A provider's models for a suite that names none."""

    judge: str
    user: str


DEFAULT_MODELS: Mapping[str, DefaultModels] = {
    "openai": DefaultModels(openai_llm.DEFAULT_JUDGE_MODEL, openai_llm.DEFAULT_USER_MODEL),
    "anthropic": DefaultModels(anthropic_llm.DEFAULT_JUDGE_MODEL, anthropic_llm.DEFAULT_USER_MODEL),
    CLAUDE_CODE: DefaultModels(claude_code_llm.DEFAULT_JUDGE_MODEL, claude_code_llm.DEFAULT_USER_MODEL),
}
"""Used where neither option nor suite names a model: a middle tier to judge, a small one to play the user."""

DEFAULT_EMBEDDING_MODELS: Mapping[str, str] = {"openai": openai_embedder.DEFAULT_MODEL}
"""The embedding models of the providers that have any."""

PROVIDERS = (*DEFAULT_MODELS, OFFLINE)
WITHOUT_KEY = frozenset({CLAUDE_CODE, OFFLINE})
"""Providers that need no key of ours."""
REPORTS_COST = frozenset({CLAUDE_CODE})
"""Providers that say themselves what a call has cost, so that no table of prices is needed."""


class ProviderKey(NamedTuple):
    """A key, or a bearer token in place of it, or neither."""

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
    if provider == "anthropic":
        return anthropic_llm.AnthropicLLM
    return openai_llm.AzureOpenAILLM if openai_llm.is_azure(environ) else openai_llm.OpenAILLM
